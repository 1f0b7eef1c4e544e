"""On a local Ray instance with two workers; skipped where Ray is not installed."""

import ast
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.replay.workplaces.logs import FILES, check_equal, folder_of_logs, work
from tests.replay.workplaces.workers import Deadly, one_by_one

import outrider
from outrider.errors import InvalidSetting, NoCluster
from outrider.replay.workplaces.base import Work
from outrider.replay.workplaces.on_ray import OnRay
from outrider.replay.workplaces.spreading import spread

ROOT = Path(outrider.__file__).parent

# Nodes of one machine and one user; Ray would ask them for a token of its own making.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A head node of two CPUs in a process of its own; its address."""
    pytest.importorskip("ray")
    script = (
        "import sys, ray; at = ray.init(address='local', num_cpus=2, include_dashboard=False,"
        " log_to_driver=False); print(at.address_info['address'], flush=True); sys.stdin.read()"
    )
    tests = str(Path(__file__).parents[3])
    paths = os.pathsep.join([str(ROOT.parent), tests])
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"},
    ) as head:
        assert head.stdout is not None
        yield head.stdout.readline().strip()
        head.communicate("")


def test_two_workers_come_to_what_one_process_would_file_by_file(
    cluster: str, tmp_path: Path
) -> None:
    logs = str(folder_of_logs(tmp_path / "logs"))
    one, two = spread(work(), [logs], one_by_one), OnRay(cluster).replay(work(), [logs])
    check_equal(one.collection, two.collection)
    assert one.facts == two.facts
    assert (two.files, two.lost) == (FILES + 1, 0)


def test_a_worker_that_dies_each_time_loses_its_file_and_no_more(
    cluster: str, tmp_path: Path
) -> None:
    logs = str(folder_of_logs(tmp_path / "logs"))
    found = OnRay(cluster).replay(Work((Deadly(),), (1,)), [logs])
    assert (found.files, found.lost) == (FILES + 1, FILES + 1)
    _, reason = found.collection.bad[0]
    assert reason == "its worker died 3 times (WorkerCrashedError)"


def test_a_task_of_more_cpus_than_any_node_has_is_refused(cluster: str, tmp_path: Path) -> None:
    logs = str(folder_of_logs(tmp_path / "logs"))
    with pytest.raises(InvalidSetting, match="--jobs 3 on a cluster whose nodes have at most 2"):
        OnRay(cluster).replay(work(jobs=3), [logs])


def test_ctrl_c_ends_the_command_and_not_the_cluster(cluster: str, tmp_path: Path) -> None:
    logs = folder_of_logs(tmp_path / "logs")
    os.mkfifo(tmp_path / "never")  # a log that nobody ever writes
    command = [
        sys.executable, "-c", "from outrider.cli.entry import run; run()",
        "replay", str(logs), str(tmp_path / "never"), "--k", "2", "--ray", cluster,
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        try:
            _, told = child.communicate(timeout=8)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            _, told = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in told
    assert OnRay(cluster).replay(work(), [str(logs)]).lost == 0


def test_an_address_where_nobody_listens_is_told_at_once() -> None:
    pytest.importorskip("ray")
    with pytest.raises(NoCluster, match="refused"):
        OnRay(f"127.0.0.1:{free_port()}").replay(work(), [])


@pytest.mark.parametrize("address", ["somewhere", "host:none", "host:99999"])
def test_what_is_no_address_is_named(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(InvalidSetting, match=f"--ray {address}; expected HOST:PORT"):
        OnRay(address).replay(work(), [])


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidSetting, match=r"--ray auto without Ray.*pip install 'outrider\[ray"):
        OnRay("auto").replay(work(), [])


def test_one_file_imports_ray() -> None:
    importing = {
        path.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(a.name.split(".")[0] == "ray" for a in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ray")
    }
    assert importing == {"on_ray.py"}
