"""CSV files: header, types that are inferred or declared, missing values, errors by line."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentError
from .errors import DataFileError, check_file
from .table import Column, Table, TableDataset, check_dtypes, check_unique

NA_VALUES: Final = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?", "-")
)
_BOOLEANS: Final = {"true": True, "false": False, "yes": True, "no": False}
_INTEGER: Final = re.compile(r"[+-]?\d+")


def read_csv(
    path: Any,
    *,
    header: bool = True,
    delimiter: str = ",",
    quotechar: str = '"',
    columns: Sequence[str] | None = None,
    dtypes: Mapping[str, str] | None = None,
    na_values: Iterable[str] = NA_VALUES,
    encoding: str = "utf-8-sig",
) -> Table:
    """Read a CSV file into typed columns.

    The first line names the columns, unless `header` is False: then `columns` does, or they are
    "0", "1", ... A column is of integers if all its values are, else of floats, booleans
    (true/false, yes/no) or text; `dtypes` maps names to "int", "float", "bool" or "str" instead.
    Integers that do not fit 64 bits are refused unless their column is declared.
    """
    shown = check_file(path)
    options: dict[str, Any] = {"delimiter": delimiter, "quotechar": quotechar}
    rows, lines = _read_rows(shown, encoding, options)
    names = _take_names(shown, rows, lines, header, columns)
    check_unique(shown, names)
    check_dtypes(shown, names, dtypes or {})
    _check_widths(shown, rows, lines, names)
    absent = frozenset(na_values)
    places = [f"line {line}" for line in lines]
    texts = zip(*rows, strict=True) if rows else ([] for _ in names)
    made = tuple(
        _column(shown, name, list(text), lines, absent, (dtypes or {}).get(name))
        for name, text in zip(names, texts, strict=True)
    )
    return Table(shown, made, places)


class CsvDataset(TableDataset):
    """The rows of a CSV file as (features, target), see `TableDataset` and `read_csv`.

    target      the column to predict, by name or position; None gives features alone
    features    the columns to use, all others by default
    missing     "error", "drop" the row, "mean" of the column, "nan", or a number to put there
    text        how text becomes features: "onehot", "codes", or "error" to refuse it
    """

    def __init__(
        self,
        path: Any,
        *,
        target: str | int | None = None,
        features: Sequence[str | int] | None = None,
        missing: str | float = "error",
        text: str = "onehot",
        dtype: Any = np.float32,
        **reading: Any,
    ) -> None:
        table = read_csv(path, **reading)
        if not len(table):
            raise DataFileError(path, None, "expected at least one row of data after the header")
        super().__init__(
            table, target=target, features=features, missing=missing, text=text, dtype=dtype
        )


# -- rows -------------------------------------------------------------------------------------


def _read_rows(
    path: str, encoding: str, options: dict[str, Any]
) -> tuple[list[list[str]], list[int]]:
    """Return the rows that are not empty, and the line at which each ends."""
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        with open(path, encoding=encoding, newline="") as file:
            reader = csv.reader(file, strict=True, **options)
            try:
                for row in reader:
                    if row:
                        rows.append(row)
                        lines.append(reader.line_num)
            except csv.Error as error:
                raise DataFileError(path, f"line {reader.line_num}", f"not CSV: {error}") from None
    except UnicodeError as error:
        found = ""
        if isinstance(error, UnicodeDecodeError):
            found = f", found the byte {error.object[error.start]:#04x}"
        raise DataFileError(
            path,
            f"after line {lines[-1] if lines else 0}",
            f"expected text in {encoding}{found}; give encoding=, for example 'latin-1'",
        ) from None
    except (TypeError, LookupError) as error:  # a bad delimiter or an unknown encoding
        raise ArgumentError(f"read_csv: {error}. Received: {options}, {encoding=}") from None
    return rows, lines


def _take_names(
    path: str,
    rows: list[list[str]],
    lines: list[int],
    header: bool,
    columns: Sequence[str] | None,
) -> list[str]:
    """Return the names of the columns; the header is taken off the rows."""
    if not rows:
        raise DataFileError(path, None, "expected a table, but the file is empty")
    first = [name.strip() for name in rows[0]]
    if header:
        del rows[0], lines[0]
        return first if columns is None else _replaced(path, first, columns)
    return _replaced(path, [str(i) for i in range(len(first))], columns)


def _replaced(path: str, names: list[str], columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return names
    if len(columns) != len(names):
        raise ArgumentError(
            f"read_csv: {path} has {len(names)} columns. Received: {len(columns)} names {columns}"
        )
    return list(columns)


def _check_widths(path: str, rows: list[list[str]], lines: list[int], names: Sequence[str]) -> None:
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise DataFileError(
                path,
                f"line {line}",
                f"expected {len(names)} fields ({', '.join(names)}), found {len(row)}: {row!r:.80}",
            )


# -- columns ----------------------------------------------------------------------------------


def _column(
    path: str,
    name: str,
    texts: list[str],
    lines: Sequence[int],
    absent: frozenset[str],
    declared: str | None,
) -> Column:
    stripped = [text.strip() for text in texts]
    missing = np.array([text in absent for text in stripped], bool)
    known = [text for text, gone in zip(stripped, missing, strict=True) if not gone]
    kind = _inferred(known) if declared is None else declared
    if declared is None and kind == "float":
        _check_not_too_long(path, name, stripped, lines, known)
    if kind not in _PARSERS:
        raise ArgumentError(
            f"read_csv: dtypes may name {', '.join(map(repr, _PARSERS))}. Received: {kind!r} for "
            f"column {name!r}"
        )
    dtype, parse, filler = _PARSERS[kind]
    values = np.full(len(texts), filler, dtype)
    for row, text in enumerate(stripped):
        if not missing[row]:
            values[row] = _parsed(path, name, lines[row], kind, parse, text)
    return Column(name, values, missing)


def _check_not_too_long(
    path: str, name: str, texts: list[str], lines: Sequence[int], known: list[str]
) -> None:
    """Refuse to take integers for floats, which would round them, since one has too many digits."""
    if not known or not all(map(_INTEGER.fullmatch, known)):
        return
    wide = {text for text in known if not _all_parse("int", [text])}
    row = next(i for i, text in enumerate(texts) if text in wide)
    raise DataFileError(
        path,
        f"line {lines[row]}, column {name!r}",
        f"{texts[row]:.60} does not fit an integer of 64 bits; declare the column with "
        f"dtypes={{{name!r}: 'float'}}, which rounds it, or 'str'",
    )


def _parsed(
    path: str, name: str, line: int, kind: str, parse: Callable[[str], Any], text: str
) -> Any:
    try:
        return parse(text)
    except (ValueError, KeyError, OverflowError):
        wanted = f"{_WANTED[kind]} of 64 bits" if _INTEGER.fullmatch(text) else _WANTED[kind]
        raise DataFileError(
            path, f"line {line}, column {name!r}", f"expected {wanted}, found {text!r:.60}"
        ) from None


def _inferred(texts: list[str]) -> str:
    """Return the narrowest kind that all texts are of."""
    if not texts:
        return "float"
    return next(kind for kind in ("int", "float", "bool", "str") if _all_parse(kind, texts))


def _all_parse(kind: str, texts: list[str]) -> bool:
    parse = _PARSERS[kind][1]
    try:
        for text in texts:
            parse(text)
    except (ValueError, KeyError, OverflowError):
        return False
    return True


def _parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):  # int() also takes "1_000" and digits of other scripts
        raise ValueError(text)
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(text)
    return number


def _parse_float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _parse_bool(text: str) -> bool:
    return _BOOLEANS[text.lower()]


Parser = tuple[Any, Callable[[str], Any], Any]
_PARSERS: Final[dict[str, Parser]] = {
    "int": (np.int64, _parse_int, 0),
    "float": (np.float64, _parse_float, np.nan),
    "bool": (np.bool_, _parse_bool, False),
    "str": (object, str, ""),
}
_WANTED: Final = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
}
