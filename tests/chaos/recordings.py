"""Recordings of schedulers, repeated."""

from pathlib import Path

from kubenexus.app.configured_parts import make_ledger, make_planner
from kubenexus.config import defaults, load
from kubenexus.config.args import GANGS
from kubenexus.config.gang_settings import gang_settings
from kubenexus.explain.replay_recording import ReplayResult, entries_of, read_header, recording_files, replay
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN

NOTHING = ReplayResult(0, 0, None, 0.0, 0.0)


def replayed(folder: Path) -> ReplayResult:
    """Repeats the decisions of a process that wrote into this folder. One that was killed at its start left none."""
    if not list(folder.glob("*.knx")):
        return NOTHING
    files = recording_files(folder)
    if not next(entries_of(files), None):
        return NOTHING
    text, plugins = read_header(files[0]).configuration, load_plugins(BUILT_IN)
    configuration = load(text, plugins) if text else defaults(plugins)
    planners = {
        each.name: make_planner(
            each, plugins, gang_settings(configuration.args[each.name].get(GANGS, {}), each.name), configuration
        )
        for each in configuration.profiles
    }
    return replay(entries_of(files), make_ledger(configuration), planners)
