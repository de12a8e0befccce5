"""Control flow: cond, case, while_loop, and the order of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import F
from ..graph.control.branch import cond as weft_cond
from ..graph.control.loop import while_loop as weft_loop
from .bodies import Body, ControlOperation, as_output, merged
from .environment import is_known
from .errors import InvalidArgumentError, at_node
from .graph import Graph, Operation, get_default_graph, operation_of
from .math_ops import identity, logical_and
from .nest import assert_same_structure, flatten, pack_sequence_as
from .recording import Tensor, constant, convert_to_tensor, given, graph_of
from .shapes import TensorShape
from .tensor_array import TensorArray, as_loop_values, settled

# -- order -----------------------------------------------------------------------------------------


class NoOperation(Operation):
    """Does nothing itself; what it depends on runs."""

    def __init__(self, graph: Graph, name: str) -> None:
        super().__init__(graph, "NoOp", name=name, differentiable=False)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return nothing."""
        return ()

    @property
    def once(self) -> bool:
        """Tell whether all that it runs initialises variables."""
        return bool(self.control_inputs) and all(
            getattr(op, "once", False) for op in self.control_inputs
        )


def no_op(name: str | None = None) -> Operation:
    """Return an operation that does nothing."""
    return NoOperation(get_default_graph(), name or "NoOp")


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """Return an operation that runs others."""
    operations = [operation_of(x) for x in flatten(list(inputs)) if x is not None]
    graph = operations[0].graph if operations else get_default_graph()
    with graph.control_dependencies(operations):
        return NoOperation(graph, kwargs.get("name") or "group_deps")


def tuple_(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """Return tensors that are there when all of them are."""
    whole = [operation_of(t) for t in tensors if t is not None] + list(control_inputs or ())
    with get_default_graph().control_dependencies(whole):
        return [None if t is None else identity(t) for t in tensors]


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Tensor:
    """Return a tensor that is there when operations have run."""
    with get_default_graph().control_dependencies(dependencies):
        return identity(output_tensor, name)


def control_dependencies(control_inputs: Any) -> Any:
    """Return a context in which operations run after others."""
    return get_default_graph().control_dependencies(control_inputs)


# -- branches --------------------------------------------------------------------------------------


class Cond(ControlOperation):
    """Runs one of two bodies."""

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Build both branches, or the one of a condition that is known."""
        known = env.value(self.inputs[0])
        if is_known(known):
            return self._taken(env, self.bodies[0 if known else 1])
        branches = [self._branch(env, body) for body in self.bodies]
        made = weft_cond(values[0], *branches)
        outputs = made[: len(made) - len(self.writes)]
        for variable, value in zip(self.writes, made[len(outputs) :], strict=True):
            env.write(variable, value)
        return outputs

    def _branch(self, env: Any, body: Body) -> Callable[[], Any]:
        def run() -> Any:
            child = body.evaluate(env, ())
            return tuple(child.symbol(t) for t in body.outputs) + tuple(
                child.read(variable) for variable in self.writes
            )

        return run

    def _taken(self, env: Any, body: Body) -> Any:
        child = body.evaluate(env, ())
        for variable, value in child.written.items():
            env.write(variable, value)
        return tuple(child.value(t) for t in body.outputs)


def cond(
    pred: Any,
    true_fn: Any = None,
    false_fn: Any = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Any = None,
    fn2: Any = None,
) -> Any:
    """Return what one of two functions returns, by a condition that is known when it runs."""
    functions = (fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn)
    for function, what in zip(functions, ("true_fn", "false_fn"), strict=True):
        if not callable(function):
            raise TypeError(f"{what} must be callable.")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    flag = convert_to_tensor(pred)
    if flag.dtype.name != "bool":
        raise TypeError(f"pred must be a boolean tensor. Received: {flag}")
    graph = graph_of([flag])
    with graph.name_scope(name or "cond"):
        bodies, nests = [Body(graph), Body(graph)], []
        for body, function in zip(bodies, functions, strict=True):
            with graph.building(body), graph.control_dependencies(None):
                nest = function()
                nests.append(nest)
                body.outputs = [as_output(x) for x in flatten(nest)] if nest is not None else []
        _check_branches(bodies)
        operation = Cond(graph, "Cond", [flag], bodies, "Merge")
    for a, b in zip(bodies[0].outputs, bodies[1].outputs, strict=True):
        given(operation, merged(a.shape, b.shape), a.dtype)
    if nests[0] is None:
        return operation
    packed = pack_sequence_as(nests[0], list(operation.outputs))
    single = isinstance(packed, (list, tuple)) and len(packed) == 1 and not strict
    return packed[0] if single else packed


def _check_branches(bodies: Sequence[Body]) -> None:
    left, right = bodies[0].outputs, bodies[1].outputs
    if len(left) != len(right):
        raise ValueError(
            "Incompatible return values of true_fn and false_fn: The two structures don't have "
            "the "
            f"same number of elements: {len(left)} and {len(right)}"
        )
    for a, b in zip(left, right, strict=True):
        if a.dtype != b.dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {a.dtype.name}, "
                f"{b.dtype.name}"
            )


def case(
    pred_fn_pairs: Any,
    default: Any = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = "case",
) -> Any:
    """Return what the function of the first condition that holds returns."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs and default is None:
        raise ValueError("case: give at least one pair of a condition and a function")
    if default is None:
        pairs, default = pairs[:-1], pairs[-1][1]
    if not pairs:
        return default()
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, lambda: case(rest, default, exclusive, strict, name), name=name)


