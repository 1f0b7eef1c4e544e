"""Prints the README's table from an evidence file: `python benchmarks/readme_table.py FILE`."""

import sys
from pathlib import Path

from outrider.advice.comparison import SegmentComparison
from outrider.records.evidence_reader import read_evidence
from outrider.report.run.document import build_document


def row(segment: SegmentComparison) -> str:
    """One segment: each arm's speed-up with its interval."""
    cells = []
    for pair in segment.against_baseline:
        estimate = pair.speed_up
        interval = estimate.interval
        if estimate.value is None or interval is None:
            cells.append("–")
        else:
            cells.append(f"{estimate.value:.2f} ({interval.low:.2f}–{interval.high:.2f})")
    return f"| {segment.segment} | " + " | ".join(cells) + " |"


def main() -> None:
    """Prints the table and the line below it."""
    evidence = read_evidence(Path(sys.argv[1]))
    document = build_document(evidence)
    segments = document.comparison.segments
    arms = [pair.arm for pair in segments[0].against_baseline]
    print("| prompts | " + " | ".join(arms) + " |")
    print("|---" * (len(arms) + 1) + "|")
    for segment in segments:
        print(row(segment))
    environment = document.environments[0]
    print(
        f"\n{environment.cpu}, {environment.threads} threads, {environment.model.dtype} weights;"
        f" {len(evidence.prompts)} prompts x {document.settings.repeats} repeats,"
        f" {document.finished_requests} requests."
    )


if __name__ == "__main__":
    main()
