"""Reading rotary positions from a config, as old and new releases of transformers write them."""

from collections.abc import Mapping

from outrider.engine.models.families.settings import Settings
from outrider.engine.models.rope import Rope, yarn_attention_factor

_USUAL_THETA = 10_000.0
"""Of a config that does not mention it."""


def shared_rope(config: Settings) -> Rope:
    """The rope of a model whose layers all share it."""
    newer, older = config.part("rope_parameters"), config.part("rope_scaling")
    section = older if older.stated else newer
    for name, value in section.stated.items():
        if isinstance(value, Mapping):
            raise section.wrong(name, "one rope for all layers")
    return read_rope(section, config, config.number("rope_theta", _USUAL_THETA))


def read_rope(section: Settings, config: Settings, usual_theta: float) -> Rope:
    """The rope that `section`, a part of `config`, describes; UnsupportedModel for other kinds."""
    for each in (section, config):
        if each.get("partial_rotary_factor", 1) != 1:
            raise each.wrong("partial_rotary_factor", "1")
    theta = section.number("rope_theta", usual_theta)
    kind = "rope_type" if section.get("rope_type") else "type"
    match section.get(kind, "default"):
        case "default":
            return Rope(theta)
        case "linear":
            return Rope(theta, "linear", factor=section.number("factor"))
        case "llama3":
            return Rope(
                theta,
                "llama3",
                factor=section.number("factor"),
                trained_positions=_trained_positions(section, config),
                low_frequency_factor=section.number("low_freq_factor"),
                high_frequency_factor=section.number("high_freq_factor"),
            )
        case "yarn":
            return Rope(
                theta,
                "yarn",
                factor=section.number("factor"),
                trained_positions=_trained_positions(section, config),
                beta_slow=section.number("beta_slow", 1.0),
                beta_fast=section.number("beta_fast", 32.0),
                whole_pairs=bool(section.get("truncate", otherwise=True)),
                attention_factor=_attention_factor(section),
            )
        case _:
            raise section.wrong(kind, "one of default, linear, llama3, yarn")


def _trained_positions(section: Settings, config: Settings) -> int:
    name = "original_max_position_embeddings"
    if config.get(name):
        return config.size(name)
    return section.size(name, config.size("max_position_embeddings"))


def _attention_factor(section: Settings) -> float:
    factor = section.number("factor")
    usual = yarn_attention_factor(factor)
    if section.get("mscale") and section.get("mscale_all_dim"):
        usual = yarn_attention_factor(factor, section.number("mscale"))
        usual /= yarn_attention_factor(factor, section.number("mscale_all_dim"))
    return section.number("attention_factor", usual)
