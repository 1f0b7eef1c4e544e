"""First come, first served, within the limits of a step and of the cache."""

from collections import deque
from dataclasses import dataclass, replace

from outrider.engine.caching.cache import BlockCache
from outrider.engine.models.base import blocks_for
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting

MOST_PROMPT_LOGITS = 256
"""Prompt tokens of one request whose logits a step tells: each is a vocabulary of memory."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one step does for one sequence.

    The target computes the next `tokens` of its known tokens, and after them at most `draft_limit`
    drafted ones. `completes` says that no known token is left after these, so that a new one
    follows; `prefill` that these are of the prompt.
    """

    sequence: Sequence
    tokens: int
    draft_limit: int
    completes: bool
    prefill: bool


class Scheduler:
    """Holds the running and the waiting sequences and divides each step among them.

    Running sequences come first, in the order of their arrival, then waiting ones while there is
    room. A long prompt is computed in several steps. Where the cache runs out of blocks, the
    sequence that came last gives its own up and is computed again later.
    """

    def __init__(self, cache: BlockCache, limits: Limits) -> None:
        self.cache = cache
        self.limits = limits
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.preemptions = 0

    def add(self, sequence: Sequence) -> None:
        """Let `sequence` wait its turn; InvalidSetting if it can never fit the cache."""
        needed, there = blocks_for(sequence.most_tokens), self.cache.pool.num_blocks
        if needed > there:
            raise InvalidSetting(
                f"request {sequence.request_id!r} may take {sequence.most_tokens:,} tokens,"
                f" {needed:,} blocks of the cache",
                f"at most the {there:,} that there are",
                "shorten the prompt, lower max_tokens or raise --kv-cache-memory",
            )
        self.waiting.append(sequence)

    def schedule(self, k: int) -> list[Piece]:
        """Return what the next step does, with drafts of at most `k` tokens."""
        pieces: list[Piece] = []
        budget = self.limits.max_num_batched_tokens
        preemptions = self.preemptions
        # A copy, since sequences at the end may be preempted on the way.
        for place, sequence in enumerate(tuple(self.running)):
            if place >= len(self.running):
                break
            # Those behind must get a token too.
            left = budget - (len(self.running) - place - 1)
            piece = self._with_room(_piece(sequence, k, left))
            if piece is not None:
                pieces.append(piece)
                budget -= piece.tokens + piece.draft_limit
        # Blocks that a preemption freed are for those that run.
        while self.preemptions == preemptions and budget > 0 and (piece := self._admit(budget)):
            pieces.append(piece)
            budget -= piece.tokens
        return pieces

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence that has ended or was cancelled; its blocks are free at once."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self.cache.release(sequence)

    def _admit(self, budget: int) -> Piece | None:
        if not self.waiting or len(self.running) >= self.limits.max_num_seqs:
            return None
        sequence = self.waiting[0]
        self.cache.begin(sequence)
        piece = _piece(sequence, 0, budget)
        if not self.cache.grow(sequence, sequence.computed_tokens + piece.tokens):
            self.cache.release(sequence)
            return None
        if sequence.cached_tokens is None:
            sequence.cached_tokens = sequence.computed_tokens
        self.running.append(self.waiting.popleft())
        return piece

    def _with_room(self, piece: Piece) -> Piece | None:
        """Find blocks for `piece`, without its draft or at the cost of later sequences if need be.

        None where the sequence had to give up its own.
        """
        sequence = piece.sequence
        known = sequence.computed_tokens + piece.tokens
        if self.cache.grow(sequence, known + piece.draft_limit):
            return piece
        while not self.cache.grow(sequence, known):
            last = self.running.pop()
            self.cache.release(last)
            self.waiting.appendleft(last)
            self.preemptions += 1
            if last is sequence:
                return None
        return replace(piece, draft_limit=0)


def _piece(sequence: Sequence, k: int, budget: int) -> Piece:
    missing = len(sequence) - sequence.computed_tokens
    tokens = min(missing, budget)
    prefill = len(sequence) == sequence.prompt_tokens
    if sequence.asks_prompt_logprobs:
        tokens = min(tokens, MOST_PROMPT_LOGITS)
    # A token that comes of several known ones, as in the prefill, comes without a draft; and the
    # last that fits needs none.
    limit = 0 if prefill or missing > 1 else min(k, sequence.room_tokens - 1, budget - tokens)
    return Piece(sequence, tokens, limit, completes=tokens == missing, prefill=prefill)
