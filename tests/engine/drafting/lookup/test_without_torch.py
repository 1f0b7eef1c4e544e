"""Replay drafts on machines that have no torch."""

import subprocess
import sys
from pathlib import Path

from outrider.engine.drafting import lookup


def test_importing_the_lookup_cores_does_not_import_torch() -> None:
    folder = Path(next(iter(lookup.__path__)))
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    assert names
    imports = "; ".join(f"import {lookup.__name__}.{name}" for name in names)
    program = f"{imports}; import sys; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "False"
