"""Variables: their names and initial values; the values themselves are in sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import F
from .dtypes import DType, as_dtype
from .graph import Graph, Operation, chosen_session, get_default_graph
from .keys import GraphKeys
from .operands import Operators
from .recording import convert_to_tensor, given, is_tensor
from .shapes import TensorShape
from .tensor import Tensor

__all__ = [
    "Variable",
]


class VariableOperation(Operation):
    """The operation that a variable is; its result is the variable's value when it runs."""

    def __init__(self, graph: Graph, name: str, variable: Any) -> None:
        super().__init__(graph, "VariableV2", name=name)
        self.variable = variable

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return the value at this point."""
        return env.read(self.variable)


class ReadVariable(Operation):
    """Reads a variable: before all assignments, or after the operations that it depends on."""

    def __init__(self, graph: Graph, variable: Any, name: str) -> None:
        super().__init__(graph, "Identity", name=name)
        self.variable = variable

    @property
    def first_read(self) -> bool:
        """Tell whether it may run before everything else."""
        return not self.control_inputs and self.body is None

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return the value at this point, or that of before the run."""
        return env.read_first_value(self.variable) if self.first_read else env.read(self.variable)


class Assign(Operation):
    """Gives a variable another value when it runs; the result is that value."""

    effect = True

    def __init__(
        self,
        variable: Any,
        type: str,
        compute: Callable[..., Any],
        inputs: Sequence[Any],
        name: str,
    ) -> None:
        tensors = [convert_to_tensor(x) for x in inputs]
        super().__init__(variable.graph, type, tensors, name=name, differentiable=False)
        self.variable = variable
        self.change = compute
        self.writes = (variable,)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Compute the value from the one of before, and let the variable have it."""
        new = self.change(env, self.variable, *values)
        env.write(self.variable, new)
        return new


class Variable(Operators):
    """A value that stays from run to run: `tf.Variable(initial_value, name="w")`."""

    __array_priority__ = 100

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Any = None,
        constraint: Callable[..., Any] | None = None,
        use_resource: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        graph = get_default_graph()
        self.graph = graph
        self.trainable = trainable
        self.constraint = constraint
        outside = graph.building(None), graph.control_dependencies(None)
        with outside[0], outside[1], graph.name_scope(name or "Variable") as scope:
            full = scope[:-1]
            with graph.name_scope("Initializer"):
                self._initial = self._read_initial(initial_value, dtype)
            self.dtype: DType = self._initial.dtype
            self._shape = self._initial.shape
            if validate_shape and self._shape.sizes is None:
                raise ValueError(f"initial_value must have a shape specified: {self._initial}")
            self.op = VariableOperation(graph, scope, self)
            self._own = given(self.op, self._shape, self.dtype)
            self.initializer = self._initializing(assign(self, self._initial, name="Assign").op)
            read = ReadVariable(graph, self, "read")
            self._snapshot = given(read, self._shape, self.dtype)
        self.full_name = full
        self._save_slice_info = None
        keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(keys, self)

    @staticmethod
    def _initializing(operation: Any) -> Operation:
        """Mark an assignment that runs once: compiling it would take longer than running it."""
        operation.once = True
        return operation

    @staticmethod
    def _read_initial(value: Any, dtype: Any) -> Tensor:
        made = value() if callable(value) and not is_tensor(value) else value
        kind = None if dtype is None else as_dtype(dtype)
        return convert_to_tensor(made, kind, name="initial_value")

    # -- what it is --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return the name: `"w:0"`."""
        return f"{self.op.name}:0"

    @property
    def device(self) -> str:
        """Return the device that it was made for."""
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        """Return the shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return the shape."""
        return self._shape

    @property
    def initial_value(self) -> Tensor:
        """Return the tensor that it begins with."""
        return self._initial

    def initialized_value(self) -> Tensor:
        """Return the value that it begins with, for initial values of other variables."""
        return self._initial

    @property
    def _shared_name(self) -> str:
        return self.op.name

    # -- values ------------------------------------------------------------------------------------

    def _as_tensor(self) -> Tensor:
        graph = self.graph
        if graph.current_body() is not None or graph.current_control_inputs():
            return self.read_value()
        return self._snapshot

    def _as_graph_element(self) -> Tensor:
        return self._own

    def value(self) -> Tensor:
        """Return the value as a tensor."""
        return self._as_tensor()

    def read_value(self) -> Tensor:
        """Return the value, read after what the operation depends on."""
        read = ReadVariable(self.graph, self, f"{self.op.name.rpartition('/')[2]}/read")
        return given(read, self._shape, self.dtype)

    def eval(self, session: Any = None) -> Any:
        """Return the value in a session."""
        return chosen_session(session, self.graph, "evaluate tensor").run(self)

    def load(self, value: Any, session: Any = None) -> None:
        """Give the variable a value in a session."""
        chosen_session(session, self.graph, "load a value").write_variable(self, value)

    def assign(
        self, value: Any, use_locking: Any = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        """Return an operation that gives the variable a value."""
        return assign(self, value, name=name)

    def assign_add(
        self, delta: Any, use_locking: Any = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        """Return an operation that adds to the variable."""
        return assign_add(self, delta, name=name)

    def assign_sub(
        self, delta: Any, use_locking: Any = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        """Return an operation that subtracts from the variable."""
        return assign_sub(self, delta, name=name)

    def scatter_sub(self, sparse_delta: Any, use_locking: Any = False, name: Any = None) -> Tensor:
        """Refuse slices; say what to use."""
        raise NotImplementedError("use tf.scatter_sub(variable, indices, updates)")

    def count_up_to(self, limit: int) -> Any:
        """Refuse; say what to use."""
        raise NotImplementedError(
            "count_up_to: use variable.assign_add(1), and tf.train.limit_epochs"
        )

    def set_shape(self, shape: Any) -> None:
        """Check a shape."""
        self._shape = self._shape.merge_with(shape)

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self._shape} dtype={self.dtype.name}_ref>"


RefVariable = Variable


# -- assignments -----------------------------------------------------------------------------------


def _variable(ref: Any, what: str) -> Variable:
    if isinstance(ref, Variable):
        return ref
    if isinstance(ref, Tensor) and isinstance(ref.op, (VariableOperation, Assign)):
        found: Variable = ref.op.variable
        return found
    raise ValueError(f"{what}: expected a mutable tensor (a tf.Variable). Received: {ref!r:.80}")


def change(
    ref: Any, type: str, compute: Callable[..., Any], inputs: Sequence[Any], name: str | None
) -> Tensor:
    """Return an operation that changes a variable; compute takes the value now and the inputs."""
    variable = _variable(ref, type)
    operation = Assign(variable, type, compute, inputs, name or type)
    return given(operation, variable.shape, variable.dtype)


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool = True,
    use_locking: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return an operation that gives a variable a value."""
    variable = _variable(ref, "assign")
    new = convert_to_tensor(value, None if is_tensor(value) else variable.dtype)
    if new.dtype != variable.dtype:
        raise TypeError(
            f"Input 'value' of 'Assign' Op has type {new.dtype.name} that does not match type "
            f"{variable.dtype.name} of argument 'ref'."
        )
    if not new.shape.is_compatible_with(variable.shape):
        raise ValueError(
            f"Dimension mismatch in Assign: Shapes {variable.shape} and {new.shape} are "
            "incompatible "
            f"for variable {variable.name!r}."
        )
    return change(variable, "Assign", lambda env, v, x: x, [new], name)


def _delta(variable: Variable, value: Any) -> Tensor:
    return convert_to_tensor(value, None if is_tensor(value) else variable.dtype)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Tensor:
    """Return an operation that adds to a variable."""
    variable = _variable(ref, "assign_add")
    return change(
        variable,
        "AssignAdd",
        lambda env, v, x: F.add(env.read(v), x),
        [_delta(variable, value)],
        name,
    )


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Tensor:
    """Return an operation that subtracts from a variable."""
    variable = _variable(ref, "assign_sub")
    return change(
        variable,
        "AssignSub",
        lambda env, v, x: F.sub(env.read(v), x),
        [_delta(variable, value)],
        name,
    )
