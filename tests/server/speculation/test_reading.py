import json
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.server.speculation.settings import read
from tests.server.speculation.test_config import TABLE, as_lists

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import KEYS, SpeculativeConfig
from outrider.server.speculation.reading import read_speculative_config


def misspellings(word: str) -> set[str]:
    """`word` with one letter left out, doubled, or swapped with the next."""
    cuts = [(word[:at], word[at], word[at + 1 :]) for at in range(len(word))]
    return {
        *(before + after for before, _, after in cuts),
        *(before + letter * 2 + after for before, letter, after in cuts),
        *(before + after[0] + letter + after[1:] for before, letter, after in cuts if after),
    } - {word}


def test_nothing_given_is_no_config() -> None:
    assert read_speculative_config(None) is None


def test_an_empty_object_is_a_config_with_everything_left_open() -> None:
    assert read_speculative_config("{}") == SpeculativeConfig()


@given(st.sets(st.sampled_from(sorted(TABLE))), st.randoms())
def test_any_settings_come_back_as_they_were_given(keys: set[str], order: random.Random) -> None:
    chosen = sorted(keys)
    order.shuffle(chosen)
    given_settings = {key: TABLE[key][2] for key in chosen}
    config = read(**given_settings)
    assert config.model_fields_set == keys
    assert as_lists(config.model_dump(include=keys)) == given_settings
    dumped = config.model_dump_json(exclude_unset=True)
    assert read_speculative_config(dumped) == config


@given(st.sets(st.sampled_from(sorted(TABLE))), st.randoms())
def test_a_dash_in_a_key_is_an_underscore(keys: set[str], choice: random.Random) -> None:
    def dashed(key: str) -> str:
        return "".join(choice.choice("-_") if each == "_" else each for each in key)

    settings = {key: TABLE[key][2] for key in keys}
    assert read(**{dashed(key): value for key, value in settings.items()}) == read(**settings)


def test_a_dash_below_the_top_level_stays() -> None:
    assert read(draft_load_config={"load-format": 1}).draft_load_config == {"load-format": 1}


@pytest.mark.parametrize("key", KEYS)
def test_any_misspelling_of_a_key_names_the_key(key: str) -> None:
    for wrong in misspellings(key):
        for typed in (wrong, wrong.replace("_", "-"), wrong.upper()):
            with pytest.raises(InvalidSetting) as raised:
                read(**{typed: 1})
            assert raised.value.seen == f'--speculative-config has the key "{typed}"'
            assert raised.value.remedy == f'rename it to "{key}"'


@given(st.text())
def test_any_other_key_is_refused_on_one_line(key: str) -> None:
    assume(key.replace("-", "_") not in KEYS)
    with pytest.raises(InvalidSetting) as raised:
        read(**{key: 1})
    assert len(str(raised.value).splitlines()) == 1


def test_the_key_of_old_versions_is_told_its_new_name() -> None:
    with pytest.raises(InvalidSetting, match=r'since vLLM 0\.32.*"enable_adaptive_verification"'):
        read(adaptive_verification=True)


@pytest.mark.parametrize(
    "key",
    [
        "target_model_config",
        "target_parallel_config",
        "draft_model_config",
        "draft_parallel_config",
    ],
)
def test_what_vllm_fills_in_cannot_be_set(key: str) -> None:
    with pytest.raises(InvalidSetting, match="drop it: vLLM fills it in"):
        read(**{key: {}})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{'method': 'ngram'}", "line 1 column 2"),
        ('{"method": "ngram",}', "line 1 column 20"),
        ('{"method": "ngram",\n "model" 3}', "line 2 column 10"),
        ("", "line 1 column 1"),
        ("ngram", "line 1 column 1"),
        ('{"method": "ngram"} x', "line 1 column 21"),
    ],
)
def test_what_is_not_json_is_told_with_the_place_on_one_line(text: str, place: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_speculative_config(text)
    assert "is not JSON" in raised.value.seen
    assert "\n" not in str(raised.value)
    # Python 3.13 points at a trailing comma, earlier versions at what follows it.
    assert place in raised.value.seen or "trailing comma" in raised.value.seen


@pytest.mark.parametrize("text", ["[1]", "null", '"ngram"', "4", "true"])
def test_json_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_speculative_config(text)
    assert raised.value.seen == f"--speculative-config {text}"
    assert raised.value.expected == "a JSON object"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"prompt_lookup_max": ' + "9" * 5000 + "}"])
def test_json_beyond_all_use_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="too long or nested too deeply"):
        read_speculative_config(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_in_json_is_refused(constant: str) -> None:
    with pytest.raises(InvalidSetting, match=f"^{constant} in --speculative-config"):
        read_speculative_config(f'{{"fly_entropy_threshold": {constant}}}')


@given(st.text())
def test_any_text_is_a_config_or_one_line(text: str) -> None:
    lines = []
    try:
        read_speculative_config(text)
    except InvalidSetting as error:
        lines = str(error).splitlines()
    assert len(lines) <= 1


FLAGS: dict[str, tuple[str, Any]] = {
    "method": ("--spec-method", "ngram"),
    "model": ("--spec-model", "org/draft"),
    "num_speculative_tokens": ("--spec-tokens", 4),
}


@given(st.sets(st.sampled_from(sorted(FLAGS))))
def test_the_shortcut_flags_say_the_same_as_their_keys(flags: set[str]) -> None:
    keys = {key: value for key, (_, value) in FLAGS.items() if key not in flags}
    shortcuts: dict[str, Any] = {key: FLAGS[key][1] for key in flags}
    assert read_speculative_config(json.dumps(keys), **shortcuts) == read(**keys, **shortcuts)


def test_the_shortcut_flags_alone_are_a_config() -> None:
    config = read_speculative_config(None, method="ngram", num_speculative_tokens=4)
    assert config == read(method="ngram", num_speculative_tokens=4)


@pytest.mark.parametrize("key", FLAGS)
@pytest.mark.parametrize("other", ["same", "null"])
def test_a_flag_and_its_key_exclude_each_other(key: str, other: str) -> None:
    flag, value = FLAGS[key]
    text = json.dumps({key.replace("_", "-"): value if other == "same" else None})
    shortcut: dict[str, Any] = {key: value}
    with pytest.raises(InvalidSetting) as raised:
        read_speculative_config(text, **shortcut)
    assert raised.value.seen == f"{flag} and --speculative-config['{key}'] are mutually exclusive"


def test_a_wrong_value_of_a_flag_is_told_with_the_flag() -> None:
    with pytest.raises(InvalidSetting, match=r"^--spec-tokens 0; expected 1 or more"):
        read_speculative_config(None, method="ngram", num_speculative_tokens=0)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"method": "ngram", "method": "suffix"}', '"method"'),
        (
            '{"prompt_lookup_min": 2, "prompt-lookup-min": 2}',
            '"prompt_lookup_min" and "prompt-lookup-min"',
        ),
    ],
)
def test_a_key_given_twice_is_refused(text: str, keys: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_speculative_config(text)
    assert raised.value.seen == f"--speculative-config gives {keys} more than once"
