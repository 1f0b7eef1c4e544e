from outrider.acceptance.alarm import Alarm
from outrider.acceptance.alarm_band import Side


def states(sides: list[Side | None], confirm: int) -> list[Side | None]:
    alarm, seen = Alarm(), []
    for side in sides:
        alarm = alarm.after(side, confirm)
        seen.append(alarm.on)
    return seen


def test_it_takes_two_windows_in_a_row_to_raise_and_to_clear() -> None:
    assert states(["low", None, "low", "low", None, "low", None, None], 2) == [
        None, None, None, "low", "low", "low", "low", None,
    ]  # fmt: skip


def test_windows_on_different_sides_are_not_in_a_row() -> None:
    assert states(["low", "high", "low", "high"], 2) == [None] * 4


def test_an_alarm_changes_sides_without_being_cleared() -> None:
    assert states(["low", "low", "high", "high"], 2) == [None, "low", "low", "high"]


def test_without_confirmation_every_window_counts() -> None:
    assert states(["high", None, "low"], 1) == ["high", None, "low"]
