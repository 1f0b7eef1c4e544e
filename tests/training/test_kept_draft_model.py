"""The draft model that is kept in the repository: what its card says of it is so."""

import json
import re
from pathlib import Path

import pytest

from outrider.engine.models.source import open_weights
from outrider.engine.tokenizer import Tokenizer

FOLDER = Path(__file__).parents[2] / "models" / "smollm2-draft"
CARD = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
    for line in CARD.splitlines()
    if re.match(r"\| \w+ \| [\d,]+ \|", line)
]


def test_its_files_take_no_more_than_15_mb() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 15_000_000


def test_its_card_counts_its_parameters() -> None:
    config = open_weights(FOLDER).config
    embedding = config.vocab_size * config.hidden_size
    assert f"{config.parameters:,} parameters in bfloat16, of them {embedding:,} in the" in CARD


def test_its_tokenizer_has_the_tokens_of_the_model() -> None:
    tokenizer = Tokenizer(FOLDER)
    assert len(json.loads(tokenizer.to_json())["model"]["vocab"]) == 49_152
    assert open_weights(FOLDER).config.vocab_size == 49_152
    assert tokenizer.encode("Hello world") == [19556, 905]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_line_of_its_card_adds_up(row: list[str]) -> None:
    _, steps, mean, rate, *histogram = row
    counts = list(map(int, histogram))
    accepted = sum(number * count for number, count in enumerate(counts))
    assert sum(counts) == int(steps)
    assert float(mean) == pytest.approx(1 + accepted / int(steps), abs=0.005)
    assert 100 * accepted / (4 * int(steps)) <= float(rate.removesuffix(" %")) + 0.05


def test_all_its_kinds_together_are_the_last_line() -> None:
    *kinds, whole = ROWS
    assert whole[0] == "all"
    for column in (1, *range(4, 9)):
        assert sum(int(row[column]) for row in kinds) == int(whole[column])
