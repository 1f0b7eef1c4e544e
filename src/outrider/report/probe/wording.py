"""What a rung tells, in words."""

from outrider.records.probe.outcome import Outcome, Tells
from outrider.records.reading import AcceptanceRecord, Basis, Scope
from outrider.report.cells import counted, number

OUTCOMES = {
    "Tells": "tells",
    "DoesNot": "does not",
    "Unknown": "unknown",
    "NotTried": "not tried",
}

COVERS = {
    Scope.REQUEST: "Each answer by itself",
    Scope.INTERVAL: "An interval: all answers between the scrapes",
    Scope.SERVER: "Cumulative: all answers since the start",
}
SCOPES = {"counters_between": Scope.INTERVAL, "counters_since_start": Scope.SERVER}
"""What the counters cover; all other rungs are of single answers."""

_BASES: dict[Basis, str] = {
    "counted": "counted",
    "nominal": "nominal (K × steps)",
    "estimated": "estimated from tokens",
}


def outcome_name(outcome: Outcome) -> str:
    """Return "tells", "does not", "unknown" or "not tried"."""
    return OUTCOMES[type(outcome).__name__]


def sentences(name: str, outcome: Outcome) -> tuple[str, ...]:
    """Return what the rung `name` tells, or why it does not, a sentence each."""
    if not isinstance(outcome, Tells):
        return (_capital(outcome.reason),)
    covers = COVERS[SCOPES.get(name, Scope.REQUEST)] + _streamed(outcome)
    if not outcome.records:
        k = f"K = {outcome.k}; " if outcome.k else ""
        return (_capital(f"{k}{outcome.zero or 'nothing to show yet'}"), covers)
    first = outcome.records[0]
    several = len(outcome.records) > 1
    what = f"{counted(len(outcome.records), 'model or K')}, the first: " if several else ""
    zero = (_capital(outcome.zero),) if outcome.zero else (seen_counts(first),)
    return (f"{what}{_told(first)}", covers, *zero)


def seen_counts(record: AcceptanceRecord) -> str:
    """Return the counts that the probe itself saw."""
    steps = "" if record.steps is None else counted(record.steps, "step")
    about = "about " if record.steps_basis == "estimated" else ""
    drafted = "an unknown number of" if record.drafted is None else number(record.drafted)
    return f"Here {about}{steps}, {number(record.accepted)} of {drafted} drafted tokens accepted"


def _told(record: AcceptanceRecord) -> str:
    """Return which figures there are, and how each came about."""
    k = "K unknown" if record.k is None else f"K = {record.k}"
    lists = []
    if record.per_step_accepted is not None:
        lists.append("lengths of every step")
    if record.histogram is not None:
        lists.append("histogram")
    by_basis: dict[Basis, list[str]] = {}
    missing = []
    for name, value, basis in (
        ("steps", record.steps, record.steps_basis),
        ("accepted", record.accepted, record.accepted_basis),
        ("drafted", record.drafted, record.drafted_basis),
    ):
        if value is None:
            missing.append(name)
        else:
            by_basis.setdefault(basis, []).append(name)
    counts = [f"{_and(names)} {_BASES[basis]}" for basis, names in by_basis.items()]
    absent = [f"{_and(missing)} not told"] if missing else []
    return "; ".join(part for part in (k, ", ".join(lists), ", ".join(counts + absent)) if part)


def _streamed(outcome: Tells) -> str:
    if outcome.streamed:
        return ", plain or streamed"
    if outcome.streamed is False:
        return f"; not in streams ({outcome.stream_reason})"
    return f"; streams unknown ({outcome.stream_reason})" if outcome.stream_reason else ""


def _and(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _capital(text: str) -> str:
    # Not str.capitalize, which would take away all other capitals; and vLLM is so spelt.
    plain = text.startswith(("vLLM", "--")) or "." in text.partition(" ")[0]
    return text if plain else f"{text[:1].upper()}{text[1:]}"
