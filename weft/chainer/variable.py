"""Variable and Parameter: Chainer's names for a tensor of Weft's.

A variable holds a tensor and shows it as Chainer does: `array` and `grad` are NumPy arrays, and an
array that was handed out shows what is written to the variable later, as it would there.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.modes import current_recorder, modes, no_grad
from ..core.tape import Leaf, TapeNode, watch_of
from ..core.tensor import Tensor, wrap
from ..nn import Parameter as TrainedTensor
from ..ops.creation import asarray
from .backends.cuda import check_device
from .configuration import config
from .initializers import as_initializer, initial_array

Array = np.ndarray[Any, Any]


class Variable:
    """An array whose computation is remembered, so that `backward` can go back through it.

    >>> import weft.chainer as chainer
    >>> import numpy as np
    >>> x = chainer.Variable(np.array([5], dtype=np.float32))
    >>> y = x**2 + x
    >>> y.backward()
    >>> x.grad
    array([11.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_handed", "_seed", "_tensor", "name")
    __array_priority__ = 200  # array + variable asks the variable
    __array_ufunc__ = None
    xp = np

    _tensor: Tensor
    _seed: Tensor | None  # a gradient that was put into the result of an operation
    _handed: weakref.ref[Array] | None  # the array that the program got last

    def __init__(
        self,
        data: Any = None,
        *,
        name: str | None = None,
        grad: Any = None,
        requires_grad: bool = True,
    ) -> None:
        if data is not None and not isinstance(data, (np.ndarray, Tensor)):
            raise TypeError(
                f"numpy.ndarray is expected, but got a {type(data).__name__}: "
                "use np.array(data, dtype=np.float32)"
            )
        tensor = _leaf(data if data is not None else np.empty(0, np.float32), requires_grad)
        self._hold(tensor, name)
        if grad is not None:
            self.grad = grad

    def _hold(self, tensor: Tensor, name: str | None = None) -> None:
        self._tensor, self.name, self._seed, self._handed = tensor, name, None, None

    # -- what it is ----------------------------------------------------------------------------

    @property
    def array(self) -> Any:
        """The NumPy array of its values; what is written into it is written into the variable."""
        if modes.interpreters and current_recorder() is not None:
            return self._tensor._read()
        value = self._tensor._value
        if not value.flags.writeable and self._tensor.is_leaf:
            value = self._tensor._value = value.copy()
        self._handed = weakref.ref(value)
        return value

    @array.setter
    def array(self, value: Any) -> None:
        self._write(value)

    data = array

    def _write(self, value: Any) -> None:
        """Take other values; a parameter of an optimizer remains the one that it knows."""
        held, given = self._tensor, as_tensor(value).detach()
        if held.is_leaf and given.shape == held.shape and given.dtype == held.dtype:
            with no_grad():
                held.copy_(given)
            self._refresh()
            return
        node = held._node
        self._tensor = wrap(given._value, cls=type(held))
        self._tensor._node = node if dt.is_float(given.dtype) else None

    def _refresh(self) -> None:
        """Let the array that was handed out hold the values of now."""
        if self._handed is None:
            return
        handed, value = self._handed(), self._tensor._value
        if handed is None or handed is value:
            return
        if handed.shape == value.shape and handed.dtype == value.dtype and handed.flags.writeable:
            np.copyto(handed, value)
            self._tensor._value = handed

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""
        return self._tensor.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self._tensor.ndim

    @property
    def size(self) -> int:
        """The number of its elements."""
        return self._tensor.numel()

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self._tensor.dtype

    @property
    def T(self) -> Variable:  # noqa: N802  (NumPy's name)
        """The variable with its axes in the other order."""
        return wrapped(self._tensor.permute_dims(tuple(reversed(range(self.ndim)))))

    @property
    def label(self) -> str:
        """A short text for pictures."""
        kind = f"{self.shape}, {np.dtype(self.dtype)}" if self.ndim else str(np.dtype(self.dtype))
        return f"{self.name}: {kind}" if self.name else kind

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` computes a gradient for it."""
        return self._tensor.requires_grad

    @property
    def creator(self) -> TapeNode | None:
        """The recorded operation that made it, or None."""
        return self._tensor.grad_fn

    creator_node = creator

    @property
    def rank(self) -> int:
        """How many operations lie between it and what the program made."""
        return _depth(self._tensor._node)

    @property
    def node(self) -> TapeNode | Leaf | None:
        """Its place in the recorded computation."""
        return self._tensor._node

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self._tensor.item()

    def __len__(self) -> int:
        return len(self._tensor)

    def __iter__(self) -> Iterator[Variable]:
        return map(wrapped, iter(self._tensor))

    def __getitem__(self, index: Any) -> Variable:
        return wrapped(self._tensor[tensors(index)])

    def __bool__(self) -> bool:
        raise NotImplementedError("a variable has no truth value: use its array, x.array")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        text = np.array2string(self._tensor.numpy(), separator=", ", prefix="variable(")
        return f"variable {self.name}({text})" if self.name else f"variable({text})"

    def summary(self) -> str:
        """Return a line of text: what it is, without values."""
        return f"<variable {self.name}>" if self.name else "<variable>"

    def debug_print(self) -> str:
        """Return a text with shape, dtype, mean, deviation and gradient."""
        array = self._tensor.numpy()
        grad = "None" if self.grad is None else f"mean={self.grad.mean()}, std={self.grad.std()}"
        return (
            f"{self.summary()}\n- shape: {self.shape}\n- dtype: {np.dtype(self.dtype)}\n"
            f"- statistics: mean={array.mean():.8f}, std={array.std():.8f}\n- grad: {grad}"
        )

    # -- gradients -----------------------------------------------------------------------------

    @property
    def grad(self) -> Any:
        """The gradient as a NumPy array, or None."""
        found = self._gradient()
        return None if found is None else found._read()

    @grad.setter
    def grad(self, value: Any) -> None:
        self.grad_var = None if value is None else wrapped(as_tensor(value))

    @property
    def grad_var(self) -> Variable | None:
        """The gradient as a variable, or None."""
        found = self._gradient()
        return None if found is None else wrapped(found)

    @grad_var.setter
    def grad_var(self, value: Variable | None) -> None:
        gradient = None if value is None else value._tensor
        if gradient is not None and gradient.shape != self.shape:
            raise ValueError(f"shape of data and grad mismatch\n{self.shape} != {gradient.shape}")
        if self._tensor.is_leaf:
            self._tensor.grad = gradient
        else:
            self._seed = gradient

    def _gradient(self) -> Tensor | None:
        return self._tensor.grad if self._seed is None else self._seed

    def cleargrad(self) -> None:
        """Forget the gradient."""
        self._seed = None
        if self._tensor.requires_grad:
            self._tensor.grad = None

    def zerograd(self) -> None:
        """Let the gradient be zero."""
        self.grad_var = wrapped(wrap(np.zeros(self.shape, self.dtype)))

    def addgrad(self, var: Variable) -> None:
        """Add the gradient of another variable to its own."""
        theirs, mine = var._gradient(), self._gradient()
        if theirs is not None:
            self.grad_var = wrapped(theirs if mine is None else mine + theirs)

    def copydata(self, var: Variable) -> None:
        """Take over the values of another variable."""
        self._write(var._tensor)

    def backward(
        self,
        retain_grad: bool = False,
        enable_double_backprop: bool = False,
        loss_scale: float | None = None,
    ) -> None:
        """Compute the gradients of all variables that this one was computed from.

        Gradients of results between are kept with `retain_grad`. The computation stays, so that
        it can be gone through again.
        """
        if self._tensor.is_leaf:
            return  # nothing was computed: there is nothing to go back through
        seed = self._start(loss_scale)
        if retain_grad:
            _retain_all(self._tensor._node)
        self._tensor.backward(seed, retain_graph=True, create_graph=enable_double_backprop)
        self._seed = self._seed if self._seed is not None else seed

    def backward_once(self, loss_scale: float | None = None) -> None:
        """Compute gradients as `backward` does, and forget the computation."""
        if self._tensor.is_leaf:
            return
        if self._seed is None and loss_scale is None and self.shape == ():
            self._tensor.backward()  # which begins with 1, and no array that a step would hold
        else:
            self._tensor.backward(self._start(loss_scale))

    def _start(self, loss_scale: float | None) -> Tensor:
        if self._seed is not None:
            return self._seed
        if self.size != 1:
            raise ValueError(
                f"backward of a variable of shape {self.shape} needs its gradient first: "
                "set y.grad to an array of that shape"
            )
        scale = 1.0 if loss_scale is None else loss_scale
        return wrap(np.full(self.shape, scale, self.dtype))

    def unchain(self) -> None:
        """Forget the operation that made it."""
        name, kept = self.name, self._seed
        self._hold(self._tensor.detach(), name)
        self._seed = kept

    def unchain_backward(self) -> None:
        """Forget all operations that led to it, for all who share them."""
        self._tensor.unchain_backward()

    # -- other places --------------------------------------------------------------------------

    def to_cpu(self) -> None:
        """Do nothing: it is there."""

    def to_gpu(self, device: Any = None) -> None:
        """Refuse: there is no device."""
        raise RuntimeError(
            "CUDA environment is not correctly set up: Weft's variables are on the CPU; "
            "leave to_gpu() out (gpu=-1)"
        )

    to_chx = from_chx = to_cpu

    def to_device(self, device: Any) -> None:
        """Stay where it is, if that is what is asked for."""
        check_device(device)

    # -- shapes --------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Variable:
        """Return a variable of another shape with the same elements."""
        given = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return wrapped(self._tensor.reshape(tuple(given)))

    def transpose(self, *axes: Any) -> Variable:
        """Return a variable whose axes are permuted, by default reversed."""
        if not axes or axes == (None,):
            return self.T
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return wrapped(self._tensor.permute_dims(tuple(given)))


class Parameter(Variable):
    """A variable that a link trains; its shape may come later.

    initializer   an array, a number, an initializer, or None for NaN until it is initialised
    shape         of the array; None if it is told by `initialize`
    """

    __slots__ = ("_awaits", "initializer", "update_rule")

    def __init__(
        self, initializer: Any = None, shape: Any = None, name: str | None = None, **_: Any
    ) -> None:
        self.update_rule: Any = None
        self.initializer = as_initializer(initializer)
        self._awaits = shape is None and not isinstance(initializer, (np.ndarray, np.generic))
        if self._awaits:
            start: Any = np.empty(0, getattr(self.initializer, "dtype", None) or config.dtype)
        elif shape is None:
            start = np.array(initializer)
        else:
            start = initial_array(self.initializer, shape)
        self._hold(TrainedTensor(wrap(start)), name)

    @property
    def is_initialized(self) -> bool:
        """Whether it has its shape."""
        return not self._awaits

    def initialize(self, shape: Any) -> None:
        """Take a shape and the values that its initializer gives."""
        grown = TrainedTensor(wrap(initial_array(self.initializer, shape)))
        # The same tensor: an optimizer may know it already.
        self._tensor._value, self._awaits = grown._value, False

    def cleargrad(self) -> None:
        """Forget the gradient."""
        if self._tensor.requires_grad:
            self._tensor.grad = None

    def update(self) -> None:
        """Take a step of the rule that an optimizer gave it."""
        if self.update_rule is not None:
            self.update_rule.update(self)

    def __repr__(self) -> str:
        return "variable (uninitialized)" if self._awaits else super().__repr__()


# -- between variables, arrays and tensors --------------------------------------------------------


def wrapped(tensor: Any) -> Any:
    """Return a tensor as a variable; a tuple or list of them as a tuple of variables."""
    if isinstance(tensor, (tuple, list)):
        return tuple(map(wrapped, tensor))
    variable = Variable.__new__(Variable)
    variable._tensor = tensor
    variable.name = variable._seed = variable._handed = None
    return variable


def as_tensor(value: Any) -> Any:
    """Return the tensor of a variable or array; anything else as it is."""
    if isinstance(value, Variable):
        return value._tensor
    if isinstance(value, (np.ndarray, np.generic)):
        return asarray(value)
    return value


def tensors(value: Any) -> Any:
    """Return a value with tensors in place of all variables and arrays in its lists and tuples."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(tensors, value)) if type(value) in (list, tuple) else value
    return as_tensor(value)


def as_variable(obj: Any) -> Variable:
    """Return a variable; an array becomes one that needs no gradient."""
    if isinstance(obj, Variable):
        return obj
    return Variable(obj, requires_grad=False)


def as_array(obj: Any) -> Any:
    """Return the array of a variable, and anything else as it is."""
    return obj.array if isinstance(obj, Variable) else obj


def _leaf(data: Any, requires_grad: bool) -> Tensor:
    """Return a leaf that holds an array; shared with the program, as Chainer's is."""
    if isinstance(data, Tensor):
        return data
    tensor: Tensor = asarray(data)
    if requires_grad and dt.is_float(tensor.dtype):
        tensor = tensor.detach().requires_grad_()
    return tensor


def _retain_all(start: Any) -> None:
    """Let the gradient of every result that led to a node be kept."""
    waiting, seen = [start], set()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, TapeNode) or id(node) in seen:
            continue
        seen.add(id(node))
        watch_of(node).retain = True
        waiting.extend(node.parents)


def _depth(start: Any) -> int:
    """Return the length of the longest path from a node to a leaf."""
    found: dict[int, int] = {}
    waiting = [start]
    while waiting:
        node = waiting[-1]
        parents = (
            [p for p in node.parents if isinstance(p, TapeNode)]
            if isinstance(node, TapeNode)
            else []
        )
        unknown = [p for p in parents if id(p) not in found]
        if unknown:
            waiting.extend(unknown)
            continue
        found[id(node)] = (
            1 + max((found[id(p)] for p in parents), default=0) if isinstance(node, TapeNode) else 0
        )
        waiting.pop()
    return found[id(start)]
