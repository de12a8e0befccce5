"""What users build graphs with: placeholders, and assignments to state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from keyword import iskeyword
from typing import Any

from ..core.dim import Dim, unknown_size
from ..core.dtype import as_dtype, default_float, is_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError, user_site
from ..core.modes import current_tracer, no_grad
from ..core.op import F
from ..core.shape import TensorType, as_int
from ..core.tensor import Tensor
from ..ops.index.setitem import as_value
from .graph import Graph
from .node import Node
from .scope import current_scope
from .special import PLACEHOLDER
from .symbol import Symbol, make_symbol
from .tracer import Tracer


def _in_either_order(function: Callable[..., Symbol]) -> Callable[..., Symbol]:
    """Return a function of shape and dtype that is also understood with the dtype in front."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Symbol:
        if not args or not is_dtype(args[0]) or len(args) > 2 or "dtype" in options:
            return function(*args, **options)
        shape = args[1] if len(args) == 2 else options.pop("shape", None)
        return function(shape, args[0], **options)

    return called


@_in_either_order
def placeholder(
    shape: Sequence[int | str | None] | int = (), dtype: Any = None, *, name: Any = None
) -> Symbol:
    """Return a symbol to be fed with a value in each run.

    None in the shape is a size that may differ from run to run. A string names such a size:
    placeholders that use the same name have the same size. The number of sizes must be known.
    TensorFlow's order, `placeholder(wf.float32, (None, 3))`, is understood too.

    >>> import weft as wf
    >>> with wf.Graph():
    ...     wf.placeholder((None, 3), wf.float32, name="x")
    symbol('x', shape=(x_0, 3), dtype=float32)
    """
    tracer = open_tracer("placeholder")
    tracer.refuse_inside("placeholder", "make it outside, and use it in the body")
    if name is not None and (not isinstance(name, str) or not name):
        raise ArgumentTypeError(
            f"placeholder: name must be a non-empty string. Received: {name!r:.60}"
        )
    graph = tracer.graph
    scope = current_scope()
    own = _own_name(graph, "/".join((*scope, name or "placeholder")), given=name is not None)
    sizes = _sizes(shape, _identifier(own))
    kind = TensorType(sizes, default_float() if dtype is None else as_dtype(dtype))
    node = graph.append(
        Node(PLACEHOLDER, (), (kind,), (kind,), name=own, scope=scope, site=user_site())
    )
    return make_symbol(graph, node.outputs[0])


def _own_name(graph: Graph, wanted: str, *, given: bool) -> str:
    own = graph.unique_name(wanted)
    if given and own != wanted:  # a feed by name would meet another value
        raise ArgumentError(
            f"placeholder: the name {wanted!r} is taken in this graph; choose another"
        )
    return own


def _identifier(name: str) -> str:
    """Return a name as the beginning of the names of its sizes."""
    spelled = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return f"_{spelled}" if spelled[0].isdigit() else spelled


def _sizes(shape: Any, name: str) -> tuple[Any, ...]:
    if shape is None:
        raise ArgumentError(
            "placeholder: the number of dimensions must be known: write the shape () for a number, "
            "(None,) for a vector of unknown length, (None, None) for a matrix of unknown sizes. "
            "Received: the shape None"
        )
    if isinstance(shape, (int, str, Dim)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise ArgumentTypeError(
            "placeholder: shape must be a tuple of sizes, with None or a name for an unknown one. "
            f"Received: {shape!r:.60}"
        )
    return tuple(_size(size, axis, name) for axis, size in enumerate(shape))


def _size(size: Any, axis: int, name: str) -> Any:
    if size is None:
        return unknown_size(f"{name}_{axis}")
    if isinstance(size, str):
        if not size.isidentifier() or iskeyword(size):
            raise ArgumentError(
                f"placeholder: the name of a size must be an identifier. Received: {size!r:.60}"
            )
        return unknown_size(size)
    known: Any = as_int(size, f"placeholder: size {axis}")
    if not isinstance(known, Dim) and known < 0:
        raise ShapeError(f"placeholder: sizes must not be negative. Received: {size} at {axis}")
    return known


def assign(self: Tensor, value: Any) -> Tensor:
    """Give this tensor another value: now, or in a graph at the end of each run that fetches it.

    The value is broadcast to this tensor's shape and cast to its dtype. Inside `with graph:` the
    result is a symbol; a run that fetches it writes the value to the tensor when it ends.

    >>> import weft as wf
    >>> total = wf.tensor(0.0)
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((), wf.float32, name="x")
    ...     add = total.assign(total + x)
    >>> with wf.Session(graph) as session:
    ...     session.run(add, {x: 2.0}), session.run(add, {x: 3.0})
    (array(2., dtype=float32), array(5., dtype=float32))
    >>> total
    tensor(5.)
    """
    tracer = current_tracer()
    if tracer is None:
        with no_grad():  # a new value has no history, here as in a graph
            return self.copy_(value)
    source = as_value(value, self.dtype)
    if source.dtype != self.dtype:
        source = F.cast(source, self.dtype)
    if source.shape != self.shape:
        source = _filling(source, self.shape)
    symbol: Tensor = tracer.assign(tracer.tensor_state(self), tracer.value_of(source))
    return symbol


def _filling(source: Tensor, shape: Any) -> Any:
    try:
        return F.broadcast_to(source, shape)
    except ShapeError:
        raise ShapeError(f"assign: shape {source.shape} does not fill {shape}") from None


def open_tracer(what: str) -> Tracer:
    """Return the tracer of the graph that is open; raise if none is."""
    tracer: Tracer | None = current_tracer()
    if tracer is None:
        raise GraphError(f"{what}: no graph is open; use it inside `with wf.Graph() as graph:`")
    return tracer