MOST_TURNS = 1000  # of a loop that is built turn after turn


# -- loops -----------------------------------------------------------------------------------------


class While(ControlOperation):
    """Runs a body while a condition holds.

    loose   whether shapes may differ from turn to turn
    """

    loose = False

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Build the loop."""
        test, body = self.bodies
        if self.loose and self._grows(env, values):
            return self._unrolled(env)
        start = list(as_loop_values(env, self.inputs[: self.count], values[: self.count]))
        start = settled(env, body, start)
        carried = [env.read(variable) for variable in self.writes]

        def holds(carry: Any) -> Any:
            child = _child(env, self.writes, carry[self.count :])
            found = test.evaluate(child, carry[: self.count])
            return F.reshape(found.symbol(test.outputs[0]), ())

        def step(carry: Any) -> Any:
            child = _child(env, self.writes, carry[self.count :])
            found = body.evaluate(child, carry[: self.count])
            after = [found.symbol(t) for t in body.outputs]
            return (*after, *[found.read(variable) for variable in self.writes])

        made = weft_loop(holds, step, (*start, *carried))
        for variable, value in zip(self.writes, made[self.count :], strict=True):
            env.write(variable, value)
        return made[: self.count]

    def _grows(self, env: Any, values: Sequence[Any]) -> bool:
        """Tell whether shapes are others after a turn, by one that is built and not run."""
        found = self.bodies[1].evaluate(env, values[: self.count])
        after = [found.symbol(tensor) for tensor in self.bodies[1].outputs]
        return any(a.shape != b.shape for a, b in zip(after, values, strict=False))

    def _unrolled(self, env: Any) -> Any:
        """Build turn after turn; whether there is another must be known when the run is built."""
        test, body = self.bodies
        carried = [env.value(tensor) for tensor in self.inputs[: self.count]]
        for _ in range(MOST_TURNS):
            asked = test.evaluate(env, carried)
            if not asked.static(test.outputs[0]):
                return tuple(carried)
            found = body.evaluate(env, carried)
            for variable, value in found.written.items():
                env.write(variable, value)
            carried = [found.value(tensor) for tensor in body.outputs]
        raise at_node(
            InvalidArgumentError,
            self,
            f"a loop whose shapes change takes more than {MOST_TURNS} turns; use a TensorArray",
        )


def _child(env: Any, variables: Sequence[Any], values: Sequence[Any]) -> Any:
    child = env.child()
    for variable, value in zip(variables, values, strict=True):
        child.written[variable] = value
    return child


def while_loop(
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Return the loop variables after `loop_vars = body(*loop_vars)` while cond(*loop_vars)."""
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if not loop_vars and loop_vars != 0:
        raise ValueError("No loop variables provided")
    whole = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    if maximum_iterations is not None:
        return _bounded(cond, body, whole, shape_invariants, maximum_iterations, name)
    with get_default_graph().name_scope(name or "while"):
        made = _loop(cond, body, whole, shape_invariants)
    if return_same_structure:
        return tuple(made) if isinstance(loop_vars, tuple) else made
    return made[0] if len(made) == 1 else made


