"""Applies what requests ask of their logits, row by row, before anything is chosen."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling.bad_words import BadWords
from outrider.engine.sampling.history import History, Rule
from outrider.engine.sampling.masks import AllowedTokens, LogitBias, MinTokens
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.engine.sampling.penalties import Penalties

if TYPE_CHECKING:  # which holds its own sampling
    from outrider.engine.sequence import Sequence as RunningSequence


def rules_of(parameters: SamplingParameters, end_token_ids: Collection[int]) -> tuple[Rule, ...]:
    """The rules that one sequence with these parameters needs, in the order of vLLM; mostly none.

    `end_token_ids` are the model's own. `min_tokens` keeps them back even where `ignore_eos` says
    that they end nothing, as in vLLM.
    """
    rules: list[Rule] = []
    if parameters.allowed_token_ids is not None:
        rules.append(AllowedTokens(parameters.allowed_token_ids))
    if parameters.bad_words_token_ids:
        rules.append(BadWords(parameters.bad_words_token_ids))
    ends = {*end_token_ids, *parameters.stop_token_ids}
    if parameters.min_tokens and ends:
        rules.append(MinTokens(parameters.min_tokens, ends))
    if parameters.logit_bias:
        rules.append(LogitBias(parameters.logit_bias))
    if (
        parameters.repetition_penalty != 1
        or parameters.presence_penalty != 0
        or parameters.frequency_penalty != 0
    ):
        rules.append(Penalties(parameters))
    return tuple(rules)


def process(
    logits: torch.Tensor, draft: Draft, sequences: "Sequence[RunningSequence]"
) -> torch.Tensor:
    """Return `logits` [sum(lengths + 1), V] as the requests want them, to be judged or drawn from.

    A sequence with d drafted tokens owns d + 1 consecutive rows. Each row is treated as plain
    decoding would treat it with the drafted tokens before it already in the output. Where no
    sequence asks for anything, `logits` itself comes back; otherwise a copy, and the raw logits
    stay as they are.
    """
    if not any(each.sampling.rules for each in sequences):
        return logits
    processed = logits.clone()
    first = 0
    for sequence, tokens, length in zip(
        sequences, draft.tokens, draft.lengths.tolist(), strict=True
    ):
        rows = processed[first : first + length + 1]
        first += length + 1
        prompt, output = (
            sequence.token_ids[: sequence.prompt_tokens],
            sequence.output_token_ids,
        )
        history = History(prompt, output, tokens[:length])
        for rule in sequence.sampling.rules:
            rule.apply(rows, history)
    return processed
