"""Compiled CPU kernels: weights read once a step, results independent of the batch."""

import hashlib
from pathlib import Path

import numba
import platformdirs

# numba looks only at the file of a compiled function, not at those it calls: a folder named after
# all sources keeps a cache from outliving a change in one of them.
_digest = hashlib.sha256(
    b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()[:16]
numba.config.CACHE_DIR = str(
    Path(numba.config.CACHE_DIR or platformdirs.user_cache_dir("outrider")) / f"kernels-{_digest}"
)
