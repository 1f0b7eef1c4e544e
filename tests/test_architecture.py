"""Which package may import which, and what stays free of torch."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType

import pytest

import outrider

ROOT = Path(outrider.__file__).parent

ALLOWED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(imports.split())
        for name, imports in {
            "acceptance": "",
            "errors": "",
            "records": "errors acceptance",
            "engine": "errors acceptance records",
            "server": "errors acceptance records engine",
            "bench": "errors acceptance records engine",
            "replay": "errors acceptance records engine",
            "training": "errors acceptance records engine",
            "advice": "errors acceptance records",
            "report": "errors acceptance records advice",
            "__main__": "cli",
            "cli": "errors acceptance records engine server bench replay training advice report",
        }.items()
    }
)
"""A part of the package, and the other parts that it may import."""

WITHOUT_TORCH = ("acceptance", "records", "advice", "report", "replay")


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module below `root`, by its dotted name."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def part_of(module: str) -> str:
    """`records` of `outrider.records.arm`; empty for the package's own root."""
    return ".".join(module.split(".")[1:2])


def imported(module: str, path: Path) -> Iterator[str]:
    """The dotted names that a module imports, wherever in it the import stands."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def edges(root: Path) -> set[tuple[str, str, str]]:
    """(module, its part, another part that it imports), parts being what lies right in `root`."""
    found = set()
    for module, path in modules(root):
        part = part_of(module)
        for name in imported(module, path):
            other = part_of(name)
            if name.split(".")[0] == root.name and other != part:
                found.add((module, part, other))
    return found


def violations(root: Path) -> list[str]:
    """One line for each import that `ALLOWED` does not list; the package's root may import none."""
    return sorted(
        f"{module} imports {other or root.name}"
        for module, part, other in edges(root)
        if other not in ALLOWED.get(part, ())
    )


def cycle(root: Path) -> list[str]:
    """Parts that import each other in a ring, or none."""
    graph = TopologicalSorter[str]()
    for _, part, other in edges(root):
        graph.add(part, other)
    try:
        graph.prepare()
    except CycleError as error:
        ring: list[str] = error.args[1]
        return ring
    return []


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_every_import_goes_in_the_listed_direction() -> None:
    assert violations(ROOT) == []


def test_no_part_imports_itself_by_way_of_another() -> None:
    assert cycle(ROOT) == []


def test_every_part_is_listed_and_every_listed_part_exists() -> None:
    assert {part_of(name) for name, _ in modules(ROOT)} == {"", *ALLOWED}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("records/a.py", "import outrider.engine.loop"),
        ("records/a.py", "import os, outrider.engine.loop as loop"),
        ("records/a.py", "from outrider import engine"),
        ("records/a.py", "from outrider.engine import loop"),
        ("records/a.py", "from ..engine import loop"),
        ("records/a.py", "from .. import engine"),
        ("records/__init__.py", "from ..engine.loop import StepLoop"),
        ("records/deeper/a.py", "from ...engine.loop import StepLoop"),
        ("records/a.py", "def f():\n    if True:\n        import outrider.engine"),
        ("records/a.py", "if TYPE_CHECKING:\n    from outrider import engine"),
    ],
)
def test_the_check_finds_an_import_against_the_direction_however_it_is_written(
    module: str, text: str, tmp_path: Path
) -> None:
    root = write(tmp_path / "outrider", {"__init__.py": "", module: text})
    name = ".".join(["outrider", *Path(module).with_suffix("").parts])
    assert violations(root) == [f"{name.removesuffix('.__init__')} imports engine"]


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("acceptance/a.py", "from outrider.errors import OutriderError"),
        ("advice/a.py", "from outrider.bench.plan import Plan"),
        ("errors.py", "from outrider.records.arm import Arm"),
        ("report/a.py", "import outrider"),
        ("__init__.py", "from outrider.cli.main import main"),
        ("elsewhere/a.py", "from outrider.errors import OutriderError"),
    ],
)
def test_the_check_knows_each_parts_own_limits(module: str, text: str, tmp_path: Path) -> None:
    assert len(violations(write(tmp_path / "outrider", {module: text}))) == 1


def test_the_check_lets_pass_what_is_listed_or_foreign(tmp_path: Path) -> None:
    files = {
        "records/a.py": "import json\nfrom numpy import engine\nfrom . import b\nfrom .b import c",
        "records/b.py": "from outrider.errors import InvalidSetting\nimport outrider.acceptance",
        "cli/main.py": "from outrider.report.cells import number\nfrom ..bench import plan",
    }
    assert violations(write(tmp_path / "outrider", files)) == []


def test_the_check_finds_a_ring_of_parts(tmp_path: Path) -> None:
    files = {
        "records/a.py": "from outrider.advice import b",
        "advice/b.py": "from outrider.report import c",
        "report/c.py": "from outrider.records import a",
    }
    assert set(cycle(write(tmp_path / "outrider", files))) == {"records", "advice", "report"}


def loaded(names: list[str]) -> set[str]:
    """What a fresh interpreter has loaded once it has imported the modules `names`."""
    imports = "\n".join(f"import {name}" for name in names)
    script = f"{imports}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_numbers_can_be_read_and_explained_without_loading_torch() -> None:
    light = [name for name, _ in modules(ROOT) if part_of(name) in WITHOUT_TORCH]
    assert len(light) > 20
    seen = loaded(light)
    assert set(light) <= seen
    assert "torch" not in seen


def test_the_engine_does_load_torch() -> None:
    assert "torch" in loaded(["outrider.engine.sampling"])
