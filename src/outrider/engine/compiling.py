"""How functions are compiled: without the interpreter's lock, and once on a machine."""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numba
import platformdirs
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

Function = TypeVar("Function", bound=Callable[..., Any])
Arrays = TypeVar("Arrays")


def compiled(
    *, fastmath: bool | set[str] = False, inline: bool = False, within: bool = False
) -> Callable[[Function], Function]:
    """Compiles a function on its first call and keeps the result on disk.

    Only functions whose sums may run in another order, the same one at each call, are `fastmath`.
    numba generates a function's code anew in each one that reaches it by way of others, so what
    only passes calls on is `inline`: that halves the time to compile. What does a few steps at a
    time becomes machine code `within` its callers: to hand over the arrays would take longer.
    """
    decorate: Callable[[Function], Function] = numba.njit(
        nogil=True,
        cache=True,
        fastmath=fastmath,
        inline="always" if inline else "never",
        forceinline=within,
    )
    return decorate


def for_types_of(function: Callable[..., Any], arguments: Sequence[Any]) -> Callable[..., Any]:
    """Return what a compiled `function` runs for arguments of the types that these have.

    Called itself, it looks at the types of all arguments each time, and of tuples that takes long:
    for those of a pass 65 µs where caches hold other things. Who calls this answers for the types:
    numbers of dimensions, elements, and rows without gaps.
    """
    types_of = tuple(numba.typeof(each) for each in arguments)
    compiling: Any = function
    compiling.compile(types_of)
    found: Callable[..., Any] = compiling.overloads[types_of].entry_point
    return found


def _uncounted(_typing: Any, arrays: Any) -> Any:
    def of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            parts = [
                of(context, builder, part, builder.extract_value(value, i))
                for i, part in enumerate(kind)
            ]
            return context.make_tuple(builder, kind, parts)
        if not isinstance(kind, types.Array):
            return value
        view = make_array(kind)(context, builder, value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()  # noqa: SLF001  numba has no other name for it

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return of(context, builder, signature.args[0], given[0])

    return arrays(arrays), build


uncounted: Callable[[Arrays], Arrays] = intrinsic(_uncounted)
"""Gives a compiled function an array, or those in a tuple, whose references nobody counts.

Counts are atomic and take longer than short steps do. The caller must keep the arrays alive.
"""


def _cache_folder(sources: Path, parent: Path) -> Path:
    """A writable folder named after all `sources`.

    numba looks only at the file of a compiled function, not at those of the functions it calls:
    so named, a cache does not outlive a change in one of them.
    """
    digest = hashlib.sha256()
    for file in sorted(sources.glob("**/*.py")):
        digest.update(file.read_bytes())
    name = f"compiled-{digest.hexdigest()[:16]}"
    try:
        folder = parent / name
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="outrider-"))


numba.config.CACHE_DIR = str(
    _cache_folder(
        Path(__file__).parent,
        Path(numba.config.CACHE_DIR or platformdirs.user_cache_dir("outrider", appauthor=False)),
    )
)
