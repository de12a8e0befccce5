"""The Tensor: a value, and the tape node that says where it came from.

Tensors are values: no two of them alias. Writing into one (`x[i] = v`, `x += y`) gives that tensor
a new value and leaves every earlier result untouched; the buffer is reused only when nobody else
holds it. Operators become methods in core/methods.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import device as places
from . import dtype as dt
from .counts import count_elements
from .device_array import held_like, is_placed, moved, to_host
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    ShapeError,
    Site,
    is_weft_code,
    user_site,
)
from .large import LARGE, door
from .modes import (
    current_deferral,
    current_interpreter,
    current_recorder,
    current_tracer,
    is_grad_enabled,
    modes,
    note_look,
)
from .reads import note_read, readers
from .shape import Shape
from .tape import UNCHAINED, HookHandle, Leaf, TapeNode, add_hook, watch_of
from .wording import worded

T = TypeVar("T", bound="Tensor | None")
_ARRAY: type = np.ndarray


class Tensor:
    """An n-dimensional array that can be differentiated. Make one with `wf.tensor(data)`."""

    __slots__ = ("__weakref__", "_mark", "_node", "_paused", "_site", "_value")

    _value: np.ndarray[Any, Any]  # or a DeviceArray, on a device with memory of its own
    _node: TapeNode | Leaf | None
    _paused: Leaf  # set while gradients of a leaf are switched off, to go on with afterwards
    _site: Site
    _mark: Any  # of an array that counts as being on another device (core/placing.py)

    symbolic = False  # True for a symbol of a graph, which has no value yet
    waits = False  # True for what stands for a value that is computed later (weft/dynamic)
    weak = False  # True for a number of a graph, which takes the dtype of what it meets
    batched = False  # True for an example inside vmap, which stands for a whole batch
    is_sparse = False  # True for a row-sparse gradient, which is no tensor (core/row_sparse.py)
    is_window = False  # True for a view of a face, whose value is that of another tensor

    __array_ufunc__ = None  # ndarray + tensor asks the tensor
    __array_priority__ = 1000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Refuse direct construction, which would be ambiguous between data and sizes."""
        raise ArgumentTypeError(
            f"{type(self).__name__} is not called directly; use wf.tensor(data) or wf.zeros(shape)"
        )

    # -- what it is --------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Return the sizes of all dimensions."""
        shape: Shape = self._value.shape
        return shape

    @property
    def dtype(self) -> dt.DType:
        """Return the element type."""
        dtype: dt.DType = self._value.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self._value.ndim

    @property
    def size(self) -> Any:
        """Return the number of elements; called, as in PyTorch, the shape or one of its sizes."""
        return count_elements(self.numel(), self.shape)

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of the elements."""
        return self.numel() * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Return the number of bytes of one element."""
        return self.dtype.itemsize

    @property
    def device(self) -> places.device:
        """Return the device that holds the value."""
        value = self._value
        where: Any = value if is_placed(value) else getattr(self, "_mark", None)
        found: places.device = places.CPU if where is None else where.device
        return found

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._value.size

    # -- its place in the graph --------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Tell whether gradients with respect to this tensor are recorded; may be set on leaves."""
        if modes.interpreters and not is_weft_code(sys._getframe(1).f_code):
            note_look(self)
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Start (or stop) recording gradients with respect to this leaf; return it."""
        if modes.interpreters and (recorder := current_recorder()) is not None:
            recorder.refuse_switch(self, flag)
        if not self.is_leaf:
            raise GradientError(
                "requires_grad can be changed only on leaves; this tensor is the result of "
                f"{self._node.op.name}: use x.detach() for an independent leaf"  # type: ignore[union-attr]  # not a leaf, so a Node
            )
        if flag and self._node is None:
            check_differentiable(self.dtype)
            self._node = paused_leaf(self) or Leaf(user_site())
        elif not flag and isinstance(self._node, Leaf):
            self._paused, self._node = self._node, None
        return self

    @property
    def is_leaf(self) -> bool:
        """Tell whether the tensor was made by the user and not by a recorded operation."""
        return self._node is None or isinstance(self._node, Leaf)

    @property
    def grad(self) -> Any:
        """Return the gradient that `backward` left here, or None."""
        if modes.interpreters:
            if (recorder := current_recorder()) is not None:
                return recorder.grads.read(self)
            note_look(self)
        return self._kept_grad()

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_grad_value(self, value)
        if modes.interpreters and (recorder := current_recorder()) is not None:
            recorder.grads.write(self, value)
            return
        self._keep_grad(value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _keep_grad(self, value: Tensor | None) -> None:
        """Let another gradient stand here, whoever records."""
        node = self._node or paused_leaf(self)
        if isinstance(node, Leaf):
            node.grad = value
        elif node is not None:
            watch_of(node).grad = value
        elif value is not None:
            raise GradientError(
                "cannot set .grad of a tensor that does not require gradients; "
                "call x.requires_grad_() first"
            )

    def _kept_grad(self) -> Any:
        """Return the gradient that stands here, whoever records."""
        node = self._node or paused_leaf(self)
        if isinstance(node, Leaf):
            found = node.grad
        else:
            found = node.watch.grad if node is not None and node.watch is not None else None
        if modes.base is None or found is None or found.is_sparse:
            return found
        return placed_like(self, found)

    @property
    def grad_fn(self) -> TapeNode | None:
        """Return the tape node of the operation that made this tensor, or None for a leaf."""
        node = self._node
        return node if isinstance(node, TapeNode) and node.op is not UNCHAINED else None

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call `hook(grad)` once the gradient of this tensor is known; it may return another."""
        if self._node is None:
            raise GradientError("cannot register a hook on a tensor that requires no gradient")
        if not callable(hook):
            raise ArgumentTypeError(f"a hook must be callable. Received: {hook!r}")
        return add_hook(self._node, hook)

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf tensor after backward."""
        if self._node is None:
            raise GradientError("cannot retain the gradient of a tensor that requires none")
        watch_of(self._node).retain = True

    def detach(self) -> Tensor:
        """Return a tensor of the same value that is cut off from the graph."""
        tracer = current_tracer() or current_deferral()
        if tracer is None:
            alone = wrap(self._value)
            return alone if modes.base is None else placed_like(self, alone)
        detached: Tensor = tracer.detached(self)  # of the value that each run of the graph reads
        return detached

    # -- reading values ----------------------------------------------------------------------

    def _read(self) -> np.ndarray[Any, Any]:
        """Return the value for Python to look at: what it does next may depend on it."""
        if modes.interpreters:
            if (recorder := current_recorder()) is not None:
                seen: np.ndarray[Any, Any] = recorder.look(self)
                return seen
            note_look(self, value=True)
        value: np.ndarray[Any, Any] = to_host(self._value)
        return value

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the value as a read-only NumPy view (no copy); np.array(x) gives a copy."""
        if readers:
            note_read(self)
        view = self._read().view()
        view.flags.writeable = False
        return view

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if modes.interpreters and (recorder := current_recorder()) is not None:
            self._check_single("item()")
            if readers:
                note_read(self)
            return recorder.number(self)
        return self._number("item()")

    def tolist(self) -> Any:
        """Return the value as nested Python lists (a number if 0-d)."""
        if readers:
            note_read(self)
        return self._read().tolist()

    def _number(self, what: str) -> Any:
        """Return the only element for Python to look at; losses are read in every step."""
        if self.__class__ is Tensor and not modes.interpreters and not readers:
            value = self._value
            if value.__class__ is _ARRAY and value.size == 1:
                return value.item()
        self._check_single(what)
        if readers:
            note_read(self)
        return self._read().item()

    def _check_single(self, what: str) -> None:
        if self.numel() != 1:
            error = ShapeError(
                f"{what} needs a tensor with one element; this one has shape {tuple(self.shape)}"
            )
            raise worded(error, what, lambda: {"x": self}, (self,))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(f"converting {self.dtype} to {np.dtype(dtype)} needs a copy")
        if copy is False:
            return self.numpy()
        if readers:
            note_read(self)
        if dtype is None or np.dtype(dtype) == self.dtype:
            return self._read().copy() if copy else self.numpy()
        return self._read().astype(dtype)

    def __dlpack__(self, *, copy: bool | None = None, **kwargs: Any) -> Any:
        # A consumer may write, and tensors are values: what is handed over is always a copy.
        if copy is False:
            raise BufferError("a tensor is exported by copying; leave copy=False out")
        if readers:
            note_read(self)
        return self._read().copy().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        value = self._value
        # The copy that is handed over is on the CPU.
        return (1, 0) if is_placed(value) else value.__dlpack_device__()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise worded(ArgumentTypeError("a 0-d tensor has no length"), "len()", dict, (self,))
        length: int = self.shape[0]
        return length

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise ArgumentTypeError("cannot iterate over a 0-d tensor")
        if not self.symbolic and self._node is not None:  # one node: gradients are stacked, once
            return iter(self.unbind())
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        if self.numel() != 1:
            error = ShapeError(
                f"the truth value of a tensor of shape {tuple(self.shape)} is ambiguous; "
                "use x.any() or x.all()"
            )
            raise worded(error, "bool()", dict, (self,))
        if modes.interpreters:
            if (recorder := current_recorder()) is not None:
                truth: bool = recorder.truth(self)
                return truth
            note_look(self, value=True)
        return bool(self._value.item())

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __index__(self) -> int:
        if self.ndim != 0 or not dt.is_integer(self.dtype):
            raise ArgumentTypeError(
                "only 0-d integer tensors can be used as an index; "
                f"this one has shape {self.shape} and dtype {self.dtype}"
            )
        return int(self._read().item())

    def __contains__(self, element: Any) -> bool:
        value = np.asarray(element)
        try:
            return bool((self._read() == value).any())
        except ValueError:
            raise ShapeError(
                f"a tensor of shape {self.shape} cannot hold an element of shape {value.shape}"
            ) from None

    def __format__(self, spec: str) -> str:
        try:
            return format(self._read().item() if spec and self.numel() == 1 else repr(self), spec)
        except ValueError:
            raise ArgumentError(
                f"the format {spec!r} does not fit a tensor of shape {self.shape} and dtype "
                f"{self.dtype}"
            ) from None

    def __repr__(self) -> str:
        note_look(self)
        return format_tensor(self)

    __hash__ = object.__hash__  # identity: == compares elements

    if TYPE_CHECKING:  # operators and methods are attached from the registry (core/methods.py)
        assign: Callable[..., Tensor]
        backward: Callable[..., None]
        unchain: Callable[..., None]
        unchain_backward: Callable[..., None]

        copy_: Callable[..., Tensor]
        fill_: Callable[..., Tensor]
        zero_: Callable[..., Tensor]

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...

    # -- copying -----------------------------------------------------------------------------

    def __copy__(self) -> Tensor:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise GradientError(
                "only leaves can be deep-copied; use x.detach() or x.clone() for a result"
            )
        if (recorder := current_recorder()) is not None:
            recorded: Tensor = recorder.copied(self)
            memo[id(self)] = recorded
            return recorded
        note_look(self)
        copy = placed_like(self, wrap(self._value, cls=type(self)))
        if isinstance(self._node, Leaf):
            copy._node = Leaf(self._node.site)
            copy.grad = self.grad.detach() if self.grad is not None else None
        memo[id(self)] = copy
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        note_look(self)
        where = None if self.device == places.CPU else str(self.device)
        return (_rebuild, (type(self), to_host(self._value), self.requires_grad, where))

    # -- writing: this tensor gets a new value ------------------------------------------------

    def _rebind(self, result: Tensor) -> Tensor:
        """Make this tensor the given result; every other tensor keeps its value."""
        if result.shape != self.shape:
            raise ShapeError(
                f"writing in place cannot change the shape {self.shape} to {result.shape}"
            )
        if result.dtype != self.dtype:
            raise DTypeError(
                f"writing in place cannot change the dtype {self.dtype} to {result.dtype}"
            )
        if isinstance(self._node, Leaf) and is_grad_enabled():
            raise GradientError(
                "a leaf that requires gradients cannot be changed while operations are "
                "recorded; write inside `with wf.no_grad():`"
            )
        result._move_into(self)
        return self

    def _move_into(self, target: Tensor) -> None:
        """Make another tensor of this shape and dtype hold this value."""
        if modes.interpreters and (recorder := current_recorder()) is not None:
            recorder.write_tensor(target, recorder.symbol_of(self))
            return
        if modes.interpreters:
            run: Any = current_interpreter()
            if hasattr(run, "before_write"):
                run.before_write(target)
        value = self._value
        target._value = value if modes.base is None else held_like(target._value, value)
        if not isinstance(target._node, Leaf):
            target._node = self._node

    def _exclusive(self) -> np.ndarray[Any, Any] | None:
        """Return the buffer if this tensor is the only one to hold it, ready to be written."""
        # A view keeps its base alive by a reference, so an array with views is never exclusive.
        value = self._value
        if is_placed(value):  # which is no buffer: another value takes its place
            return None
        del value
        if _holders(self) != ALONE:
            return None
        value = self._value
        return value if value.base is None and value.flags.writeable else None


