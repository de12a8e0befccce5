"""Tables of typed columns, as CSV and Parquet files give them, and the dataset made of one.

A column of numbers becomes one feature; a column of text becomes one feature for each value
(one-hot) or the number of the value (codes). The target column becomes class numbers if it is
text, and stays what it is otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentError
from .checks import as_choice, as_real
from .errors import DataFileError
from .streams import Array
from .tensors import TensorDataset

MISSING: Final = ("error", "drop", "mean", "nan")
ENCODINGS: Final = ("onehot", "codes", "error")


@dataclass(frozen=True)
class Column:
    """One column: its values (numbers, booleans or text) and which of them are missing."""

    name: str
    values: Array
    missing: Array

    @property
    def is_text(self) -> bool:
        """Tell whether the values are strings."""
        return self.values.dtype.kind in "OUT"

    def rows(self, keep: Array) -> Column:
        """Return the column at some of its rows."""
        return Column(self.name, self.values[keep], self.missing[keep])


@dataclass(frozen=True)
class Table:
    """Columns of equal length from a file. `places` says where each row stands in it."""

    path: str
    columns: tuple[Column, ...]
    places: Sequence[str]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [column.name for column in self.columns]

    def __len__(self) -> int:
        return len(self.places)

    def column(self, name: str | int) -> Column:
        """Return a column by name or position."""
        names = self.names
        if isinstance(name, int) and -len(names) <= name < len(names):
            return self.columns[name]
        if name in names:
            return self.columns[names.index(str(name))]
        raise DataFileError(self.path, None, f"no column {name!r}; the columns are {names}")

    def rows(self, keep: Array) -> Table:
        """Return the table of some of the rows."""
        places = [place for place, kept in zip(self.places, keep, strict=True) if kept]
        return Table(self.path, tuple(column.rows(keep) for column in self.columns), places)


class TableDataset(TensorDataset):
    """Rows of a table as (features, target), or as features alone without a target.

    `feature_names` names the features; `classes` are the values of a text target, whose places
    the targets are.
    """

    def __init__(
        self,
        table: Table,
        *,
        target: str | int | None = None,
        features: Sequence[str | int] | None = None,
        missing: str | float = "error",
        text: str = "onehot",
        dtype: Any = np.float32,
    ) -> None:
        as_choice(self, "text", text, ENCODINGS)
        goal = None if target is None else table.column(target)
        chosen = _chosen_columns(table, features, goal)
        table, fill = _without_missing(table, [*chosen, goal] if goal else chosen, missing)
        chosen = [table.column(column.name) for column in chosen]
        parts = [_feature(table, column, fill, text) for column in chosen]
        self.feature_names = [name for names, _ in parts for name in names]
        matrix = np.concatenate([values for _, values in parts], axis=1).astype(dtype)
        self.classes: list[str] | None = None
        if goal is None:
            super().__init__(matrix)
            return
        self.target_name = goal.name
        values, self.classes = _target(table, table.column(goal.name), dtype)
        super().__init__(matrix, values)


def _chosen_columns(
    table: Table, features: Sequence[str | int] | None, target: Column | None
) -> list[Column]:
    if features is None:
        chosen = [column for column in table.columns if column is not target]
    else:
        chosen = [table.column(name) for name in features]
    if not chosen:
        raise DataFileError(table.path, None, f"no feature columns are left of {table.names}")
    return chosen


def _without_missing(
    table: Table, used: Iterable[Column], missing: str | float
) -> tuple[Table, str | float]:
    """Return the table after missing values were refused or dropped, and how to fill the rest."""
    if isinstance(missing, str):
        as_choice("TableDataset", "missing", missing, MISSING)
    else:
        missing = as_real("TableDataset", "missing", missing)
    gone = np.zeros(len(table), bool)
    for column in used:
        gone |= column.missing
        if missing == "error" and column.missing.any():
            row = int(np.argmax(column.missing))
            raise DataFileError(
                table.path,
                f"{table.places[row]}, column {column.name!r}",
                "the value is missing; choose missing='drop', 'mean', 'nan' or a number",
            )
    return (table.rows(~gone), "drop") if missing == "drop" else (table, missing)


def _feature(table: Table, column: Column, fill: str | float, text: str) -> tuple[list[str], Array]:
    """Return the names and the values, shape (rows, width), of the features of a column."""
    if not column.is_text:
        return [column.name], _filled(column, fill)[:, None]
    if text == "error":
        raise DataFileError(
            table.path,
            f"column {column.name!r}",
            "expected numbers, but it holds text; leave it out of features, or choose "
            "text='onehot' or 'codes'",
        )
    kinds, codes = np.unique(column.values.astype(str), return_inverse=True)
    codes = codes.reshape(-1)
    if text == "codes":
        return [column.name], codes[:, None].astype(np.float64)
    names = [f"{column.name}={kind}" for kind in kinds.tolist()]
    return names, np.eye(len(kinds))[codes]


def _filled(column: Column, fill: str | float) -> Array:
    values = column.values.astype(np.float64)
    if not column.missing.any():
        return values
    known = values[~column.missing]
    filling = {"mean": float(known.mean()) if known.size else 0.0, "nan": float("nan")}
    values[column.missing] = filling[fill] if isinstance(fill, str) else fill
    return values


def _target(table: Table, column: Column, dtype: Any) -> tuple[Array, list[str] | None]:
    if column.missing.any():
        row = int(np.argmax(column.missing))
        raise DataFileError(
            table.path,
            f"{table.places[row]}, column {column.name!r}",
            "the target is missing, and a target is never made up; choose missing='drop'",
        )
    if column.is_text:
        kinds, codes = np.unique(column.values.astype(str), return_inverse=True)
        return codes.reshape(-1).astype(np.int64), kinds.tolist()
    if column.values.dtype.kind in "biu":
        return column.values.astype(np.int64), None
    return column.values.astype(dtype), None


def check_unique(path: str, names: Sequence[str]) -> None:
    """Raise if two columns have the same name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataFileError(path, "header", f"column names must differ; repeated: {twice}")


def check_dtypes(path: str, names: Sequence[str], dtypes: Iterable[str]) -> None:
    """Raise if a type is declared for a column that does not exist."""
    for name in dtypes:
        if name not in names:
            raise ArgumentError(f"{path}: dtypes names column {name!r}; there are {list(names)}")
