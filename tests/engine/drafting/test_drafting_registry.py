import numpy as np
import pytest

from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.registry import DRAFTERS, build_drafter
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting
from outrider.records.arm import BASELINE, Arm


def test_an_arm_builds_its_drafter_with_its_settings() -> None:
    arm = Arm("ngram-4", "ngram", 4, prompt_lookup_min=2, prompt_lookup_max=3, ngram_tie="earliest")
    assert build_drafter(arm) == NgramDrafter(4, 2, 3, "earliest")


def test_an_arm_without_a_tie_rule_takes_the_most_recent_match() -> None:
    arm = Arm("ngram-4", "ngram", 4, prompt_lookup_min=2, prompt_lookup_max=3)
    assert build_drafter(arm) == NgramDrafter(4, 2, 3, "recent")


def test_every_drafter_bears_the_name_it_is_registered_under() -> None:
    for name in DRAFTERS:
        assert build_drafter(Arm("a", name, 1, 1, 1)).name == name


def test_the_baseline_drafts_nothing() -> None:
    sampling = Sampling.seeded(SamplingParameters())
    batch = [Sequence(name, [1, 1, 1], max_tokens=2, sampling=sampling) for name in "ab"]
    draft = build_drafter(BASELINE).propose(batch, np.array([1, 1]))
    assert draft.tokens.shape == (2, 0)
    assert draft.lengths.tolist() == [0, 0]


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match=r"'medusa'.*none, ngram"):
        build_drafter(Arm("m", "medusa", 4))
