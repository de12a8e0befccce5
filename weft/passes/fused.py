"""The fused operation: a subgraph of elementwise operators that runs block by block.

    D = B * A + 1    becomes one node; no temporary is larger than a block

For small arrays the kernels simply run one after another. Large ones are cut into blocks such that
all operands and temporaries of a block stay in the cache; temporaries are written into the same few
buffers for every block, and in place where that can be. The kernels are those of the operators, so
that results are equal bit by bit; so is the layout of the result in memory, which decides how a
later sum is rounded.

One thing NumPy leaves open: whether fmax of 0.0 and -0.0 is one or the other depends on the loop
that handles the element, a vector loop or the one for what remains. Blocks are a multiple of VECTOR
elements long, so that an element meets the same loop as in the whole array, except in blocks of a
few long rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from ..core.dim import Dim
from ..core.dispatch import ERRORS
from ..core.errors import GraphError
from ..core.shape import TensorType, size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value, attr_items, resolve_attrs
from ..graph.run import run_function
from ..graph.special import PLACEHOLDER, NodeOp

Array = np.ndarray[Any, Any]

# Both measured on chains of 2 to 11 operators. What a kernel call costs beside its work asks for
# large blocks; the second-level cache matters less than that, the last-level one more.
SMALL = 1 << 15  # elements up to which the kernels just run one after another
CACHE = 1 << 21  # bytes that the operands and temporaries of a block may take together
VECTOR = 256  # elements: a multiple of what any vector loop takes at once


# -- the operation ---------------------------------------------------------------------------------


class FusedOp(NodeOp):
    """An operation with a subgraph of elementwise operators, of one result."""

    kind = "fused"
    variadic = True
    differentiable = True  # so that asking for a derivative reaches the error below

    def __init__(self) -> None:
        super().__init__("fused", ("operands",), ("body",))
        self.vjps = {"operands": _refuse_derivative}

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> TensorType:
        """Return the type of the result."""
        (output,) = attrs[0].outputs
        kind: TensorType = output.type
        return kind

    def kernel(self, operands: Sequence[Array], body: Graph, *, sizes: Any = None) -> Array:
        """Run the subgraph on arrays."""
        plan = _plans.get(body)
        if plan is None:
            plan = _plans[body] = Plan(body)
        try:
            return plan.run(operands, sizes)
        except ERRORS:
            run_function(body, operands, {} if sizes is None else dict(sizes))  # names the node
            raise

    def pull_back_node(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be differentiated in reverse."""
        _refuse_derivative()

    def push_forward_node(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to be differentiated forwards."""
        _refuse_derivative()

    def __repr__(self) -> str:
        return "<op fused>"


def _refuse_derivative(*args: Any, **kwargs: Any) -> NoReturn:
    raise GraphError(
        "fused: a fused node has no derivative; take gradients before the graph is optimised, or "
        "undo the fusion with weft.passes.unfuse"
    )


FUSED = FusedOp()
_plans: WeakKeyDictionary[Graph, Plan] = WeakKeyDictionary()


# -- how it runs -----------------------------------------------------------------------------------


def _cast_into(out: Array, x: Array, dtype: Any) -> None:
    np.copyto(out, x, casting="unsafe")


def _relu_into(out: Array, x: Array) -> None:
    np.maximum(x, 0, out=out)


def _same_into(out: Array, x: Array) -> None:
    np.copyto(out, x)


# Kernels that are no ufuncs, as functions that write into an array and make no temporary.
WRITERS: dict[str, Callable[..., None]] = {
    "cast": _cast_into,
    "relu": _relu_into,
    "positive": _same_into,
    "stop_gradient": _same_into,
}


class Step(NamedTuple):
    """One operator of the subgraph.

    takes   registers of its operands
    gives   the register of its result
    sized   whether its attributes hold unknown sizes
    """

    kernel: Callable[..., Any]
    into: Callable[..., Any] | None
    takes: tuple[int, ...]
    gives: int
    attrs: tuple[Any, ...]
    sized: bool


class Plan:
    """The steps of a subgraph, with a register for each operand and temporary.

    A register is taken again as soon as its value is not needed: by the very step that reads it
    last, if that can write in place. The result has a register of its own among the temporaries,
    which the last step need not copy from.
    """

    def __init__(self, body: Graph) -> None:
        nodes = [node for node in body.nodes if node.op is not PLACEHOLDER]
        self.count = len(body.inputs)
        self.dtypes: list[Any] = []  # of the temporaries
        self.steps: list[Step] = []
        self.is_plain = all(isinstance(node.op.kernel, np.ufunc) for node in nodes)
        self._place(body, nodes)
        self.dtype = body.outputs[0].dtype
        widths = [value.dtype.itemsize for value in body.inputs if value.shape != ()]
        widths += [dtype.itemsize for dtype in self.dtypes]
        self.block = max(SMALL, CACHE // max(1, sum(widths)))

    def _place(self, body: Graph, nodes: list[Node]) -> None:
        """Give every value a register: temporaries the first free one of their dtype."""
        register = {value: i for i, value in enumerate(body.inputs)}
        last = _last_uses(nodes)
        free: dict[Any, list[int]] = {}
        for i, node in enumerate(nodes):
            taken = {value for value in node.inputs if value is not None}
            ended = [v for v in taken if v.node.op is not PLACEHOLDER and last[v] == i]
            if _writes_in_place(node):
                _release(ended, register, free)
            (made,) = node.outputs
            register[made] = self._register(made.dtype, free)
            self.steps.append(_step(node, register))
            if not _writes_in_place(node):
                _release(ended, register, free)

    def _register(self, dtype: Any, free: dict[Any, list[int]]) -> int:
        if free.get(dtype):
            return free[dtype].pop()
        self.dtypes.append(dtype)
        return self.count + len(self.dtypes) - 1

    # -- running -----------------------------------------------------------------------------------

    def run(self, operands: Sequence[Array], sizes: Any) -> Array:
        """Return the result for arrays."""
        shape = _common_shape(operands)
        axes = None
        if size_of(shape) > SMALL:
            axes = common_order(operands, len(shape), self.is_plain)
        if axes is None:
            return self._run_plainly(operands, sizes)
        if axes == tuple(range(len(shape))):
            return self._run_blocks(operands, shape, sizes)
        moved = [_padded(x, len(shape)).transpose(axes) if x.ndim else x for x in operands]
        made = self._run_blocks(moved, tuple(shape[i] for i in axes), sizes)
        return made.transpose(np.argsort(axes))

    def _run_plainly(self, operands: Sequence[Array], sizes: Any) -> Array:
        """Run the steps on whole arrays, in the way of an unfused graph."""
        values: list[Any] = [*operands, *self.dtypes]
        made: Any = None
        for kernel, _, takes, gives, attrs, sized in self.steps:
            found = resolve_attrs(attrs, sizes) if sized else attrs
            made = kernel(*[values[i] for i in takes], *found)
            values[gives] = made = made if made.__class__ is np.ndarray else np.asarray(made)
        result: Array = made
        return result

    def _run_blocks(self, operands: Sequence[Array], shape: tuple[int, ...], sizes: Any) -> Array:
        result = np.empty(shape, self.dtype)
        views, out = _flattened(operands, result)
        steps = [_with_sizes(step, sizes) for step in self.steps]
        final = steps[-1].gives - self.count  # its buffer is the result itself
        buffers: list[Array] = []
        filled: tuple[int, ...] | None = None  # the shape of the buffers: that of a tile
        for tile in tiles(out.shape, self.block):
            target = out[tile]
            if target.shape != filled:
                filled = target.shape
                buffers = [np.empty(filled, dtype) for dtype in self.dtypes]
            buffers[final] = target
            _run_tile(steps, [*(_part(x, tile, out.ndim) for x in views), *buffers], target)
        return result


def _run_tile(steps: list[Step], values: list[Array], target: Array) -> None:
    """Run the steps on one tile; `values` holds the operands and the buffers for temporaries."""
    last = len(steps) - 1
    for i, (kernel, into, takes, gives, attrs, _) in enumerate(steps):
        taken = [values[j] for j in takes]
        out = target if i == last else values[gives]
        if kernel.__class__ is np.ufunc:
            kernel(*taken, out=out)
        elif into is not None:
            into(out, *taken, *attrs)
        else:
            made = kernel(*taken, *attrs)
            if i < last and made.flags.owndata and not any(made is x for x in taken):
                values[gives] = made
            else:
                np.copyto(out, made)


def _with_sizes(step: Step, sizes: Any) -> Step:
    return step._replace(attrs=resolve_attrs(step.attrs, sizes)) if step.sized else step


def _writes_in_place(node: Node) -> bool:
    return isinstance(node.op.kernel, np.ufunc) or node.op.name in WRITERS


def _release(ended: list[Value], register: dict[Any, int], free: dict[Any, list[int]]) -> None:
    for value in ended:
        free.setdefault(value.dtype, []).append(register[value])


def _step(node: Node, register: dict[Any, int]) -> Step:
    return Step(
        node.op.kernel,
        WRITERS.get(node.op.name),
        tuple(register[x] for x in node.inputs),
        register[node.outputs[0]],
        node.attrs,
        any(isinstance(item, Dim) for item in attr_items(node.attrs)),
    )


def _last_uses(nodes: list[Node]) -> dict[Value, int]:
    """Return the step that needs each value last."""
    return {x: i for i, node in enumerate(nodes) for x in node.inputs if x is not None}


def _common_shape(operands: Sequence[Array]) -> tuple[int, ...]:
    """Return the shape that all broadcast to; NumPy's own function is slow where all is simple."""
    shapes = {x.shape for x in operands}
    shapes.discard(())
    if len(shapes) <= 1:
        return shapes.pop() if shapes else ()
    return np.broadcast_shapes(*shapes)


# -- cutting arrays into blocks --------------------------------------------------------------------


def common_order(operands: Sequence[Array], ndim: int, any_order: bool) -> tuple[int, ...] | None:
    """Return the order of axes, outermost first, in which all operands lie in memory.

    NumPy's ufuncs lay their results out so. None if there is no such order, or if it is not that of
    the axes and not `any_order`: kernels that are no ufuncs may decide otherwise.
    """
    plain = tuple(range(ndim))
    if all(x.flags.c_contiguous or _descends(x, range(x.ndim)) for x in operands):
        return plain
    if not any_order:
        return None
    full = next((x for x in operands if x.ndim == ndim and all(x.strides)), None)
    if full is None:
        return None
    axes = tuple(sorted(plain, key=lambda axis: -full.strides[axis]))
    padded = [_padded(x, ndim) for x in operands]
    return axes if all(_descends(x, axes) for x in padded) else None


def _descends(x: Array, axes: Sequence[int]) -> bool:
    """Tell whether the strides fall along axes; those along which nothing moves do not count."""
    strides = [x.strides[i] for i in axes if x.shape[i] != 1 and x.strides[i] != 0]
    return all(s > 0 for s in strides) and all(a >= b for a, b in pairwise(strides))


def _padded(x: Array, ndim: int) -> Array:
    return x[(None,) * (ndim - x.ndim)]


def _flattened(operands: Sequence[Array], result: Array) -> tuple[Sequence[Array], Array]:
    """Return all arrays as rows if each is contiguous and whole, or a single number."""
    whole = result.shape
    if not all(x.ndim == 0 or (x.shape == whole and x.flags.c_contiguous) for x in operands):
        return operands, result
    return [x if x.ndim == 0 else x.reshape(-1) for x in operands], result.reshape(-1)


def tiles(shape: tuple[int, ...], block: int) -> Iterator[tuple[Any, ...]]:
    """Yield indices that cut a shape into contiguous parts of about `block` elements."""
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] < block:
        inner *= shape[axis]
        axis -= 1
    rows = max(1, block // inner)
    step = VECTOR // math.gcd(VECTOR, inner)
    rows -= rows % step if rows > step else 0
    for lead in product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], rows):
            yield *lead, slice(start, start + rows)


def _part(x: Array, tile: tuple[Any, ...], ndim: int) -> Array:
    """Return the part of an operand that belongs to a tile of the result."""
    missing = ndim - x.ndim
    if x.ndim == 0 or missing >= len(tile):
        return x
    index = tuple(
        i if size != 1 else 0 if i.__class__ is int else slice(None)
        for i, size in zip(tile[missing:], x.shape, strict=False)
    )
    return x[index] if index else x
