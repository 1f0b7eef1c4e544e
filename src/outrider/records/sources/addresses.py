"""Addresses of servers, as people type them and as they may be shown."""

import re

_PASSWORD = re.compile(r"(?<=://)[^/?#]*@")
_SERVER = re.compile(r"(https?://[^/?#]+)(?:/+v1)?/*", re.IGNORECASE)


def is_url(name: str) -> bool:
    """Whether a name is an http(s) address."""
    return name.startswith(("http://", "https://"))


def page_address(url: str) -> str:
    """Return the address to read: that of /metrics where a server alone is named.

    >>> page_address("http://server:8000/v1"), page_address("http://server:8000/log.txt")
    ('http://server:8000/metrics', 'http://server:8000/log.txt')
    """
    server = _SERVER.fullmatch(url)
    return f"{server[1]}/metrics" if server else url


def without_password(url: str) -> str:
    """Return the address for people; what is none stays as it is.

    >>> without_password("http://me:secret@server/metrics")
    'http://server/metrics'
    """
    return _PASSWORD.sub("", url) if is_url(url) else url
