import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("command", ["tune", "report", "replay", "probe", "watch", "train"])
def test_a_command_page_shows_the_help_text_as_it_is(command: str) -> None:
    shown = re.search(
        rf"```text\n\$ outrider {command} --help\n(.*?)```",
        (ROOT / "docs" / f"{command}.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert shown is not None
    printed = subprocess.run(
        [sys.executable, "-m", "outrider.cli.main", command, "--help"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown[1].strip() == printed.replace("python -m outrider.cli.main", "outrider").strip()


def test_the_readme_has_the_two_commands_that_ci_runs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 2
    assert all("pip install -e" in command for command in commands)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing
