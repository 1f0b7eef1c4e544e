import numpy as np
import pytest
from tests.engine.constraints.letters import END, SIZE, WORDS, text_of, tokenizer_of, vocabulary_of

from outrider.engine.constraints.compiler import ConstraintCompiler
from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.constraints.vocabulary import GrammarVocabulary
from outrider.errors import UnsupportedModel

ABC = ConstraintSpec("regex", "(abc|b)é?")


def allowed_at(vocabulary: GrammarVocabulary, told: str = "") -> list[int]:
    constraint = ConstraintCompiler(vocabulary).compile(ABC).start()
    for letter in told:
        constraint.advance(WORDS.index(letter))
    rows = np.ones((1, vocabulary.size), np.bool_)
    constraint.allow(np.empty(0, np.int32), rows)
    found: list[int] = np.flatnonzero(rows[0]).tolist()
    return found


def test_tokens_of_several_letters_count_by_their_bytes() -> None:
    assert [WORDS[token] for token in allowed_at(vocabulary_of())] == ["a", "b", "ab", "abc"]
    assert text_of(allowed_at(vocabulary_of(), "ab")) == "c"


def test_ids_that_only_the_target_knows_are_never_allowed() -> None:
    assert max(allowed_at(vocabulary_of(), "b")) == END < SIZE - 1


def test_a_target_may_know_fewer_ids_than_the_tokenizer() -> None:
    small = vocabulary_of(WORDS, WORDS.index("ab"), (WORDS.index("x"), END))
    assert [WORDS[token] for token in allowed_at(small)] == ["a", "b"]


@pytest.mark.parametrize("ends", [(END,), (WORDS.index("x"), END)])
def test_every_end_token_is_allowed_where_the_grammar_may_end(ends: tuple[int, ...]) -> None:
    vocabulary = vocabulary_of(WORDS, SIZE, ends)
    assert allowed_at(vocabulary, "b") == sorted([WORDS.index("é"), *ends])
    assert not set(allowed_at(vocabulary)) & set(ends)


@pytest.mark.parametrize("ends", [(), (SIZE,), (SIZE - 1,)])
def test_a_model_without_an_end_token_is_refused(ends: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedModel, match="without a token that ends an answer"):
        vocabulary_of(WORDS, SIZE, ends)


def test_special_tokens_are_no_text() -> None:
    vocabulary = vocabulary_of(WORDS, SIZE, (WORDS.index("x"),))
    anything = ConstraintCompiler(vocabulary).compile(ConstraintSpec("regex", "[^x]+")).start()
    rows = np.ones((1, SIZE), np.bool_)
    anything.allow(np.empty(0, np.int32), rows)
    assert np.flatnonzero(~rows[0]).tolist() == [WORDS.index("x"), *range(END, SIZE)]


def test_a_tokenizer_that_cannot_be_read_is_told_in_one_line() -> None:
    class Broken:
        vocabulary_tokens = 3

        def to_json(self) -> str:
            return "{}"

    with pytest.raises(UnsupportedModel, match="no grammar can follow") as caught:
        GrammarVocabulary.of(Broken(), size=3, end_token_ids=(2,))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_tokenizer_tells_its_tokens() -> None:
    tokenizer = tokenizer_of(WORDS)
    assert tokenizer.vocabulary_tokens == END + 1
    assert '"<end>"' in tokenizer.to_json()
