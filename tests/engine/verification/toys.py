"""A toy target and toy drafters over four tokens, and the exact law of what the target says.

Everything is known in closed form: what comes next depends on the two tokens before it, by tables
of logits. `speculate` runs thousands of sequences at once through a verifier.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import chisquare

from outrider.engine.drafting.draft import Draft
from outrider.engine.drafting.sampling import DraftSampleMethod, draft_tokens
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.verification.base import Verifier

VOCABULARY = 4
K = 3
DRAWS = 20_000
EMITTED = 3

Tokens = NDArray[np.int64]


def table(seed: int, spread: float = 1.0) -> torch.Tensor:
    """Logits [V, V, V]: the token before last, the last, the next."""
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(VOCABULARY, VOCABULARY, VOCABULARY, generator=generator)


TARGET = table(3, spread=0.8)


@dataclass(frozen=True)
class PooledSampling(Sampling):
    """Uniforms drawn ahead by the thousand: one generator call per sequence is most of the time."""

    pools: dict[int, Iterator[torch.Tensor]] = field(default_factory=dict)

    def uniforms(self, count: int) -> torch.Tensor:
        return next(self.pools.setdefault(count, self.pool(count)))

    def peek(self, count: int) -> torch.Tensor:
        return self.uniforms(count)

    def use(self, count: int) -> None:
        """Nothing comes again: many sequences share this one."""

    def pool(self, count: int) -> Iterator[torch.Tensor]:
        while True:
            block = torch.rand(1_000, count, generator=self.generator, dtype=torch.float64)
            yield from block.unbind()


def samplings(parameters: SamplingParameters, count: int) -> list[Sampling]:
    """The same parameters for all, and one generator that they draw from in turn."""
    generator = torch.Generator().manual_seed(parameters.seed or 0)
    return [PooledSampling(parameters, generator)] * count


@dataclass(frozen=True)
class TableDrafter:
    """Drafts from a table of logits as a drafter with a model of its own does.

    `temperature` None is the request's. `claims` is the table whose softmax at temperature 1 it
    gives as q, where it lies about it.
    """

    logits: torch.Tensor
    method: DraftSampleMethod = "probabilistic"
    temperature: float | None = None
    claims: torch.Tensor | None = None

    def draft(self, context: Tokens, sampling: list[Sampling]) -> Draft:
        if self.temperature is not None:
            warmer = replace(sampling[0], parameters=SamplingParameters(self.temperature, seed=0))
            sampling = [warmer] * len(sampling)
        before, last = torch.from_numpy(context).T
        tokens, q = [], []
        for _ in range(K):
            drafted = draft_tokens(self.logits[before, last], sampling, self.method)
            tokens.append(drafted.tokens.numpy().astype(np.int32))
            if self.claims is not None:
                q.append(self.claims[before, last].softmax(-1))
            elif drafted.q is not None:
                q.append(drafted.q)
            before, last = last, drafted.tokens
        lengths = np.full(len(context), K)
        return Draft(np.stack(tokens, axis=1), lengths, torch.stack(q, dim=1) if q else None)


@dataclass(frozen=True)
class ArbitraryDrafter:
    """Drafts any tokens with certainty, none to three of them."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))

    def draft(self, context: Tokens, _: list[Sampling]) -> Draft:
        tokens = self.rng.integers(0, VOCABULARY, (len(context), K)).astype(np.int32)
        return Draft(tokens, self.rng.integers(0, K + 1, len(context)))


Trim = Callable[[Draft], NDArray[np.int64]]
Constrain = Callable[[Tokens, Draft], Draft]


def target_rows(context: Tokens, draft: Draft, target: torch.Tensor = TARGET) -> torch.Tensor:
    """The target's logits [R, V] for a batch with `context` [B, 2]."""
    read = torch.from_numpy(np.concatenate([context, draft.tokens], axis=1).astype(np.int64))
    cells = target[read[:, :-1], read[:, 1:]]
    owned = np.arange(draft.tokens.shape[1] + 1) <= draft.lengths[:, None]
    return cells[torch.from_numpy(owned)]


def speculate(
    verifier: Verifier,
    drafter: TableDrafter | ArbitraryDrafter,
    parameters: SamplingParameters,
    *,
    draws: int = DRAWS,
    trim: Trim | None = None,
    constrain: Constrain | None = None,
    target: torch.Tensor = TARGET,
) -> Tokens:
    """The first three tokens of each of `draws` sequences, int [draws, 3], all begun alike."""
    text = np.zeros((draws, 2 + EMITTED + K), np.int64)
    length = np.full(draws, 2)
    sampling = samplings(parameters, draws)
    while len(rows := np.flatnonzero(length < 2 + EMITTED)):
        ends = length[rows]
        context = text[rows[:, None], ends[:, None] + [-2, -1]]
        draft = drafter.draft(context, sampling[: len(rows)])
        if trim is not None:
            draft = Draft(draft.tokens, trim(draft), draft.probabilities)
        if constrain is not None:
            draft = constrain(context, draft)
        verdict = verifier.verify(target_rows(context, draft, target), draft, sampling[: len(rows)])
        counts = verdict.accepted + 1
        at = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        text[np.repeat(rows, counts), np.repeat(ends, counts) + at] = np.concatenate(
            verdict.emitted
        )
        length[rows] += counts
    return text[:, 2 : 2 + EMITTED]


def law(logits: NDArray[np.float64], parameters: SamplingParameters) -> NDArray[np.float64]:
    """What one token is drawn from, written out: temperature, top-k, top-p."""
    p = np.exp(logits / parameters.temperature)
    p /= p.sum()
    order = np.argsort(-p)
    if parameters.top_k > 0:
        p[order[parameters.top_k :]] = 0
        p /= p.sum()
    total = 0.0
    for token in order:
        if total >= parameters.top_p:
            p[token] = 0
        total += p[token]
    return np.asarray(p / p.sum())


def joint_law(parameters: SamplingParameters, target: torch.Tensor = TARGET) -> NDArray[np.float64]:
    """The exact probability of each triple, [V**3]."""
    step = np.array(
        [[law(row, parameters) for row in rows] for rows in target.double().numpy()], np.float64
    )
    return np.array(
        [
            step[0, 0, a] * step[0, a, b] * step[a, b, c]
            for a, b, c in product(range(VOCABULARY), repeat=EMITTED)
        ]
    )


def p_value(counts: Tokens, expected: NDArray[np.float64]) -> float:
    """Chi-square of `counts` against probabilities; 0 where the impossible has happened."""
    possible = expected > 0
    assert expected[possible].min() * counts.sum() > 5, "too few draws for a chi-square test"
    if counts[~possible].any():
        return 0.0
    return float(chisquare(counts[possible], expected[possible] * counts.sum()).pvalue)


def joint_p_value(
    triples: Tokens, parameters: SamplingParameters, target: torch.Tensor = TARGET
) -> float:
    """Test triples [N, 3] against the target's law."""
    numbers = triples @ VOCABULARY ** np.arange(EMITTED)[::-1]
    return p_value(
        np.bincount(numbers, minlength=VOCABULARY**EMITTED), joint_law(parameters, target)
    )


def bonferroni(tests: int, level: float = 0.01) -> float:
    """The p-value that one of `tests` may fall below, if all together may with chance `level`."""
    return level / tests


NEVER = 1e-12
"""A p-value that no correct verifier comes near: what must fail stays below it."""
