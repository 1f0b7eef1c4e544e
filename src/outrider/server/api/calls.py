"""A request for answers, read so far that the engine can begin."""

from dataclasses import dataclass
from typing import Protocol

from outrider.engine.sampling import SamplingParameters
from outrider.server.api.answers import Answer, Answers
from outrider.server.api.errors import bad_request
from outrider.server.api.model import ServedModel
from outrider.server.api.prompts import chat_prompt, check_lengths, count_prompts, text_prompts
from outrider.server.api.requests.chat import ChatRequest
from outrider.server.api.requests.completion import CompletionRequest
from outrider.server.api.requests.fields import GenerationFields
from outrider.server.api.requests.structure import compiled_structure
from outrider.server.api.sampling import sampling_parameters
from outrider.server.api.settings import ApiSettings

COMPLETION_TOKENS = 16
"""How long a completion is where nobody says, as in OpenAI's API; a chat takes what room it has."""


class Call(Protocol):
    """What differs between the ways to ask."""

    @property
    def fields(self) -> GenerationFields:
        """What was asked."""

    @property
    def prompts(self) -> int:
        """How many prompts there are, at least 1."""

    @property
    def logprobs(self) -> int | None:
        """How many tokens are told beside each of the output, None for no logprobs at all."""

    @property
    def prompt_logprobs(self) -> int | None:
        """The same for each prompt token but the first."""

    @property
    def max_tokens(self) -> int | None:
        """The most output tokens, None for all that there is room for."""

    @property
    def prompt_param(self) -> str:
        """The field that has the prompts."""

    def read(self, model: ServedModel, settings: ApiSettings) -> list[list[int]]:
        """Return each prompt's token ids; takes long for long ones."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """See `Call`."""

    fields: ChatRequest
    prompt_param: str = "messages"
    prompts: int = 1

    @property
    def logprobs(self) -> int | None:
        """See `Call`."""
        if not self.fields.logprobs:
            if self.fields.top_logprobs:
                raise bad_request("top_logprobs without logprobs; set it to true", "top_logprobs")
            return None
        return self.fields.top_logprobs or 0

    @property
    def prompt_logprobs(self) -> int | None:
        """See `Call`."""
        return self.fields.prompt_logprobs

    @property
    def max_tokens(self) -> int | None:
        """See `Call`."""
        asked = self.fields.max_completion_tokens
        return self.fields.max_tokens if asked is None else asked

    def read(self, model: ServedModel, settings: ApiSettings) -> list[list[int]]:
        """See `Call`."""
        fields = self.fields
        continues = bool(fields.continue_final_message)
        wants = fields.add_generation_prompt
        return [
            chat_prompt(
                model.tokenizer,
                fields.messages,
                chat_template=settings.chat_template,
                tools=None if fields.tool_choice == "none" else fields.tools,
                add_generation_prompt=not continues if wants is None else wants,
                continue_final_message=continues,
                variables=fields.chat_template_kwargs,
                most=model.max_length,
            )
        ]


@dataclass(frozen=True, slots=True)
class CompletionCall:
    """See `Call`."""

    fields: CompletionRequest
    prompt_param: str = "prompt"

    @property
    def prompts(self) -> int:
        """See `Call`."""
        return count_prompts(self.fields.prompt)

    @property
    def logprobs(self) -> int | None:
        """See `Call`."""
        return self.fields.logprobs

    @property
    def prompt_logprobs(self) -> int | None:
        """See `Call`; a prompt that is echoed is told like the output."""
        asked = self.fields.prompt_logprobs
        return self.fields.logprobs if asked is None and self.fields.echo else asked

    @property
    def only_echo(self) -> bool:
        """Whether the prompt alone is asked back, as for its log-probabilities."""
        return bool(self.fields.echo) and self.fields.max_tokens == 0

    @property
    def max_tokens(self) -> int:
        """See `Call`."""
        if self.only_echo:
            return 1
        return COMPLETION_TOKENS if self.fields.max_tokens is None else self.fields.max_tokens

    def read(self, model: ServedModel, settings: ApiSettings) -> list[list[int]]:  # noqa: ARG002
        """See `Call`."""
        return text_prompts(
            model.tokenizer,
            self.fields.prompt,
            add_special_tokens=self.fields.add_special_tokens is not False,
            vocabulary_tokens=model.vocabulary_tokens,
            most=model.max_length,
        )


def count_answers(call: Call, settings: ApiSettings) -> int:
    """Return how many answers are asked for; ApiError where they are too many or none."""
    n = 1 if call.fields.n is None else call.fields.n
    if not 1 <= n <= settings.limits.n:
        raise bad_request(f"n {n}; expected 1 to {settings.limits.n}", "n")
    if call.prompts > settings.limits.prompts:
        raise bad_request(
            f"{call.prompts} prompts; at most {settings.limits.prompts} are allowed", "prompt"
        )
    return n * call.prompts


def begin(call: Call, model: ServedModel, settings: ApiSettings) -> Answers:
    """Return the answers that the engine has to give, none of them begun; not for the event loop.

    Raises ApiError for whatever is wrong with the request.
    """
    limits = settings.limits
    parameters = sampling_parameters(
        call.fields,
        logprobs=call.logprobs,
        prompt_logprobs=call.prompt_logprobs,
        recommended=settings.sampling,
        encode=model.tokenizer.encode,
        vocabulary_tokens=model.vocabulary_tokens,
        limits=limits,
    )
    grammar = compiled_structure(call.fields, model.constraints)
    prompts = call.read(model, settings)
    check_lengths(
        prompts, most=model.max_length, limit=limits.prompt_tokens, param=call.prompt_param
    )
    answers = Answers(prompts)
    for place, prompt in enumerate(prompts):
        room = model.max_length - len(prompt)
        max_tokens = _max_tokens(call.max_tokens, room, limits.max_tokens, parameters)
        for sample in parameters.samples():
            answers.each.append(
                Answer(
                    len(answers.each),
                    place,
                    prompt,
                    model.sequence(prompt, sample, max_tokens, grammar),
                )
            )
    return answers


def _max_tokens(
    asked: int | None, room: int, limit: int | None, parameters: SamplingParameters
) -> int:
    if asked is not None and asked < 1:
        raise bad_request(f"max_tokens {asked}; expected 1 or more", "max_tokens")
    if asked is not None and limit is not None and asked > limit:
        raise bad_request(f"max_tokens {asked}; at most {limit} are allowed", "max_tokens")
    if asked is not None and asked > room:
        raise bad_request(
            f"max_tokens {asked}, but the prompt leaves room for {room} tokens; lower it,"
            " or shorten the prompt",
            "max_tokens",
        )
    most = min(room if asked is None else asked, room if limit is None else limit)
    if parameters.min_tokens > most:
        raise bad_request(
            f"min_tokens {parameters.min_tokens} and max_tokens {most}; expected min_tokens no"
            " larger than max_tokens",
            "min_tokens",
        )
    return most
