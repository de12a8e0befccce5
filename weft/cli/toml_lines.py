"""The line on which each key of a TOML document stands.

`tomllib` reads values but not their places. This scanner walks the same text after `tomllib` has
accepted it, so it may take for granted that the syntax is right; it looks only at what decides
where a key begins: headers, keys, strings, brackets and comments.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

Path = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_STRINGS = {
    '"""': re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    "'''": re.compile(r"'''.*?'{3,5}", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.)*"'),
    "'": re.compile(r"'[^']*'"),
}


def key_lines(text: str) -> dict[Path, int]:
    r"""Return the line of every key, table and array element of a valid TOML document.

    >>> key_lines("[a]\nb = 1\n[[c]]\nd = {e = 2}")
    {('a',): 1, ('a', 'b'): 2, ('c',): 3, ('c', 0): 3, ('c', 0, 'd'): 4, ('c', 0, 'd', 'e'): 4}
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._arrays: dict[Path, int] = {}  # arrays of tables and how many there are so far

    # -- the document --------------------------------------------------------------------------

    def document(self) -> None:
        prefix: Path = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)
            self._skip(_BLANK)

    def _header(self) -> Path:
        line, many = self._line(), self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        keys = self._keys()
        self.at += 2 if many else 1
        path = self._placed(keys[:-1], line)
        path = self._noted((*path, keys[-1]), line)
        if many:
            count = self._arrays[path] = self._arrays.get(path, 0) + 1
            return self._noted((*path, count - 1), line)
        return path

    def _placed(self, keys: list[str], line: int) -> Path:
        """Return the path of keys; within an array of tables they mean its latest table."""
        path: Path = ()
        for key in keys:
            path = self._noted((*path, key), line)
            if path in self._arrays:
                path = (*path, self._arrays[path] - 1)
        return path

    def _pair(self, prefix: Path) -> None:
        line = self._line()
        path = prefix
        for key in self._keys():
            path = self._noted((*path, key), line)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    # -- values --------------------------------------------------------------------------------

    def _value(self, path: Path) -> None:
        start = self.text[self.at]
        if start == "[":
            self._array(path)
        elif start == "{":
            self._inline_table(path)
        elif start in "\"'":
            self._string()
        else:
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while self._next_is_element("]"):
            self._value(self._noted((*path, index), self._line()))
            index += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self._next_is_element("}"):
            self._pair(path)

    def _next_is_element(self, closing: str) -> bool:
        """Pass over blanks and commas; tell whether an element follows, else pass its bracket."""
        self._skip(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
            self._skip(_BLANK)
        if self.text[self.at] == closing:
            self.at += 1
            return False
        return True

    def _string(self) -> str:
        quote = self.text[self.at : self.at + 3]
        return self._skip(_STRINGS.get(quote) or _STRINGS[quote[0]])

    # -- keys ----------------------------------------------------------------------------------

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while self.text[self.at : self.at + 1] == ".":
            self.at += 1
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        self._skip(_SPACE)
        if self.text[self.at] in "\"'":
            (key,) = tomllib.loads(f"{self._string()} = 0")
        else:
            key = self._skip(_BARE_KEY)
        self._skip(_SPACE)
        return key

    # -- helpers -------------------------------------------------------------------------------

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, f"TOML that tomllib accepts, at offset {self.at}"
        self.at = match.end()
        return match.group()

    def _line(self) -> int:
        return bisect_right(self._starts, self.at)

    def _noted(self, path: Path, line: int) -> Path:
        self.lines.setdefault(path, line)
        return path
