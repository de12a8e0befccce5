"""Random graphs: a Hypothesis strategy for programs of many operators, dtypes and shapes.

    @given(random_graphs())
    def test(program):
        program.graph, program.outputs       what to transform
        program.run(graph, values)           what it gives, and what it writes to states

The programs broadcast, mix dtypes, use constants, unknown sizes, states, random draws and control
flow, and meet NaN, infinities, -0.0 and subnormals. Floats are summed only where every order gives
the same (multiples of 1/8 of bounded size), so that results can be compared bit by bit whatever the
memory layout of intermediate arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import weft as wf
from weft.core.dim import Dim
from weft.core.dtype import bool_, is_float
from weft.core.errors import WeftError
from weft.core.op import F
from weft.core.rng import manual_seed
from weft.core.tree import tree_leaves
from weft.graph.graph import Graph
from weft.graph.node import Value
from weft.graph.run import Program, Results

MIN_STEPS = 30
MAX_ELEMENTS = 400
ROWS = 3  # what the unknown size is when the program runs: that of all others, so that all fits
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0, 88.0, -110.0)


@dataclass
class RandomProgram:
    """A graph, the values to fetch from it, and arrays for its placeholders."""

    graph: Graph
    outputs: list[Value]
    feeds: list[tuple[Value, np.ndarray]]
    states: list[Any] = field(default_factory=list)

    def run(self, graph: Graph | None = None, values: Sequence[Value] | None = None) -> Results:
        """Return the values of this graph, or of one made from it, and what would be committed."""
        target = self.graph if graph is None else graph
        fetches = [target.check_member(v, "run") for v in values or self.outputs]
        feeds = [target.check_member(v, "run") for v, _ in self.feeds]
        manual_seed(7)
        return Program(target, fetches, feeds).run([array for _, array in self.feeds])


def equal_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether arrays have the same dtype, shape and bits, all NaNs taken as one."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not is_float(a.dtype):
        return bool(np.array_equal(a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool(np.all(same | (np.isnan(a) & np.isnan(b))))


def assert_same_results(expected: Results, actual: Results) -> None:
    """Raise unless two runs fetched and committed the same bits."""
    assert len(expected.fetched) == len(actual.fetched)
    for i, (a, b) in enumerate(zip(expected.fetched, actual.fetched, strict=True)):
        assert equal_bits(a, b), f"output {i}: {a!r} became {b!r}"
    before = {state.key: array for state, array in expected.commits}
    after = {state.key: array for state, array in actual.commits}
    assert before.keys() == after.keys()
    assert all(equal_bits(array, after[key]) for key, array in before.items())


@st.composite
def random_graphs(draw: Any, min_steps: int = MIN_STEPS, max_steps: int = 45) -> RandomProgram:
    """Return a strategy for programs of at least `min_steps` operations."""
    # One tuple a step: what to do, on which operands, and a number for the details.
    steps = st.tuples(*[st.integers(0, 9999)] * 5)
    chosen = draw(st.lists(steps, min_size=min_steps, max_size=max_steps))
    return build_program(chosen, draw(st.integers(0, 2**16)))


def build_program(steps: Sequence[tuple[int, ...]], seed: int) -> RandomProgram:
    """Return the program that a list of numbers stands for."""
    return _Builder(seed).program(steps)


class _Builder:
    """Builds a program step by step; a step that does not fit its operands does nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = wf.Graph()
        self.weight = wf.tensor(self.floats((3, 3), np.float32), requires_grad=True)
        self.total = wf.tensor(self.floats((3,), np.float32))
        self.pool: list[Any] = []
        self.feeds: list[tuple[Value, np.ndarray]] = []

    def floats(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = self.rng.standard_normal(shape).astype(dtype)
        special = self.rng.random(shape) < 0.15
        with np.errstate(all="ignore"):
            return np.where(special, self.rng.choice(SPECIAL, shape).astype(dtype), array)

    def program(self, steps: Sequence[tuple[int, ...]]) -> RandomProgram:
        with self.graph:
            self._inputs()
            for step in steps:
                self._take(step)
            self._updates()
        outputs = [v for v in self.graph.results() if v.dtype != np.uint64]
        extra = [self.pool[steps[i][1] % len(self.pool)].value for i in range(0, len(steps), 9)]
        outputs = list(dict.fromkeys([*outputs, *extra]))
        return RandomProgram(self.graph, outputs, self.feeds, [self.weight, self.total])

    def _inputs(self) -> None:
        rng = self.rng
        self._feed("x", ("n", 3), self.floats((ROWS, 3), np.float32))
        self._feed("y", ("n", 1), self.floats((ROWS, 1), np.float32))
        self._feed("z", (3,), self.floats((3,), np.float64))
        self._feed("h", (3, 3), self.floats((3, 3), np.float16))
        self._feed("k", ("n", 3), rng.integers(-4, 5, (ROWS, 3)))
        self._feed("b", ("n", 3), rng.random((ROWS, 3)) < 0.5)
        self._feed("s", (), self.floats((), np.float32))
        self.pool += [self.weight, wf.tensor(self.floats((1, 3), np.float32)).detach()]
        self.pool[-2:] = [x * 1 for x in self.pool[-2:]]  # as symbols of the graph

    def _feed(self, name: str, shape: Any, array: np.ndarray) -> None:
        symbol = wf.placeholder(shape, array.dtype, name=name)
        self.pool.append(symbol)
        self.feeds.append((symbol.value, array))

    def _take(self, step: tuple[int, ...]) -> None:
        what, a, b, c, n = step
        recipe = RECIPES[what % len(RECIPES)]
        operands = [self.pool[-1 - (i * i) % len(self.pool)] for i in (a % 101, b % 101, c % 101)]
        try:
            made = recipe(n, *operands)
        except WeftError:
            return
        for symbol in made if isinstance(made, tuple) else (made,):
            if _is_small(symbol):
                self.pool.append(symbol)

    def _updates(self) -> None:
        floats = [s for s in self.pool if s.dtype == np.float32 and s.shape in ((3,), (3, 3))]
        if floats:
            target = self.total if floats[-1].shape == (3,) else self.weight
            self.pool.append(target.assign(target + floats[-1]))


def _is_small(symbol: Any) -> bool:
    count = 1
    for size in symbol.shape:
        count *= ROWS if isinstance(size, Dim) else size
    return count <= MAX_ELEMENTS and symbol.ndim <= 4


# -- what a step may do ----------------------------------------------------------------------------

Recipe = Callable[..., Any]


def _words(text: str) -> list[str]:
    return text.split()


UNARY = _words(
    "abs acos asinh atan cbrt ceil cos cosh deg2rad erf exp exp2 expm1 floor gelu hardswish "
    "hardtanh isfinite isinf isnan leaky_relu lgamma log log1p log2 log_sigmoid logical_not mish "
    "neg positive reciprocal relu relu6 round rsqrt sigmoid sign signbit silu sin sinh softplus "
    "softsign sqrt square stop_gradient tan tanh trunc nan_to_num elu ones_like zeros_like"
)
BINARY = _words(
    "add add add mul mul mul sub sub div maximum minimum fmax fmin equal less greater_equal "
    "logical_and logical_or logical_xor logaddexp atan2 hypot copysign xlogy heaviside not_equal"
)
NUMBERS = (0, 1, -1, 2, 0.5, 0.0, -0.0, 1.0, -1.0, 3.25, float("inf"), float("-inf"))
DTYPES = ("float32", "float64", "float16", "int64", "int32", "bool", "int8")


# Of 0.0 and -0.0 these give whichever NumPy's loop for this part of the array happens to take.
UNSURE = frozenset(_words("maximum minimum fmax fmin relu relu6 hardtanh elu"))


def one_zero(x: Any) -> Any:
    """Return x with every zero made 0.0."""
    return x + 0.0 if is_float(x.dtype) else x


def exact(x: Any) -> Any:
    """Return multiples of 1/8 between -8 and 8, whose sums every order of addition gets right."""
    if not is_float(x.dtype):
        return wf.clip(wf.cast(x, "int64"), -8, 8)
    finite = wf.nan_to_num(x, nan=0.0, posinf=8.0, neginf=-8.0)
    return wf.round(wf.clip(finite, -8.0, 8.0) * 8) / 8


def _unary(n: int, x: Any, *_: Any) -> Any:
    name = UNARY[n % len(UNARY)]
    if x.dtype == bool_ and name in ("square", "relu", "relu6"):
        x = wf.cast(x, "int64")
    made = getattr(wf, name)(x) if hasattr(wf, name) else x * 1
    return one_zero(made) if name in UNSURE else made


def _binary(n: int, x: Any, y: Any, *_: Any) -> Any:
    name = BINARY[n % len(BINARY)]
    made = getattr(wf, name)(x, y)
    return one_zero(made) if name in UNSURE else made


def _with_number(n: int, x: Any, *_: Any) -> Any:
    number = NUMBERS[n % len(NUMBERS)]
    kind = n // len(NUMBERS) % 7
    if not is_float(x.dtype) and (isinstance(number, float) or x.dtype == bool_):
        x = wf.cast(x, "float32")
    table: tuple[Callable[[], Any], ...] = (
        lambda: x * number,
        lambda: number * x,
        lambda: x + number,
        lambda: x - number,
        lambda: number - x,
        lambda: wf.cast(x, "float64") / number,
        lambda: wf.cast(x, "float64") ** abs(number),
    )
    return table[kind]()


def _choice(n: int, x: Any, y: Any, z: Any) -> Any:
    return wf.where(x > 0 if n % 3 else wf.tensor([True, True, n % 2 > 0]), y, z)


def _move(n: int, x: Any, y: Any, *_: Any) -> Any:
    table: tuple[Callable[[], Any], ...] = (
        lambda: wf.reshape(x, (-1,))[:3],
        lambda: wf.reshape(x, (*x.shape, 1)),
        lambda: wf.reshape(wf.reshape(x, (-1, 1)), x.shape),
        lambda: wf.permute(x, tuple(range(x.ndim))[::-1]),
        lambda: wf.permute(wf.permute(x, (*range(1, x.ndim), 0)), (*range(1, x.ndim), 0)),
        lambda: wf.unsqueeze(x, 0),
        lambda: wf.squeeze(wf.unsqueeze(x, 1), 1),
        lambda: wf.broadcast_to(x, (3, *x.shape)),
        lambda: wf.broadcast_to(x, x.shape),
        lambda: wf.flip(x, 0),
        lambda: wf.flip(wf.flip(x, 0), 0),
        lambda: x[:],
        lambda: x[..., :1],
        lambda: x[0],
        lambda: x[::-1, ...],
        lambda: wf.concat([x], 0),
        lambda: wf.concat([x, x, x], 0)[::3],
        lambda: wf.stack([x, x, x], -1),
        lambda: wf.pad(x, 0),
        lambda: wf.tril(x),
        lambda: wf.roll(x, 1, 0),
        lambda: x[wf.tensor([0, 0, 0])],
        lambda: wf.split(x, 1, axis=0)[0],
    )
    return table[n % len(table)]()


def _reduce(n: int, x: Any, *_: Any) -> Any:
    axis: Any = (None, 0, -1, ())[n // 11 % 4]
    keepdims = n // 44 % 2 > 0
    table: tuple[Callable[..., Any], ...] = (
        lambda **k: wf.sum(exact(x), **k),
        lambda **k: wf.mean(exact(x), **k),
        lambda **k: one_zero(wf.max(x, **k)),
        lambda **k: one_zero(wf.min(x, **k)),
        lambda **k: wf.any(x, **k),
        lambda **k: wf.all(wf.isfinite(wf.cast(x, "float32")), **k),
        lambda **k: wf.count_nonzero(x, **k),
        lambda **k: wf.prod(wf.sign(exact(x)), **k),
    )
    return table[n % len(table)](axis=axis, keepdims=keepdims)


def _along(n: int, x: Any, *_: Any) -> Any:
    if x.ndim == 0 or x.shape[-1] not in (1, 2, 3):  # longer ones are summed in several orders
        return x
    table = (wf.softmax, lambda v: wf.log(wf.softmax(v)), lambda v: wf.argmax(v, axis=-1), wf.sort)
    return table[n % len(table)](x)


def _matmul(n: int, x: Any, y: Any, *_: Any) -> Any:
    dtype = ("float32", "float64")[n % 2]
    if x.shape[-1:] != y.shape[-2:][:1]:  # an unknown size may turn out to be 1 in a run
        return x
    return wf.matmul(exact(wf.cast(x, dtype)), exact(wf.cast(y, dtype)))


def _cast(n: int, x: Any, *_: Any) -> Any:
    dtype = DTYPES[n % len(DTYPES)]
    source = exact(x) if dtype.startswith("int") else x  # what does not fit is unspecified
    made = wf.cast(source, dtype)
    return wf.cast(made, x.dtype) if n // len(DTYPES) % 3 == 0 and dtype[0] != "i" else made


def _constant(n: int, *_: Any) -> Any:
    table: tuple[Callable[[], Any], ...] = (
        lambda: wf.tensor([1.0, -0.0, 2.5]) * wf.ones(3),
        lambda: wf.zeros(3) - 0.0,
        lambda: wf.arange(3) * 2 + 1,
        lambda: wf.full((3, 3), 0.5).sum(axis=0),
        lambda: wf.exp(wf.tensor([[0.0], [1.0], [-1.0]])),
        lambda: wf.eye(3),
    )
    return table[n % len(table)]()


def _draw(n: int, x: Any, *_: Any) -> Any:
    table: tuple[Callable[[], Any], ...] = (
        lambda: wf.rand(3),
        lambda: wf.randn(3, 3),
        lambda: wf.rand_like(x),
        lambda: F.dropout(wf.cast(x, "float32"), 0.5),
        lambda: wf.randint(0, 5, (3,)),
    )
    return table[n % len(table)]()


def _selected(n: int, x: Any, *_: Any) -> Any:
    """Use sizes that only a run knows."""
    x = wf.unsqueeze(x, 0) if x.ndim == 0 else x
    table: tuple[Callable[[], Any], ...] = (
        lambda: wf.max(wf.abs(exact(x))[x > 0].sum()),
        lambda: wf.reshape(wf.reshape(x, (-1,))[wf.reshape(x, (-1,)) > 0], (1, -1)).any(),
        lambda: x * x.shape[0],
        lambda: exact(x).sum() / x.shape[0],
        lambda: wf.ones(x.shape),
    )
    return table[n % len(table)]()


def _control(n: int, x: Any, y: Any, *_: Any) -> Any:
    x, y = wf.cast(x, "float32"), wf.cast(y, "float32")
    limit = float(n % 3)

    def step(carry: Any) -> Any:
        i, v = carry
        return i + 1, wf.tanh(v * 1.0) + wf.log(1 + wf.exp(v)) * limit

    table: tuple[Callable[[], Any], ...] = (
        lambda: wf.cond(
            wf.any(x > 0), lambda v: v * 1.0 + y * 0.5, lambda v: wf.neg(-v) + y, x + y
        ),
        lambda: wf.while_loop(lambda carry: carry[0] < limit, step, (wf.tensor(0.0), x))[1],
        lambda: wf.scan(lambda c, row: (c * 1.0 + row, c - 0.0), x[0] * 0, x),
        lambda: wf.cond(wf.all(x < 9), lambda v: v + wf.rand_like(v), lambda v: v * 1.0, x),
    )
    return tuple(tree_leaves(table[n % len(table)]()))


RECIPES: tuple[Recipe, ...] = (
    *[_unary] * 8,
    *[_binary] * 8,
    *[_with_number] * 5,
    *[_move] * 6,
    *[_reduce] * 3,
    _along,
    _choice,
    _choice,
    _matmul,
    *[_cast] * 3,
    _constant,
    _draw,
    _selected,
    _control,
)
