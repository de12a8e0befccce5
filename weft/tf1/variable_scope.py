"""`tf.variable_scope` and `tf.get_variable`: variables that are shared by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .dtypes import as_dtype, float32
from .graph import Graph, get_default_graph
from .initializers import as_initializer
from .keys import GraphKeys
from .recording import is_tensor
from .shapes import TensorShape
from .variable import Variable

__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "variable_op_scope",
    "variable_scope",
]


class _AutoReuse:
    """Variables are made where there are none, and shared where there are."""

    def __repr__(self) -> str:
        return "_ReuseMode.AUTO_REUSE"


AUTO_REUSE = _AutoReuse()


class VariableScope:
    """What `get_variable` uses inside a scope."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        dtype: Any = float32,
        name_scope: str = "",
        constraint: Any = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.dtype = as_dtype(dtype)
        self.original_name_scope = name_scope
        self.constraint = constraint
        self.caching_device = self.partitioner = self.custom_getter = None
        self.use_resource = False

    def reuse_variables(self) -> None:
        """Share variables that are there from here on."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set how variables begin."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Set what is added to the losses for variables."""
        self.regularizer = regularizer

    def global_variables(self) -> list[Any]:
        """Return the variables of the scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def trainable_variables(self) -> list[Any]:
        """Return the variables of the scope that are trained."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def get_collection(self, name: str) -> list[Any]:
        """Return what is in a collection under the scope's name."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else None)

    def get_variable(self, var_store: Any, name: str, *args: Any, **options: Any) -> Variable:
        """Return a variable of the scope."""
        return get_variable(name, *args, **options)


def _current(graph: Graph) -> VariableScope:
    found: VariableScope | None = graph.scope_store.get("current")
    if found is None:
        found = graph.scope_store["current"] = VariableScope(False)
    return found


def get_variable_scope() -> VariableScope:
    """Return the scope that is open."""
    return _current(get_default_graph())


@contextmanager
def variable_scope(
    name_or_scope: Any = None,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: Any = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Put variables that are made inside under a name; `reuse=True` shares those that are there."""
    if name_or_scope is None and default_name is None:
        raise TypeError("If default_name is None then name_or_scope is required")
    if custom_getter is not None or partitioner is not None:
        raise ValueError("variable_scope: custom_getter and partitioner are not served")
    graph = get_default_graph()
    before = _current(graph)
    scope = _opened(graph, before, name_or_scope, default_name, reuse)
    scope.initializer = initializer if initializer is not None else scope.initializer
    scope.regularizer = regularizer if regularizer is not None else scope.regularizer
    scope.constraint = constraint if constraint is not None else scope.constraint
    scope.dtype = scope.dtype if dtype is None else as_dtype(dtype)
    graph.scope_store["current"] = scope
    counts = graph.scope_store.setdefault("counts", {})
    kept = {k: v for k, v in counts.items() if k.startswith(f"{scope.name}/")}
    for key in kept:
        counts[key] = 0
    try:
        if auxiliary_name_scope:
            part = (
                scope.name.rpartition("/")[2]
                if not isinstance(name_or_scope, VariableScope)
                else (name_or_scope.name.rpartition("/")[2])
            )
            with graph.name_scope(part or None) as opened:
                scope.original_name_scope = opened
                yield scope
        else:
            yield scope
    finally:
        counts.update(kept)
        graph.scope_store["current"] = before


def _opened(
    graph: Graph, before: VariableScope, given: Any, default: Any, reuse: Any
) -> VariableScope:
    if isinstance(given, VariableScope):
        chosen = reuse if reuse is not None else given.reuse
        return VariableScope(
            chosen,
            given.name,
            given.initializer,
            given.regularizer,
            given.dtype,
            constraint=given.constraint,
        )
    if given is None:
        if reuse is True:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        given = _unique_default(graph, before.name, default)
    if not isinstance(given, str):
        raise TypeError(
            "VariableScope: name_or_scope must be a string or VariableScope. "
            f"Received: {given!r:.60}"
        )
    name = f"{before.name}/{given}" if before.name else given
    inherited = before.reuse if before.reuse is True or reuse is None else reuse
    return VariableScope(
        inherited,
        name,
        before.initializer,
        before.regularizer,
        before.dtype,
        constraint=before.constraint,
    )


