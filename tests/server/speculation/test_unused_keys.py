import json

import pytest
from tests.server.speculation.settings import ngram
from tests.server.speculation.test_config import TABLE

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import KEYS
from outrider.server.speculation.methods.registry import METHODS
from outrider.server.speculation.unused_keys import BELONGS_TO, FOR_EVERY_METHOD

AWAY_FROM_DEFAULT = {key: TABLE[key][2] for key in BELONGS_TO} | {
    "attention_backend": "FLASH_ATTN",
    "suffix_decoding_max_spec_factor": 0.5,
    "suffix_decoding_min_token_prob": 0.5,
}


def test_a_key_is_for_every_method_or_it_is_known_what_it_belongs_to() -> None:
    assert set(KEYS) == FOR_EVERY_METHOD | set(BELONGS_TO)
    assert not FOR_EVERY_METHOD & set(BELONGS_TO)
    for method in METHODS.values():
        assert method.keys <= set(BELONGS_TO)


@pytest.mark.parametrize("key", sorted(set(BELONGS_TO) - METHODS["ngram"].keys))
def test_a_key_that_would_change_nothing_is_refused_with_what_it_belongs_to(key: str) -> None:
    value = AWAY_FROM_DEFAULT[key]
    with pytest.raises(InvalidSetting) as raised:
        ngram(**{key: value})
    assert raised.value.seen == f"{key} {json.dumps(value)} with method ngram"
    assert raised.value.expected == f"it only with {BELONGS_TO[key]}"


@pytest.mark.parametrize("key", BELONGS_TO)
def test_the_same_key_at_its_default_is_not_in_the_way(key: str) -> None:
    assert ngram(**{key: TABLE[key][0]}) == ngram()


@pytest.mark.parametrize("value", ["auto", "AUTO"])
def test_the_attention_backend_auto_is_the_default(value: str) -> None:
    assert ngram(attention_backend=value) == ngram()


def test_a_draft_is_not_split_over_devices() -> None:
    assert ngram(draft_tensor_parallel_size=1) == ngram()
    with pytest.raises(InvalidSetting, match="draft_tensor_parallel_size 2; expected 1"):
        ngram(draft_tensor_parallel_size=2)
