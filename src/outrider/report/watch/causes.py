"""What to check when acceptance leaves its band."""

from collections.abc import Mapping

from outrider.acceptance.alarm_band import Side

CHECKS: Mapping[Side, str] = {
    "low": "read a few answers: garbled text, a wrong chat template or language? was the target"
    " updated, quantised or given an adapter that the drafter does not know? is this another kind"
    " of traffic?",
    "high": "read a few answers: do they loop, or copy their prompt? is one client repeating"
    " itself? are drafts counted that verify themselves, or accepted by a lossy mode?",
}
