import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from outrider.errors import UnwritableOutput
from outrider.records.output_file import writing

PATH = Path("run.duckdb")


def test_an_interrupt_strikes_at_the_end_of_the_block() -> None:
    done = []

    def interrupted() -> None:
        with writing(PATH):
            signal.raise_signal(signal.SIGINT)
            done.append("inner")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["inner"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_nested_blocks_are_finished_both() -> None:
    done = []

    def interrupted() -> None:
        with writing(PATH):
            with writing(PATH):
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["inner", "outer"]


def test_a_thread_writes_too() -> None:
    def write() -> str:
        with writing(PATH):
            return "written"

    with ThreadPoolExecutor() as pool:
        assert pool.submit(write).result() == "written"


@pytest.mark.parametrize(
    "kind", [duckdb.IOException, duckdb.TransactionException, duckdb.FatalException]
)
def test_a_disk_that_refuses_is_told_in_one_line(kind: type[Exception]) -> None:
    with pytest.raises(UnwritableOutput) as caught, writing(PATH):
        raise kind("No space left on device\nSee the manual")
    assert str(caught.value).startswith("run.duckdb cannot be written (No space left on device);")


def test_our_own_mistakes_are_no_matter_of_the_disk() -> None:
    with pytest.raises(duckdb.ConstraintException), writing(PATH):
        raise duckdb.ConstraintException("duplicate key")
