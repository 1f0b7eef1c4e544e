import pytest

from outrider.engine.caching.memory import cache_blocks, parse_memory
from outrider.errors import InvalidSetting, NotEnoughMemory


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1073741824", 2**30),
        ("4GiB", 4 * 2**30),
        ("4gb", 4 * 10**9),
        ("500 MB", 500 * 10**6),
        ("0.5g", 2**29),
        ("2k", 2048),
    ],
)
def test_sizes_are_read_in_the_units_people_write(text: str, expected: int) -> None:
    assert parse_memory("--kv-cache-memory", text) == expected


@pytest.mark.parametrize("text", ["", "much", "-1", "4 GiB please", "1e9", "4XB", "0", "9" * 400])
def test_what_is_no_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"--kv-cache-memory .*expected a size such as 4GiB"):
        parse_memory("--kv-cache-memory", text)


def blocks(memory_bytes: int | None, free_bytes: int = 2**30) -> int:
    """Where a token takes 128 bytes, and a block of 64 tokens therefore 8 KiB."""
    return cache_blocks(
        128, free_bytes=free_bytes, memory_bytes=memory_bytes, max_length=130, max_num_seqs=10
    )


def test_the_cache_has_as_many_blocks_as_the_memory_holds() -> None:
    assert blocks(10 * 8192 + 8191) == 10


def test_it_takes_no_more_than_all_requests_together_can_use() -> None:
    assert blocks(2**30) == 30


def test_half_of_what_is_free_is_taken_unless_told_otherwise() -> None:
    assert blocks(None, free_bytes=2 * 12 * 8192) == 12


def test_too_little_for_one_request_is_refused_with_the_numbers() -> None:
    with pytest.raises(NotEnoughMemory, match=r"hold 128 tokens.*one request of 130 tokens"):
        blocks(2 * 8192)
