"""A whole run: what it makes is better than what it began with, loads, and says the truth."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.training.conftest import SETTINGS, SHAPE, MakeRun, Trained

from outrider.engine.models.base import Rows, blocks_for
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.errors import CorruptFile, InvalidSetting, InvalidWorkload, UnwritableOutput
from outrider.training.draft import DraftNetwork
from outrider.training.estimate import HeldOut
from outrider.training.examples import Example
from outrider.training.work_folder import WorkFolder

TOKENS = [257, 10, 20, 30, 200, 7, 7, 99, 0, 255]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def logits_of(folder: Path, backend: str) -> torch.Tensor:
    """What the engine says after each of `TOKENS`."""
    count = len(TOKENS)
    model = load_model(folder, ModelSettings(backend=backend, dtype="float32"))
    places = [0] * count
    rows = Rows(TOKENS, range(count), places, [range(blocks_for(count))], range(count))
    return model.forward(rows).clone()


def transformers_logits(folder: Path) -> torch.Tensor:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    loading: Any = AutoModelForCausalLM
    with torch.no_grad():
        model = loading.from_pretrained(folder, dtype=torch.float32)
        logits: torch.Tensor = model(torch.tensor([TOKENS])).logits[0]
    return logits


def own_logits(folder: Path) -> torch.Tensor:
    network = DraftNetwork(SHAPE, torch.zeros(258, SHAPE.hidden_size), seed=0)
    network.load_state_dict({name: each.float() for name, each in weights(folder).items()})
    with torch.no_grad():
        logits: torch.Tensor = network(torch.tensor([TOKENS]), torch.arange(len(TOKENS)))
    return logits


@pytest.mark.parametrize("backend", ["torch", "fused"])
def test_the_engine_and_transformers_compute_what_was_trained(
    backend: str, trained: Trained
) -> None:
    expected = transformers_logits(trained.run.output)
    torch.testing.assert_close(
        logits_of(trained.run.output, backend), expected, atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(own_logits(trained.run.output), expected, atol=1e-4, rtol=1e-4)


def test_training_raises_the_acceptance_of_prompts_that_were_held_out(
    trained: Trained, make_run: MakeRun, tmp_path: Path
) -> None:
    fit = replace(SETTINGS.fit, steps=1, learning_rate=1e-8, warmup_steps=0)
    hardly = make_run(tmp_path / "draft", settings=replace(SETTINGS, fit=fit)).run()
    before = hardly.histogram.mean_acceptance_length
    after = trained.live.histogram.mean_acceptance_length
    assert before is not None
    assert after is not None
    assert after > before + 0.2


def test_no_draft_changes_an_answer(trained: Trained) -> None:
    assert trained.live.changed == 0
    assert trained.live.answers == 3


def test_the_estimate_without_an_engine_is_what_the_engine_measures(trained: Trained) -> None:
    held = [e for e in WorkFolder(trained.run.output).read_answers() if e.held_out]
    watched = HeldOut([Example.of(e) for e in held], [e.max_tokens for e in held], trained.run.k)
    network = DraftNetwork(SHAPE, torch.zeros(258, SHAPE.hidden_size), seed=0)
    network.load_state_dict(
        {name: each.float() for name, each in weights(trained.run.output).items()}
    )
    assert watched.estimate(network, 256).histogram == trained.live.histogram


def test_the_card_tells_the_acceptance_that_was_measured(trained: Trained) -> None:
    card = (trained.run.output / "README.md").read_text(encoding="utf-8")
    whole = trained.live.histogram
    assert whole.mean_acceptance_length is not None
    counts = " | ".join(map(str, whole.counts))
    mean = f"{float(whole.mean_acceptance_length):.2f}"
    assert f"| all | {whole.steps} | {mean} | " in card
    assert f" | {counts} |" in card
    assert "- Trained on 36 answers of the target to 12 of these prompts" in card
    assert "120 steps of AdamW" in card
    assert f"$ outrider serve ./{trained.run.files.name} --speculative-config" in card
    assert f'"model": "./{trained.run.output.name}"' in card


def test_the_card_tells_the_warm_up_that_was_done_and_no_seeds_that_were_not(
    make_run: MakeRun, tmp_path: Path
) -> None:
    settings = replace(
        SETTINGS,
        answers=replace(SETTINGS.answers, samples=0, max_tokens=4),
        fit=replace(SETTINGS.fit, steps=4),
    )
    run = make_run(tmp_path / "draft", settings=settings)
    run.run()
    card = (run.output / "README.md").read_text(encoding="utf-8")
    assert "one each at temperature 0; at most 4 tokens.\n" in card
    assert "seeds" not in card
    assert "\n2 steps of warm-up" in card


def test_whoever_may_read_the_config_may_read_the_weights(trained: Trained) -> None:
    modes = {file.stat().st_mode for file in trained.run.output.iterdir()}
    assert len(modes) == 1


def test_its_answers_are_a_log_to_replay(trained: Trained) -> None:
    lines = WorkFolder(trained.run.output).answers.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 3 * 12 + 3
    assert {row["temperature"] for row in rows} == {0, 0.5}
    for row in rows:
        assert len(row["completion_token_ids"]) <= row["max_tokens"] == 24
        assert len(row["top_token_ids"]) == len(row["completion_token_ids"])
        assert len(row["top_token_ids"][0]) == (0 if row["held_out"] else 4)


class Interrupting:
    """Says Ctrl-C at a given line."""

    def __init__(self, at: str) -> None:
        self._at = at

    def __call__(self, line: str) -> None:
        if line.startswith(self._at):
            raise KeyboardInterrupt


def ticking() -> float:
    """A clock by which something is told after every step."""
    ticking.now += 100  # type: ignore[attr-defined]
    return float(ticking.now)  # type: ignore[attr-defined]


ticking.now = 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("at", ["answers 20/39", "step 50/"])
def test_a_run_that_was_interrupted_goes_on_to_the_very_weights_of_one_that_was_not(
    at: str, trained: Trained, make_run: MakeRun, tmp_path: Path
) -> None:
    output = tmp_path / "draft"
    with pytest.raises(KeyboardInterrupt):
        make_run(output, say=Interrupting(at), clock=ticking).run()
    assert not output.exists()
    make_run(output, resume=True).run()
    expected = weights(trained.run.output)
    assert expected.keys() == weights(output).keys()
    for name, weight in weights(output).items():
        assert torch.equal(weight, expected[name]), name


def test_another_seed_makes_another_model(
    trained: Trained, make_run: MakeRun, tmp_path: Path
) -> None:
    fit = replace(SETTINGS.fit, seed=1)
    make_run(tmp_path / "draft", settings=replace(SETTINGS, fit=fit)).run()
    name = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(weights(tmp_path / "draft")[name], weights(trained.run.output)[name])


def test_a_run_goes_on_only_with_the_settings_that_it_began_with(
    trained: Trained, make_run: MakeRun
) -> None:
    fit = replace(SETTINGS.fit, steps=500)
    with pytest.raises(InvalidSetting, match=r"fit\.steps = 500; expected 120"):
        make_run(trained.run.output, resume=True, settings=replace(SETTINGS, fit=fit)).run()


def test_nothing_is_written_over(trained: Trained, make_run: MakeRun) -> None:
    with pytest.raises(UnwritableOutput, match="exists already; expected a new folder"):
        make_run(trained.run.output).run()


def test_there_is_nothing_to_go_on_with(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="leave out --resume"):
        make_run(tmp_path / "draft", resume=True).run()


def test_prompts_without_a_kind_in_common_cannot_be_held_out(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "draft")
    with pytest.raises(InvalidWorkload, match="none of 1 prompts shares its kind"):
        make_run(tmp_path / "draft", prompts=run.prompts[:1]).run()
    assert not (tmp_path / "draft.work").exists()


def test_prompts_that_are_too_long_are_left_out_and_counted(
    make_run: MakeRun, tmp_path: Path
) -> None:
    lines: list[str] = []
    run = make_run(tmp_path / "draft", say=lines.append)
    long = replace(run.prompts[0], token_ids=(1,) * 5_000)
    with pytest.raises(InvalidWorkload, match="no prompt fits the model"):
        replace(run, prompts=[long]).run()
    assert lines == ["1 of 1 prompts are left out, too long for the model"]


def test_a_state_that_is_damaged_is_named(make_run: MakeRun, tmp_path: Path) -> None:
    output = tmp_path / "draft"
    with pytest.raises(KeyboardInterrupt):
        make_run(output, say=Interrupting("step 1/"), clock=ticking).run()
    (tmp_path / "draft.work" / "state.pt").write_bytes(b"no state")
    with pytest.raises(CorruptFile, match=r"state\.pt cannot be read"):
        make_run(output, resume=True).run()
