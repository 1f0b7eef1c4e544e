"""When figures outside their band become an alarm, and when it is over."""

from dataclasses import dataclass

from outrider.acceptance.alarm_band import Side


@dataclass(frozen=True, slots=True)
class Alarm:
    """The side of the alarm that is on, if any, and the latest windows in a row that agree.

    `run` windows were all on `side` (None: inside the band).
    """

    on: Side | None = None
    side: Side | None = None
    run: int = 0

    def after(self, side: Side | None, confirm: int) -> "Alarm":
        """Return the alarm after one more window that could be judged.

        It takes `confirm` windows in a row outside on one side to raise it, and as many inside to
        clear it.

        >>> Alarm().after("low", 2).on, Alarm().after("low", 2).after("low", 2).on
        (None, 'low')
        """
        run = self.run + 1 if side == self.side else 1
        return Alarm(side if run >= confirm else self.on, side, run)