new_tensor: Callable[[], Tensor] = partial(object.__new__, Tensor)  # the fastest way past __init__

# Classes of tensors that are nothing but a value with its history; faces add theirs.
PLAIN: set[type[Any]] = {Tensor}


def wrap(value: np.ndarray[Any, Any], cls: type[Tensor] = Tensor) -> Tensor:
    """Return a tensor around an array, without copying or recording."""
    if value.size >= LARGE and not door.open:
        door.unlock()
    tensor: Tensor = object.__new__(cls)
    tensor._value = value
    tensor._node = None
    return tensor


def placed_like(other: Tensor, tensor: Tensor) -> Tensor:
    """Put a new tensor on the device of another, and return it."""
    value: Any = getattr(other, "_value", None)
    if is_placed(value) and not is_placed(tensor._value):
        tensor._value = moved(tensor._value, value.device)
    return marked(tensor, getattr(other, "_mark", None))


def marked(tensor: T, mark: Any) -> T:
    """Put a new tensor where a mark says, None for the CPU, and return it; None stays None."""
    if tensor is not None and mark is not None:
        tensor._mark = mark
    return tensor


class Constant(Tensor):
    """A tensor made from a literal of the program: nobody holds it, so its value never changes.

    A graph keeps the values of constants, where it reads all other tensors anew in each run.
    """

    __slots__ = ()


