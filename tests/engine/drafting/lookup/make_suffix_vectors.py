"""Writes `suffix_vectors.npz`: what arctic-inference 0.3.0 drafts for many histories.

    python make_suffix_vectors.py ANSWERS.jsonl

Runs where arctic-inference is installed, with numpy and nothing of this project. It builds with
nanobind 2.9.2, CMake and a C++ compiler, in an environment that has torch:

    pip install nanobind==2.9.2
    pip install --no-deps --no-build-isolation arctic-inference==0.3.0

ANSWERS has a JSON object a line with `prompt_token_ids` and `completion_token_ids` of real answers.
The random texts are made here, and stored as well, so that nothing depends on a generator.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from arctic_inference.suffix_decoding import SuffixDecodingCache
from numpy.random import Generator

RANDOM_CASES = 220
REAL_SETTINGS = (
    (24, 10_000, 1.0, 0.1, 24),
    (64, 10_000, 4.0, 0.3, 16),
    (24, 15, 1.5, 0.0, 8),
    (24, 0, 1.0, 0.1, 24),
    (5, 3, 1.0, 0.5, 5),
)
"""Depth, cached requests, factor, least probability and K."""
MOST_REAL_TOKENS = 400

Settings = tuple[int, int, float, float, int]


@dataclass
class Vectors:
    """All that is stored; a case is one cache, a step is one call."""

    tokens: list[int] = field(default_factory=list)
    prompt_lengths: list[int] = field(default_factory=list)
    output_lengths: list[int] = field(default_factory=list)
    settings: list[Settings] = field(default_factory=list)
    steps_of_case: list[int] = field(default_factory=list)
    step_text: list[int] = field(default_factory=list)
    step_name: list[int] = field(default_factory=list)
    step_new: list[int] = field(default_factory=list)
    draft_lengths: list[int] = field(default_factory=list)
    draft_scores: list[float] = field(default_factory=list)
    draft_tokens: list[int] = field(default_factory=list)
    histories: int = 0

    def add_text(self, prompt: list[int], output: list[int]) -> int:
        """Store a text and return its number."""
        self.tokens += prompt + output
        self.prompt_lengths.append(len(prompt))
        self.output_lengths.append(len(output))
        return len(self.prompt_lengths) - 1


@dataclass
class Running:
    """A request in a cache."""

    number: int
    name: int
    prompt: list[int]
    output: list[int]
    done: int = 0
    drafted: list[int] = field(default_factory=list)


def play(
    vectors: Vectors,
    settings: Settings,
    texts: list[tuple[int, list[int], list[int]]],
    *,
    together: int,
    names: int,
    rng: Generator | None,
) -> None:
    """Let a cache answer `texts`, `together` at a time; a step adds what its draft got right.

    With `rng` it adds 1 to 3 tokens instead. Of `names` there are only so many, used again.
    """  # fmt: skip
    depth, cached, factor, least, k = settings
    cache = SuffixDecodingCache(depth, cached)
    running: list[Running] = []
    waiting = list(reversed(texts))
    free = list(range(names))
    steps = 0
    while waiting or running:
        while waiting and len(running) < together:
            number, prompt, output = waiting.pop()
            running.append(Running(number, free.pop(0), prompt, output))
        for each in tuple(running):
            if each.done == 0:
                cache.start_request(each.name, np.array(each.prompt, np.int32))
            left = each.output[each.done :]
            right = next((i for i, t in enumerate(each.drafted) if left[i : i + 1] != [t]), None)
            new = 1 + (len(each.drafted) if right is None else right)
            new = int(rng.integers(1, 4)) if rng is not None else new
            new = min(new, len(left))
            cache.add_active_response(each.name, np.array(left[:new], np.int32))
            each.done += new
            context = (each.prompt + each.output[: each.done])[-depth:]
            draft = cache.speculate(
                each.name, np.array(context, np.int32), max_spec_tokens=k,
                max_spec_factor=factor, min_token_prob=least,
            )  # fmt: skip
            each.drafted = list(draft.token_ids)
            vectors.step_text.append(each.number)
            vectors.step_name.append(each.name)
            vectors.step_new.append(new)
            vectors.draft_lengths.append(len(each.drafted))
            vectors.draft_scores.append(draft.score)
            vectors.draft_tokens += each.drafted
            steps += 1
            if each.done == len(each.output):
                cache.stop_request(each.name)
                running.remove(each)
                free.append(each.name)
    vectors.settings.append(settings)
    vectors.steps_of_case.append(steps)
    vectors.histories += len(texts)


def random_text(rng: Generator, motifs: list[list[int]], alphabet: int, most: int) -> list[int]:
    """Up to `most` tokens, motifs among single ones."""
    length = int(rng.integers(1, most))
    tokens: list[int] = []
    while len(tokens) < length:
        if rng.random() < 0.6:
            tokens += motifs[int(rng.integers(len(motifs)))]
        else:
            tokens.append(int(rng.integers(0, alphabet)))
    return tokens[:length]


def random_cases(vectors: Vectors) -> None:
    """Small alphabets and many repetitions, where ties, splits and evictions are common."""
    for seed in range(RANDOM_CASES):
        rng = np.random.default_rng(seed)
        alphabet = int(rng.choice([1, 2, 3, 5, 20, 49_000]))
        motifs = [rng.integers(0, alphabet, rng.integers(1, 12)).tolist() for _ in range(6)]
        longest = int(rng.choice([6, 20, 50]))
        texts = []
        for _ in range(int(rng.integers(30, 55))):
            prompt = random_text(rng, motifs, alphabet, longest)
            output = random_text(rng, motifs, alphabet, longest)
            texts.append((vectors.add_text(prompt, output), prompt, output))
        settings = (
            int(rng.choice([1, 2, 3, 5, 8, 24, 64])),
            int(rng.choice([0, 1, 2, 3, 10, 10_000])),
            float(rng.choice([0.0, 0.5, 1.0, 1.5, 4.0])),
            float(rng.choice([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])),
            int(rng.choice([1, 3, 8, 24])),
        )
        together = int(rng.integers(1, 6))
        names = together + int(rng.choice([0, 3, 1_000]))
        play(vectors, settings, texts, together=together, names=names, rng=rng)


def answers(path: Path) -> Iterator[tuple[list[int], list[int]]]:
    """Prompts and outputs of at most `MOST_REAL_TOKENS` together."""
    for line in path.read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        prompt, output = answer["prompt_token_ids"], answer["completion_token_ids"]
        if output and len(prompt) + len(output) <= MOST_REAL_TOKENS:
            yield prompt, output


def real_cases(vectors: Vectors, path: Path) -> None:
    """Real answers, the same under each of the settings."""
    texts = [(vectors.add_text(prompt, output), prompt, output) for prompt, output in answers(path)]
    for settings in REAL_SETTINGS:
        play(vectors, settings, texts, together=4, names=len(texts), rng=None)


def main() -> None:
    """Make all cases and store them beside this file."""
    vectors = Vectors()
    random_cases(vectors)
    real_cases(vectors, Path(sys.argv[1]))
    path = Path(__file__).with_name("suffix_vectors.npz")
    np.savez_compressed(
        path,
        tokens=np.array(vectors.tokens, np.uint16),
        prompt_lengths=np.array(vectors.prompt_lengths, np.uint16),
        output_lengths=np.array(vectors.output_lengths, np.uint16),
        settings=np.array(vectors.settings, np.float64),
        steps_of_case=np.array(vectors.steps_of_case, np.int32),
        step_text=np.array(vectors.step_text, np.uint16),
        step_name=np.array(vectors.step_name, np.uint16),
        step_new=np.array(vectors.step_new, np.uint8),
        draft_lengths=np.array(vectors.draft_lengths, np.uint8),
        draft_scores=np.array(vectors.draft_scores, np.float32),
        draft_tokens=np.array(vectors.draft_tokens, np.uint16),
    )
    size = path.stat().st_size
    sys.stdout.write(
        f"{vectors.histories} histories, {len(vectors.step_text)} steps, {size} bytes\n"
    )


if __name__ == "__main__":
    main()
