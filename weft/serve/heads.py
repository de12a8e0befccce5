"""Heads of requests that are as nearly all are: read at once, and remembered by their bytes.

A client sends the same head again and again. What it says is read once; whatever is not plain (a
body in chunks, an older HTTP, a field that comes twice) is left to the full parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

PREDICT = "/v1/predict"
MOST_PLAIN_BYTES = 4096
_REMEMBERED = 256
_LINE = re.compile(rb'POST /v1/predict(?:\?([!-"$-~]*))? HTTP/1\.1')
_FIELD = re.compile(rb"([A-Za-z0-9_.-]+):[ \t]*([!-~](?:[ -~]*[!-~])?)?[ \t]*")
_NOT_PLAIN = frozenset(("transfer-encoding", "expect", "upgrade"))
_LENGTH = re.compile(r"[0-9]{1,9}")

T = TypeVar("T")


class PlainHead(NamedTuple):
    """What a head says: fields by names in small letters, the query, the body's length."""

    fields: Mapping[str, str]
    query: str
    length: int
    keep_alive: bool


def read_head(head: bytes) -> PlainHead | None:
    r"""Return what the head of a request for predictions says, or None if it is not plain.

    head    without the empty line that ends it

    >>> read_head(b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 12").length
    12
    >>> read_head(b"GET /health HTTP/1.1\r\nHost: x") is None
    True
    """
    if len(head) > MOST_PLAIN_BYTES:
        return None
    line, *rest = head.split(b"\r\n")
    asked = _LINE.fullmatch(line)
    found = [_FIELD.fullmatch(one) for one in rest]
    if asked is None:
        return None
    fields = {m[1].decode().lower(): (m[2] or b"").decode() for m in found if m is not None}
    if len(fields) < len(rest) or not _NOT_PLAIN.isdisjoint(fields):
        return None
    length, connection = fields.get("content-length", ""), fields.get("connection", "keep-alive")
    if not _LENGTH.fullmatch(length) or connection.lower() not in ("keep-alive", "close"):
        return None
    keep_alive = connection.lower() == "keep-alive"
    return PlainHead(fields, (asked[1] or b"").decode(), int(length), keep_alive)


class Remembered(dict[bytes, T | None]):
    """What was made of heads, by their bytes; when there are many, all are forgotten."""

    def __init__(self, make: Callable[[PlainHead], T | None]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, head: bytes) -> T | None:
        """Read a head that is new."""
        if len(self) >= _REMEMBERED:
            self.clear()
        plain = read_head(head)
        made = None if plain is None else self._make(plain)
        if len(head) <= MOST_PLAIN_BYTES:
            self[head] = made
        return made