def _bounded(cond: Any, body: Any, loop_vars: list[Any], shapes: Any, most: Any, name: Any) -> Any:
    """Count the turns beside the loop."""
    limit = convert_to_tensor(most)

    def holds(i: Any, *rest: Any) -> Any:
        return logical_and(i < limit, cond(*rest))

    def step(i: Any, *rest: Any) -> Any:
        after = body(*rest)
        return [i + 1, *(after if isinstance(after, (list, tuple)) else [after])]

    invariants = None if shapes is None else [TensorShape(()), *shapes]
    made = while_loop(holds, step, [constant(0, limit.dtype), *loop_vars], invariants, name=name)
    return made[1] if len(made) == 2 else made[1:]


def _loop(cond: Any, body: Any, loop_vars: list[Any], shape_invariants: Any) -> list[Any]:
    leaves = flatten(loop_vars)
    arrays = [leaf if isinstance(leaf, TensorArray) else None for leaf in leaves]
    inputs = [
        array.as_tensor() if array is not None else convert_to_tensor(leaf)
        for leaf, array in zip(leaves, arrays, strict=True)
    ]
    graph = graph_of(inputs)
    shapes = _invariants(inputs, shape_invariants)
    bodies = [Body(graph), Body(graph)]
    for part, function in zip(bodies, (cond, body), strict=True):
        with graph.building(part), graph.control_dependencies(None):
            given_to = [part.parameter(s, t.dtype) for s, t in zip(shapes, inputs, strict=True)]
            parts = [
                array.of(tensor) if array is not None else tensor
                for array, tensor in zip(arrays, given_to, strict=True)
            ]
            returned = function(*pack_sequence_as(loop_vars, parts))
            part.outputs = _returned(part is bodies[1], returned, loop_vars, inputs)
    _check_invariants(inputs, shapes, bodies[1].outputs)
    operation = While(graph, "While", inputs, bodies, "Exit")
    operation.loose = any(s != t.shape for s, t in zip(shapes, inputs, strict=True))
    outputs = [given(operation, shape, t.dtype) for shape, t in zip(shapes, inputs, strict=True)]
    parts = [a.of(t) if a is not None else t for a, t in zip(arrays, outputs, strict=True)]
    made: list[Any] = pack_sequence_as(loop_vars, parts)
    return made


def _invariants(inputs: Sequence[Tensor], given_shapes: Any) -> list[TensorShape]:
    if given_shapes is None:
        return [tensor.shape for tensor in inputs]
    shapes = [TensorShape(s) for s in _flat_shapes(given_shapes)]
    if len(shapes) != len(inputs):
        raise ValueError(
            "shape_invariants must have as many shapes as there are loop variables: "
            f"{len(inputs)}. "
            f"Received: {len(shapes)}"
        )
    return shapes


def _flat_shapes(shapes: Any) -> list[Any]:
    if isinstance(shapes, TensorShape) or shapes is None:
        return [shapes]
    return [leaf for part in shapes for leaf in _flat_shapes(part)]


def _returned(
    is_body: bool, returned: Any, loop_vars: list[Any], inputs: Sequence[Tensor]
) -> list[Tensor]:
    if not is_body:
        return [convert_to_tensor(returned)]
    whole = (
        list(returned)
        if isinstance(returned, (list, tuple)) and not hasattr(returned, "_fields")
        else [returned]
    )
    if len(whole) != len(loop_vars) and len(loop_vars) == 1:
        whole = [returned]
    try:
        assert_same_structure(loop_vars, whole)
    except ValueError as error:
        raise ValueError(
            f"The two structures don't have the same number of elements: the loop has "
            f"{len(flatten(loop_vars))} variables, and body returns {len(flatten(whole))}. "
            f"({error})"
        ) from None
    return [
        leaf.as_tensor() if isinstance(leaf, TensorArray) else convert_to_tensor(leaf, tensor.dtype)
        for leaf, tensor in zip(flatten(whole), inputs, strict=True)
    ]


def _check_invariants(inputs: Any, shapes: Any, outputs: Any) -> None:
    for tensor, shape, output in zip(inputs, shapes, outputs, strict=True):
        if not shape.is_compatible_with(output.shape):
            raise ValueError(
                f"The shape for {tensor.name} is not an invariant for the loop. It enters the loop "
                f"with shape {shape}, but has shape {output.shape} after one iteration. Provide "
                "shape "
                "invariants using either the `shape_invariants` argument of tf.while_loop or "
                "set_shape() on the loop variables."
            )
