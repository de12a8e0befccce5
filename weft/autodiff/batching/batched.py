"""A batch that a program sees as one example.

Each belongs to a level, one running `vmap`; levels tell nested batches apart.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from ...core.errors import ArgumentError, GradientError
from ...core.modes import interpret_with
from ...core.op import F
from ...core.shape import size_of
from ...core.tensor import Tensor
from ..layered import Layered, TransformLevel, is_free

SHARED = (
    "a parameter, a buffer or another tensor from outside of vmap is shared by all examples and "
    "cannot take a value that differs between them; return the value from the function, or write "
    "into a tensor made inside of it"
)
_VALUE, _NODE = vars(Tensor)["_value"], vars(Tensor)["_node"]


class BatchLevel(TransformLevel):
    """One running vmap: how many examples it has, and the interpreter below it."""

    __slots__ = ("adopted", "below", "size")

    def __init__(self, size: Any, below: Any) -> None:
        super().__init__("vmap")
        self.size = size
        self.below = below
        # Tensors that a batch was written into, with what they held before.
        self.adopted: list[tuple[ref[Tensor], type[Tensor], Any, Any]] = []

    def adopt(self, target: Tensor) -> None:
        """Remember what a tensor holds before a batch is written into it."""
        held = type(target), _VALUE.__get__(target), _NODE.__get__(target)
        self.adopted.append((ref(target), *held))

    def release(self, kept: Collection[int] = ()) -> bool:
        """Give tensors that live on, but are not kept, their old values; tell if there are any.

        They were made outside: what was made inside is gone, or among the results.
        """
        found = False
        while self.adopted:
            weak, cls, value, node = self.adopted.pop()
            target = weak()
            if target is not None and id(target) not in kept:
                target.__class__ = cls
                _VALUE.__set__(target, value)
                _NODE.__set__(target, node)
                found = True
        return found


class Batched(Layered):
    """One example of a batch, standing for all of them: `value` has the batch axis in front.

    Its shape is that of one example, and its values cannot be read: examples may differ.
    """

    __slots__ = ()

    value: Tensor = Layered.primal
    level: BatchLevel
    batched = True
    symbolic = False  # a graph deals with batches of symbols itself

    # -- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the sizes of all dimensions of one example."""
        return self.value.shape[1:]

    @property
    def ndim(self) -> int:
        """Return the number of dimensions of one example."""
        return self.value.ndim - 1

    def numel(self) -> int:
        """Return the number of elements of one example."""
        return size_of(self.value.shape[1:])

    # -- its place on the tape ---------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Tell whether gradients with respect to the batch are recorded."""
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Start (or stop) recording gradients with respect to this leaf; return it."""
        self.value.requires_grad_(flag)
        return self

    @property
    def is_leaf(self) -> bool:
        """Tell whether no recorded operation made it."""
        return self.value.is_leaf

    @property
    def grad(self) -> Any:
        """Return the gradient that `backward` left here, or None."""
        found = self.value.grad
        return None if found is None else make_batched(found, self.level)

    @grad.setter
    def grad(self, gradient: Any) -> None:
        if isinstance(gradient, Batched) and gradient.level is self.level:
            gradient = gradient.value
        self.value.grad = gradient

    def backward(self, gradient: Any = None, **options: Any) -> None:
        """Run backward of every example; gradients of what they share add up."""
        if gradient is None:
            if self.numel() != 1:
                raise GradientError(
                    f"backward: the gradient of a tensor of shape {self.shape} is not defined "
                    "without an argument; reduce it first, or pass a gradient of that shape"
                )
            gradient = F.ones_like(self)
        with interpret_with(self.level.below):
            self.value.backward(whole(gradient, self.level), **options)

    def register_hook(self, hook: Any) -> NoReturn:
        """Refuse: a hook would see the whole batch."""
        raise GradientError("register_hook: a batched value of vmap takes no hooks")

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf tensor after backward."""
        self.value.retain_grad()

    def detach(self) -> Tensor:
        """Return the same examples cut off from the graph."""
        with interpret_with(self.level.below):
            return make_batched(self.value.detach(), self.level)

    # -- reading values: there is one for each example ---------------------------------------------

    def _unread(self, what: str, instead: str) -> NoReturn:
        raise ArgumentError(
            f"{what}: inside vmap this {self.dtype}{list(self.shape)} tensor stands for "
            f"{self.level.size} examples, which may differ; {instead}"
        )

    def _unread_number(self, what: str) -> NoReturn:
        self._unread(
            what,
            "use wf.where or wf.cond to decide by it and wf.while_loop to repeat by it, or pass it "
            "with in_axes None if all examples share it",
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """Refuse to give a value."""
        self._unread("numpy()", "return it from the function, and read it outside of vmap")

    def tolist(self) -> Any:
        """Refuse to give a value."""
        self._unread("tolist()", "return it from the function, and read it outside of vmap")

    def item(self) -> Any:
        """Refuse to give a value."""
        self._unread_number("item()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._unread("conversion to an array", "use Weft's operations on it")

    def __dlpack__(self, *, copy: bool | None = None, **kwargs: Any) -> Any:
        self._unread("export", "return it from the function, and export it outside of vmap")

    def __bool__(self) -> bool:  # noqa: PLE0304  (never returns)
        self._unread_number("truth value")

    def __float__(self) -> float:
        self._unread_number("float()")

    def __int__(self) -> int:
        self._unread_number("int()")

    def __index__(self) -> int:  # noqa: PLE0305  (never returns)
        self._unread(
            "use as an index",
            "x[i] takes it, and so do wf.take and wf.gather; sizes and slices must be the same for "
            "all examples",
        )

    def __contains__(self, element: Any) -> bool:
        self._unread("in", "use (x == element).any()")

    def __format__(self, spec: str) -> str:
        if spec:
            self._unread("format", "print it without a format to see all examples")
        return repr(self)

    def __repr__(self) -> str:
        return f"batched({self.value!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = memo[id(self)] = make_batched(self.value.__deepcopy__(memo), self.level)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        self._unread("pickling", "return it from the function, and save it outside of vmap")

    # -- writing: this tensor gets a new value -----------------------------------------------------

    def _take(self, result: Tensor) -> None:
        _fill(self, whole(result, self.level), self.level)

    def _move_into(self, target: Tensor) -> None:
        if not is_free(target):
            raise ArgumentError(SHARED)
        self.level.adopt(target)
        target.__class__ = Batched
        _fill(target, self.value, self.level)


def make_batched(value: Tensor, level: BatchLevel) -> Tensor:
    """Return a value with a batch axis in front as one example."""
    example: Any = object.__new__(Batched)
    example.value, example.level = value, level
    made: Tensor = example
    return made


def _fill(example: Any, value: Tensor, level: BatchLevel) -> None:
    example.value, example.level = value, level


def whole(x: Any, level: BatchLevel) -> Any:
    """Return the whole batch behind an example; what all of them share is repeated."""
    if isinstance(x, Batched) and x.level is level:
        return x.value
    with interpret_with(level.below):
        return F.broadcast_to(x, (level.size, *x.shape))
