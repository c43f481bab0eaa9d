"""What docs/webhook.md promises is what the code does: its messages, its kinds, its options, its figures."""

import re
from pathlib import Path

import click
import pytest
import yaml

from kubenexus.api.keys import gang
from kubenexus.cli.webhook import webhook
from kubenexus.webhook import admission, certificates, server
from kubenexus.webhook.mutation import DEFAULT_CLASSES, mutate_gang
from kubenexus.webhook.pod_sets import KINDS, MAX_POD_SETS
from kubenexus.webhook.validation import OTHER_KINDS, RESERVATION, ValidationSettings, validate
from tests.webhook.requests import MIN, NAME, applied, job, pod, request, template

PAGE = (Path(__file__).parents[2] / "docs" / "webhook.md").read_text(encoding="utf-8")


def test_the_first_example_is_refused_in_these_words() -> None:
    (labels,) = re.findall(r"--labels=(\S+)=trainign\nError", PAGE)
    found = validate(request("Pod", pod({labels: "trainign"})), ValidationSettings())
    assert f"denied the request: {found.message}\n" in PAGE


def test_the_second_example_warns_in_these_words() -> None:
    (labels,) = re.findall(r"--labels=(\S+)=training\nWarning", PAGE)
    found = validate(request("Pod", pod({labels: "training"})), ValidationSettings())
    assert found.allowed
    assert f"Warning: {found.warnings[0]}\n" in PAGE


def test_a_gang_that_is_too_large_is_described_in_these_words() -> None:
    found = validate(request("Job", job(template({NAME: "llama", MIN: "8"}), 4)), ValidationSettings())
    (quoted,) = re.findall(r"`(gang ml/llama needs [^`]+)`", PAGE)
    assert quoted in found.warnings[0]


def test_the_annotation_of_the_example_makes_a_gang_of_this_name() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    data = job(template(), 8) | yaml.safe_load(example)
    done = applied(data, mutate_gang(request("Job", data)).patch)
    (name,) = re.findall(r"The gang is called `([^`]+)`", PAGE)
    assert done["spec"]["template"]["metadata"]["labels"][NAME] == name


def test_it_names_every_kind() -> None:
    (section,) = re.findall(r"## What it looks at\n(.*?)\n\|", PAGE, re.DOTALL)
    kinds = {kind for _, kind in {*KINDS, *OTHER_KINDS, RESERVATION}}
    assert {kind for kind in kinds if f"{kind}s" not in section} == set()
    rows = set(re.findall(r"^\| (\w+) \| [^|]+ \|$", PAGE.partition("| kind | minimum |")[2], re.MULTILINE))
    assert set(gang.INJECT.on) <= rows


def test_it_names_every_option_of_the_command_and_no_other() -> None:
    options = {name for each in webhook.params if isinstance(each, click.Option) for name in each.opts}
    section = PAGE.partition("## Without the chart")[2].partition("## Bounds")[0]
    named = set(re.findall(r"`(-[a-z-]+)", section))
    assert named == options - {"--v"}


@pytest.mark.parametrize(
    "promise",
    [
        f"at most {server.MAX_BODY >> 20} MiB and has to arrive within {server.BODY_SECONDS:g} seconds",
        f"no request arrives for {server.IDLE_SECONDS / 60:g} minutes",
        f"all reviews together hold at most {server.MAX_HELD >> 20} MiB",
        f"{MAX_POD_SETS} pod templates are looked at",
        f"at most {admission.MAX_REASONS} reasons and {admission.MAX_WARNINGS} warnings",
        f"renewed {certificates.RENEW_BEFORE / 86_400:g} days before it ends",
        "`{gold}` for gold, `{silver}` for silver, `{bronze}` for bronze".format(
            **{tier: each[0] for tier, each in DEFAULT_CLASSES.items()}
        ),
    ],
)
def test_its_figures_are_those_of_the_code(promise: str) -> None:
    assert promise in PAGE
