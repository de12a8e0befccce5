"""Making tensors: from data, or filled with a value.

Tensors made here are leaves: they remember the user's line that made them, and record gradients if
asked to. `wf.tensor` copies; `asarray(copy=False)`, `from_numpy` and `from_dlpack` share memory, so
a later write to the source shows in the tensor: sources that are written to must be copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..core.dim import Dim, is_known
from ..core.dim.number import RealDim
from ..core.dtype import (
    DType,
    as_dtype,
    check_dtype,
    default_float,
    int64,
    scalar_dtype,
)
from ..core.errors import ArgumentError, ArgumentTypeError, user_site
from ..core.masked import check_unmasked
from ..core.modes import current_deferral, current_tracer, interpreter_here, modes
from ..core.op import F
from ..core.operands import array_from, array_in, common_dtype, holds_tensors, tensor_from
from ..core.placing import made_on
from ..core.shape import as_int, as_shape
from ..core.tensor import PLAIN, Tensor, constant, make_leaf
from ._memory import check_allocation
from .elementwise.filling import (
    check_fits,
    empty_like,
    fill_number,
    full_like,
    is_spread,
    ones_like,
    spread,
    zeros_like,
)

__all__ = [
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


# -- from data ----------------------------------------------------------------------------------


def tensor(
    data: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return a tensor with a copy of the data: a number, nested lists, an array or a tensor.

    Python floats become the default float (float32), Python integers int64; arrays keep their
    dtype. Lists of tensors are stacked. Gradients flow to the tensors in the data, unless
    requires_grad=True asks for a leaf of its own.

    >>> import weft as wf
    >>> wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> wf.tensor([1, 2], dtype=wf.float32, requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    kind = data.__class__
    if modes.interpreters and (kind is int or kind is float):
        found: Any = interpreter_here()
        is_plain = dtype is None and device is None and requires_grad is False
        if is_plain and hasattr(found, "defers"):  # where thousands are made
            return cast("Tensor", found.number(data))
    if isinstance(data, Dim):
        return _number_when_run(data, dtype)
    return _made("tensor", data, dtype, requires_grad, device)


def _number_when_run(number: Dim, dtype: Any) -> Tensor:
    """Return a number that a graph computes from sizes, in the dtype that it would have as such."""
    implied = default_float() if isinstance(number, RealDim) else int64
    return F.size_value(number, implied if dtype is None else as_dtype(dtype))


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Return the object as a tensor; a tensor that fits already is returned as it is.

    copy=True always copies. copy=None copies unless the object is a tensor. copy=False never
    copies: the tensor shares the memory of the given array, so that writing to the array changes
    the tensor, and gradients not yet computed from it; it raises where a copy would be needed.

    >>> import numpy as np, weft as wf
    >>> source = np.zeros(2)
    >>> shared = wf.asarray(source, copy=False)
    >>> source[0] = 7.0
    >>> shared
    tensor([7., 0.], dtype=float64)
    """
    if isinstance(obj, Tensor) and not copy and not obj.weak:
        result: Tensor = obj.to(dtype=dtype, device=device)
        if copy is False and result is not obj:
            raise _needs_copy(obj.dtype, dtype)
        return result.requires_grad_() if requires_grad else result
    if copy is False:
        shared = make_leaf(_shared_array(obj, dtype), _flag(requires_grad), user_site())
        return made_on(shared, device)
    return _made("asarray", obj, dtype, requires_grad, device)


def from_numpy(array: np.ndarray[Any, Any], *, requires_grad: bool = False) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array, like asarray(array, copy=False).

    Writing to the array changes the tensor, and what backward computes from it afterwards: write
    when no gradient is waited for, or copy with `wf.tensor(array)`.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            "from_numpy: expected a NumPy array; use wf.tensor(data) for other data. "
            f"Received: {type(array).__name__}"
        )
    return make_leaf(_shared_array(array, None), _flag(requires_grad), user_site())