def _unique_default(graph: Graph, prefix: str, default: str) -> str:
    """Return a default name with a number, counted anew in each scope that is entered again."""
    counts = graph.scope_store.setdefault("counts", {})
    key = f"{prefix}/{default}" if prefix else default
    count = counts.get(key, 0)
    counts[key] = count + 1
    return default if not count else f"{default}_{count}"


variable_op_scope = variable_scope


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: Any = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """Return the variable of a name in the scope that is open: a new one, or one that is shared."""
    graph = get_default_graph()
    scope = _current(graph)
    full = f"{scope.name}/{name}" if scope.name else name
    kind = as_dtype(dtype) if dtype is not None else scope.dtype
    known = graph.variable_store.get(full)
    if known is not None:
        return _shared(known, full, scope, shape, kind if dtype is not None else None)
    if scope.reuse is True:
        raise ValueError(
            f"Variable {full} does not exist, or was not created with tf.get_variable(). Did you "
            "mean "
            "to set reuse=tf.AUTO_REUSE in VarScope?"
        )
    starting = initializer if initializer is not None else scope.initializer
    made = _made(
        full,
        shape,
        kind,
        starting,
        trainable is not False,
        collections,
        constraint or scope.constraint,
    )
    graph.variable_store[full] = made
    penalty = regularizer if regularizer is not None else scope.regularizer
    if penalty is not None and penalty is not no_regularizer:
        _penalize(graph, made, penalty)
    return made


def _shared(known: Variable, full: str, scope: VariableScope, shape: Any, kind: Any) -> Variable:
    if not scope.reuse:
        raise ValueError(
            f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    if shape is not None and not known.shape.is_compatible_with(_shape(shape)):
        raise ValueError(
            f"Trying to share variable {full}, but specified shape {_shape(shape)} and found shape "
            f"{known.shape}."
        )
    if kind is not None and kind != known.dtype:
        raise ValueError(
            f"Trying to share variable {full}, but specified dtype {kind.name} and found dtype "
            f"{known.dtype.name}_ref."
        )
    return known


def _shape(shape: Any) -> TensorShape:
    return TensorShape(shape)


def _made(
    full: str,
    shape: Any,
    kind: Any,
    initializer: Any,
    trainable: bool,
    collections: Any,
    constraint: Any,
) -> Variable:
    is_value = is_tensor(initializer) or (initializer is not None and not callable(initializer))
    if is_value and shape is not None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    if not is_value:
        static = TensorShape(shape)
        if not static.is_fully_defined():
            raise ValueError(
                f"Shape of a new variable ({full}) must be fully defined, but instead was {static}."
            )
        shape = static.as_list()
    start = as_initializer(initializer, shape, kind if not is_value else None)
    if is_tensor(initializer):
        start = initializer
    graph = get_default_graph()
    with graph.building(None), graph.control_dependencies(None), graph.name_scope(None):
        return Variable(
            start,
            trainable=trainable,
            collections=collections,
            name=full,
            constraint=constraint,
            dtype=None if is_tensor(initializer) else kind if not is_value else None,
        )


def _penalize(graph: Graph, variable: Variable, regularizer: Any) -> None:
    under = graph.name_scope(f"{variable.op.name}/Regularizer/")
    with graph.building(None), graph.control_dependencies(None), under:
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def get_local_variable(name: str, *args: Any, **options: Any) -> Variable:
    """Return a variable that is not trained and not saved."""
    options["collections"] = [GraphKeys.LOCAL_VARIABLES]
    options["trainable"] = False
    return get_variable(name, *args, **options)


def no_regularizer(_: Any) -> None:
    """Add nothing to the losses."""
    return
