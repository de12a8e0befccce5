"""Random graphs of all sorts of operations: movement, reductions, products, casts, conditions.

Two kinds of values are kept apart, so that results can be compared between two ways of computing
them:

exact    integers and truth values, and floats that hold small whole numbers (with `special`, also
         NaN, infinities and zeros of either sign). Every operation on them is exact, in whichever
         order sums are taken, so that they may be compared, rounded and cast; they must agree to
         the bit.
smooth   floats that were rounded. Only operations that do not magnify errors take them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import weft as wf
from weft.core.tensor import wrap

from .drawn import BINARY, REDUCTIONS, ROWS, UNARY, Drawn
from .operands import lay_out

SIZES = (1, 1, 2, 3, 7, 8, 17, 33)
RARE_SIZES = (0, 1000, 1025)
MOST_ELEMENTS = 20_000
FLOATS = ("float32", "float64")
EXACT_DTYPES = (*FLOATS, "int32", "int64", "uint8", "bool")
LARGEST = 60  # of whole numbers: their products, summed over some hundreds, fit a float32
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0])


class Kept(NamedTuple):
    """A value of the graph, and whether every bit of it is determined."""

    symbol: wf.Tensor
    exact: bool


class MixedProgram(Drawn):
    """A random graph with its fetches and feeds, drawn from a seed; fewer steps are a prefix."""

    def __init__(self, seed, steps, states=False):
        super().__init__(seed)
        self.special = self.rng.random() < 0.2
        self.states = []
        self.updates = []
        with wf.Graph() as self.graph:
            self.kept = list(self._sources(states))
            for _ in range(steps):
                self.kept.append(self._step())
            self.updates = [self._update(i) for i in range(len(self.states))]
        self.fetched = self._fetched(steps)

    @property
    def fetches(self):
        return [kept.symbol for kept in self.fetched]

    def _fetched(self, steps):
        """Return the last values and some others: what is not fetched may be fused away."""
        made = self.kept[-steps:]
        rng = np.random.default_rng(len(made))
        return [kept for kept in made[:-3] if rng.random() < 0.3] + made[-3:]

    # -- sources -----------------------------------------------------------------------------------

    def _sources(self, states):
        a, b = self._size(), self._size()
        shapes = [(a, b), (b,), (a, 1), (), (a, b), (b, a), (self._size(), a, b), (a, b)]
        for shape in shapes:
            if np.prod(shape) <= MOST_ELEMENTS:
                dtype = self._choose(EXACT_DTYPES)
                source = self._state if states and self.rng.random() < 0.5 else self._fed
                yield source(shape, dtype, self._whole(shape, dtype), exact=True)
                dtype = self._choose(FLOATS)
                yield self._fed(shape, dtype, self.rng.normal(size=shape), exact=False)

    def _state(self, shape, dtype, array, exact):
        tensor = wrap(np.asarray(array).astype(dtype))  # wf.tensor makes constants here
        self.states.append(tensor)
        return Kept(wf.reshape(tensor, shape), exact)

    def _update(self, number):
        """Return an update of a state by whatever exact value can take its place."""
        state = self.states[number]
        found = self._pick(
            lambda kept: (
                kept.exact and kept.symbol.shape == state.shape and kept.symbol.dtype == state.dtype
            )
        )
        return state.assign(found.symbol)

    def _fed(self, shape, dtype, array, exact):
        array = lay_out(np.asarray(array).astype(dtype), int(self.rng.integers(5)))
        return Kept(self._feed(shape, array), exact)

    def _whole(self, shape, dtype):
        low = 0 if dtype in ("uint8", "bool") else -LARGEST
        array = self.rng.integers(low, LARGEST, shape)
        if self.special and dtype in FLOATS:
            return np.where(self.rng.random(shape) < 0.3, self.rng.choice(SPECIAL, shape), array)
        return array % 2 if dtype == "bool" else array

    # -- drawing -----------------------------------------------------------------------------------

    def _size(self):
        return int(self.rng.choice(RARE_SIZES if self.rng.random() < 0.06 else SIZES))

    def _pick(self, condition=lambda kept: True):
        """Return a value that fits, later ones rather than earlier ones, or None."""
        fitting = [kept for kept in self.kept if condition(kept)]
        if not fitting:
            return None
        recent = fitting[-6:] if self.rng.random() < 0.5 else fitting
        return self._choose(recent)

    def _need(self, condition):
        """Return a value that fits; the step is drawn anew if there is none."""
        found = self._pick(condition)
        if found is None:
            raise wf.WeftError("nothing fits")
        return found

    def _float(self, exact=None):
        return self._pick(
            lambda kept: kept.symbol.dtype.kind == "f" and exact in (None, kept.exact)
        )

    def _step(self):
        kinds = (
            *(self._unary, self._unary, self._binary, self._binary, self._reduce, self._reduce),
            *(self._move, self._move, self._product, self._row, self._cast, self._compare),
            *(self._where, self._integer, self._join, self._whole_function, self._library),
        )
        while True:
            try:
                made = self._choose(kinds)()
            except wf.WeftError:  # the operands drawn do not go together
                continue
            if made is not None and made.symbol.size <= MOST_ELEMENTS:
                return made

    # -- operations on either kind -----------------------------------------------------------------

    def _move(self):
        x, exact = self._pick()
        n = x.ndim
        choices = (
            lambda: x.reshape(-1),
            lambda: x.mT if n > 1 else x[None],
            lambda: wf.permute(x, tuple(self.rng.permutation(n).tolist())),
            lambda: x[..., ::2] if n else x[None],
            lambda: x[..., ::-1] if n else x[None, None],
            lambda: x[1:] if n else x,
            lambda: x[:, None] if n else x,
            lambda: wf.broadcast_to(x, (3, *x.shape)) if n < 3 else None,
            lambda: wf.flip(x, 0) if n else None,
            lambda: x.reshape(*x.shape[:-2], -1) if n > 1 else None,
            lambda: wf.pad(x, [(1, 2)] + [(0, 0)] * (n - 1)) if n else None,
            lambda: wf.roll(x, 1, 0) if n else None,
            lambda: wf.squeeze(x[:1], 0) if n and x.shape[0] else None,
            lambda: wf.tril(x) if n > 1 else None,
            lambda: wf.diagonal(x) if n > 1 else None,
        )
        made = self._choose(choices)()
        return None if made is None else Kept(made, exact)

    def _join(self):
        x, exact = self._pick()
        y, other = self._pick(lambda kept: kept.symbol.dtype == x.dtype)
        choices = (
            lambda: wf.concat([x, y], 0),
            lambda: wf.concat([x, y], -1),
            lambda: wf.stack([x, y, x], 0) if x.ndim < 3 else None,
        )
        made = self._choose(choices)()
        return None if made is None else Kept(made, exact and other)

    def _where(self):
        condition = self._pick(lambda kept: kept.symbol.dtype == wf.bool_ and kept.exact)
        x, exact = self._float()
        y, other = self._pick(lambda kept: kept.symbol.dtype == x.dtype)
        if condition is None:
            return None
        return Kept(wf.where(condition.symbol, x, y), exact and other)

    def _cast(self):
        x, exact = self._pick()
        if not exact:  # never to a wider one, in which their errors would look large
            return Kept(x.astype("float32"), False)
        dtype = self._choose(EXACT_DTYPES)
        if x.dtype.kind == "f" and self.special and dtype not in (*FLOATS, "bool"):
            return None  # NaN is no integer
        if dtype == "uint8" and x.dtype.kind != "b":
            x = wf.abs(x) if x.dtype.kind != "u" else x
        return Kept(self._bounded(x).astype(dtype), True)

    # -- exact ones --------------------------------------------------------------------------------

    def _bounded(self, x):
        """Return whole numbers that stay small, however many steps follow."""
        if x.dtype.kind == "b":
            return x
        return wf.clip(x, 0 if x.dtype.kind == "u" else -LARGEST, LARGEST)

    def _exact(self, x):
        return Kept(self._bounded(x), True)

    def _integer(self):
        x = self._need(lambda kept: kept.exact and kept.symbol.dtype.kind in "iub").symbol
        y = self._pick(lambda kept: kept.exact and kept.symbol.dtype == x.dtype).symbol
        if x.dtype.kind == "b":
            choices = (wf.logical_and, wf.logical_or, wf.logical_xor)
        else:
            choices = (
                *(wf.add, wf.sub, wf.mul, wf.maximum, wf.minimum, wf.bitwise_and, wf.bitwise_or),
                *(wf.bitwise_xor, lambda a, b: wf.floor_divide(a, wf.maximum(b, 1)), wf.fmax),
            )
        return self._exact(self._choose(choices)(x, y))

    def _whole_function(self):
        """Apply a function that is exact on whole numbers in floats."""
        x = self._float(exact=True)
        y = self._float(exact=True)
        if x is None:
            return None
        x, y = x.symbol, y.symbol
        choices = (
            lambda: x + y,
            lambda: x - y,
            lambda: x * y,
            lambda: -x,
            lambda: wf.abs(x),
            lambda: wf.sign(x),
            lambda: wf.square(x),
            lambda: wf.relu(x),
            lambda: wf.floor(x * 0.25),
            lambda: wf.ceil(x * 0.5),
            lambda: wf.round(x * 0.5),
            lambda: wf.trunc(x * 0.25),
            lambda: wf.maximum(x, y),
            lambda: wf.minimum(x, y),
            lambda: wf.fmin(x, y),
            lambda: wf.mod(x, 7.0),
            lambda: wf.fmod(x, 5.0),
            lambda: wf.floor_divide(x, 4.0),
            lambda: wf.copysign(x, y),
            lambda: wf.clip(x, -3.0, 5.0),
            lambda: wf.where(wf.isnan(x), y, x),
            lambda: wf.nn.functional.leaky_relu(x, 0.5),
            lambda: wf.heaviside(x, y),
        )
        return self._exact(wf.round(self._choose(choices)()))

    def _compare(self):
        x = self._need(lambda kept: kept.exact).symbol
        y = self._pick(lambda kept: kept.exact and kept.symbol.dtype == x.dtype).symbol
        choices = (wf.less, wf.less_equal, wf.greater, wf.greater_equal, wf.equal, wf.not_equal)
        tests = (wf.isnan, wf.isfinite, wf.isinf)
        if x.dtype.kind == "f" and self.rng.random() < 0.2:
            return Kept(self._choose(tests)(x), True)
        return Kept(self._choose(choices)(x, y), True)

    def _library(self):
        """Use something without a lowering, between others that have one."""
        x, exact = self._need(lambda kept: kept.symbol.ndim > 0 and kept.exact)
        choices = (
            lambda: wf.sort(x, axis=-1) if x.dtype.kind != "b" else None,
            lambda: wf.cumsum(x, axis=0) if x.dtype.kind == "i" else None,
            lambda: wf.argmax(x, axis=-1) if x.shape[-1] and x.dtype.kind != "b" else None,
            lambda: wf.take(x, wf.tensor([0, 0]), axis=0) if x.shape[0] else None,
        )
        made = self._choose(choices)()
        return None if made is None else Kept(self._bounded(made), exact)

    # -- smooth ones -------------------------------------------------------------------------------

    def _tame(self):
        """Return a float to compute with; whole numbers are scaled to be of order one."""
        x, exact = self._float()
        if not exact:
            return x
        finite = wf.where(wf.isfinite(x), x, wf.zeros_like(x)) if self.special else x
        return finite * (1 / 16)

    def _unary(self):
        x = self._tame()
        return Kept(self._choose([*UNARY.values()])(x), False)

    def _binary(self):
        x, y = self._tame(), self._tame()
        if x.dtype != y.dtype:
            x, y = x.astype("float32"), y.astype("float32")
        return Kept(self._choose([*BINARY.values()])(x, y), False)

    def _axes(self, x):
        if self.rng.random() < 0.2:
            return None
        if x.ndim > 1 and self.rng.random() < 0.3:
            return tuple(sorted(self.rng.choice(x.ndim, 2, replace=False).tolist()))
        return int(self.rng.integers(-x.ndim, x.ndim))

    def _reduce(self):
        x, exact = self._need(lambda kept: kept.symbol.ndim > 0)
        if not x.size:  # of nothing there is a sum, but no largest element
            return Kept(wf.sum(x, axis=self._axes(x)), exact)
        how = {"axis": self._axes(x), "keepdims": bool(self.rng.integers(2))}
        if exact:
            return self._exact_reduction(x, how)
        made = self._choose([*REDUCTIONS.values()])(x, **how)
        return Kept(wf.where(wf.isfinite(made), made, wf.zeros_like(made)), False)

    def _exact_reduction(self, x, how):
        if x.dtype.kind == "b":
            return Kept(self._choose((wf.any, wf.all))(x, **how), True)
        choices = (
            lambda: wf.sum(x, **how),
            lambda: wf.max(x, **how),
            lambda: wf.min(x, **how),
            lambda: wf.count_nonzero(x, axis=how["axis"]),
            lambda: wf.prod(wf.sign(x), **how) if x.dtype.kind != "u" else None,
        )
        made = self._choose(choices)()
        return None if made is None else self._exact(made)

    def _product(self):
        x = self._pick(lambda kept: kept.symbol.ndim > 1 and kept.symbol.dtype.kind == "f")
        if x is None:
            return None
        y = self._pick(lambda kept: kept.symbol.ndim > 1 and kept.symbol.dtype == x.symbol.dtype)
        (a, exact), (b, other) = x, y
        for right in (b, b.mT):
            if a.shape[-1] == right.shape[-2]:
                if exact and other:
                    small = [wf.clip(z, -8.0, 8.0) for z in (a, right)]
                    return self._exact(wf.matmul(*small))
                if not exact and not other:
                    return Kept(wf.tanh(wf.matmul(a, right) * 0.3), False)
        return None

    def _row(self):
        x = self._tame()
        if not x.ndim or not x.shape[-1]:
            return None
        return Kept(self._choose([*ROWS.values()])(x), False)
