"""What resolution needs to know of the target, all of it known before the weights are loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """`model` is the target as the user names it: a path, a catalogue entry or a hub id."""

    model: str
