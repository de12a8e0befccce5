"""Symbols: tensors without a value. Operations on them become nodes of their graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..core import device as places
from ..core.dtype import DType, is_float
from ..core.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradientError,
    GraphError,
    ShapeError,
    Site,
    UnknownSizeError,
)
from ..core.modes import current_tracer
from ..core.op import F
from ..core.shape import Shape, size_of
from ..core.tape import HookHandle, next_order
from ..core.tensor import Tensor
from .node import Value, type_text
from .special import PLACEHOLDER, SOURCES


class Symbol(Tensor):
    """A tensor that has a shape, a dtype and a name, and gets a value when its graph runs.

    It has no `_value`, so generated code hands every operation on it to the tracer.
    """

    __slots__ = ("_entered", "graph", "value")

    graph: Any
    value: Value
    _entered: Value  # of a placeholder that was written to: what it was before
    symbolic = True

    _node = None  # the tape never sees a symbol
    _paused = None  # type: ignore[assignment]  # nor is it a leaf of it

    @property
    def _value(self) -> Any:  # type: ignore[override]  # a slot in the base class
        tracer = current_tracer()
        if tracer is not None and tracer.sees(self.graph):
            raise AttributeError("_value")  # sends generated code to the tracer
        raise GraphError(
            f"{self.name} is a symbol of a graph that is not open here; operate on it inside "
            "`with graph:`, or run it with wf.Session(graph).run(...)"
        )

    @property
    def _site(self) -> Site:  # type: ignore[override]  # a slot in the base class
        site = self.value.node.site
        return None if isinstance(site, str) else site

    # -- what it is --------------------------------------------------------------------------------

    @property
    def fed(self) -> Value:
        """Return what a feed gives: of a placeholder that was written to, what it was before."""
        return getattr(self, "_entered", self.value)

    @property
    def shape(self) -> Shape:
        """Return the sizes of all dimensions; unknown ones equal None."""
        shape, shows = self.value.shape, self.graph.shows
        return shape if shows is None else shows(shape)

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        dtype: DType = self.value.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.value.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return size_of(self.shape)

    @property
    def device(self) -> places.device:
        """Return the device that will hold the value."""
        return places.device_named(self.value.node.device)

    @property
    def name(self) -> str:
        """Return the name by which it can be fetched and fed; set it to choose one."""
        given = self.graph.given_names.get(self.value)
        return self.value.name if given is None else given

    @name.setter
    def name(self, name: str) -> None:
        self.graph.name_value(self.value, name)

    @property
    def requires_grad(self) -> bool:
        """Tell whether there are gradients with respect to it: all floats have them in a graph."""
        return is_float(self.dtype)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Return the symbol: in a graph, gradients with respect to every float can be asked for."""
        if not flag:
            raise GradientError(
                "a symbol always has gradients; use x.detach() for a value without them"
            )
        return self

    @property
    def is_leaf(self) -> bool:
        """Tell whether no operation of the graph makes it."""
        return self.value.node.op in SOURCES

    @property
    def grad(self) -> None:
        """Return None: gradients of symbols are symbols, made by wf.gradients."""
        return

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            raise GradientError("a symbol has no .grad; wf.gradients(ys, xs) returns gradients")

    def detach(self) -> Tensor:
        """Return the same value as a constant for differentiation."""
        result: Tensor = F.stop_gradient(self)
        return result

    def backward(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: in a graph gradients are values, not side effects."""
        raise GradientError(
            f"{self.name} is a symbol: use wf.gradients(loss, xs) to build its gradients, or "
            "optimizer.minimize(loss) to build a training step"
        )

    def register_hook(self, hook: Any) -> HookHandle:
        """Call `hook(gradient)` whenever a gradient of it is built; it may return another symbol.

        The hook works on symbols, once for each adjoint that is built and not in each run:
        `wf.debug` shows their values. It holds for gradients that are asked for afterwards.
        """
        if not self.requires_grad:
            raise GradientError(
                f"register_hook: {self.name} is {self.dtype.name} and has no gradient; only "
                "floats have"
            )
        if not callable(hook):
            raise ArgumentTypeError(f"a hook must be callable. Received: {hook!r:.60}")
        return add_hook(self, hook)

    def retain_grad(self) -> None:
        """Do nothing: the gradient of any symbol can be fetched."""

    # -- reading values: there are none yet --------------------------------------------------------

    def _unread(self, what: str) -> NoReturn:
        shown = type_text(self.value.type)
        raise GraphError(
            f"{what}: {self.name} ({shown}) is a symbol and has no value until the graph runs; "
            f"fetch it with wf.Session(graph).run({self.name!r}, feed_dict), or use wf.cond / "
            "wf.while_loop / wf.where to decide by its value"
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """Refuse to give a value."""
        self._unread("numpy()")

    def item(self) -> Any:
        """Refuse to give a value."""
        self._unread("item()")

    def tolist(self) -> Any:
        """Refuse to give a value."""
        self._unread("tolist()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._unread("conversion to an array")

    def __dlpack__(self, *, copy: bool | None = None, **kwargs: Any) -> Any:
        self._unread("export")

    def __bool__(self) -> bool:  # noqa: PLE0304  (never returns)
        self._unread("truth value")

    def __float__(self) -> float:
        self._unread("float()")

    def __int__(self) -> int:
        self._unread("int()")

    def __index__(self) -> int:  # noqa: PLE0305  (never returns)
        self._unread("index")

    def __contains__(self, element: Any) -> bool:
        self._unread("in")

    def __len__(self) -> int:
        if self.ndim and not isinstance(self.shape[0], int):
            raise UnknownSizeError(
                f"len: {self.name} has no length yet: its first size, {self.shape[0]}, is not "
                "known until the graph runs; x.shape[0] can be computed with"
            )
        return super().__len__()

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim and not isinstance(self.shape[0], int):
            raise ShapeError(
                f"cannot iterate over {self.name}: its first size, {self.shape[0]}, is not known "
                "until the graph runs; use wf.scan"
            )
        return super().__iter__()

    def __format__(self, spec: str) -> str:
        if spec:
            self._unread("format")
        return repr(self)

    def __repr__(self) -> str:
        shape = f"({', '.join(map(str, self.shape))}{',' if self.ndim == 1 else ''})"
        return f"symbol({self.name!r}, shape={shape}, dtype={self.dtype.name})"

    def __copy__(self) -> Tensor:
        return make_symbol(self.graph, self.value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        raise GraphError(f"{self.name} is a symbol and cannot be copied out of its graph")

    def __reduce__(self) -> tuple[Any, ...]:
        raise GraphError(f"{self.name} is a symbol and cannot be pickled; use graph.save(path)")

    # -- writing: the symbol stands for another value from now on ----------------------------------

    def _rebind(self, result: Tensor) -> Tensor:
        tracer = current_tracer()
        if tracer is None or not tracer.sees(self.graph):
            return super()._rebind(result)
        symbol = tracer.symbol_of(result)
        if symbol.shape != self.shape or symbol.dtype != self.dtype:
            raise ShapeError(
                f"writing in place cannot change {type_text(self.value.type)} to "
                f"{type_text(symbol.value.type)}"
            )
        if self.value.node.op is PLACEHOLDER:
            self._entered = self.value
        self.graph, self.value = symbol.graph, symbol.value
        return self

    def _move_into(self, target: Tensor) -> None:
        """Make a tensor from outside take this value when a run ends."""
        tracer = current_tracer()
        if tracer is None:
            raise GraphError(f"{self.name} can be written into a tensor only inside `with graph:`")
        tracer.write_tensor(target, self)

    def assign(self, value: Any) -> NoReturn:
        """Refuse: only what lives outside of the graph can be assigned to."""
        raise ArgumentError(
            f"{self.name} is a value of the graph; assign to a parameter or to a tensor made "
            "outside of `with graph:`"
        )


def make_symbol(graph: Any, value: Value) -> Symbol:
    """Return a symbol for a value of a graph."""
    symbol: Symbol = object.__new__(graph.symbol_class)
    symbol.graph = graph
    symbol.value = value
    return symbol


def add_hook(symbol: Symbol, hook: Callable[[Any], Any]) -> HookHandle:
    """Register a hook on the gradients of a symbol that are built from now on."""
    watch, key = symbol.graph.tracer.watch_of(symbol), next_order()
    watch.hooks[key] = hook
    return HookHandle(watch.hooks, key)


class WeakSymbol(Symbol):
    """A number that is known when the graph runs, such as a learning rate or a count of steps.

    Like a Python number it takes the dtype of the tensor it meets; among themselves numbers are
    computed in double precision.
    """

    __slots__ = ()

    weak = True


def make_number(graph: Any, value: Value) -> WeakSymbol:
    """Return a value without dimensions as a number of its graph."""
    symbol: WeakSymbol = object.__new__(graph.number_class)
    symbol.graph = graph
    symbol.value = value
    return symbol
