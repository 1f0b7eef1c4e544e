import json
from pathlib import Path

import pytest

from outrider.server.recommended import FILE, recommended_sampling


def test_recommendations_of_a_folder_are_those_that_sampling_knows(tmp_path: Path) -> None:
    given = {"temperature": 0.6, "top_k": 20, "do_sample": True, "eos_token_id": 3, "top_p": "x"}
    (tmp_path / FILE).write_text(json.dumps(given))
    assert recommended_sampling(tmp_path) == {"temperature": 0.6, "top_k": 20}


@pytest.mark.parametrize("text", [None, "{", "[]", "5"])
def test_without_a_readable_file_nothing_is_recommended(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / FILE).write_text(text)
    assert recommended_sampling(tmp_path) == {}


def test_a_gguf_file_recommends_nothing(tmp_path: Path) -> None:
    assert recommended_sampling(tmp_path / "model.gguf") == {}
