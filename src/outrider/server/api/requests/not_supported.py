"""Fields that clients know from elsewhere, that change the answer, and that are not done here."""

from collections.abc import Mapping
from types import MappingProxyType

from outrider.server.api.errors import bad_request
from outrider.server.api.requests.fields import GenerationFields

_CONSTRAIN = "use structured_outputs"

NOT_SUPPORTED: Mapping[str, str] = MappingProxyType(
    {
        "best_of": "use n",
        "early_stopping": "leave it out",
        "guided_choice": _CONSTRAIN,
        "guided_grammar": _CONSTRAIN,
        "guided_json": _CONSTRAIN,
        "guided_regex": _CONSTRAIN,
        "kv_transfer_params": "leave it out",
        "length_penalty": "leave it out",
        "logits_processors": "use logit_bias or bad_words",
        "repetition_detection": "use a repetition_penalty",
        "thinking_token_budget": "use max_tokens",
        "truncate_prompt_tokens": "shorten the prompt",
        "use_beam_search": "use n with a temperature above 0",
    }
)
"""What chats and completions have in common, and what to do instead."""


def refuse_not_supported(request: GenerationFields) -> None:
    """Raise ApiError for a field that is known, given and not done; null, false and {} are not."""
    for name, advice in request.not_supported.items():
        if request.unknown.get(name):
            raise bad_request(f"{name} is not supported; {advice}", name)
