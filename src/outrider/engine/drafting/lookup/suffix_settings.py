"""What suffix decoding can be set to: vLLM's settings and defaults."""

from dataclasses import dataclass

from outrider.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class SuffixSettings:
    """How much suffix decoding looks back, keeps and dares.

    A match and the draft from it are together at most `max_tree_depth` tokens long. The answers of
    the last `max_cached_requests` are looked up beside a request's own text; 0 is its own alone. A
    match of m tokens gives at most m x `max_spec_factor` drafted ones, whose chance to follow, all
    together, is at least `min_token_prob`. Raises `InvalidSetting` unless depth >= 1, cached >= 0,
    factor >= 0 and 0 <= prob <= 1.
    """

    max_tree_depth: int = 24
    max_cached_requests: int = 10_000
    max_spec_factor: float = 1.0
    min_token_prob: float = 0.1

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("max_tree_depth", self.max_tree_depth >= 1, "1 or more"),
            ("max_cached_requests", self.max_cached_requests >= 0, "0 or more"),
            ("max_spec_factor", self.max_spec_factor >= 0, "0 or more"),
            ("min_token_prob", 0 <= self.min_token_prob <= 1, "a number from 0 to 1"),
        ):
            if not fits:
                raise InvalidSetting(
                    f"suffix_decoding_{name} {getattr(self, name)}", expected, "correct that value"
                )
