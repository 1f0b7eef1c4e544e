"""What a training run keeps while it is not done, so that it can go on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outrider.errors import CorruptFile, InvalidSetting, UnwritableOutput
from outrider.records.appending import AppendedFile
from outrider.training.answer import TargetAnswer


class WorkFolder:
    """`NAME.work` beside the draft model NAME: settings, the target's answers, and the state."""

    def __init__(self, output: Path) -> None:
        self.folder = output.with_name(f"{output.name}.work")
        self.answers = self.folder / "answers.jsonl"
        self.state = self.folder / "state.pt"
        self._settings = self.folder / "settings.json"
        self._output = output

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make the folder; UnwritableOutput where it or the draft model is there already."""
        for path in (self._output, self.folder):
            if path.exists():
                raise UnwritableOutput(
                    f"{path} exists already",
                    "a new folder",
                    "go on with --resume or choose another name",
                )
        try:
            self.folder.mkdir()
            self._settings.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise UnwritableOutput(
                f"{self.folder} cannot be made ({error.strerror})",
                "a name in a folder that can be written",
                "choose another path",
            ) from error

    def resume(self, settings: Mapping[str, Any]) -> None:
        """Check that these are the settings it began with; InvalidSetting names a difference."""
        try:
            known = json.loads(self._settings.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InvalidSetting(
                f"--resume with no {self._settings}", "a run that began", "leave out --resume"
            ) from error
        except (OSError, ValueError) as error:
            raise CorruptFile(
                f"{self._settings} cannot be read ({error})",
                "the settings of a run",
                "delete the folder and start again",
            ) from error
        # By way of JSON, which knows no tuples.
        asked = _flat(json.loads(json.dumps(settings)))
        begun = _flat(known)
        for name in dict.fromkeys((*begun, *asked)):
            if begun.get(name) != asked.get(name):
                raise InvalidSetting(
                    f"--resume with {name} = {asked.get(name)}",
                    f"{begun.get(name)}, as the run in {self.folder} began",
                    "give the same options, or choose another --output",
                )

    def read_answers(self) -> list[TargetAnswer]:
        """The answers so far; a last line that was cut short is removed. May raise CorruptFile."""
        if not self.answers.exists():
            return []
        content = self.answers.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self.answers.write_bytes(whole)
        return [
            TargetAnswer.of_line(line, f"{self.answers} line {number}")
            for number, line in enumerate(whole.decode("utf-8", "replace").splitlines(), start=1)
        ]

    def keep_answers(self) -> AppendedFile:
        """Open the log of answers, to append to it."""
        return AppendedFile(self.answers)


def _flat(settings: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(settings, dict):
        return {prefix: settings}
    return {
        name: value
        for key, part in settings.items()
        for name, value in _flat(part, f"{prefix}.{key}" if prefix else str(key)).items()
    }
