"""The lines that deploy a setting on vLLM, and the line that takes it back."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from outrider.errors import InvalidSetting
from outrider.records.arm import Arm
from outrider.records.environment import ModelIdentity

_VLLM_METHODS = ("ngram",)
_HUB = "hub"
_MEASURED_HERE = (
    "Acceptance carries over to another server, step times do not: ρ and the speed-up are this"
    " machine's at one request at a time, so measure them again where it will run, at its load."
)
_FILLED_DRAFTS = (
    "vLLM's V2 runner always drafts K tokens: where the lookup finds fewer it fills up with the"
    " last sampled token, so expect the same accepted tokens out of more drafted ones, a lower"
    " A/D, and no steps without a draft."
)


@dataclass(frozen=True, slots=True)
class DeployCommands:
    """The shell lines to deploy a setting and to roll it back, and what may differ on vLLM."""

    deploy: str
    rollback: str
    caveats: tuple[str, ...]


def deploy_commands(arm: Arm, weights: ModelIdentity, given: str) -> DeployCommands:
    """Return the commands that serve, as `arm` is set, the model whose `weights` were measured.

    They name its hub id, or what was `given` (a path) where none is known. Without speculation
    both lines are the same. Raises InvalidSetting for a method that vLLM does not have. Source of
    the keys: vLLM 0.33.0, config/speculative.py.
    """
    model = weights.hub_id or given
    plain = shlex.join(("vllm", "serve", model))
    if not arm.speculates:
        same = "This deploys no speculation, so both lines are the same."
        return DeployCommands(plain, plain, (same, *_weights_caveats(weights)))
    if arm.method not in _VLLM_METHODS:
        raise InvalidSetting(
            f"method {arm.method!r} cannot be deployed on vLLM",
            f"one of {', '.join(_VLLM_METHODS)}",
            "choose an arm of such a method",
        )
    settings = {
        "prompt_lookup_min": arm.prompt_lookup_min,
        "prompt_lookup_max": arm.prompt_lookup_max,
    }
    flags = speculative_flags(arm.method, arm.num_speculative_tokens, settings)
    deploy = shlex.join(("vllm", "serve", model, *flags))
    caveats = (
        _tie_caveat(arm),
        *(() if arm.ngram_fill else (_FILLED_DRAFTS,)),
        _MEASURED_HERE,
        *_weights_caveats(weights),
    )
    return DeployCommands(deploy, plain, caveats)


def speculative_flags(
    method: str, k: int, settings: Mapping[str, int | float | str | None]
) -> tuple[str, ...]:
    """Return the server's flags for a method at one K, with its `settings` that are not None.

    vLLM and `outrider serve` take the same ones.
    """
    told = {key: value for key, value in settings.items() if value is not None}
    config = {"method": method, "num_speculative_tokens": k, **told}
    return ("--speculative-config", json.dumps(config, separators=(",", ":")))


def _tie_caveat(arm: Arm) -> str:
    runners = (
        "Where several matches tie, vLLM's V2 runner (the default) drafts from the most recent"
        " one, its V1 runner (always on CPUs) from the earliest"
    )
    if arm.ngram_tie is None:
        return f"{runners}."
    match, runner = ("most recent", "V2") if arm.ngram_tie == "recent" else ("earliest", "V1")
    return f"{runners}; measured here was the {match}, as on {runner}."


def _weights_caveats(weights: ModelIdentity) -> Iterator[str]:
    """Tell where a hub id is deployed that may stand for other weights than the measured ones."""
    if weights.hub_id is not None and weights.source != _HUB:
        yield (
            f"The figures were measured on the weights of {weights.name} (source:"
            f" {weights.source}); vLLM would load the hub's own of {weights.hub_id}. Unless the two"
            " are the same (a quantised file's are not), answers and acceptance may differ a"
            " little."
        )