def from_dlpack(source: Any, *, requires_grad: bool = False) -> Tensor:
    """Return a tensor that shares the memory of any array on the CPU that speaks DLPack.

    As with `from_numpy`, writing to that memory changes the tensor.

    >>> import numpy as np, weft as wf
    >>> wf.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    try:
        array = np.from_dlpack(source)
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ArgumentTypeError(
            f"from_dlpack: cannot take over this object ({error}). "
            f"Received: {type(source).__name__}"
        ) from None
    return make_leaf(_shared_array(array, None), _flag(requires_grad), user_site())


def _made(what: str, data: Any, dtype: Any, requires_grad: Any, device: Any) -> Tensor:
    """Return a tensor with a copy of the data: a leaf, or what was computed from tensors in it."""
    flag, wanted = _flag(requires_grad), None if dtype is None else as_dtype(dtype)
    if not holds_tensors(data):
        return new_leaf(_to_array(data, wanted, what), flag, device)
    if isinstance(data, Tensor) and data.weak:  # a number of a graph, which has no dtype of its own
        wanted = wanted or common_dtype([data])
    made = tensor_from(data, f"{what}: data", wanted)
    return derived(made.clone() if made is data else made, flag, device)


def _to_array(data: Any, dtype: DType | None, what: str) -> np.ndarray[Any, Any]:
    """Return a fresh array of the data, in the given dtype or in the one it implies."""
    if not isinstance(data, (bool, int, float, np.ndarray, np.generic, list, tuple)):
        data = _foreign_array(data, what)
    what = f"{what}: data"
    return array_from(data, what) if dtype is None else array_in(data, dtype, what)


def _foreign_array(data: Any, what: str) -> np.ndarray[Any, Any]:
    """Return an object of another library as an array, if it offers one of the protocols."""
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        try:
            return np.asarray(data)
        except (RuntimeError, TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"{what}: data cannot be read as an array ({error}). "
                f"Received: {type(data).__name__}"
            ) from None
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    if isinstance(data, (range, memoryview, bytearray)):
        return np.asarray(data)
    raise ArgumentTypeError(
        f"{what}: data must be numbers, nested lists of them, an array or a tensor. "
        f"Received: {type(data).__name__} {data!r:.60}"
    )


def _shared_array(obj: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return the object's own memory as an array; raise if it would have to be copied."""
    if not isinstance(obj, np.ndarray):
        raise ArgumentError(
            "asarray: copy=False shares memory, which only arrays and tensors have. "
            f"Received: {type(obj).__name__}; use wf.tensor(data)"
        )
    check_unmasked(obj, "asarray: data")
    check_dtype(obj.dtype)
    if dtype is not None and as_dtype(dtype) != obj.dtype:
        raise _needs_copy(obj.dtype, dtype)
    return obj.view(np.ndarray)


def _needs_copy(dtype: DType, wanted: Any) -> ArgumentError:
    return ArgumentError(
        f"asarray: copy=False cannot convert {dtype} to {as_dtype(wanted)}; "
        "leave copy out to convert"
    )


# -- filled -------------------------------------------------------------------------------------


