"""A composite as machine code: a program for its results, and one for its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..autodiff.reverse import gradients
from ..core.dtype import Array, is_float
from ..core.errors import AllocationError, WeftError
from ..core.large import Forms
from ..core.modes import enable_grad
from ..core.op import F
from ..core.tensor import Tensor, wrap_with_node
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.symbol import Symbol
from .array_program import ArrayProgram, in_order
from .compilation import compile_fixed
from .composites import CallShape
from .residuals import find_residuals


class Programs(NamedTuple):
    """The programs of a composite, None where there is none.

    saved   which of the arrays that the first one makes the second one takes, after the operands
    """

    forward: ArrayProgram | None = None
    pull_back: ArrayProgram | None = None
    saved: Sequence[int] = ()


class CompositeKernel:
    """A composite's results on large arrays, and its gradient; the `op` of its tape nodes.

    results   how many it has; None if it is one that is no tuple
    """

    saves = None  # a node saves the operands as they are, and what the program left

    def __init__(
        self,
        name: str,
        recompute: Callable[..., Any],
        programs: Programs,
        tracked: Sequence[bool],
        results: int | None,
    ) -> None:
        self.name = name
        self.recompute = recompute
        self.forward, self.pull_back, self.saved = programs
        self.tracked = tracked
        self.results = results

    def __call__(self, *given: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]] | None:
        """Return the results and what to save, or None for arrays that the code does not take."""
        assert self.forward is not None
        found, arrays = _run(self.forward, given)
        if found is None:
            return None
        return found[: self.results or 1], (*arrays, *[found[i] for i in self.saved])

    def backward(self, node: Any, saved: Sequence[Array], g: Any) -> list[Array | None]:
        """Return the gradients of the operands on raw arrays."""
        assert self.pull_back is not None
        seeds = self._seeds(g)
        if self.results is not None:  # zeros for what nobody took are one number, spread out
            seeds = [*map(in_order, seeds)]
        found, _ = _run(self.pull_back, (*saved, *seeds))
        if found is None:  # the operands were taken before, so that only memory can be missing
            raise AllocationError(f"{self.name}: not enough memory for its gradient")
        rest = iter(found)
        return [next(rest) if wanted else None for wanted in self.tracked]

    def linked(self, node: Any, saved: Sequence[Array], g: Any) -> list[Tensor | None]:
        """Return the gradients of the operands as tensors, to be differentiated again."""
        with enable_grad():
            # A node of its own for each operand, also where two are the same tensor.
            operands = [
                F.positive(wrap_with_node(x, parent))
                for x, parent in zip(saved, node.parents, strict=False)
            ]
            outs = _floats(_results(self.recompute(operands)))
            wanted = [x for x, tracked in zip(operands, self.tracked, strict=True) if tracked]
            found = iter(gradients(outs, wanted, self._seeds(g), create_graph=True))
        return [next(found) if tracked else None for tracked in self.tracked]

    def _seeds(self, g: Any) -> list[Any]:
        return [g] if self.results is None else _floats(g)


def _run(
    program: ArrayProgram, arrays: tuple[Array, ...]
) -> tuple[tuple[Array, ...] | None, tuple[Array, ...]]:
    """Return the results of a program, if it takes the arrays, and the arrays that it took.

    Code looks at what it is given: that arrays are not in order is found by its refusal, and from
    then on looked for. A copy costs less than operators one by one.
    """
    if not program.puts_in_order:
        found = program.run(*arrays)
        if found is not None:
            return found, arrays
        program.puts_in_order = True
    arrays = tuple(map(in_order, arrays))
    return program.run(*arrays), arrays


def compile_composite(forms: Forms, shape: CallShape) -> Any:
    """Return the machine code for a call of a composite, or None if it has none."""
    graph = Graph()
    with graph:
        feeds = [placeholder(*kind) for kind in (*shape.types, *shape.looked_up)]
        operands = feeds[: len(shape.types)]
        if shape.looked_up:
            operands[0] = F.embedding(*feeds[len(operands) :])
        made = _traced(forms.for_programs, shape, operands)
        if made is None:
            return None
        outs = _results(made)
        wanted = [x for x, needed in zip(operands, shape.tracked, strict=True) if needed]
        programs = _programs(graph, outs, feeds, wanted)
    if programs.forward is None or (any(shape.tracked) and programs.pull_back is None):
        return None
    results = len(outs) if isinstance(made, tuple) else None
    recompute = lambda tensors: shape.call(forms.by_operators, tensors)  # noqa: E731  (one line of a call)
    return CompositeKernel(forms.name, recompute, programs, shape.tracked, results)


def _programs(
    graph: Graph, outs: Sequence[Symbol], feeds: Sequence[Symbol], wanted: Sequence[Symbol]
) -> Programs:
    """Return the program for the results, and that for the gradients of wanted operands."""
    operands, results = [x.value for x in feeds], [y.value for y in outs]
    if not wanted:
        return Programs(_program(graph, results, operands))
    seeds = [placeholder(y.shape, y.dtype) for y in _floats(outs)]
    found = gradients(_floats(outs), wanted, seeds)
    if any(g is None for g in found):
        return Programs()
    pulled, given = [g.value for g in found], [s.value for s in seeds]
    saved = find_residuals(graph, operands, results, given, pulled)
    left = list(dict.fromkeys([*results, *saved]))
    forward = _program(graph, left, operands)
    pull_back = _program(graph, pulled, [*operands, *saved, *given])
    return Programs(forward, pull_back, [left.index(x) for x in saved])


def _program(graph: Graph, fetches: Any, feeds: Any) -> ArrayProgram | None:
    executable = compile_fixed(graph, fetches, feeds)
    return None if executable is None else ArrayProgram(executable)


def _traced(fn: Callable[..., Any], shape: CallShape, feeds: Sequence[Symbol]) -> Any:
    """Return the symbols that a call gives, or None: a bad call fails in eager mode too."""
    try:
        made = shape.call(fn, feeds)
    except WeftError:
        return None
    return made if all(isinstance(y, Symbol) for y in _results(made)) else None


def _results(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def _floats(values: Sequence[Any]) -> list[Any]:
    """Return the values that have gradients."""
    return [x for x in values if is_float(x.dtype)]
