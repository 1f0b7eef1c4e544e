import json
import shlex

import pytest

from outrider.advice.deployment import deploy_commands
from outrider.errors import InvalidSetting
from outrider.records.arm import BASELINE, Arm, TieRule

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
NGRAM = Arm("k4", "ngram", 4, prompt_lookup_min=2, prompt_lookup_max=5, ngram_tie="recent")


def test_an_ngram_arm_is_one_line_for_the_shell() -> None:
    commands = deploy_commands(NGRAM, MODEL)

    assert commands.deploy == (
        "vllm serve HuggingFaceTB/SmolLM2-135M-Instruct --speculative-config"
        ' \'{"method":"ngram","num_speculative_tokens":4,'
        '"prompt_lookup_min":2,"prompt_lookup_max":5}\''
    )
    assert commands.rollback == "vllm serve HuggingFaceTB/SmolLM2-135M-Instruct"


def test_settings_that_the_arm_leaves_open_are_left_to_vllm() -> None:
    *_, settings = shlex.split(deploy_commands(Arm("k1", "ngram", 1), MODEL).deploy)

    assert json.loads(settings) == {"method": "ngram", "num_speculative_tokens": 1}


def test_a_path_with_spaces_and_quotes_reaches_the_server_whole() -> None:
    path = "/models/it's mine/$HOME"

    commands = deploy_commands(NGRAM, path)

    assert shlex.split(commands.deploy)[2] == path
    assert shlex.split(commands.rollback) == ["vllm", "serve", path]


def test_without_speculation_the_line_is_the_way_back_and_says_so() -> None:
    commands = deploy_commands(BASELINE, MODEL)

    assert commands.deploy == commands.rollback == f"vllm serve {MODEL}"
    assert commands.caveats == ("This deploys no speculation, so both lines are the same.",)


@pytest.mark.parametrize(
    ("tie", "measured"),
    [("recent", "was the most recent, as on V2"), ("earliest", "was the earliest, as on V1")],
)
def test_caveats_tell_which_of_vllms_runners_drafts_alike(tie: TieRule, measured: str) -> None:
    arm = Arm("k4", "ngram", 4, ngram_tie=tie)

    tie_rule, filled_drafts, measured_here = deploy_commands(arm, MODEL).caveats

    assert measured in tie_rule
    assert "lower A/D" in filled_drafts
    assert "measure them again" in measured_here


def test_a_method_that_vllm_lacks_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"'telepathy' cannot be deployed.*one of ngram"):
        deploy_commands(Arm("x", "telepathy", 2), MODEL)
