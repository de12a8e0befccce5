"""What stands at the top of TensorFlow: scopes, devices, collections, versions."""

from __future__ import annotations

from typing import Any

from .context import sessions
from .graph import get_default_graph
from .math_ops import identity
from .recording import convert_to_tensor, inference_of
from .recording import is_tensor as is_tensor_or_variable
from .shapes import TensorShape
from .tensor import Tensor


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor that has a value unless another one is fed."""
    value = convert_to_tensor(input)
    value.shape.assert_is_compatible_with(shape)
    made = identity(value, name or "PlaceholderWithDefault")
    made._shape = TensorShape(shape)
    inference_of(made.graph).restate(made)
    return made


def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Any:
    """Return a context in which the names of operations begin with a name."""
    chosen = default_name if name is None else name
    if chosen is not None and not isinstance(chosen, str):
        raise TypeError(
            f"At least one of name ({name}) and default_name ({default_name}) must be provided."
        )
    return get_default_graph().name_scope(chosen)


op_scope = name_scope


def device(device_name_or_function: Any) -> Any:
    """Return a context in which operations are made for a device; there is one."""
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """Return a context that does nothing: there is one place."""
    return get_default_graph().colocate_with(op)


def add_to_collection(name: Any, value: Any) -> None:
    """Add a value to a collection of the graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """Return a collection of the graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """Return the list of a collection itself."""
    return get_default_graph().get_collection_ref(key)


def get_default_session() -> Any:
    """Return the session that `eval` uses here, None if there is none."""
    return sessions.top()


def is_tensor(x: Any) -> Any:
    """Tell whether something is a tensor or a variable."""
    return is_tensor_or_variable(x)


def disable_v2_behavior() -> None:
    """Do nothing: this is version 1."""


disable_eager_execution = disable_v2_behavior


def executing_eagerly() -> Any:
    """Return False: graphs are written down first."""
    return False


def enable_eager_execution(*args: Any, **options: Any) -> None:
    """Refuse; say what to use."""
    raise NotImplementedError("enable_eager_execution: import weft as wf, which runs eagerly")