def constant(value: np.ndarray[Any, Any]) -> Tensor:
    """Return a literal (a number, a list or an array given as an operand) as a tensor."""
    return wrap(value, Constant)


def wrap_with_node(value: np.ndarray[Any, Any], node: TapeNode | Leaf | None) -> Tensor:
    """Return a tensor around an array that stands at a given node of the tape."""
    tensor = new_tensor()
    tensor._value = value
    tensor._node = node
    return tensor


def make_leaf(value: np.ndarray[Any, Any], requires_grad: bool, site: Site) -> Tensor:
    """Return a user-made tensor that remembers where it was made."""
    tensor = wrap(value)
    tensor._site = site
    if requires_grad:
        check_differentiable(value.dtype)
        tensor._node = Leaf(site)
    return tensor


def _holders(tensor: Tensor) -> int:
    """Return how many references to a tensor's array there are, the interpreter's included."""
    value = tensor._value
    return sys.getrefcount(value)


# Measured, because how many references a call itself holds differs between versions of Python.
ALONE = _holders(wrap(np.empty(0)))


def paused_leaf(tensor: Tensor) -> Leaf | None:
    """Return the leaf of a tensor whose gradients were switched off."""
    leaf: Leaf | None = getattr(tensor, "_paused", None)
    return leaf


