from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.engine.loops import VOCABULARY, RememberingModel, engine_of, finish, request

from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.pairing import (
    check_sizes,
    told_of_same_ids,
    told_of_shared,
    told_of_special,
)
from outrider.engine.drafting.shared_vocabulary import SharedVocabulary, TokenTable
from outrider.engine.models.base import Rows
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidSetting


class Words(Tokenizer):
    """A tokenizer of whole words, which writes a space as `mark`."""

    def __init__(
        self, words: list[str], mark: str, special: Mapping[str, str] | None = None
    ) -> None:
        self.words = words
        self.mark = mark
        self.roles = {"unk": "<unk>"} if special is None else special

    @property
    def vocabulary(self) -> Mapping[str, int]:
        return {word: token for token, word in enumerate(self.words)}

    @property
    def special_tokens(self) -> Mapping[str, tuple[str, int]]:
        return {role: (text, self.words.index(text)) for role, text in self.roles.items()}

    def encode(
        self, text: str, *, add_special_tokens: bool = False, most_tokens: int | None = None
    ) -> list[int]:
        del add_special_tokens, most_tokens
        marked = text.replace(" ", self.mark)
        return [self.words.index(marked)] if marked in self.words else [0]

    def token(self, token_id: int) -> str | None:
        return self.words[token_id]


TARGET_WORDS = ["<s>", "a", "Ġa", "Ġcat", "dog", "Ġ", "only", "Ċ"]
DRAFT_WORDS = ["<unk>", "▁cat", "dog", "▁", "a", "▁a", "other", " ", "Ġa"]
TARGET = TokenTable.of("big", Words(TARGET_WORDS, "Ġ", {"bos": "<s>"}), len(TARGET_WORDS))
DRAFT = TokenTable.of("small", Words(DRAFT_WORDS, "▁"), len(DRAFT_WORDS))


def test_tokens_are_compared_with_plain_spaces() -> None:
    shared = SharedVocabulary.of(TARGET, DRAFT)
    #                   <s> a  Ġa Ġcat dog Ġ only Ċ; what is unknown is <unk>
    assert shared.to_draft.tolist() == [0, 4, 5, 1, 2, 3, 0, 0]
    # Of two ids with one text the first is read, and either may be said.
    assert shared.draft_ids.tolist() == [1, 2, 3, 4, 5, 7]
    assert shared.target_ids.tolist() == [3, 4, 5, 1, 2, 5]
    assert shared.readable == 5


@pytest.mark.parametrize("mark", ["Ġ", "▁", "_"])
def test_the_mark_for_a_space_is_found_by_writing_one(mark: str) -> None:
    words = Words(["x", "a", f"{mark}a", f"{mark}cat"], mark, {})
    assert set(TokenTable.of("m", words, 4).ids) == {"x", "a", " a", " cat"}


@pytest.mark.parametrize("mark", ["Ġ", "▁"])
def test_or_it_is_a_known_one_that_tokens_begin_with(mark: str) -> None:
    words = Words(["<unk>", f"{mark}cat"], mark)
    assert set(TokenTable.of("m", words, 2).ids) == {"<unk>", " cat"}


def test_ids_beyond_those_of_the_model_are_left_out() -> None:
    assert "other" not in TokenTable.of("small", Words(DRAFT_WORDS, "▁"), 6).ids


def test_what_is_unknown_is_the_end_token_where_there_is_no_other_and_that_is_told() -> None:
    words = Words(["x", "a", "</s>"], "▁", {"eos": "</s>"})
    draft = TokenTable.of("small", words, 3)
    shared = SharedVocabulary.of(TARGET, draft)
    assert shared.to_draft.tolist() == [2, 1, 2, 2, 2, 2, 2, 2]
    told = list(told_of_shared(TARGET, draft, shared))
    assert "Very small vocabulary intersection: hardly any draft can be right" in told
    assert "the draft model has no unknown token, and reads '</s>' in its place" in told
    assert list(told_of_special(TARGET, draft)) == [
        "special tokens differ, target and draft model: bos '<s>' and none, eos none and '</s>'"
    ]


