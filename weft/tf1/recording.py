"""Writing operations down: what every function of this face goes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .context import graphs
from .dtypes import DType, as_dtype, int32, string
from .environment import Inference, is_known, static_dtype, static_shape
from .graph import Graph, Operation, get_default_graph
from .messages import in_words
from .shapes import Dimension, TensorShape
from .tensor import Tensor as Tensor

Compute = Callable[..., Any]


class Constant(Operation):
    """A value that is known."""

    def __init__(self, graph: Graph, array: np.ndarray[Any, Any], name: str | None) -> None:
        super().__init__(graph, "Const", name=name, differentiable=False)
        self.array = array

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return the value."""
        return self.array


class Placeholder(Operation):
    """A value that each run is fed with."""

    def __init__(self, graph: Graph, name: str | None) -> None:
        super().__init__(graph, "Placeholder", name=name)


def record(
    type: str,
    compute: Compute,
    inputs: Sequence[Any] = (),
    *,
    name: str | None = None,
    dtype: Any = None,
    outputs: int = 1,
    **options: Any,
) -> Any:
    """Add an operation to the graph of its inputs; return its result, or a list of several.

    inputs    tensors, and what can become such
    dtype     of the results where their shapes are not known yet; else that of the first input
    options   of `Operation`: static, fold, differentiable
    """
    tensors = [convert_to_tensor(x) for x in inputs]
    operation = Operation(graph_of(tensors), type, tensors, compute, name=name, **options)
    return finished(operation, dtype=dtype, outputs=outputs)


def finished(operation: Operation, *, dtype: Any = None, outputs: int = 1) -> Any:
    """Give an operation its results, as far as they are known."""
    graph = operation.graph
    try:
        shadows = inference_of(graph).infer(operation)
    except Exception:
        graph.operations.remove(operation)
        graph.by_name.pop(operation.name, None)
        raise
    if shadows is None:
        shadows = [None] * outputs
    first = operation.inputs[0].dtype if operation.inputs else None
    operation.outputs = [
        output_of(operation, i, shadow, dtype if dtype is not None else first)
        for i, shadow in enumerate(shadows)
    ]
    return operation.outputs[0] if outputs == 1 else list(operation.outputs)


def output_of(operation: Operation, index: int, shadow: Any, dtype: Any) -> Tensor:
    """Return one result of an operation."""
    kind = as_dtype(dtype) if shadow is None else static_dtype(shadow)
    if (
        _has_sizes(shadow) and as_dtype(dtype).is_integer
    ):  # of which sizes say only that they are whole
        kind = as_dtype(dtype)
    tensor = Tensor(operation, index, kind)
    tensor.shadow = shadow
    tensor._shape = static_shape(shadow)
    return tensor


def _has_sizes(shadow: Any) -> bool:
    """Tell whether a value is known but for sizes in it."""
    return is_known(shadow) and shadow.dtype == object and static_dtype(shadow) != string


def inference_of(graph: Graph) -> Inference:
    """Return the environment that finds the shapes of a graph."""
    if graph.inference is None:
        graph.inference = Inference()
    found: Inference = graph.inference
    return found


def graph_of(tensors: Sequence[Any]) -> Graph:
    """Return the graph to which an operation on tensors is added."""
    if graphs.top() is None:  # the default graph of a program that may have been reset
        for tensor in tensors:
            if tensor.graph is not get_default_graph():
                raise ValueError(
                    f"Tensor({tensor.name!r}) must be from the same graph as the "
                    "default graph: it was made before tf.reset_default_graph()"
                )
        return get_default_graph()
    here = get_default_graph()
    for tensor in tensors:
        if tensor.graph is not here:
            raise ValueError(f"{tensor} must be from the same graph as the default graph.")
    return here


# -- values that become tensors --------------------------------------------------------------------


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """Return a value as a tensor: a tensor itself, a variable's value, or a constant."""
    if hasattr(value, "_as_tensor"):
        value = value._as_tensor()
    if isinstance(value, Tensor):
        if dtype is not None and as_dtype(dtype) != value.dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype "
                f"{value.dtype.name}: {str(value)!r}"
            )
        return value
    if holds_tensors(value):
        return _packed(value, dtype)
    hint = preferred_dtype if preferred_dtype is not None else dtype_hint
    if dtype is None and hint is not None:
        try:
            return constant(value, hint, name=name or "Const")
        except (TypeError, ValueError):
            pass
    return constant(value, dtype, name=name or "Const")


def holds_tensors(value: Any) -> bool:
    """Tell whether a list has tensors in it."""
    if not isinstance(value, (list, tuple)):
        return False
    return any(isinstance(x, Tensor) or hasattr(x, "_as_tensor") or holds_tensors(x) for x in value)


_packers: list[Compute] = []  # tf.stack, which stands above this file


