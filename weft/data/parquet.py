"""Parquet files, read with pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.imports import require
from .errors import DataFileError, check_file
from .table import Column, Table, TableDataset


def read_parquet(path: Any, *, columns: Sequence[str] | None = None) -> Table:
    """Read a Parquet file, or some of its columns, into memory (needs pyarrow)."""
    shown = check_file(path)
    purpose = "reading Parquet files"
    arrow = require("pyarrow", "table", purpose)
    parquet = require("pyarrow.parquet", "table", purpose)
    try:
        # Opened by Python: it follows the platform's rules for paths, and the error is ours.
        with open(shown, "rb") as file:
            source = parquet.ParquetFile(file)
            _check_columns(shown, source.schema_arrow.names, columns)
            data = source.read(columns=None if columns is None else list(columns))
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, OSError) as error:
        raise DataFileError(shown, None, f"expected a Parquet file: {error}") from None
    made = tuple(
        _column(shown, arrow, name, data.column(i)) for i, name in enumerate(data.column_names)
    )
    return Table(shown, made, [f"row {row}" for row in range(data.num_rows)])


class ParquetDataset(TableDataset):
    """The rows of a Parquet file as (features, target); options as for `CsvDataset`."""

    def __init__(
        self,
        path: Any,
        *,
        target: str | int | None = None,
        features: Sequence[str | int] | None = None,
        missing: str | float = "error",
        text: str = "onehot",
        dtype: Any = np.float32,
    ) -> None:
        table = read_parquet(path)
        if not len(table):
            raise DataFileError(path, None, "expected at least one row of data")
        super().__init__(
            table, target=target, features=features, missing=missing, text=text, dtype=dtype
        )


def _check_columns(path: str, names: Sequence[str], wanted: Sequence[str] | None) -> None:
    unknown = [name for name in wanted or () if name not in names]
    if unknown:
        raise DataFileError(path, None, f"no columns {unknown}; the columns are {list(names)}")


def _column(path: str, arrow: Any, name: str, data: Any) -> Column:
    missing = np.asarray(data.is_null().to_numpy(), bool)
    kind = data.type.value_type if arrow.types.is_dictionary(data.type) else data.type
    if arrow.types.is_string(kind) or arrow.types.is_large_string(kind):
        texts = ["" if text is None else text for text in data.to_pylist()]
        return Column(name, np.array(texts, object), missing)
    numeric = (
        arrow.types.is_integer(kind)
        or arrow.types.is_floating(kind)
        or arrow.types.is_boolean(kind)
    )
    if not numeric:
        raise DataFileError(
            path, f"column {name!r}", f"expected numbers, booleans or text, found {data.type}"
        )
    if data.null_count:  # NumPy's integers and booleans have no place for a null
        data = data.cast(arrow.float64())
    values = np.asarray(data.to_numpy())
    return Column(name, values, missing)
