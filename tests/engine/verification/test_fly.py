import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.engine.verification.toys import TableDrafter, samplings, table, target_rows

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.fly import FlyVerifier, agreement_after, top_entropy
from outrider.engine.verification.settings import VerificationSettings
from outrider.engine.verification.standard import StandardVerifier
from outrider.errors import InvalidSetting

GREEDY = SamplingParameters()
FOUR = VerificationSettings(num_speculative_tokens=4)
SURE = [0.0, 0.0, 12.0, 0.0]
UNSURE = [1.0, 0.9, 1.1, 0.0]
"""Both prefer token 2; the second has 1.0 nats in its three likeliest."""


def greedy(rows: list[list[float]], drafted: list[int], fly: FlyVerifier) -> list[int]:
    draft = Draft(np.array([drafted], np.int32), np.array([len(drafted)]))
    verdict = fly.verify(torch.tensor(rows), draft, samplings(GREEDY, 1))
    return [int(token) for token in verdict.emitted[0]]


def test_a_doubtful_token_passes_where_the_target_was_unsure_and_agrees_after_it() -> None:
    rows = [UNSURE, SURE, SURE, SURE]
    assert greedy(rows, [0, 2, 2], FlyVerifier(window=2)) == [0, 2, 2, 2]


def test_it_does_not_where_the_target_was_sure() -> None:
    assert greedy([SURE, SURE, SURE, SURE], [0, 2, 2], FlyVerifier(window=2)) == [2]


def test_it_does_not_where_a_token_in_the_window_is_wrong_too() -> None:
    rows = [UNSURE, SURE, SURE, SURE]
    assert greedy(rows, [0, 2, 1], FlyVerifier(window=2)) == [2]


def test_it_does_not_where_the_window_reaches_past_the_draft() -> None:
    rows = [SURE, UNSURE, SURE, SURE]
    assert greedy(rows, [2, 0, 2], FlyVerifier(window=2)) == [2, 2]
    assert greedy(rows, [2, 0, 2], FlyVerifier(window=1)) == [2, 0, 2, 2]


def test_a_token_let_pass_vouches_for_none_before_it() -> None:
    rows = [UNSURE, UNSURE, SURE, SURE]
    assert greedy(rows, [0, 0, 2], FlyVerifier(window=1)) == [2]
    assert greedy(rows, [2, 0, 2], FlyVerifier(window=1)) == [2, 0, 2, 2]


def test_it_does_not_where_the_token_is_forbidden() -> None:
    forbidden = [-math.inf, *UNSURE[1:]]
    assert greedy([forbidden, SURE, SURE], [0, 2], FlyVerifier(window=1)) == [2]
    assert greedy([forbidden, SURE, SURE], [1, 2], FlyVerifier(window=1)) == [1, 2, 2]


def test_the_threshold_itself_is_enough() -> None:
    rows = [UNSURE, SURE, SURE]
    entropy = float(top_entropy(torch.tensor([UNSURE]).softmax(-1), 3))
    exact = FlyVerifier(window=1, entropy_threshold=entropy)
    above = FlyVerifier(window=1, entropy_threshold=entropy + 1e-6)
    assert greedy(rows, [0, 2], exact) == [0, 2, 2]
    assert greedy(rows, [0, 2], above) == [2]


def test_the_entropy_is_that_of_the_likeliest_tokens_not_made_to_sum_to_one() -> None:
    p = torch.tensor([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0]])
    half, quarter = 0.5 * math.log(2), 0.25 * math.log(4)
    assert top_entropy(p, 2).tolist() == pytest.approx([half + quarter, 0])
    assert top_entropy(p, 99).tolist() == pytest.approx([half + 2 * quarter, 0])


def test_agreement_after_a_cell_is_that_of_the_next_ones() -> None:
    native = torch.tensor([[False, True, True, False]])
    assert agreement_after(native, 1).tolist() == [[True, True, False, False]]
    assert agreement_after(native, 2).tolist() == [[True, False, False, False]]


@pytest.mark.parametrize("method", ["greedy", "probabilistic"])
@pytest.mark.parametrize("window", [1, 2])
def test_random_rows_follow_the_rule_written_out(method: str, window: int) -> None:
    """Against loops over single numbers, with the very uniforms that the verifier draws."""
    count = 200
    parameters = SamplingParameters(1.0, seed=5)
    drafter = TableDrafter(table(8), method)  # type: ignore[arg-type]
    context = np.zeros((count, 2), np.int64)
    draft = drafter.draft(context, samplings(replace(parameters, seed=6), count))
    rows = target_rows(context, draft)
    fly = FlyVerifier(window=window, entropy_threshold=0.8)
    verdict = fly.verify(rows, draft, samplings(parameters, count))
    standard = StandardVerifier().verify(rows, draft, samplings(parameters, count))
    (pool,) = {id(each): each for each in samplings(parameters, count)}.values()
    p = rows.double().softmax(-1).reshape(count, 4, -1).numpy()
    for b in range(count):
        u = pool.uniforms(4).numpy()
        tokens = draft.tokens[b]
        q = [
            1.0 if draft.probabilities is None else float(draft.probabilities[b, i, tokens[i]])
            for i in range(3)
        ]
        native = [bool(u[i] * q[i] < p[b, i, tokens[i]]) for i in range(3)]
        accepted = 0
        while accepted < 3:
            i = accepted
            top = sorted(p[b, i])[-3:]
            unsure = -sum(x * math.log(x) for x in top) >= 0.8
            vouched = i + window < 3 and all(native[i + 1 : i + 1 + window])
            if not (native[i] or (unsure and vouched)):
                break
            accepted += 1
        assert verdict.accepted[b] == accepted
    assert verdict.accepted.sum() > standard.accepted.sum()


@pytest.mark.parametrize(("k", "window"), [(2, 1), (5, 4), (7, 6), (20, 6)])
def test_the_window_is_six_or_what_fits_after_one_token(k: int, window: int) -> None:
    settings = VerificationSettings(num_speculative_tokens=k)
    assert FlyVerifier.from_settings(settings) == FlyVerifier(window, 0.3, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (VerificationSettings(num_speculative_tokens=1), "num_speculative_tokens 1 with fly"),
        (replace(FOUR, fly_window_size=4), "fly_window_size 4 .*at most 3"),
        (replace(FOUR, fly_window_size=0), "fly_window_size 0"),
        (replace(FOUR, fly_entropy_threshold=-0.1), "fly_entropy_threshold -0.1"),
        (replace(FOUR, fly_entropy_threshold=math.nan), "fly_entropy_threshold nan"),
        (replace(FOUR, fly_entropy_top_k=0), "fly_entropy_top_k 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: VerificationSettings, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        FlyVerifier.from_settings(settings)
