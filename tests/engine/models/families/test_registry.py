import pytest

from outrider.engine.models.families.registry import FAMILIES, family_of
from outrider.errors import UnsupportedModel


@pytest.mark.parametrize("model_type", ["gemma2", "qwen2_moe", "", None, ["llama"]])
def test_another_family_is_refused_with_those_that_run(model_type: object) -> None:
    with pytest.raises(UnsupportedModel) as refused:
        family_of(model_type)
    assert refused.value.seen == f"the model family is {model_type!r}"
    assert refused.value.expected == "one of llama, mistral, qwen2, qwen3, gemma3_text, gemma3"


def test_a_family_goes_by_the_name_of_its_gguf_architecture_too() -> None:
    assert all(family_of(family.name) is family for family in FAMILIES)
