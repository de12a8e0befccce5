"""Text: lines of files, characters as numbers, and windows for next-token prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor, wrap
from .checks import as_count
from .dataset import Dataset, normal_index
from .errors import DataFileError, check_file
from .streams import Array

_CHUNK = 1 << 20


class TextLines(Dataset):
    r"""The lines of one or several text files, without their line ends, by number.

    Files are scanned once for where lines begin, and read when a line is asked for: they may be
    larger than memory. Lines end with \n or \r\n.
    """

    def __init__(self, paths: Any, *, encoding: str = "utf-8", skip_empty: bool = False) -> None:
        several = isinstance(paths, list | tuple)
        self.paths = [check_file(path) for path in (paths if several else [paths])]
        self._encoding = encoding
        self._spans = [_line_spans(path) for path in self.paths]
        kept = [_not_empty(spans) if skip_empty else np.arange(len(spans)) for spans in self._spans]
        files = [np.full(len(lines), i) for i, lines in enumerate(kept)]
        # column 0: the file, column 1: the line in it
        self._index = np.stack([np.concatenate(files), np.concatenate(kept)], axis=1)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: Any) -> str:
        file, line = self._index[normal_index(index, len(self), "TextLines")].tolist()
        start, stop = self._spans[file][line].tolist()
        # Opened for each line: an open file does not survive the way to a worker.
        with open(self.paths[file], "rb") as stream:
            stream.seek(start)
            content = stream.read(stop - start)
        return self._decoded(content.rstrip(b"\r\n"), file, line)

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def _decoded(self, content: bytes, file: int, line: int) -> str:
        try:
            return content.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise DataFileError(
                self.paths[file],
                f"line {line + 1}, byte {error.start}",
                f"expected text in {self._encoding}, found {content[error.start]:#04x}; give "
                "encoding=",
            ) from None
        except LookupError:
            raise ArgumentError(f"TextLines: unknown encoding {self._encoding!r}") from None


def _line_spans(path: str) -> Array:
    """Return where each line begins and ends, shape (lines, 2)."""
    ends: list[Array] = []
    size = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            ends.append(np.flatnonzero(np.frombuffer(chunk, np.uint8) == 0x0A) + (size + 1))
            size += len(chunk)
    stops = np.concatenate([*ends, np.zeros(0, np.int64)]).astype(np.int64)
    if size and (not len(stops) or stops[-1] != size):  # the last line has no end
        stops = np.append(stops, size)
    return np.stack([np.append(0, stops[:-1])[: len(stops)], stops], axis=1)


def _not_empty(spans: Array) -> Array:
    return np.flatnonzero(spans[:, 1] - spans[:, 0] > 1)


class Vocabulary:
    """Numbers for symbols (characters, words), in the order given; `unknown` stands for others.

    >>> from weft.data import Vocabulary
    >>> letters = Vocabulary.of("hello")
    >>> letters.encode("hole").tolist(), letters.decode([1, 0])
    ([1, 3, 2, 0], ['h', 'e'])
    """

    def __init__(self, symbols: Sequence[str], unknown: str | None = None) -> None:
        self.symbols = list(symbols)
        self._numbers = {symbol: i for i, symbol in enumerate(self.symbols)}
        if len(self._numbers) != len(self.symbols):
            raise ArgumentError("Vocabulary: symbols must differ from one another")
        if unknown is not None and unknown not in self._numbers:
            raise ArgumentError(
                f"Vocabulary: unknown must be one of the symbols. Received: {unknown!r}"
            )
        self._unknown = None if unknown is None else self._numbers[unknown]

    @classmethod
    def of(cls, texts: Iterable[str], unknown: str | None = None) -> Vocabulary:
        """Return the vocabulary of all symbols that occur, sorted; `unknown` comes first."""
        found = sorted(set(texts) - {unknown})
        return cls(found if unknown is None else [unknown, *found], unknown)

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: Iterable[str]) -> Tensor:
        """Return the numbers of symbols as an int64 tensor."""
        try:
            numbers = [self._numbers.get(s, self._unknown) for s in text]
            return wrap(np.array(numbers, np.int64))
        except TypeError:
            strange = next(symbol for symbol in text if symbol not in self._numbers)
            raise ArgumentError(
                f"Vocabulary: {strange!r} is not one of its {len(self)} symbols, and it has no "
                "symbol for unknown ones"
            ) from None

    def decode(self, numbers: Iterable[Any]) -> list[str]:
        """Return the symbols of numbers; join them with ''.join(...) for characters."""
        values = numbers.tolist() if isinstance(numbers, Tensor | np.ndarray) else numbers
        return [self.symbols[normal_index(n, len(self), "Vocabulary")] for n in values]


class TokenWindows(Dataset):
    """Windows of a long sequence as (input, target), the target being one step ahead.

    Window i starts at i * stride (`length` by default, so that windows do not overlap).

    >>> from weft.data import TokenWindows
    >>> TokenWindows([5, 6, 7, 8, 9], length=2)[1]
    (tensor([7, 8]), tensor([8, 9]))
    """

    def __init__(self, tokens: Any, length: int, stride: int | None = None) -> None:
        values = tokens.numpy() if isinstance(tokens, Tensor) else np.asarray(tokens)
        if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
            raise ArgumentTypeError(
                "TokenWindows: tokens must be one sequence of integers. "
                f"Received: shape {values.shape} of {values.dtype}"
            )
        self._tokens = values
        self._length = as_count(self, "length", length)
        self._stride = self._length if stride is None else as_count(self, "stride", stride)
        if values.size <= self._length:
            raise ArgumentError(
                f"TokenWindows: {values.size} tokens are too few for windows of length {length} "
                "and the token after them"
            )

    def __len__(self) -> int:
        return (len(self._tokens) - 1 - self._length) // self._stride + 1

    def __getitem__(self, index: Any) -> tuple[Tensor, Tensor]:
        start = normal_index(index, len(self), "TokenWindows") * self._stride
        stop = start + self._length
        return wrap(self._tokens[start:stop]), wrap(self._tokens[start + 1 : stop + 1])

    def take_batch(self, indices: Array) -> tuple[Tensor, Tensor]:
        """Return the windows at `indices`, all at once."""
        places = indices[:, None] * self._stride + np.arange(self._length)
        return wrap(self._tokens[places]), wrap(self._tokens[places + 1])
