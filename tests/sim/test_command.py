"""`kubenexus agents` says in one line what is wrong, and shows no traceback."""

import pytest
from click.testing import CliRunner

from kubenexus.cli import main
from kubenexus.testing.controlplane import free_ports

KUBECONFIG = """
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
contexts: [{{name: c, context: {{cluster: c}}}}]
current-context: c
"""


@pytest.mark.parametrize(
    ("options", "line"),
    [
        pytest.param(["--kubeconfig=missing"], "Error: kubeconfig missing: no such file", id="no kubeconfig"),
        pytest.param(["--label=x"], "Error: --label must be KEY=VALUE, not 'x'", id="half a label"),
        pytest.param(["--resource==1"], "Error: --resource must be KEY=VALUE, not '=1'", id="a nameless resource"),
        pytest.param(["--taint=a=b:Sometimes"], "Error: --taint must be KEY=VALUE:EFFECT", id="an unknown effect"),
    ],
)
def test_bad_options(options: list[str], line: str) -> None:
    result = CliRunner().invoke(main, ["agents", *options])
    assert result.exit_code in (1, 2)
    assert result.output.splitlines()[-1].startswith(line)
    assert isinstance(result.exception, SystemExit)


def test_a_server_that_is_not_there(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("agents") / "kubeconfig"
    path.write_text(KUBECONFIG.format(port=free_ports(1)[0]))
    result = CliRunner().invoke(main, ["agents", "--nodes=3", f"--kubeconfig={path}"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert len(result.output.splitlines()) == 1
