"""What results of a compiled call depend on, for backward to go on outside of it.

On the tape a compiled call is one operation. Its gradient is a program of its own, over what the
call computed on the way: the graph is extended by the gradients of the results, and cut where the
call ends. A second derivative runs the graph again, operation by operation, on the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.dispatch import run
from ..core.errors import GradientError, Site
from ..core.modes import enable_grad, is_grad_enabled
from ..core.row_sparse import RowSparse, dense, gradient_parts
from ..core.shape import Shape
from ..core.tape import FREED, FanNode, Leaf, make_node, output_node
from ..core.tensor import PLAIN, Tensor, placed_like, wrap, wrap_with_node
from ..graph.call import ProgramCall
from ..graph.graph import Graph
from ..graph.node import Node, Value, resolve_attrs
from ..graph.run import Program, Sizes, bind_sizes
from ..graph.special import CONSTANT, SOURCES
from ..graph.symbol import Symbol, make_symbol
from .evaluation import Array
from .recorder import Recorder

Getter = Callable[[Sequence[Any]], Any]


class CallGradient(NamedTuple):
    """The gradients of the results of a call, in the graph that it is recorded in.

    outputs   the results that eager mode would have recorded
    seeds     what stands for their gradients
    leaves    the tensors that gradients go to
    places    the values at which the call read those
    grads     the gradients of those: a value each, or the rows and the values of one by rows
    shapes    of each leaf whose gradient is row-sparse, None for the others
    """

    outputs: list[Value]
    seeds: list[Value]
    leaves: list[Tensor]
    places: list[Value]
    grads: list[Value]
    shapes: list[Shape | None]

    def values(self) -> list[Value]:
        """Return the values of the graph that this needs."""
        return [*self.outputs, *self.seeds, *self.places, *self.grads]

    def moved(self, find: Callable[[Value], Value]) -> CallGradient:
        """Return the same in a graph that was made from this one."""
        outputs, seeds, places, grads = (
            [find(value) for value in values]
            for values in (self.outputs, self.seeds, self.places, self.grads)
        )
        return CallGradient(outputs, seeds, self.leaves, places, grads, self.shapes)


def call_gradient(recorder: Recorder, outputs: Sequence[Value]) -> CallGradient:
    """Extend a recording by the gradients of results of its function."""
    seeds = [recorder.parameter(y.type, "seed", y.node.device) for y in outputs]
    recorder.seeds.update(seeds)
    leaves = [leaf for leaf in recorder.leaf_tensors() if not isinstance(leaf, Symbol)]
    symbols = [make_symbol(recorder.graph, value) for value in outputs]
    given = [make_symbol(recorder.graph, value) for value in seeds]
    found = recorder.gradients_of(symbols, leaves, given, record=False, rows=True)
    pairs = [(leaf, g) for leaf, g in zip(leaves, found, strict=True) if g is not None]
    places = [recorder.first_value((id(leaf), "")) for leaf, _ in pairs]
    return CallGradient(
        list(outputs),
        seeds,
        [leaf for leaf, _ in pairs],
        [value for value in places if value is not None],
        [part.value for _, g in pairs for part in gradient_parts(g)],
        [g.shape if isinstance(g, RowSparse) else None for _, g in pairs],
    )


class CallHistory:
    """How gradients go from the results of a compiled call to the leaves that it read.

    sources    values that the call was given; a second derivative may need any of them
    saved      values that the call computed, and the gradient needs
    """

    def __init__(self, graph: Graph, gradient: CallGradient, found: Sequence[Value] = ()) -> None:
        """Extend a graph; `found` are results that came between its programs (see split.py)."""
        self.graph = graph
        self._found = set(found)
        self.outputs, self._seeds, self.leaves, self._places, self.grads, self._shapes = gradient
        self.sources, self.saved = self._boundary(self._seeds)
        self.read_by_backward: Any = None  # tests of what a backward of the user's read
        self._call: ProgramCall | None = None

    def _boundary(self, seeds: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Return what the gradient takes from the call: what that was given, and what it made."""
        later = set(seeds)
        taken: dict[Value, None] = {}
        for node in self.graph.ancestors(self.grads):
            if not later.isdisjoint(node.inputs):
                later.update(node.outputs)
                taken |= dict.fromkeys(x for x in node.inputs if x is not None and x not in later)
        taken |= dict.fromkeys(g for g in self.grads if g not in later)
        behind = self.graph.ancestors([*self.outputs, *taken])
        sources = [n.outputs[0] for n in behind if n.op in SOURCES and n.op is not CONSTANT]
        found = [value for value in sources if value in self._found]
        made = [value for value in taken if value.node.op not in SOURCES]
        return [value for value in sources if value not in self._found], [*found, *made]

    def attach(
        self, tensors: Sequence[Tensor], parents: tuple[Any, ...], kept: Sequence[Array]
    ) -> None:
        """Put the results of a call on the tape; `kept` are its sources and what it saved."""
        node = make_node(_CALL, parents, (self, kept), outputs=tensors)
        assert isinstance(node, FanNode)
        for i, tensor in enumerate(tensors):
            tensor._node = output_node(node, i)

    def pull_back(self, kept: Sequence[Array], seeds: Sequence[Array]) -> list[Any]:
        """Return the gradients of the leaves, by a compiled program."""
        self._check_python()
        if self._call is None:
            feeds = [*self._seeds, *self.sources, *self.saved]
            self._call = ProgramCall(Program(self.graph, self.grads, feeds), "backward")
        return self._joined(self._call.run(self._call.arrays([*seeds, *kept])))

    def _check_python(self) -> None:
        if self.read_by_backward is not None:
            self.read_by_backward.check()

    def _joined(self, parts: Iterable[Any]) -> list[Any]:
        """Return the gradients of the leaves, those by rows made of their parts."""
        rest = iter(parts)
        return [
            next(rest) if shape is None else RowSparse(next(rest), next(rest), shape)
            for shape in self._shapes
        ]

    def pull_back_linked(
        self, parents: Sequence[Any], kept: Sequence[Array], seeds: Sequence[Tensor]
    ) -> list[Any]:
        """Return the gradients of the leaves as tensors that can be differentiated again."""
        self._check_python()
        known: dict[Value, Tensor] = dict(zip(self._seeds, seeds, strict=True))
        found = [value for value in self.saved if value in self._found]
        for value, array in zip([*self.sources, *found], kept, strict=False):
            known[value] = wrap(array)
        for value, parent in zip(self._places, parents, strict=True):
            known[value] = wrap_with_node(known[value]._value, parent)
        sizes: Sizes = {}
        for value, tensor in known.items():
            bind_sizes(value, tensor.shape, sizes)
        with enable_grad():
            for node in self.graph.ancestors(self.grads, known):
                _run_again(node, known, sizes)
        return self._joined(known[g] for g in self.grads)


