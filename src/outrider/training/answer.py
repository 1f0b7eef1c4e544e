"""One answer of the target, as a line of a log that `outrider replay` reads too."""

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from outrider.errors import CorruptFile


@dataclass(frozen=True, slots=True, eq=False)
class TargetAnswer:
    """What the target said to a prompt, and what else it might have said.

    `prompt` int32 [P] and `completion` int32 [C] are token ids. `top_ids` int32 [C, t] and
    `top_logprobs` float32 [C, t] are the t likeliest tokens at each position of the completion,
    whatever the temperature; t is 0 where they were not asked for. `seed` is None at temperature 0.
    """

    answer_id: str
    prompt_id: str
    kind: str
    held_out: bool
    temperature: float
    seed: int | None
    max_tokens: int
    finish_reason: str
    prompt: NDArray[np.int32]
    completion: NDArray[np.int32]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]

    def to_line(self) -> str:
        """The answer as JSON without a line's end."""
        fields: dict[str, Any] = {
            "id": self.answer_id,
            "prompt_id": self.prompt_id,
            "kind": self.kind,
            "held_out": self.held_out,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "finish_reason": self.finish_reason,
            "prompt_token_ids": self.prompt.tolist(),
            "completion_token_ids": self.completion.tolist(),
            "top_token_ids": self.top_ids.tolist(),
            "top_logprobs": [
                [round(each, 4) for each in row] for row in self.top_logprobs.tolist()
            ],
        }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def of_line(cls, line: str, where: str) -> Self:
        """Read what `to_line` wrote; CorruptFile, naming `where`, for anything else."""
        try:
            fields = json.loads(line)
            completion = np.array(fields["completion_token_ids"], np.int32)
            return cls(
                answer_id=fields["id"],
                prompt_id=fields["prompt_id"],
                kind=fields["kind"],
                held_out=fields["held_out"],
                temperature=fields["temperature"],
                seed=fields["seed"],
                max_tokens=fields["max_tokens"],
                finish_reason=fields["finish_reason"],
                prompt=np.array(fields["prompt_token_ids"], np.int32),
                completion=completion,
                top_ids=np.array(fields["top_token_ids"], np.int32).reshape(len(completion), -1),
                top_logprobs=np.array(fields["top_logprobs"], np.float32).reshape(
                    len(completion), -1
                ),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(
                f"{where} is no answer of a target ({type(error).__name__}: {error})",
                "a line that outrider train wrote",
                "remove that line",
            ) from error
