from pathlib import Path

import pytest

from outrider.errors import CorruptFile, InvalidSetting
from outrider.replay.logs.tokenizer_files import read_text_encoder


def test_a_gguf_file_is_named_as_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF\x03\0\0\0")
    with pytest.raises(InvalidSetting, match=r"model\.gguf, which is GGUF; expected a tokenizer"):
        read_text_encoder(str(file))


def test_a_file_that_holds_no_tokenizer_is_told_with_the_cause(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(CorruptFile, match="cannot be read"):
        read_text_encoder(str(file))


@pytest.mark.parametrize("name", ["nowhere.json", "/nowhere/at/all"])
def test_a_path_to_nothing_is_no_hub_id(name: str) -> None:
    with pytest.raises(InvalidSetting, match="does not exist"):
        read_text_encoder(name)
