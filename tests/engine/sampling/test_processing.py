"""Rows with a draft before them against one row at a time, the history spelled out."""

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, SamplingParameters, process
from outrider.engine.sequence import Sequence

VOCABULARY = 8
TOKEN = st.integers(0, VOCABULARY - 1)
RUN = st.lists(TOKEN, min_size=1, max_size=3).map(tuple)


def sequence(parameters: SamplingParameters, prompt: list[int], output: list[int]) -> Sequence:
    sampling = Sampling.seeded(parameters, end_token_ids=(7,))
    running = Sequence("r", prompt, max_tokens=40, sampling=sampling)
    running.append(output)
    return running


def draft_of(runs: list[list[int]]) -> Draft:
    draft = Draft.empty(len(runs), max(map(len, runs)))
    for i, run in enumerate(runs):
        draft.tokens[i, : len(run)] = run
        draft.lengths[i] = len(run)
    return draft


@st.composite
def parameters(draw: st.DrawFn) -> SamplingParameters:
    asked: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "repetition_penalty": st.sampled_from([0.5, 1.7]),
                "presence_penalty": st.floats(-2, 2),
                "frequency_penalty": st.floats(-2, 2),
                "logit_bias": st.dictionaries(TOKEN, st.floats(-100, 100), max_size=3),
                "allowed_token_ids": st.lists(TOKEN, min_size=1).map(tuple),
                "bad_words_token_ids": st.lists(RUN, max_size=4).map(tuple),
                "min_tokens": st.integers(0, 6),
                "stop_token_ids": st.lists(TOKEN, max_size=2).map(tuple),
            },
        )
    )
    return SamplingParameters(**asked)


@given(
    batch=st.lists(
        st.tuples(
            parameters(),
            st.lists(TOKEN, min_size=1, max_size=4),
            st.lists(TOKEN, max_size=5),
            st.lists(TOKEN, max_size=4),
        ),
        min_size=1,
        max_size=4,
    ),
    seed=st.integers(0, 100),
)
def test_draft_rows_are_what_plain_decoding_gives_at_their_place(
    batch: list[tuple[SamplingParameters, list[int], list[int], list[int]]], seed: int
) -> None:
    rows = sum(len(drafted) + 1 for *_, drafted in batch)
    logits = torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(seed))
    raw = logits.clone()
    processed = process(
        logits,
        draft_of([drafted for *_, drafted in batch]),
        [sequence(asked, prompt, output) for asked, prompt, output, _ in batch],
    )
    alone = [
        process(row.unsqueeze(0), Draft.empty(1, 0), [sequence(asked, prompt, past)])
        for row, (asked, prompt, past) in zip(
            raw,
            (
                (asked, prompt, output + drafted[:i])
                for asked, prompt, output, drafted in batch
                for i in range(len(drafted) + 1)
            ),
            strict=True,
        )
    ]
    assert torch.equal(processed, torch.cat(alone))
    assert torch.equal(logits, raw)


def test_logits_that_nobody_wants_changed_come_back_uncopied() -> None:
    logits = torch.zeros(3, VOCABULARY)
    plain = [
        sequence(SamplingParameters(), [1], []),
        sequence(SamplingParameters(0.7, 1, top_k=3, min_p=0.1, stop_token_ids=(4,)), [1], [2]),
    ]
    assert process(logits, draft_of([[1], []]), plain) is logits


def test_a_request_changes_no_rows_but_its_own() -> None:
    logits = torch.zeros(5, VOCABULARY)
    asked = SamplingParameters(logit_bias={2: 5.0})
    batch = [sequence(each, [1], []) for each in (SamplingParameters(), asked, asked)]
    processed = process(logits, draft_of([[3], [], [4]]), batch)
    assert processed[:, 2].tolist() == [0, 0, 5, 5, 5]
    assert np.delete(processed.numpy(), 2, axis=1).any() == np.False_


def test_a_bias_is_penalised_as_part_of_the_logit() -> None:
    asked = SamplingParameters(logit_bias={2: 4.0}, repetition_penalty=2.0)
    processed = process(torch.zeros(1, 3), Draft.empty(1, 0), [sequence(asked, [2], [])])
    assert processed.tolist() == [[0, 0, 2]]


def test_end_tokens_wait_for_the_least_output_even_where_they_end_nothing() -> None:
    asked = SamplingParameters(min_tokens=1, ignore_eos=True, stop_token_ids=(3,))
    processed = process(torch.zeros(2, VOCABULARY), draft_of([[0]]), [sequence(asked, [1], [])])
    assert processed.isinf().nonzero().tolist() == [[0, 3], [0, 7]]
