"""How many tokens an answer took."""

from typing import Any

from outrider.server.api.answers import Answer, Answers


def usage(answers: Answers) -> dict[str, Any]:
    """Return the usage of a whole request."""
    return {
        "prompt_tokens": answers.prompt_tokens,
        "total_tokens": answers.prompt_tokens + answers.tokens,
        "completion_tokens": answers.tokens,
        "prompt_tokens_details": {"cached_tokens": answers.cached_tokens},
        "completion_tokens_details": None,
    }


def final_usage(answers: Answers) -> dict[str, Any]:
    """Return the usage on the last chunk of a stream, which has no nulls."""
    return {name: value for name, value in usage(answers).items() if value is not None}


def running_usage(answer: Answer) -> dict[str, Any]:
    """Return the usage of one answer so far, as chunks on the way have it."""
    prompt_tokens = len(answer.prompt_ids)
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + answer.tokens,
        "completion_tokens": answer.tokens,
        "completion_tokens_details": None,
    }