class CompiledCall:
    """The operation that a compiled call is on the tape."""

    name = "jit"

    def backward(self, node: Any, saved: Any, gs: Sequence[Array]) -> Sequence[Any]:
        """Return the gradients of what the call read."""
        history, kept = saved
        found = zip(node.parents, history.pull_back(kept, gs), strict=True)
        return [g if parent.__class__ is Leaf else dense(g) for parent, g in found]

    def linked(self, node: Any, saved: Any, gs: Sequence[Tensor]) -> Sequence[Any]:
        """Return these gradients as tensors that can be differentiated again, if they are to be.

        Beside tensors on devices all gradients are tensors; then the program may run on its device.
        """
        history, kept = saved
        if not is_grad_enabled() and all(type(g) in PLAIN for g in gs):
            found = history.pull_back(kept, [g._value for g in gs])
            return [placed_like(gs[0], wrap(dense(g))) for g in found]
        return [dense(g) for g in history.pull_back_linked(node.parents, kept, gs)]


_CALL = CompiledCall()


def _run_again(node: Node, known: dict[Value, Tensor], sizes: Sizes) -> None:
    """Run a node on tensors, which the tape records."""
    if node.op is CONSTANT:
        made: Any = wrap(node.attrs[0].array)
    elif node.op.kind in ("graph", "control"):
        raise GradientError(
            f"jit: no second derivative goes through {node.op.name} of a compiled call; take both "
            "derivatives inside the jitted function"
        )
    else:
        inputs = tuple(None if x is None else known[x] for x in node.inputs)
        made = run(node.op, inputs, resolve_attrs(node.attrs, sizes))
    results = (made,) if node.op.outputs == 1 else made
    known.update(zip(node.outputs, results, strict=True))


def mark_freed(tensor: Tensor, node: Node) -> None:
    """Put a result on the tape whose history the call itself has used up."""
    tensor._node = make_node(node.op, (None,), FREED, site=site_of(node))


def site_of(node: Node) -> Site:
    """Return the line that a node is from, if that is known as the tape knows it."""
    return None if isinstance(node.site, str) else node.site
