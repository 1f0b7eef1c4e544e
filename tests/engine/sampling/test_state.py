import pytest
import torch

from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.errors import InvalidSetting


def test_the_seed_alone_decides_the_randomness() -> None:
    first, again, other = (
        Sampling.seeded(SamplingParameters(1.0, seed)).uniforms(4) for seed in (7, 7, 8)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_without_a_seed_the_source_of_fresh_ones_decides() -> None:
    seeds = iter([7, 8])
    parameters = SamplingParameters(1.0)
    first, second = (
        Sampling.seeded(parameters, fresh_seed=lambda: next(seeds)).uniforms(4) for _ in range(2)
    )
    assert torch.equal(first, Sampling.seeded(SamplingParameters(1.0, 7)).uniforms(4))
    assert not torch.equal(first, second)


def test_a_seed_leaves_the_source_of_fresh_ones_alone() -> None:
    def fresh_seed() -> int:
        raise AssertionError

    Sampling.seeded(SamplingParameters(1.0, 7), fresh_seed=fresh_seed)


def test_random_sampling_needs_a_seed_from_somewhere_and_greedy_decoding_does_not() -> None:
    Sampling.seeded(SamplingParameters())
    with pytest.raises(InvalidSetting, match="without a seed"):
        Sampling.seeded(SamplingParameters(1.0))


def test_each_sequence_gets_rules_of_its_own() -> None:
    parameters = SamplingParameters(presence_penalty=1.0)
    first, second = Sampling.seeded(parameters), Sampling.seeded(parameters)
    assert first.rules[0] is not second.rules[0]
    assert Sampling.seeded(SamplingParameters(1.0, 0, top_p=0.5)).rules == ()
