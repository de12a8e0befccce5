"""vmap over every operator and composite: the same as a loop, along every axis, nested too."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.autodiff.batching import SlowVmapWarning
from weft.core import op as op_module
from weft.core.batching import rule_of

from . import conformance as c
from .by_operator import over

CASES = [case for case in c.cases() if not case.is_random]
OPERATORS = [case for case in CASES if case.op is not None]

# Operators whose results depend on values in a way that no rule can foretell.
BY_LOOP = {
    "bincount": "the length of its result depends on the largest element",
    "histogram": "NumPy's own binning; the range may depend on the elements",
    "point_counts": "NumPy's own binning, of points",
    "row_slots": "gradients of examples are dense: only whole steps of optimizers ask for it",
}
# Programs that read values: what they do cannot be the same for all examples.
READ_VALUES = {"allclose", "ctc_loss", "one_hot"}


def examples(array: np.ndarray, count: int, salt: float = 0.1) -> list[np.ndarray]:
    """Return arrays like a sample, different from one another and valid where the sample is."""
    if array.dtype.kind in "fV":
        return [(array * array.dtype.type(1 - salt * i)).astype(array.dtype) for i in range(count)]
    is_sorted = array.ndim == 1 and bool((np.diff(array) >= 0).all()) and len(array) > 4
    return [array if is_sorted else np.roll(array, i) for i in range(count)]


def replaced(sample: Any, arrays: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a sample with other arrays in their places."""
    given = iter(arrays)
    filled = c.Arguments.of(sample).map(lambda _: next(given))
    return filled.args, filled.kwargs


def call(case: c.Case, arrays: list[Any]) -> list[Any]:
    """Return the outputs of a case on other arrays."""
    args, kwargs = replaced(case.drawn(), arrays)
    with np.errstate(all="ignore"):
        return [y for y in c.outputs_of(case.function(*args, **kwargs)) if isinstance(y, wf.Tensor)]


def looped(case: c.Case, batches: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Return the stacked outputs of a loop over examples."""
    rows = [call(case, list(map(c.to_tensor, arrays))) for arrays in zip(*batches, strict=True)]
    return [np.stack([y.numpy() for y in column]) for column in zip(*rows, strict=True)]


def subsets(count: int) -> list[tuple[bool, ...]]:
    """Return which arrays are batched: all, and each one alone."""
    alone = [tuple(i == j for j in range(count)) for i in range(count)] if count > 1 else []
    return [(True,) * count, *alone]


def is_data_dependent(case: c.Case, error: Exception) -> bool:
    known = "of vmap" in str(error) or "differs between examples" in str(error)
    return known or case.name in READ_VALUES


@over(CASES)
def test_vmap_is_a_loop(case):
    arrays = c.Arguments.of(case.drawn()).arrays()
    if not arrays:
        pytest.skip("takes no arrays")
    for flags in subsets(len(arrays)):
        batches = [
            examples(a, 2) if flag else [a, a] for a, flag in zip(arrays, flags, strict=True)
        ]
        try:
            expected = looped(case, batches)
        except (ValueError, IndexError):
            continue  # the other examples are none, or differ in the shape of their results
        for axes in ((0, 0), (-1, -1), (1, 0)) if all(flags) else ((0, 0),):
            check_axes(case, flags, batches, expected, axes)


def check_axes(case, flags, batches, expected, axes):
    axis, out_axis = axes
    in_axes = [
        (min(axis, batch[0].ndim) if flag else None)
        for batch, flag in zip(batches, flags, strict=True)
    ]
    inputs = [
        c.to_tensor(batch[0] if where is None else np.stack(batch, where))
        for batch, where in zip(batches, in_axes, strict=True)
    ]
    run = wf.vmap(lambda *xs: tuple(call(case, list(xs))), in_axes=in_axes, out_axes=out_axis)
    found = run_batched(case, run, inputs)
    if found is not None:
        moved = [np.moveaxis(y, 0, out_axis) for y in expected]
        c.assert_same_values(found, moved, f"{case.id} {in_axes}")
        assert [y.dtype for y in found] == [y.dtype for y in expected]


def run_batched(case, run, inputs):
    """Return the results of a whole batch, or None where their shapes depend on the data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SlowVmapWarning)
            return list(run(*inputs))
    except ValueError as error:
        if is_data_dependent(case, error):
            return None
        raise


@over(OPERATORS)
def test_vmap_nests(case):
    arrays = c.Arguments.of(case.drawn()).arrays()
    if not arrays:
        pytest.skip("takes no arrays")
    grids = [[examples(row, 3, 0.02) for row in examples(a, 2)] for a in arrays]
    try:
        rows = [looped(case, [grid[i] for grid in grids]) for i in range(2)]
    except (ValueError, IndexError):
        return
    expected = [np.stack(column) for column in zip(*rows, strict=True)]
    # The outer batch is axis 1 of the inputs, the inner one axis 0.
    inputs = [c.to_tensor(np.stack([np.stack(row) for row in grid], 1)) for grid in grids]
    run = wf.vmap(wf.vmap(lambda *xs: tuple(call(case, list(xs)))), in_axes=1)
    found = run_batched(case, run, inputs)
    if found is not None:
        c.assert_same_values(found, expected, case.id)


def test_only_listed_operators_run_one_example_after_another():
    slow = {name for name, op in op_module.registry.items() if needs_rule(op) and not rule_of(op)}
    assert slow == set(BY_LOOP)


def needs_rule(op: Any) -> bool:
    """Tell whether an operator may meet a batch: it has an input, and is no random draw.

    Nor does it move the state of a generator, of which all examples have one.
    """
    moves_state = op.name in ("advance_state", "offset_state")
    return bool(op.inputs) and op.kind != op_module.random and not moves_state


def test_subsets_cover_each_operand_alone():
    assert subsets(1) == [(True,)]
    assert subsets(2) == [(True, True), (True, False), (False, True)]
    assert len(list(itertools.chain(*subsets(3)))) == 12
