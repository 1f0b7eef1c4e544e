"""How much one step and one engine may take on."""

from dataclasses import dataclass

from outrider.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class Limits:
    """At most `max_num_seqs` requests run at once, at most `max_num_batched_tokens` in one step.

    Prompt tokens, last tokens and drafted tokens all count. Raises InvalidSetting unless there is
    room for one token of every running request.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048

    def __post_init__(self) -> None:
        if self.max_num_seqs < 1:
            raise InvalidSetting(
                f"--max-num-seqs {self.max_num_seqs}", "1 or more", "raise it to at least 1"
            )
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise InvalidSetting(
                f"--max-num-batched-tokens {self.max_num_batched_tokens}",
                f"at least --max-num-seqs {self.max_num_seqs}, a token for each",
                "raise the one or lower the other",
            )
