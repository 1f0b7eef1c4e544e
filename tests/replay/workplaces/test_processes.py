from pathlib import Path

import pytest
from tests.replay.workplaces.logs import FILES, check_equal, folder_of_logs, work
from tests.replay.workplaces.workers import Deadly, one_by_one

from outrider.errors import UnreadableSource
from outrider.replay.workplaces.base import Work
from outrider.replay.workplaces.processes import Processes
from outrider.replay.workplaces.spreading import spread


def test_processes_come_to_what_one_would_file_by_file(tmp_path: Path) -> None:
    logs = str(folder_of_logs(tmp_path / "logs"))
    one, two = spread(work(), [logs], one_by_one), Processes(2).replay(work(), [logs])
    check_equal(one.collection, two.collection)
    assert one.facts == two.facts
    assert (two.files, two.lost) == (FILES + 1, 0)


def test_a_process_that_dies_twice_loses_its_file_alone(tmp_path: Path) -> None:
    logs = str(folder_of_logs(tmp_path / "logs"))
    found = Processes(2).replay(Work((Deadly(),), (1,)), [logs])
    assert (found.files, found.lost) == (FILES + 1, FILES + 1)
    assert found.collection.used == 0
    _, reason = found.collection.bad[0]
    assert reason == "the process that replayed it ended twice, as for want of memory"


def test_a_name_of_nothing_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="missing does not exist"):
        Processes(2).replay(work(), ["missing"])
