"""The formats of logs, by name and in the order in which they are tried."""

from outrider.errors import InvalidSetting
from outrider.replay.logs.base import LogFormat
from outrider.replay.logs.body import BodyFormat
from outrider.replay.logs.conversation import ConversationFormat
from outrider.replay.logs.text import TextFormat
from outrider.replay.logs.token_ids import TokenIdFormat

FORMATS: tuple[LogFormat, ...] = (
    TokenIdFormat(),
    BodyFormat(),
    TextFormat(),
    ConversationFormat(),
)


def log_format(name: str) -> LogFormat:
    """Return the format of that name, or raise InvalidSetting."""
    for each in FORMATS:
        if each.name == name:
            return each
    names = ", ".join(each.name for each in FORMATS)
    raise InvalidSetting(f"--from {name!r}", f"one of {names}", "use one of these")
