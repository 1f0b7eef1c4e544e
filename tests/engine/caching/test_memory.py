import pytest

from outrider.engine.caching.memory import cache_blocks, parse_memory
from outrider.engine.models.config import DecoderConfig
from outrider.engine.models.rope import Rope
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


@pytest.mark.parametrize("text", ["", "much", "-1", "4 GiB please", "1e9", "4XB"])
def test_what_is_no_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"--kv-cache-memory .*expected a size such as 4GiB"):
        parse_memory("--kv-cache-memory", text)


def blocks(config: DecoderConfig, memory_bytes: int | None, free_bytes: int = 2**30) -> int:
    return cache_blocks(
        config,
        bytes_per_value=4,
        free_bytes=free_bytes,
        memory_bytes=memory_bytes,
        max_length=130,
        max_num_seqs=10,
    )


@pytest.fixture
def config() -> DecoderConfig:
    """One block of 64 tokens is 2 x 2 layers x 1 head x 8 x 4 bytes x 64 = 8 KiB."""
    return DecoderConfig(
        family="llama",
        vocab_size=10,
        hidden_size=16,
        intermediate_size=16,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=8,
        rms_norm_eps=1e-5,
        max_positions=4096,
        tied_embeddings=True,
        attention_scale=1.0,
        windows=(0, 0),
        ropes=(Rope(10_000.0),),
        rope_of_layer=(0, 0),
    )


def test_the_cache_has_as_many_blocks_as_the_memory_holds(config: DecoderConfig) -> None:
    assert blocks(config, 10 * 8192 + 8191) == 10


def test_it_takes_no_more_than_all_requests_together_can_use(config: DecoderConfig) -> None:
    assert blocks(config, 2**30) == 30


def test_half_of_what_is_free_is_taken_unless_told_otherwise(config: DecoderConfig) -> None:
    assert blocks(config, None, free_bytes=2 * 12 * 8192) == 12


def test_too_little_for_one_request_is_refused_with_the_numbers(config: DecoderConfig) -> None:
    with pytest.raises(NotEnoughMemory, match=r"hold 128 tokens.*one request of 130 tokens"):
        blocks(config, 2 * 8192)
