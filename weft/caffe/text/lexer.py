"""Tokens of the text format: names, numbers, strings and signs, with where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import PrototxtError

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*)+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_.]*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<sign>[{}<>\[\]:;,+-])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # of a character; the others are single bytes
_LETTERS = dict(zip("ntrabfv\\'\"?", "\n\t\r\a\b\f\v\\'\"?", strict=True))


class Token(NamedTuple):
    """A piece of the text: its kind (a group of the pattern, or "end"), text and offset."""

    kind: str
    text: str
    at: int


class Source:
    """A text with its name, which says where things stand."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name

    def error(self, what: str, at: int) -> PrototxtError:
        """Return the error of something at an offset, with its line and column from 1."""
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        return PrototxtError(what, name=self.name, line=line, column=column)

    def tokens(self) -> Iterator[Token]:
        """Yield all tokens but spaces and comments; the last is of kind "end"."""
        at, text = 0, self.text
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(self._unreadable(at), at)
            if match.lastgroup != "space":
                yield Token(str(match.lastgroup), match.group(), at)
            at = match.end()
        yield Token("end", "", len(text))

    def _unreadable(self, at: int) -> str:
        sign = self.text[at]
        if sign in "\"'":
            return f"String literals cannot cross line boundaries: this one is not closed by {sign}"
        return f"Invalid character: {sign!r}"

    def string(self, token: Token) -> str:
        """Return what a string token stands for, escapes resolved; bytes as they are in latin-1."""
        body = token.text[1:-1]
        half = _HALF.search(body)
        if half is not None:
            raise self.error(
                f"U+{ord(half.group()):X} is no character", token.at + half.start() + 1
            )
        if "\\" not in body:
            return body

        def letter(match: re.Match[str]) -> str:
            octal, sixteen, short, long, other = match.groups()
            if other is not None:
                if other not in _LETTERS:
                    raise self.error(f"Invalid escape \\{other} in a string", token.at)
                return _LETTERS[other]
            return self._coded(octal, sixteen, short, long, token)

        return _ESCAPE.sub(letter, body)

    def _coded(
        self,
        octal: str | None,
        sixteen: str | None,
        short: str | None,
        long: str | None,
        token: Token,
    ) -> str:
        """Return the character of a number; one byte above 127 as Python keeps such in text."""
        if short or long:
            code = int(short or long or "", 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self.error(f"U+{code:X} is no character", token.at)
            return chr(code)
        byte = int(octal, 8) if octal else int(sixteen or "", 16)
        if byte > 255:
            raise self.error(f"\\{octal} is no byte", token.at)
        return bytes([byte]).decode("utf-8", "surrogateescape")
