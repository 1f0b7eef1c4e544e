"""One logged answer: its prompt and what the model said, as token ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outrider.records.reading import TagValue

TokenIds = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class LoggedAnswer:
    """A prompt [P] and its completion [C, at least 1], in token ids.

    `max_tokens` is the most output tokens that the request could have had, at least C; None where
    the log does not tell: drafts at the end of the answer then are as long as anywhere. Answers
    with the same `cluster` are resampled together; None: each by itself. `timestamp_s` is when it
    was logged. `retokenized` says that the log had text, and the ids are a tokenizer's. `tags` are
    what else is known, to make segments by.
    """

    prompt: TokenIds
    completion: TokenIds
    max_tokens: int | None = None
    cluster: str | None = None
    timestamp_s: float | None = None
    retokenized: bool = False
    tags: Mapping[str, TagValue] = field(default_factory=dict)
