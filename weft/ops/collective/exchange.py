"""Exchanges: operations on the tensors of all processes of a group.

In a graph each takes the link of the chain of effects (core/effects.py) and gives the next one, so
that all processes come to their exchanges in the same order. The total of the losses of all
processes is what gradients are of: `sum` goes back as `sum`, a copy goes back as a sum.

An exchange is one node. Compiled programs have two in its place, which begin it and wait for it,
so that machine code runs in between (passes/overlap.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import int64
from ...core.effects import communicated
from ...core.errors import ArgumentError, DTypeError, ShapeError
from ...core.imports import injected
from ...core.modes import current_tracer, modes
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, normalize_axis
from ...core.tensor import Tensor, constant

_run = injected("run_exchange")

# How arrays are brought together, and how the gradient of that is; None: not linear in them.
ADJOINTS = {
    "sum": "sum",
    "mean": "mean",
    "pairwise": "pairwise",
    "max": None,
    "min": None,
    "prod": None,
    "broadcast": "reduce",
    "reduce": "broadcast",
    "gather": "scatter",
    "scatter": "gather",
    "all_to_all": "all_to_all",
    "shift": "shift",
    "total": "itself",
    "collect": "mean_part",
    "mean_part": "gathered mean",
    "whole": "own part",
}
POINTS = ("send", "receive")  # what two processes do, each its own part
COMPUTED = ("sum", "prod", "max", "min")  # by the network itself
REDUCTIONS = (*COMPUTED, "mean", "pairwise")
SUMS = ("sum", "mean", "pairwise")  # of which parts may be added up before
MOVES = ("broadcast", "gather", "all_to_all", "shift", "collect", "whole", *POINTS)
GATHERS = ("gather", "collect", "whole")  # whose results are as large as the parts of all together
SCATTERS = ("scatter", "mean_part")  # of whose results each process has a part
ALONG = (*GATHERS, *SCATTERS, "all_to_all")  # an axis
LINK = TensorType((), int64)


def exchanged(
    x: Any, how: str, group: int, size: int, axis: int = 0, place: int = 0, note: str = ""
) -> Any:
    """Return what becomes of the tensors of all processes, behind all exchanges of before."""
    tracer = current_tracer() if modes.interpreters else None
    if tracer is None:
        first = np.zeros((), np.int64)
        link = constant(first) if isinstance(x, Tensor) else first
        return F.exchange(link, x, how, group, size, axis, place, note)[1]
    after, y = F.exchange(tracer.link(), x, how, group, size, axis, place, note)
    tracer.follow(after)
    return y


@op(general, outputs=2, method=False, advances=True, communicates=True)
def exchange(
    link: Tensor,
    x: Tensor,
    how: str,
    group: int,
    size: int,
    axis: int = 0,
    place: int = 0,
    note: str = "",
) -> tuple[Tensor, Tensor]:
    """Return the next link, and what becomes of the tensors of all processes.

    how     "sum", "mean", "pairwise" (a sum as a balanced tree), "max", "min", "prod": of all;
            "broadcast": that of `place`; "reduce": the sum there, zeros elsewhere;
            "gather": all along `axis`; "scatter": this process's part of the sum, along `axis`;
            "shift": that of the process `place` before this one, in a ring;
            "total": the sum, where all processes compute one and the same loss of it;
            "collect": as "gather", where gradients are to be means over processes;
            "mean_part": this process's part of the mean, along `axis`;
            "whole": as "gather", where all compute the same with it: this process's part, which is
            number `place`, has its part of the gradient;
            "send": x goes to `place`, and a zero is the receipt; "receive": what `place` sent, of
            x's shape and dtype;
            "all_to_all": parts along `axis` change places, and are joined along `place`
    group   by its number (weft.distributed), and how many processes are in it
    note    what x is, which must be the same on all processes
    """


@exchange.canon
def _(link, x, how, group, size, axis, place, note):
    if how not in ADJOINTS and how not in POINTS:
        raise ArgumentError(f"how must be one of {', '.join(ADJOINTS)}. Received: {how!r}")
    group, size = as_int(group, "group"), as_int(size, "size")
    _check_dtype(x, how)
    axis = normalize_axis(axis, x.ndim) if how in ALONG else 0
    if how == "all_to_all":
        place = normalize_axis(place, x.ndim)
    elif how in ("broadcast", "reduce", "whole", *POINTS):
        place = as_int(place, "place")
        if not 0 <= place < size:
            raise ArgumentError(f"{how}: rank must lie between 0 and {size - 1}. Received: {place}")
    else:
        place = as_int(place, "place") % size if how == "shift" else 0
    return how, group, size, axis, place, str(note)


def _check_dtype(x, how):
    if x.dtype.kind == "b" and how not in MOVES:
        raise DTypeError(f"{how}: truth values cannot be added or compared; cast them first")
    if how in ("mean", "mean_part") and x.dtype.kind in "iu":
        raise DTypeError(f"{how}: x must be of a floating-point dtype. Received: {x.dtype}")


@exchange.infer
def _(link, x, how, group, size, axis, place, note):
    return LINK, TensorType(result_shape(x.shape, how, size, axis, place), x.dtype)


def result_shape(shape: tuple[Any, ...], how: str, size: int, axis: int, place: int) -> Any:
    """Return the shape of what becomes of tensors of one shape."""
    if how == "send":
        return ()
    sizes = list(shape)
    if how in (*SCATTERS, "all_to_all"):
        if sizes[axis] % size != 0:
            raise ShapeError(
                f"{how}: {size} processes must divide axis {axis} of the shape {tuple(shape)}"
            )
        sizes[axis] = sizes[axis] // size
    if how in (*GATHERS, "all_to_all"):
        joined = place if how == "all_to_all" else axis
        sizes[joined] = sizes[joined] * size
    return tuple(sizes)


@exchange.eval
def _(link, x, how, group, size, axis, place, note):
    found = communicated(lambda: _run(x, how, group, size, axis, place, note))
    # What a compiled program has begun, before it failed, is given to the run that repeats it.
    return link + 1, found if isinstance(found, np.ndarray) else found.wait()


@exchange.vjp("x")
def _(g, x, out, how, group, size, axis, place, note):
    if how == "send":  # what the other process sends back
        return exchanged(F.zeros_like(x), "receive", group, size, place=place, note=note)
    if how == "receive":  # the receipt, so that nobody takes the sending for dead
        receipt = exchanged(g[1], "send", group, size, place=place, note=note)
        return F.broadcast_to(receipt, x.shape)
    return _differential(g[1], x, out[1], ADJOINTS[how], how, (group, size, axis, place))


@exchange.jvp
def _(x_t, x, out, how, group, size, axis, place):
    where = (group, size, axis, place)
    if how in POINTS or ADJOINTS[how] is not None:
        return None, exchanged(x_t, how, *where)
    # Of what is not linear each process has its part, a factor of its own tangent.
    return None, exchanged(x_t * _factor(x, out[1], how, group, size), "sum", group, size)


def _differential(g, x, y, adjoint, how, where):
    group, size, axis, place = where
    if adjoint is None:
        return exchanged(g, "sum", group, size) * _factor(x, y, how, group, size)
    if adjoint == "itself":
        return g
    if adjoint == "own part":
        return F.part_of(g, group, size, place, axis)
    if adjoint == "gathered mean":
        return exchanged(g, "gather", group, size, axis) / size
    if adjoint == "all_to_all":
        axis, place = place, axis
    elif adjoint == "shift":
        place = -place % size
    return exchanged(g, adjoint, group, size, axis, place)


def _factor(x, y, how, group, size):
    """Return the derivative of a product or an extremum: equal extrema share it."""
    if how == "prod":
        return y / x
    hit = F.cast(x == y, x.dtype)
    return hit / exchanged(hit, "sum", group, size)


@exchange.batch
def _(link, x, how, group, size, axis, place, note, examples):
    shift = (1, 1 if how == "all_to_all" else 0)
    after, y = F.exchange(link[0], x, how, group, size, axis + shift[0], place + shift[1], note)
    return F.broadcast_to(after, (examples,)), y


@exchange.samples
def _(s):
    first = np.zeros((), np.int64)
    for how in ADJOINTS:
        yield Sample(first, s.positive(2, 3), how, 0, 1)
        yield Sample(first, s.positive(2, 3), how, 0, 1, axis=-1, place=0)
    yield Sample(first, s.real(), "sum", 0, 1, note="a number", label="0-d")
    yield Sample(first, s.real(0, 2), "gather", 0, 1, label="empty")
    yield Sample(first, s.strided(4, 3), "mean", 0, 1, label="non-contiguous")
    yield Sample(first, np.array([1, 2]), "max", 0, 1, grad=0, label="integers")
    yield Sample(first, np.array([True, False]), "broadcast", 0, 1, grad=0, label="bool")


@exchange.error_samples
def _(s):
    first = np.zeros((), np.int64)
    yield ErrorSample(first, s.real(2), "avg", 0, 1, error=ValueError, match="how must be.*'avg'")
    yield ErrorSample(first, np.array([1]), "mean", 0, 1, error=TypeError, match="float.*int64")
    yield ErrorSample(
        first, s.real(2), "broadcast", 0, 1, place=1, error=ValueError, match="between 0 and 0.* 1"
    )
