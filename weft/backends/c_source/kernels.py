"""Find the writer of a kind of kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...lower.kernels import (
    CallKernel,
    ColumnKernel,
    Control,
    GemmKernel,
    Kernel,
    RowKernel,
    ScanKernel,
    ScatterKernel,
)
from .columns import write_columns, write_scan, write_scatter
from .dialect import Dialect
from .group_products import write_group_product
from .launch import Launch
from .rows import write_rows
from .serial_products import write_serial_product
from .sorts import is_sort, write_sort

Writer = Callable[[Any, Dialect], list[Launch]]


def _write_product(kernel: GemmKernel, dialect: Dialect) -> list[Launch]:
    writer = write_serial_product if dialect.serial else write_group_product
    return writer(kernel, dialect)


WRITERS: dict[type, Writer] = {
    RowKernel: write_rows,
    ColumnKernel: write_columns,
    ScatterKernel: write_scatter,
    ScanKernel: write_scan,
    GemmKernel: _write_product,
    CallKernel: write_sort,
}


def has_code(kernel: Kernel) -> bool:
    """Tell whether a kernel runs on devices; others are driven, or called, by the host."""
    return is_sort(kernel) or not isinstance(kernel, Control | CallKernel)


def write_kernel(kernel: Kernel, dialect: Dialect) -> list[Launch]:
    """Return the functions that a kernel is launched as, in their order."""
    return WRITERS[type(kernel)](kernel, dialect)
