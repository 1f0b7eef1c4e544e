import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from outrider.engine.detokenizer import Detokenizer


def bytes_tokenizer() -> Tokenizer:
    """Every byte a token, and one special token."""
    vocabulary = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return tokenizer


def words_tokenizer() -> Tokenizer:
    """Words that carry the space before them, which decoding drops at the start of a text."""
    tokenizer = Tokenizer(models.WordLevel({"▁one": 0, "▁two": 1, "▁three": 2}))
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


BYTES = bytes_tokenizer()
END = BYTES.get_vocab()["<|end|>"]


def pieces(text: str, prompt: str = "") -> list[str]:
    detokenizer = Detokenizer(BYTES, BYTES.encode(prompt).ids)
    return [detokenizer.step(token) for token in BYTES.encode(text).ids]


@given(st.text(max_size=12), st.text(max_size=12))
def test_the_pieces_make_the_text_and_nothing_of_the_prompt(text: str, prompt: str) -> None:
    # What really is a replacement character cannot be told from half a character.
    text = text.rstrip("\N{REPLACEMENT CHARACTER}")
    assert "".join(pieces(text, prompt)) == text


def test_a_character_comes_whole_with_its_last_byte() -> None:
    assert pieces("a漢😀") == ["a", "", "", "漢", "", "", "", "😀"]


def test_the_space_before_the_first_word_is_kept_after_a_prompt() -> None:
    detokenizer = Detokenizer(words_tokenizer(), [0])
    assert [detokenizer.step(1), detokenizer.step(2)] == [" two", " three"]
    assert Detokenizer(words_tokenizer()).step(1) == "two"


def test_half_a_character_at_the_end_of_the_prompt_does_not_show_the_prompt() -> None:
    detokenizer = Detokenizer(BYTES, BYTES.encode("secret ß").ids[:-1])
    tokens = BYTES.encode("ß").ids[-1:] + BYTES.encode("x").ids
    assert "secret" not in "".join(map(detokenizer.step, tokens))


def test_special_tokens_show_where_they_are_wanted() -> None:
    assert Detokenizer(BYTES).step(END) == ""
    assert Detokenizer(BYTES, skip_special_tokens=False).step(END) == "<|end|>"


def test_an_id_without_text_is_passed_over() -> None:
    detokenizer = Detokenizer(BYTES)
    assert detokenizer.step(9_999) == ""
    assert detokenizer.step(*BYTES.encode("a").ids) == "a"


@given(st.lists(st.integers(0, 256), max_size=30))
def test_any_bytes_at_all_are_decoded_without_failing(tokens: list[int]) -> None:
    detokenizer = Detokenizer(BYTES)
    text = "".join(map(detokenizer.step, tokens))
    assert BYTES.decode(tokens).startswith(text)


def test_a_decoder_that_lost_track_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        def step(self, backend: Tokenizer, token: int) -> str:
            raise ValueError("Invalid prefix encountered while decoding stream.")

    detokenizer = Detokenizer(BYTES)
    monkeypatch.setattr(detokenizer, "_stream", Lost())
    assert detokenizer.step(*BYTES.encode("a").ids) == "a"