def test_a_draft_that_could_not_read_the_rest_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="neither unk_token_id nor eos_token_id"):
        SharedVocabulary.of(TARGET, TokenTable.of("small", Words(["a"], "▁", {}), 1))
    with pytest.raises(InvalidSetting, match="without a single token in common"):
        SharedVocabulary.of(TARGET, TokenTable.of("small", Words(["<unk>", "zz"], "▁"), 2))


def test_vocabularies_of_one_size_are_compared_id_by_id() -> None:
    check_sizes(TARGET, TARGET)
    assert [*told_of_same_ids(TARGET, TARGET), *told_of_special(TARGET, TARGET)] == []
    moved = Words([*TARGET_WORDS[:5], *TARGET_WORDS[:4:-1]], "Ġ", {"bos": "<s>", "pad": "Ċ"})
    draft = TokenTable.of("small", moved, len(TARGET_WORDS))
    assert list(told_of_same_ids(TARGET, draft)) == [
        "2 of the target's 8 tokens are others to the draft model, which costs acceptance"
    ]
    assert list(told_of_special(TARGET, draft)) == [
        "special tokens differ, target and draft model: pad none and 'Ċ'"
    ]


def test_a_real_tokenizer_shares_everything_with_itself(tiny_model: Path) -> None:
    table = TokenTable.of("tiny", Tokenizer(tiny_model), 258)
    assert " " in table.ids
    shared = SharedVocabulary.of(table, table)
    assert shared.to_draft.tolist() == shared.target_ids.tolist() == list(range(258))


# A draft model whose ids are the target's in another order, and some of which it lacks.

ORDER = np.random.default_rng(1).permutation(VOCABULARY)
LACKING = (4, 9)


class Renamed(RememberingModel):
    """What `RememberingModel` says, in ids of its own: id i there is `ORDER[i]` here."""

    def __init__(self) -> None:
        super().__init__(num_blocks=60)
        self.read: list[int] = []

    def forward(self, rows: Rows) -> torch.Tensor:
        self.read += rows.token_ids
        translated = Rows(
            ORDER[list(rows.token_ids)].tolist(),
            rows.positions,
            rows.sequences,
            rows.block_tables,
            rows.wanted,
        )
        return super().forward(translated)[:, ORDER.tolist()]


def renamed_vocabulary() -> SharedVocabulary:
    target = Words([f"w{i}" for i in range(VOCABULARY)], "Ġ", {})
    words = [f"x{i}" if i in LACKING else f"w{i}" for i in ORDER]
    unknown = words[int(np.flatnonzero(LACKING[0] == ORDER)[0])]
    draft = Words(words, "▁", {"unk": unknown})
    return SharedVocabulary.of(
        TokenTable.of("big", target, VOCABULARY), TokenTable.of("small", draft, VOCABULARY)
    )


def test_it_drafts_shared_tokens_in_the_targets_ids_and_the_output_stays_the_targets() -> None:
    model = Renamed()
    drafter = ModelDrafter(OwnModel(model, max_rows=100, vocabulary=renamed_vocabulary()))
    engine, recorder = engine_of(RememberingModel(60), drafter, 4)
    prompts = [[1, 2, 3 + i] for i in range(15) if 3 + i not in LACKING]
    sequences = [request(prompt, 30, f"r{prompt}") for prompt in prompts]
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    accepted = 0
    for prompt, sequence in zip(prompts, sequences, strict=True):
        answer = RememberingModel.answer(prompt, 30)
        assert sequence.output_token_ids.tolist() == answer
        emitted = 1
        for step in recorder.take(sequence).steps:
            # Right as long as neither what it read nor what it has to say is unknown to it.
            history, ahead = answer[:emitted], answer[emitted : emitted + step.drafted]
            if LACKING[1] not in history and not set(ahead) & set(LACKING):
                assert step.accepted == step.drafted
            accepted += step.accepted
            emitted += step.emitted
    assert accepted > 0
    lacking = {int(np.flatnonzero(each == ORDER)[0]) for each in LACKING}
    assert lacking & set(model.read) == {int(np.flatnonzero(LACKING[0] == ORDER)[0])}
