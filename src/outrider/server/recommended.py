"""What a model's makers recommend for sampling."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outrider.server.api.sampling import RECOMMENDED

FILE = "generation_config.json"


def recommended_sampling(path: Path) -> Mapping[str, Any]:
    """Return the recommendations in a model's folder; none for a GGUF file or an unreadable one."""
    try:
        found = json.loads((path / FILE).read_text(encoding="utf-8")) if path.is_dir() else {}
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: found[name] for name in RECOMMENDED if isinstance(found.get(name), (int, float))}
