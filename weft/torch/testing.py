"""torch.testing: comparing results within tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import tensor as core
from ..core.dtype import is_float
from .sizes import Size

__all__ = ["assert_close"]

# Relative and absolute tolerance where none is given, by dtype; all others must be equal.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}


def assert_close(  # noqa: PLR0913  (PyTorch's arguments)
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise AssertionError unless tensors, numbers, or nests of them, are close.

    >>> from weft import torch
    >>> torch.testing.assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype}
    found = _difference(actual, expected, options, "")
    if found is not None:
        raise AssertionError(msg(found) if callable(msg) else msg or found)


def _difference(actual: Any, expected: Any, options: dict[str, Any], where: str) -> str | None:
    """Return what differs between two nests; None if nothing does."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            return (
                f"The keys of the mappings do not match{where}: {actual.keys() ^ expected.keys()}"
            )
        items = [(name, actual[name], expected[name]) for name in expected]
    elif _is_sequence(expected) and _is_sequence(actual):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{where}: {len(actual)} != {len(expected)}"
        items = [(i, a, e) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    else:
        return _apart(actual, expected, options, where)
    place = where or "\n\nThe failure occurred for item "
    found = (_difference(a, e, options, f"{place}[{name!r}]") for name, a, e in items)
    return next((text for text in found if text is not None), None)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _apart(actual: Any, expected: Any, options: dict[str, Any], where: str) -> str | None:
    """Return how far two tensors or numbers are apart, if it is too far."""
    a, e = _array(actual), _array(expected)
    if a.shape != e.shape:
        shapes = f"{Size(a.shape)} != {Size(e.shape)}"
        return f"The values for attribute 'shape' do not match: {shapes}.{where}"
    both = isinstance(actual, core.Tensor) and isinstance(expected, core.Tensor)
    if both and options["check_dtype"] and a.dtype != e.dtype:
        return (
            f"The values for attribute 'dtype' do not match: torch.{a.dtype} != torch.{e.dtype}."
            f"{where}"
        )
    rtol, atol = _tolerances(a, e, options)
    a, e = (x.astype(np.float64) if is_float(x.dtype) else x for x in (a, e))
    close = np.isclose(a, e, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    return None if close.all() else _report(a, e, close, rtol, atol) + where


def _array(x: Any) -> Any:
    return x.detach()._value if isinstance(x, core.Tensor) else np.asarray(x)


def _tolerances(a: Any, e: Any, options: dict[str, Any]) -> tuple[float, float]:
    if options["rtol"] is not None:
        return options["rtol"], options["atol"]
    rows = [TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, e)]
    return max(r for r, _ in rows), max(t for _, t in rows)


def _report(a: Any, e: Any, close: Any, rtol: float, atol: float) -> str:
    if a.ndim == 0:
        return _scalar_report(float(a), float(e), rtol, atol)
    wrong = int(np.sum(~close))
    apart = np.where(close, 0, np.abs(np.subtract(a, e, dtype=np.float64)))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(close, 0, apart / np.abs(e))
    kind = "close" if rtol or atol else "equal"
    return (
        f"Tensor-likes are not {kind}!\n\n"
        f"Mismatched elements: {wrong} / {a.size} ({100 * wrong / a.size:.1f}%)\n"
        f"Greatest absolute difference: {_greatest(apart)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {_greatest(relative)} (up to {rtol} allowed)"
    )


def _scalar_report(a: float, e: float, rtol: float, atol: float) -> str:
    relative = abs(a - e) / abs(e) if e else float("inf")
    return (
        f"Scalars are not close!\n\nExpected {e} but got {a}.\n"
        f"Absolute difference: {abs(a - e)} (up to {atol} allowed)\n"
        f"Relative difference: {relative} (up to {rtol} allowed)"
    )


def _greatest(found: Any) -> str:
    place = np.unravel_index(int(np.argmax(found)), found.shape)
    return f"{float(found[place])} at index {tuple(int(i) for i in place)}"
