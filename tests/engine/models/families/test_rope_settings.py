from typing import Any

import pytest

from outrider.engine.models.families.rope_settings import shared_rope
from outrider.engine.models.families.settings import Settings
from outrider.engine.models.rope import Rope
from outrider.errors import UnsupportedModel

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def rope(**stated: Any) -> Rope:
    return shared_rope(Settings({"max_position_embeddings": 1024, **stated}))


def test_a_config_that_says_nothing_has_the_usual_rope() -> None:
    assert rope() == rope(rope_scaling=None, rope_parameters=None) == Rope(10_000.0)


def test_old_and_new_places_of_theta_are_read_the_new_one_first() -> None:
    assert rope(rope_theta=9.0) == Rope(9.0)
    assert rope(rope_theta=9.0, rope_parameters={"rope_theta": 7.0}) == Rope(7.0)


@pytest.mark.parametrize("section", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("key", ["type", "rope_type"])
def test_the_kind_is_read_in_all_its_places(section: str, key: str) -> None:
    stated = {"rope_theta": 500.0, section: {key: "linear", "factor": 4}}
    assert rope(**stated) == Rope(500.0, "linear", factor=4.0)


def test_positions_in_training_are_those_of_the_config_the_section_or_all_of_them() -> None:
    inside = {"rope_type": "llama3", **LLAMA3, "original_max_position_embeddings": 256}
    assert rope(rope_scaling={"rope_type": "llama3", **LLAMA3}).trained_positions == 1024
    assert rope(rope_scaling=inside).trained_positions == 256
    outside = rope(rope_scaling=inside, original_max_position_embeddings=512)
    assert outside.trained_positions == 512


@pytest.mark.parametrize(
    ("stated", "seen"),
    [
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "type is 'dynamic'"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type is 'longrope'"),
        ({"rope_scaling": {"rope_type": ["yarn"]}}, r"rope_type is \['yarn'\]"),
        ({"rope_scaling": {"rope_type": "linear"}}, "factor is missing"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "factor is 0"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor is missing"),
        ({"rope_scaling": 5}, "rope_scaling is 5"),
        ({"rope_theta": -1}, "rope_theta is -1"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"rope_parameters": {"partial_rotary_factor": 0.25}}, "partial_rotary_factor is 0.25"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
            "full_attention is .*; expected one rope for all layers",
        ),
    ],
)
def test_what_would_turn_otherwise_is_refused(stated: dict[str, Any], seen: str) -> None:
    with pytest.raises(UnsupportedModel, match=seen):
        rope(**stated)
