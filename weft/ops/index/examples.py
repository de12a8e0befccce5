"""Across the examples of vmap: let one example compute with the values of another.

Where a branch or a trip of a loop is not taken, it still runs, and its result is thrown away. On
the operands of an example that does take it, it makes no NaN there: not in results, and not in
gradients, where zero times infinity would spoil what is kept.
"""

from __future__ import annotations

from typing import Any

from ...core.dim import may_equal
from ...core.errors import ArgumentTypeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor


@op(general, linear=("x",), method=False)
def borrow_example(x: Tensor, active: Tensor) -> Tensor:
    """Return x; inside vmap, where `active` is false, the x of the first example where it holds."""


@op(general, linear=("g",), method=False)
def return_example(g: Tensor, active: Tensor) -> Tensor:
    """Return the adjoint of `borrow_example`, applied to g."""


def _canon(x, active):
    if active.dtype.kind != "b" or not may_equal(tuple(active.shape), ()):
        raise ArgumentTypeError(
            "active must be a boolean without dimensions. "
            f"Received: {active.dtype}{list(active.shape)}"
        )
    return ()


def _type(x, active):
    return TensorType(x.shape, x.dtype)


def _same(x, active):
    return x


def _same_memory(x):
    return x


for _record in (borrow_example, return_example):
    _record.canon(_canon)
    _record.infer(_type)
    _record.eval(_same)
    _record.view(_same_memory)


@borrow_example.vjp("x")
def _(g, active):
    return F.return_example(g, active)


@return_example.vjp("g")
def _(g, active):
    return F.borrow_example(g, active)


@borrow_example.batch
def _(x, active, batched, examples):
    if not all(batched):  # then all examples have the same x, or all are active
        return x if batched[0] else F.broadcast_to(x, (examples, *x.shape))
    return F.take(x, _lenders(active, examples), 0)


@return_example.batch
def _(g, active, batched, examples):
    if not all(batched):
        return g if batched[0] else F.broadcast_to(g, (examples, *g.shape))
    return F.take_adjoint(g, _lenders(active, examples), g.shape, 0)


def _lenders(active: Any, examples: Any) -> Any:
    """Return for each example the one whose values it takes."""
    return F.where(active, F.iota(examples), F.argmax(active, 0))


@borrow_example.samples
def _(s):
    yield Sample(s.real(2, 3), s.booleans())
    yield Sample(s.real(), s.booleans(), label="0-d")
    yield Sample(s.integers(0, 2), s.booleans(), label="empty")


@borrow_example.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(), error=TypeError, match=r"Received: float64\[\]")
    yield ErrorSample(s.real(3), s.booleans(3), error=TypeError, match=r"Received: bool\[3\]")


@return_example.samples
def _(s):
    yield Sample(s.real(2, 3), s.booleans())