def _packed(value: Any, dtype: Any) -> Tensor:
    (pack,) = _packers
    known = [x.dtype for x in value if isinstance(x, Tensor)]
    kind = dtype if dtype is not None or not known else known[0]
    packed: Tensor = pack([convert_to_tensor(x, kind) for x in value])
    return packed


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str | None = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Return a tensor of a value that is known."""
    array = constant_array(value, dtype)
    if shape is not None:
        array = _shaped(array, tuple(TensorShape(shape).as_list()), verify_shape)
    operation = Constant(get_default_graph(), array, name)
    inference_of(operation.graph)
    operation.outputs = [output_of(operation, 0, array, array.dtype)]
    return operation.outputs[0]


def _shaped(array: np.ndarray[Any, Any], shape: Any, verify: bool) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    if array.shape == shape:
        return array
    if verify:
        raise TypeError(f"Expected Tensor's shape: {shape}, got {array.shape}.")
    if array.size > count:
        raise ValueError(
            f"Too many elements provided. Needed at most {count}, but received {array.size}"
        )
    if not array.size:
        raise ValueError("the value of a constant that is filled up must have an element")
    flat = np.concatenate(
        [array.ravel(), np.full(count - array.size, array.ravel()[-1], array.dtype)]
    )
    return flat.reshape(shape)


def constant_array(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return a value as an array of the type that TensorFlow gives it."""
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, Dimension):
        value = int(value)
    kind = None if dtype is None else as_dtype(dtype)
    array = _plain_array(value)
    if array.dtype.kind in "OSU":
        return _texts(array, value, kind)
    if kind is None:
        return _defaulted(array, value)
    return _cast(array, value, kind)


def _plain_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (list, tuple)):
        value = _without_dimensions(value)
    if _holds_bytes(value):  # NumPy's own type for them would lose zeros at their ends
        return np.array(value, object)
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"Argument must be a dense tensor: {value!r:.80} - got lists of different lengths"
        ) from None


def _holds_bytes(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_bytes, value))
    return isinstance(value, bytes)


def _without_dimensions(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_without_dimensions(x) for x in value]
    return int(value) if isinstance(value, Dimension) else value


def _texts(array: np.ndarray[Any, Any], value: Any, kind: DType | None) -> np.ndarray[Any, Any]:
    flat = array.astype(object)
    if kind not in (None, string) or any(not isinstance(x, (str, bytes)) for x in flat.flat):
        shown = next(
            (x for x in flat.flat if kind not in (None, string) or not isinstance(x, (str, bytes))),
            value,
        )
        wanted = "a number or a text" if kind is None else kind.name
        raise TypeError(
            f"Expected {wanted}, got {shown!r:.60} of type '{type(shown).__name__}' instead."
        )
    made = np.empty(flat.shape, object)
    for index, text in np.ndenumerate(flat):
        made[index] = text.encode() if isinstance(text, str) else text
    return made


def _defaulted(array: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    """Return Python's numbers in single precision and in 32 bits, as TensorFlow has them."""
    if isinstance(value, (np.ndarray, np.generic)):
        as_dtype(array.dtype)
        return np.array(array)
    if array.dtype == np.float64 and not _has_doubles(value):
        return array.astype(np.float32)
    if array.dtype == np.int64 and not _has_doubles(value):
        small = not array.size or (array.min() >= -(2**31) and array.max() < 2**31)
        return array.astype(np.int32) if small else array
    as_dtype(array.dtype)
    return array


def _has_doubles(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_doubles, value))
    return isinstance(value, (np.ndarray, np.generic))


def _cast(array: np.ndarray[Any, Any], value: Any, kind: DType) -> np.ndarray[Any, Any]:
    if kind == string:
        raise TypeError(
            f"Expected string, got {value!r:.60} of type '{type(value).__name__}' instead."
        )
    from_python = not isinstance(value, (np.ndarray, np.generic))
    fraction = array.dtype.kind == "f" and not kind.is_floating
    if (
        from_python
        and (fraction or (array.dtype.kind == "b") != (kind.name == "bool"))
        and array.size
    ):
        first = array.ravel()[0].item()
        raise in_words(
            TypeError(
                f"Expected {kind.name}, got {first!r} of type '{type(first).__name__}' instead."
            )
        )
    return array.astype(kind.dtype)


# -- operands of two ------------------------------------------------------------------------------


def pair(type: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return two operands of one dtype: what is no tensor takes the dtype of the other."""
    if isinstance(y, Tensor) or (hasattr(y, "_as_tensor") and not isinstance(x, Tensor)):
        right = convert_to_tensor(y)
        left = convert_to_tensor(x, None if is_tensor(x) else right.dtype)
    else:
        left = convert_to_tensor(x)
        right = convert_to_tensor(y, None if is_tensor(y) else left.dtype)
    check_same(type, left, right)
    return left, right


def is_tensor(x: Any) -> bool:
    """Tell whether something is a tensor or a variable."""
    return isinstance(x, Tensor) or hasattr(x, "_as_tensor")


def check_same(type: str, x: Tensor, y: Tensor) -> None:
    """Raise if two operands differ in dtype."""
    if x.dtype != y.dtype:
        raise TypeError(
            f"Input 'y' of '{type}' Op has type {y.dtype.name} that does not match type "
            f"{x.dtype.name} of argument 'x'."
        )


def known_int(value: Any, what: str) -> int:
    """Return a number that must be known when the graph is built, such as an axis."""
    if isinstance(value, Tensor):
        if not is_known(value.shadow):
            raise ValueError(f"{what} must be known when the graph is built. Received: {value}")
        return int(value.shadow)
    return int(value)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor that each run is fed with; without a shape, even its rank may differ."""
    kind = as_dtype(dtype)
    graph = get_default_graph()
    operation = Placeholder(graph, name)
    if operation.body is not None:
        raise ValueError("a placeholder cannot be made inside tf.cond or tf.while_loop")
    return given(operation, TensorShape(shape), kind)


def given(operation: Operation, shape: TensorShape, dtype: DType) -> Tensor:
    """Return the result of an operation whose static shape is said."""
    tensor = Tensor(operation, len(operation.outputs), dtype)
    tensor._shape = shape
    tensor.shadow = inference_of(operation.graph).symbol(shape, dtype)
    operation.outputs.append(tensor)
    return tensor


SCALAR = TensorShape(())
INDEX = int32
