"""Real pairs of models: SmolLM2 and Gemma 3, each for itself and for the other.

Gemma's GGUF file has no entry in the catalogue: `OUTRIDER_GEMMA3_GGUF` says where it is.
"""

import os
from pathlib import Path

import pytest
from tests.engine.loops import engine_of, finish, request

from outrider.bench.workload import bundled_workload
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.shared_vocabulary import SharedVocabulary, TokenTable
from outrider.engine.models.fused import FusedDecoder
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.scheduling.limits import Limits
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.records.request import StepRecord

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

TRAINED_DRAFT = Path(__file__).parents[2] / "models" / "smollm2-draft"
TOGETHER = 12
K = 4


@pytest.fixture(scope="session")
def gemma3() -> Path:
    path = Path(os.environ.get("OUTRIDER_GEMMA3_GGUF", "nowhere"))
    if not path.is_file():
        pytest.skip("OUTRIDER_GEMMA3_GGUF names no file")
    return path


def load(gguf: Path) -> FusedDecoder:
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return FusedDecoder(
        open_weights(gguf),
        packing=PACKINGS["float32"],
        num_blocks=16 * TOGETHER,
        max_length=1_024,
        threads=threads,
    )


def tokenizer_of(gguf: Path) -> Tokenizer:
    files = locate_model(str(gguf), cache_dir=cache_directory(), report=print)
    return Tokenizer(gguf, kept=kept_folder(cache_directory(), files.sha256))


def answers(
    target: FusedDecoder, tokenizer: Tokenizer, drafter: Drafter
) -> tuple[list[list[int]], list[StepRecord]]:
    """Answers to two dozen prompts of at most 32 tokens each, and all steps."""
    prompts = bundled_workload().prompts[:24]
    ends = {*target.config.eos_token_ids, tokenizer.eos_token_id} - {None}
    sequences = [
        request(
            tokenizer.encode_chat(prompt.chat),
            32,
            prompt.prompt_id,
            stop_ids=[each for each in ends if each is not None],
        )
        for prompt in prompts
    ]
    engine, recorder = engine_of(target, drafter, K, limits=Limits(TOGETHER, 2_048))
    for sequence in sequences:
        engine.add(sequence)
    finish(engine)
    steps = [step for each in sequences for step in recorder.take(each).steps]
    return [each.output_token_ids.tolist() for each in sequences], steps


def assert_lossless(target_gguf: Path, draft_gguf: Path, *, shared: bool) -> list[StepRecord]:
    """Hold answers with and without drafts against each other; return the steps with a draft."""
    target, tokenizer = load(target_gguf), tokenizer_of(target_gguf)
    plain, _ = answers(target, tokenizer, NoDrafter())
    draft = load(draft_gguf)
    vocabulary = None
    if shared:
        tables = (
            TokenTable.of("target", tokenizer, target.config.vocab_size),
            TokenTable.of("draft", tokenizer_of(draft_gguf), draft.config.vocab_size),
        )
        vocabulary = SharedVocabulary.of(*tables)
    own = OwnModel(draft, max_rows=2_048, vocabulary=vocabulary)
    speculative, steps = answers(target, tokenizer, ModelDrafter(own))
    assert speculative == plain
    assert own.cache.pool.free_blocks == own.cache.pool.num_blocks
    drafted = [step for step in steps if step.drafted]
    assert drafted
    return drafted


def test_smollm2_drafts_for_itself_and_is_always_right(smollm2: Path) -> None:
    steps = assert_lossless(smollm2, smollm2, shared=False)
    assert all(step.accepted == step.drafted for step in steps)


def test_gemma3_drafts_for_smollm2_and_changes_no_token(smollm2: Path, gemma3: Path) -> None:
    steps = assert_lossless(smollm2, gemma3, shared=True)
    assert 0 < sum(step.accepted for step in steps) < sum(step.drafted for step in steps)


def test_smollm2_drafts_for_gemma3_and_changes_no_token(smollm2: Path, gemma3: Path) -> None:
    steps = assert_lossless(gemma3, smollm2, shared=True)
    assert 0 < sum(step.accepted for step in steps) < sum(step.drafted for step in steps)


def test_the_draft_model_that_was_trained_for_smollm2_changes_no_token_and_is_right_at_times(
    smollm2: Path,
) -> None:
    steps = assert_lossless(smollm2, TRAINED_DRAFT, shared=False)
    # It was trained on most of these prompts; its card says 1.38 for those that it was not.
    assert 1.38 < 1 + sum(step.accepted for step in steps) / len(steps) < 2.2
