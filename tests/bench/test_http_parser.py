"""The comparison of the two readers of answers runs and prints a line for each case."""

import pytest

from bench import http_parser
from kubenexus.client import http_connection, http_response


def test_both_readers_are_compared_in_each_case(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case with one call: the times are not looked at."""
    monkeypatch.setattr(http_parser, "CASES", {case: (read, 1) for case, (read, _) in http_parser.CASES.items()})
    http_parser.run(rounds=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(http_parser.CASES) + 4
    assert vars(http_connection)["ResponseParser"] is http_response.ResponseParser
