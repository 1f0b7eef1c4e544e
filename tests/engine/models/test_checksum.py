from pathlib import Path

import pytest

from outrider.engine.models.checksum import check_sha256, combined_sha256, file_sha256, listing
from outrider.errors import CorruptFile

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""SHA-256 of "abc", the example of FIPS 180-2."""


def test_the_sha256_of_a_file_is_that_of_the_standards_example(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert file_sha256(tmp_path / "abc") == ABC


def test_a_file_with_another_sha256_is_refused_with_both_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert check_sha256(tmp_path / "abc", ABC, "fetch it again") == ABC
    with pytest.raises(CorruptFile) as caught:
        check_sha256(tmp_path / "abc", "0" * 64, "fetch it again")
    assert ABC in caught.value.seen
    assert (caught.value.expected, caught.value.remedy) == ("0" * 64, "fetch it again")


def test_a_listing_is_what_sha256sum_prints() -> None:
    assert listing({"b": "22", "a": "11"}) == "11  a\n22  b\n"


def test_the_combined_sha256_does_not_depend_on_the_order_of_the_files() -> None:
    assert combined_sha256({"a": ABC, "b": ABC}) == combined_sha256({"b": ABC, "a": ABC})
    assert combined_sha256({"a": ABC}) != combined_sha256({"b": ABC})
