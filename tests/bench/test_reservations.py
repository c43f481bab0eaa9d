"""The bench of reservations: that it sees idle room where there is some, and what it demands."""

from collections.abc import Mapping

import pytest

from bench import reservations
from bench.reservations import Hold, Look, Scene, Story, Stretch
from kubenexus.app.gangs.reservation_account import ReservationAccount

QUICK = {"two gangs": Scene(gangs={"a": 24, "b": 23}, hours=1.1)}


def test_it_passes_and_tells_each_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert reservations.main(QUICK) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "story"
    assert line.startswith("two gangs")


def test_it_fails_where_reservations_never_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReservationAccount, "is_resting", lambda account, now: False)
    assert reservations.main(QUICK) == 1


def test_it_fails_where_a_gang_that_shrinks_until_it_fits_costs_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    shrinking = {"shrinking": Scene(arrive=reservations.shrinking(), hours=1.1)}
    assert reservations.main(shrinking) == 0
    monkeypatch.setattr(ReservationAccount, "ended_in_vain", ReservationAccount.placed)
    assert reservations.main(shrinking) == 1


WAITED, CLOSER = Hold("g"), Hold("g", placed=True)


@pytest.mark.parametrize(
    ("stretch", "share"),
    [
        pytest.param(Stretch(WAITED, 0.0), 0.5, id="in vain"),
        pytest.param(Stretch(WAITED, 0.0, closer=True), 0.0, id="the gang came closer"),
        pytest.param(Stretch(CLOSER, 0.0), 0.0, id="the gang was placed"),
        pytest.param(None, 0.0, id="nothing was kept"),
    ],
)
def test_what_counts_as_idle_for_nothing(stretch: Stretch | None, share: float) -> None:
    story = Story(Scene(nodes=1, held=0), 0)
    story.looks = [Look(8, 4 if stretch else 0, stretch)] * 400
    assert max(story.hours()) == pytest.approx(share)


def test_there_are_ten_random_stories_and_pods_with_and_without_an_end() -> None:
    names: Mapping[str, Scene] = reservations.STORIES
    assert sum(name.startswith("random") for name in names) == 10
    assert {scene.policy for scene in names.values()} == {"Always", "Never"}