def site_of(tensor: Any) -> Site:
    """Return where a tensor was made, if that is known."""
    if getattr(type(tensor), "_site", None) is None:  # also of one whose node must be computed
        return None
    node = getattr(tensor, "_node", None)
    site: Site = node.site if node is not None else getattr(tensor, "_site", None)
    return site


def check_differentiable(dtype: dt.DType) -> None:
    """Raise if gradients with respect to values of this dtype make no sense."""
    if not dt.is_float(dtype):
        raise DTypeError(
            f"only floating-point tensors can require gradients; this one is {dtype}: "
            "cast it first, e.g. x.to(wf.float32)",
            undifferentiable=dtype,
        )


def _check_grad_value(tensor: Tensor, grad: Any) -> None:
    if not isinstance(grad, Tensor) and not getattr(grad, "is_sparse", False):
        raise ArgumentTypeError(f".grad must be a tensor or None. Received: {type(grad).__name__}")
    if grad.shape != tensor.shape:
        raise ShapeError(f".grad must have shape {tensor.shape}. Received: {grad.shape}")
    if grad.dtype != tensor.dtype:
        raise DTypeError(f".grad must have dtype {tensor.dtype}. Received: {grad.dtype}")
    check_gradient_device(tensor, grad, ".grad")


def check_gradient_device(tensor: Tensor, grad: Any, what: str) -> None:
    """Raise if a given gradient is on another device than its tensor."""
    if modes.base is None or grad.device == tensor.device:
        return
    raise ArgumentError(
        f"{what} must be where its tensor is, on {str(tensor.device)!r}. Received: one on "
        f"{str(grad.device)!r}; give x.to({str(tensor.device)!r})"
    )


def _rebuild(
    cls: type[Tensor], value: np.ndarray[Any, Any], requires_grad: bool, where: str | None = None
) -> Tensor:
    tensor = wrap(value, cls)
    if requires_grad:
        tensor._node = Leaf()
    if where is not None:
        from .placing import place  # noqa: PLC0415  (which needs Tensor)

        place(tensor, places.device(where))
    return tensor


def format_tensor(tensor: Tensor) -> str:
    """Return the repr: values, dtype where it is not the obvious one, and grad state."""
    value = tensor._read()
    shown = dt.printable(value)
    parts = [np.array2string(shown, separator=", ", prefix="tensor(", threshold=1000)]
    obvious = (dt.default_float(), dt.int64, dt.bool_)
    if value.dtype not in obvious or value.size == 0:
        parts.append(f"dtype={value.dtype.name}")
    if value.size == 0 and value.ndim > 1:
        parts.append(f"shape={value.shape}")
    if isinstance(tensor._node, Leaf):
        parts.append("requires_grad=True")
    elif tensor._node is not None:
        parts.append(f"grad_fn=<{tensor._node.op.name}>")
    return f"tensor({', '.join(parts)})"
