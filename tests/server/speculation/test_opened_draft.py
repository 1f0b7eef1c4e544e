import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tests.server.speculation.methods.test_draft_model_method import drafting

from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidSetting
from outrider.server.speculation.methods.draft_model import DraftModelMethod
from outrider.server.speculation.opened_draft import ModelToPair, OpenedDraft

FLOAT32 = ModelSettings(backend="torch", dtype="float32", num_blocks=7, max_length=100)


def opened(
    target: Path, draft: Path, said: list[str] | None = None, **settings: Any
) -> OpenedDraft:
    method = drafting(model=str(draft), **settings).drafting
    assert isinstance(method, DraftModelMethod)
    sides = [ModelToPair(path.name, path, Tokenizer(path)) for path in (target, draft)]
    return OpenedDraft.of(method, *sides, say=(said if said is not None else []).append)


def changed(model: Path, to: Path, **config: Any) -> Path:
    """A copy of a model's folder with other entries in its config."""
    shutil.copytree(model, to)
    entries = json.loads((to / "config.json").read_text()) | config
    (to / "config.json").write_text(json.dumps(entries))
    return to


def longer(model: Path, to: Path, tokens: int) -> Path:
    """A copy with more token ids, of which the tokenizer knows nothing."""
    changed(model, to, vocab_size=258 + tokens)
    weights = load_file(to / "model.safetensors")
    table = weights["model.embed_tokens.weight"]
    weights["model.embed_tokens.weight"] = table.repeat(2, 1)[: 258 + tokens].contiguous()
    save_file(weights, to / "model.safetensors")
    return to


def test_a_model_goes_with_itself_and_nothing_is_said(tiny_model: Path) -> None:
    said: list[str] = []
    draft = opened(tiny_model, tiny_model, said)
    assert said == []
    assert (draft.max_length, draft.vocabulary, draft.mask_token_id) == (4096, None, None)


def test_another_vocabulary_size_is_refused_with_what_to_do(
    tiny_model: Path, tmp_path: Path
) -> None:
    draft = longer(tiny_model, tmp_path / "longer", 6)
    entries = json.loads((draft / "tokenizer_config.json").read_text())
    (draft / "tokenizer_config.json").write_text(json.dumps(entries | {"pad_token": "<|start|>"}))
    said: list[str] = []
    with pytest.raises(InvalidSetting) as raised:
        opened(tiny_model, draft, said)
    assert said == ["special tokens differ, target and draft model: pad none and '<|start|>'"]
    assert str(raised.value) == (
        "draft model longer with 264 token ids for tiny with 258; expected the same vocabulary size"
        " in target and draft model; take a draft of the same family, or set"
        ' "use_heterogeneous_vocab": true'
    )


def test_the_shared_vocabulary_is_told_in_numbers(tiny_model: Path, tmp_path: Path) -> None:
    draft = longer(tiny_model, tmp_path / "longer", 6)
    said: list[str] = []
    found = opened(tiny_model, draft, said, use_heterogeneous_vocab=True)
    assert said[0] == (
        "258 of the draft model's 264 tokens are shared; it reads 258 of the target's 258 (100.0%)"
        " and the others as unknown"
    )
    assert found.vocabulary is not None
    assert found.vocabulary.to_draft.tolist() == list(range(258))


def test_the_draft_may_read_less_than_the_target_but_not_more_than_either_can(
    tiny_model: Path, tmp_path: Path
) -> None:
    short = changed(tiny_model, tmp_path / "short", max_position_embeddings=64)
    said: list[str] = []
    assert opened(tiny_model, short, said).max_length == 64
    assert said == ["the draft model reads 64 tokens at most; there drafts end"]
    assert opened(tiny_model, tiny_model, max_model_len=200).max_length == 200
    for target, draft in ((tiny_model, short), (short, tiny_model)):
        with pytest.raises(InvalidSetting, match="at most the 64 positions that both models have"):
            opened(target, draft, max_model_len=65)


@pytest.mark.parametrize(
    "config", [{"pard_token": 9}, {"mask_token_id": 9, "ptd_token_id": 3},
               {"dflash_config": {"mask_token_id": 9}, "mask_token_id": 5}]
)  # fmt: skip
def test_the_mask_token_is_where_vllm_looks_for_it(
    tiny_model: Path, tmp_path: Path, config: dict[str, Any]
) -> None:
    draft = changed(tiny_model, tmp_path / "pard", **config)
    assert opened(tiny_model, draft, parallel_drafting=True).mask_token_id == 9
    assert opened(tiny_model, draft).mask_token_id is None


def test_a_draft_without_a_usable_mask_token_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="names no mask token; expected one of dflash_config"):
        opened(tiny_model, tiny_model, parallel_drafting=True)
    draft = changed(tiny_model, tmp_path / "pard", pard_token=258)
    with pytest.raises(InvalidSetting, match=r"pard_token 258 in .*expected a token id from 0 to"):
        opened(tiny_model, draft, parallel_drafting=True)


def test_it_is_loaded_with_the_targets_blocks_and_no_more_room_than_it_has(
    tiny_model: Path, tmp_path: Path
) -> None:
    target = load_model(tiny_model, FLOAT32)
    for most, expected in ((50, 50), (500, 100)):
        draft = opened(tiny_model, tiny_model, max_model_len=most)
        own = draft.load(FLOAT32, target, max_rows=5, prefix_caching=True)
        assert (own.model.num_blocks, own.model.max_length) == (7, expected)