def zeros(
    *shape: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return a tensor of zeros; the shape is one tuple or separate sizes.

    >>> import weft as wf
    >>> wf.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _filled("zeros", np.zeros, shape, dtype, requires_grad, device)


def ones(*shape: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return a tensor of ones; the shape is one tuple or separate sizes.

    >>> import weft as wf
    >>> wf.ones((3,), dtype=wf.int64)
    tensor([1, 1, 1])
    """
    return _filled("ones", np.ones, shape, dtype, requires_grad, device)


def empty(
    *shape: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return a tensor of arbitrary values, to be written before they are read."""
    return _filled("empty", np.empty, shape, dtype, requires_grad, device)


def full(
    shape: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Return a tensor with every element set to a number.

    The value may be a tensor that broadcasts to the shape: gradients flow to it.

    >>> import weft as wf
    >>> wf.full((2,), 7)
    tensor([7, 7])
    """
    if is_spread(fill_value):
        sizes, wanted = as_shape(shape, "full: shape"), None if dtype is None else as_dtype(dtype)
        return derived(spread(fill_value, sizes, wanted, "full: fill_value"), requires_grad, device)
    value = fill_number(fill_value, "full: fill_value")
    wanted = scalar_dtype(value) if dtype is None else as_dtype(dtype)
    check_fits(value, wanted, "full: fill_value")

    def fill(sizes: tuple[int, ...], dtype: DType) -> np.ndarray[Any, Any]:
        return np.full(sizes, value, dtype)

    return _filled("full", fill, (shape,), wanted, requires_grad, device)


def eye(
    n: int,
    m: int | None = None,
    *,
    k: int = 0,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Return an (n, m) matrix with ones on the k-th diagonal; square if m is not given.

    >>> import weft as wf
    >>> wf.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    diagonal = as_int(k, "eye: k")
    if not is_known((n, m)):
        same = F.equal(F.iota(n)[:, None] + diagonal, F.iota(n if m is None else m))
        return F.cast(same, default_float() if dtype is None else as_dtype(dtype))

    def fill(sizes: tuple[int, int], dtype: DType) -> np.ndarray[Any, Any]:
        return np.eye(sizes[0], sizes[1], k=diagonal, dtype=dtype)

    return _filled("eye", fill, ((n, n if m is None else m),), dtype, requires_grad, device)


_ALIKE = (np.zeros, np.ones)  # whose arrays of one type hold the same


def _filled(
    what: str,
    fill: Callable[..., np.ndarray[Any, Any]],
    shape: tuple[Any, ...],
    dtype: Any,
    requires_grad: bool,
    device: Any,
) -> Tensor:
    """Return a leaf of the checked shape and dtype, filled by a NumPy constructor."""
    sizes = as_shape(shape[0] if len(shape) == 1 else shape, f"{what}: shape")
    wanted = default_float() if dtype is None else as_dtype(dtype)
    if modes.interpreters and device is None and requires_grad is False and fill in _ALIKE:
        deferral: Any = interpreter_here()
        if hasattr(deferral, "defers") and is_known(sizes):  # where thousands are made
            check_allocation(what, sizes, wanted)
            return cast("Tensor", deferral.filled(fill, sizes, wanted))
    if not is_known(sizes):
        return _filled_when_run(fill, sizes, wanted)
    check_allocation(what, sizes, wanted)
    return new_leaf(fill(sizes, wanted), requires_grad, device)


def _filled_when_run(fill: Callable[..., Any], sizes: Any, dtype: DType) -> Tensor:
    """Return a constant of a graph whose size is known when it runs."""
    return F.broadcast_to(constant(fill((), dtype)), sizes)


def new_leaf(array: np.ndarray[Any, Any], requires_grad: Any, device: Any) -> Tensor:
    """Return a new tensor; while a graph is built, a constant of the graph."""
    flag = _flag(requires_grad)
    tracer = current_tracer() if modes.interpreters else None
    if tracer is not None and (not flag or tracer.root.recording):
        made: Tensor = tracer.constant(array)
        return made_on(made.requires_grad_() if flag else made, device)
    if modes.interpreters and not flag and (deferral := current_deferral()) is not None:
        stands: Tensor = deferral.constant(array, device)
        return stands
    return made_on(make_leaf(array, flag, user_site()), device)


def derived(tensor: Tensor, requires_grad: Any, device: Any) -> Tensor:
    """Return what was computed from tensors as a new one; if asked for gradients, as a leaf."""
    flag = _flag(requires_grad)
    if tensor.__class__ in PLAIN:  # others know their line already
        tensor._site = user_site()
    return made_on(tensor.detach().requires_grad_() if flag else tensor, device)


def _flag(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"requires_grad must be True or False. Received: {value!r:.60}")
    return bool(value)
