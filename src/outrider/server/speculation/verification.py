"""The settings of the verification rule, decided."""

from dataclasses import replace

from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.registry import build_verifier
from outrider.engine.verification.settings import VerificationSettings
from outrider.server.speculation.config import SpeculativeConfig


def resolve_verification(config: SpeculativeConfig, k: int) -> VerificationSettings:
    """Return the settings of the rule for drafts of up to `k` tokens, with none left open.

    Raises InvalidSetting for settings of another rule, and for those that do not go with `k`.
    """
    settings = VerificationSettings(
        num_speculative_tokens=k,
        synthetic_acceptance_rates=config.synthetic_acceptance_rates,
        synthetic_acceptance_length=config.synthetic_acceptance_length,
        fly_window_size=config.fly_window_size,
        fly_entropy_threshold=config.fly_entropy_threshold,
        fly_entropy_top_k=config.fly_entropy_top_k,
    )
    verifier = build_verifier(config.rejection_sample_method, settings)
    if isinstance(verifier, FlyVerifier):
        return replace(settings, fly_window_size=verifier.window)
    return settings
