"""Failures that a user can cause, and what each asks of them.

OutriderError
├── UnknownModel          a name that is no catalogue entry, file, folder or hub id
├── UnsupportedModel      a model family or tensor format that the engine does not run
├── CorruptFile           a file that is cut short, altered or not of its kind
├── ModelUnavailable      no source could deliver the model
├── InvalidWorkload       a prompt file that does not parse
├── InvalidSetting        a value outside its range, or two that exclude each other
├── NotEnoughMemory       the weights and the cache do not fit
├── RequestFailed         a request that the engine could not finish
├── UnreadableSource      a file, folder or address to report on that cannot be opened
├── NoCluster             a cluster that does not answer, or cannot do the work
├── UnwritableOutput      a path that cannot be written
├── InvalidEvidence       an evidence file that is not one, or does not fit what was asked
├── NothingUsable         sources that say nothing of speculation (exit code 3)
├── BelowThreshold        acceptance below what --fail-under asks for (exit code 1)
└── NotLossless           speculation changed the output (exit code 1, all others 2)
"""


class OutriderError(Exception):
    """A failure told in one line: what was seen, what was expected, what to do."""

    exit_code = 2

    def __init__(self, seen: str, expected: str, remedy: str) -> None:
        super().__init__(f"{seen}; expected {expected}; {remedy}")
        self.seen = seen
        self.expected = expected
        self.remedy = remedy


class UnknownModel(OutriderError):
    """A name that is no catalogue entry, file, folder or hub id."""


class UnsupportedModel(OutriderError):
    """A model family or tensor format that the engine does not run."""


class CorruptFile(OutriderError):
    """A file that is cut short, altered or not of its kind."""


class ModelUnavailable(OutriderError):
    """No source could deliver the model."""


class InvalidWorkload(OutriderError):
    """A prompt file that does not parse."""


class InvalidSetting(OutriderError):
    """A value outside its range, or two that exclude each other."""


class NotEnoughMemory(OutriderError):
    """The weights and the cache do not fit."""


class RequestFailed(OutriderError):
    """A request that the engine could not finish."""


class UnreadableSource(OutriderError):
    """A file, folder or address to report on that cannot be opened."""


class NoCluster(OutriderError):
    """A cluster that does not answer, or cannot do the work."""


class UnwritableOutput(OutriderError):
    """A path that cannot be written."""


class InvalidEvidence(OutriderError):
    """An evidence file that is not one, or does not fit what was asked."""


class NothingUsable(OutriderError):
    """Sources that say nothing of speculation."""

    exit_code = 3


class BelowThreshold(OutriderError):
    """Acceptance below what --fail-under asks for."""

    exit_code = 1


class NotLossless(OutriderError):
    """Speculation changed the output where the target was not near a tie."""

    exit_code = 1
