"""Requests with a constraint on a vocabulary of letters, and how they are run."""

from tests.engine.constraints.letters import (
    END,
    WORDS,
    begun,
    tokenizer_of,
)

from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.engine import Engine
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update

K = 5
MAX_TOKENS = 60


def constrained(
    name: str,
    spec: ConstraintSpec | None,
    parameters: SamplingParameters = SamplingParameters(),  # noqa: B008  frozen
    *,
    prompt: list[int] | None = None,
    max_tokens: int = MAX_TOKENS,
) -> Sequence:
    prompt = prompt or [0, 3]
    return Sequence(
        name,
        prompt,
        max_tokens=max_tokens,
        sampling=Sampling.seeded(parameters, end_token_ids=[END]),
        end_token_ids=[END],
        detokenizer=tokenizer_of(WORDS).detokenizer(prompt) if parameters.stop else None,
        constraint=None if spec is None else begun(spec, ignore_eos=parameters.ignore_eos),
    )


def run(engine: Engine, *sequences: Sequence) -> dict[str, list[Update]]:
    updates: dict[str, list[Update]] = {each.request_id: [] for each in sequences}
    for sequence in sequences:
        engine.add(sequence)
    while engine.busy:
        for update in engine.step():
            updates[update.sequence.request_id].append(update)
    return updates
