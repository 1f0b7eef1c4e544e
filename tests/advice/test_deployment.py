import json
import shlex
from dataclasses import replace

import pytest

from outrider.advice.deployment import deploy_commands
from outrider.errors import InvalidSetting
from outrider.records.arm import BASELINE, Arm, TieRule
from outrider.records.environment import ModelIdentity

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
FROM_HUB = ModelIdentity("smollm2-135m", "hub", "0" * 64, 134_515_008, "bfloat16", MODEL)
NGRAM = Arm("k4", "ngram", 4, prompt_lookup_min=2, prompt_lookup_max=5, ngram_tie="recent")


def test_an_ngram_arm_is_one_line_for_the_shell() -> None:
    commands = deploy_commands(NGRAM, FROM_HUB, "smollm2-135m")

    assert commands.deploy == (
        "vllm serve HuggingFaceTB/SmolLM2-135M-Instruct --speculative-config"
        ' \'{"method":"ngram","num_speculative_tokens":4,'
        '"prompt_lookup_min":2,"prompt_lookup_max":5}\''
    )
    assert commands.rollback == "vllm serve HuggingFaceTB/SmolLM2-135M-Instruct"


def test_settings_that_the_arm_leaves_open_are_left_to_vllm() -> None:
    *_, settings = shlex.split(deploy_commands(Arm("k1", "ngram", 1), FROM_HUB, MODEL).deploy)

    assert json.loads(settings) == {"method": "ngram", "num_speculative_tokens": 1}


def test_a_path_with_spaces_and_quotes_reaches_the_server_whole() -> None:
    path = "/models/it's mine/$HOME"

    commands = deploy_commands(NGRAM, replace(FROM_HUB, source="path", hub_id=None), path)

    assert shlex.split(commands.deploy)[2] == path
    assert shlex.split(commands.rollback) == ["vllm", "serve", path]


def test_without_speculation_the_line_is_the_way_back_and_says_so() -> None:
    commands = deploy_commands(BASELINE, FROM_HUB, MODEL)

    assert commands.deploy == commands.rollback == f"vllm serve {MODEL}"
    assert commands.caveats == ("This deploys no speculation, so both lines are the same.",)


@pytest.mark.parametrize(
    ("tie", "measured"),
    [("recent", "was the most recent, as on V2"), ("earliest", "was the earliest, as on V1")],
)
def test_caveats_tell_which_of_vllms_runners_drafts_alike(tie: TieRule, measured: str) -> None:
    arm = Arm("k4", "ngram", 4, ngram_tie=tie)

    tie_rule, filled_drafts, measured_here = deploy_commands(arm, FROM_HUB, MODEL).caveats

    assert measured in tie_rule
    assert "lower A/D" in filled_drafts
    assert "measure them again" in measured_here


def test_an_arm_with_filled_drafts_needs_no_caveat_about_filling() -> None:
    arm = Arm("k4", "ngram", 4, ngram_tie="recent", ngram_fill=True)
    tie_rule, measured_here = deploy_commands(arm, FROM_HUB, MODEL).caveats
    assert "as on V2" in tie_rule
    assert "measure them again" in measured_here


@pytest.mark.parametrize("arm", [BASELINE, NGRAM])
@pytest.mark.parametrize("source", ["wheel", "path"])
def test_a_hub_id_that_may_stand_for_other_weights_says_so(arm: Arm, source: str) -> None:
    weights = replace(FROM_HUB, source=source)

    caveats = deploy_commands(arm, weights, "smollm2-135m").caveats

    *others, about_weights = caveats
    assert tuple(others) == deploy_commands(arm, FROM_HUB, "smollm2-135m").caveats
    assert about_weights == (
        f"The figures were measured on the weights of smollm2-135m (source: {source}); vLLM would"
        " load the hub's own of HuggingFaceTB/SmolLM2-135M-Instruct. Unless the two are the same"
        " (a quantised file's are not), answers and acceptance may differ a little."
    )


def test_weights_that_are_served_from_their_path_are_those_that_were_measured() -> None:
    local = replace(FROM_HUB, source="path", hub_id=None)

    assert "hub" not in " ".join(deploy_commands(NGRAM, local, "/models/mine").caveats)


def test_a_method_that_vllm_lacks_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"'telepathy' cannot be deployed.*one of ngram"):
        deploy_commands(Arm("x", "telepathy", 2), FROM_HUB, MODEL)
