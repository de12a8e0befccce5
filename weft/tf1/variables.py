"""Lists of variables, and the operations that initialise them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .control import group
from .graph import Operation, get_default_graph
from .host import host_operation
from .keys import GraphKeys
from .recording import Tensor

__all__ = [
    "all_variables",
    "assert_variables_initialized",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "moving_average_variables",
    "report_uninitialized_variables",
    "tables_initializer",
    "trainable_variables",
    "variables_initializer",
]


def global_variables(scope: str | None = None) -> list[Any]:
    """Return all variables but local ones."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


all_variables = global_variables


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Return the variables that optimizers train."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """Return the variables that are not saved: counts of metrics and their like."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the model."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Return the variables that have moving averages."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    """Return the operation that gives variables their first values."""
    return group(*[v.initializer for v in var_list], name=name)


initialize_variables = variables_initializer


def global_variables_initializer() -> Operation:
    """Return the operation that gives all variables their first values."""
    return variables_initializer(global_variables(), "init")


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """Return the operation that gives local variables their first values."""
    return variables_initializer(local_variables(), "init_local")


initialize_local_variables = local_variables_initializer


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Return the operation that fills tables."""
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


def is_variable_initialized(variable: Any) -> Tensor:
    """Return whether a variable has a value."""
    made: Tensor = host_operation(
        "IsVariableInitialized",
        lambda session: np.array(session.is_initialized(variable)),
        outputs=[("bool", ())],
    )
    return made


def report_uninitialized_variables(
    var_list: Any = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """Return the names of variables that have no value."""
    variables = global_variables() + local_variables() if var_list is None else list(var_list)

    def call(session: Any) -> Any:
        names = [v.op.name.encode() for v in variables if not session.is_initialized(v)]
        return [np.array(names, object)]

    made: Tensor = host_operation(
        "ReportUninitialized", call, outputs=[("string", [None])], name=name
    )
    return made


def assert_variables_initialized(var_list: Any = None) -> Operation:
    """Return an operation that reads variables, which raises if one has no value."""
    variables = global_variables() if var_list is None else list(var_list)
    return group(*[v.read_value() for v in variables], name="assert_variables_initialized")
