"""The flags of all segments as the page shows them: each finding once, with its severity."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

from outrider.acceptance.flags import Flag
from outrider.report.acceptance.document import AcceptanceReport, SegmentReport

SEVERITIES = MappingProxyType(
    {
        "broken_drafter": "problem",
        "corrupted_output": "problem",
        "all_or_nothing": "problem",
        "suspiciously_perfect": "problem",
        "nominal_drafted": "remark",
        "estimated_steps": "remark",
        "chunks_counted_as_tokens": "remark",
        "weighting_matters": "remark",
        "late_acceptance": "remark",
        "too_few_requests": "remark",
    }
)
"""How grave a flag is, by its code: a problem says that something is broken, a remark how to read
the numbers; any other asks for a check."""

_ORDER = ("problem", "check", "remark")


@dataclass(slots=True)
class Finding:
    """A kind of flag, and the (segment, evidence) of all that have it."""

    title: str
    severity: str
    entries: list[tuple[str, str]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    def add(self, segment: str, flag: Flag) -> None:
        """Take in one segment's flag."""
        self.entries.append((segment, flag.detail))
        if flag.check not in self.checks:
            self.checks.append(flag.check)


def find_findings(report: AcceptanceReport) -> list[Finding]:
    """Return each kind of flag once, the gravest first.

    The records as a whole add only what their parts do not show already.
    """
    found: dict[str, Finding] = {}
    _add(found, report.segments, known=frozenset())
    _add(found, report.whole, known=frozenset(found))
    return sorted(found.values(), key=lambda finding: _ORDER.index(finding.severity))


def _add(
    found: dict[str, Finding], segments: Iterable[SegmentReport], known: frozenset[str]
) -> None:
    for segment in segments:
        for flag in segment.flags:
            if flag.code not in known:
                title = flag.code.replace("_", " ").capitalize()
                severity = SEVERITIES.get(flag.code, "check")
                found.setdefault(flag.code, Finding(title, severity)).add(segment.name, flag)
