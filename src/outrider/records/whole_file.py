"""Files that are written whole or not at all."""

from pathlib import Path

from outrider.errors import UnwritableOutput


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside the path and move it there; a device or pipe is written to as it is.

    Raises UnwritableOutput where the path or the disk refuses.
    """
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.write(content)
            return
        unfinished = target.with_name(f"{target.name}.unfinished")
        try:
            unfinished.write_bytes(content)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise UnwritableOutput(
            f"{str(path)!r} cannot be written ({cause})",
            "a file in a writable folder with room on its disk",
            "choose another path",
        ) from error
