"""`kubenexus eta`: when a job is expected to start."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options
from kubenexus.cli.explain import config_option
from kubenexus.cli.printing import echo_data, echo_lines, output_option
from kubenexus.cli.profiles import load_configuration, profile_of
from kubenexus.cli.scheduler_api import SchedulerApi, scheduler_options

if TYPE_CHECKING:
    from kubenexus.app.http.api.documents import EtaPage
    from kubenexus.app.http.api.questions import EtaQuery


@click.command()
@click.argument("what", metavar="[JOB|POD|gang/NAME]", required=False, default="")
@click.option("-n", "--namespace", default="", help="Of the job. Default: that of the kubeconfig's context.")
@scheduler_options
@cluster_options
@config_option
@output_option("text")
def eta(
    source: ClusterSource,
    scheduler: SchedulerApi,
    what: str,
    namespace: str,
    config_file: Path | None,
    output: str,
) -> None:
    """Say when a job is expected to start, its place in the queue, and what that is based on.

    JOB|POD is as for `why`: llama-0, job/train, gang/llama, ml/llama-0. Without one, all jobs of the namespace.

    The queue is played forward many times, with runtimes drawn from what pods declare and from earlier runs: eight
    starts of ten are in the range. Asks the scheduler (--scheduler), which knows earlier runs. Without it, reads the
    live cluster with your kubeconfig, or (--cluster) a file: then only declared runtimes count.

    Exit code 0: its start is expected, or it has started; 2: that is not known; 1: something is wrong with the input.
    """
    import msgspec

    from kubenexus.app.http.api.documents import EtaPage
    from kubenexus.app.http.api.pages import MAX_ITEMS, PageQuery
    from kubenexus.app.http.api.questions import EtaQuery
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.explain.eta_report import SCHEDULED, render_eta
    from kubenexus.explain.find_pod import Target, parse_target

    try:
        target = parse_target(what) if what else Target("", "", "")
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    where = target.namespace or namespace or source.namespace
    query = EtaQuery(PageQuery(where, "", MAX_ITEMS), target.name, target.kind)
    page = _asked(scheduler, source, query)
    if page is None:
        page = msgspec.json.decode(_read(source, query, config_file), type=EtaPage)
    if output in ("json", "yaml"):
        echo_data(page, output)
    else:
        echo_lines(render_eta(page, wide=output == "wide"))
    known = all(each.likely or each.state == SCHEDULED for each in page.items)
    raise SystemExit(0 if known else 2)


def expected_starts(scheduler: SchedulerApi, source: ClusterSource, namespace: str) -> dict[str, str]:
    """Returns when the jobs of a namespace are expected to start, or ("") of all: `12m-1h20m`, by name. Empty if the
    scheduler does not answer."""
    from kubenexus.app.http.api.pages import MAX_ITEMS, PageQuery
    from kubenexus.app.http.api.questions import EtaQuery
    from kubenexus.explain.eta_report import start_texts

    page = _asked(scheduler, source, EtaQuery(PageQuery(namespace, "", MAX_ITEMS)))
    return {} if page is None else start_texts(page)


def _asked(scheduler: SchedulerApi, source: ClusterSource, query: "EtaQuery") -> "EtaPage | None":
    """Returns the scheduler's answer, None if there is no scheduler to ask, or it does not answer."""
    import msgspec

    from kubenexus.app.http.api import paths
    from kubenexus.app.http.api.documents import EtaPage

    if not scheduler.url or source.file is not None:
        return None
    try:
        raw = scheduler.get(
            paths.ETA, namespace=query.page.namespace, name=query.name, kind=query.kind, limit=str(query.page.limit)
        )
        return msgspec.json.decode(raw, type=EtaPage)
    except (click.ClickException, msgspec.DecodeError) as error:
        click.echo(f"warning: the scheduler did not say when jobs start ({error})", err=True)
        return None


def _read(source: ClusterSource, query: "EtaQuery", config_file: Path | None) -> bytes:
    from kubenexus.app.http.api.request_problem import RequestProblem
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.explain.dump_answers import ClusterView, DumpAnswers

    try:
        configuration = load_configuration(config_file)
        answers = DumpAnswers(lambda pod: profile_of(pod, configuration))
        return answers.eta(ClusterView(source.open()), query, source.now())
    except (KubeNexusError, RequestProblem) as error:
        raise click.ClickException(str(error)) from None
