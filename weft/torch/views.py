"""Views: tensors that show a part of another one, and write through to it.

A view has no value of its own. Its value, and its place on the tape, follow from its base whenever
they are asked for, so a write into the base is seen by it; a write into it is one into the base.
Tensors that are no views pay nothing for that. In a recording a view is likewise what follows from
the value that its base has at that point of the program.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..core import tensor as core
from ..core.device_array import is_placed
from ..core.modes import (
    current_recorder,
    current_tracer,
    enable_grad,
    is_grad_enabled,
    is_transformed,
    modes,
    no_grad,
)
from ..core.tape import Leaf
from .adoption import FACES, adopt
from .geometry import Geometry, geometry_of
from .storage import note_part
from .tensor import Tensor, wrap
from .tensor_methods import TensorMethods
from .windows import OVERLAPS, DetachedWindow, Window
from .writing import LEAF_VIEW, fitting

VIEW_OF_LEAF = (
    "a view of a leaf Variable that requires grad is being used in an in-place operation."
)

SEVERAL = (
    ". This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)
WRITTEN = "Output {} of {} is a view and is being modified inplace"
BASE_WRITTEN = (
    "Output {} of {} is a view and its base or another view of its base has been modified inplace"
)
UNTRACKED = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled"
)
NOT_COPIED = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
    "the moment: copy x.detach(), or use x.clone()"
)


def view_of(base: Any, window: Window) -> Any:
    """Return a view of a tensor."""
    if base.symbolic or is_transformed():
        return _symbolic_view(base, window)
    view: Any = object.__new__(View)
    _set_up(view, base, window)
    view._cached = view._own = view._placed = None
    view._first = weakref.ref(view._base._value) if window.several else None
    view._tracked = base._node is not None and (not modes.grad_overrides or is_grad_enabled())
    return view


def _set_up(view: Any, base: Any, window: Window) -> None:
    view.is_view_of, view._window, view._where = base, window, None


RECORDED: dict[type, type] = {}  # values of recordings, and views of them: recorded.py


def _symbolic_view(base: Any, window: Window) -> Any:
    """Return a view where operations are recorded; where no writes are seen, a value."""
    result = adopt(window.read(base))
    kind = next((view for value, view in RECORDED.items() if isinstance(result, value)), None)
    if kind is None:
        result.__class__ = _unwritten[result.__class__]
        return result
    view: Any = object.__new__(kind)
    view.graph, view._held = result.graph, result.value
    _set_up(view, base, window)
    view._seen = value_now(base)
    return view


class Viewing(TensorMethods):
    """What eager and recorded views have in common."""

    __slots__ = ()

    is_view_of: Any
    _window: Window

    @property
    def _geometry(self) -> Geometry:
        """Return where its elements lie in the memory of its base."""
        view: Any = self  # whose class has the slot
        if view._where is None:
            view._where = self._window.geometry(geometry_of(self.is_view_of))
        found: Geometry = view._where
        return found

    def seen_from(self, base: Any) -> Any:
        """Return the same view of another tensor."""
        return view_of(base, self._window)

    def derived(self) -> Any:
        """Return the value as an operation on the base gives it now."""
        return self._window.read(self.is_view_of)

    @property
    def _base(self) -> Any:
        """Return the tensor whose memory it shows, which is no view."""
        base = self.is_view_of
        while getattr(base, "is_view_of", None) is not None:
            base = base.is_view_of
        return base

    def _rebind(self, result: Any) -> Any:
        return write_through(self, result)

    def _overwritten(self, result: Any, begun: int) -> Any:
        return write_through(self, result, begun)

    def _exclusive(self) -> None:
        return None


def write_through(view: Any, result: Any, begun: int | None = None) -> Any:
    """Write a result into what a view shows; return the view."""
    fitted = fitting(view, result)
    if view._window.detaches and is_grad_enabled():
        with no_grad():
            return write_through(view, fitted, begun)
    check_writable(view, fitted)
    base = view.is_view_of
    base._overwritten(view._window.put(base, fitted), begun)
    if not view.symbolic and fitted._node is not None:
        note_part(view._base, fitted._value)
    return view


def check_writable(view: Any, value: Any) -> None:
    """Raise if PyTorch would not write a value into a view."""
    base: Any = view.is_view_of
    is_whole = view._window is DETACHED and not hasattr(base, "_window")
    if not is_whole and fixed_sizes(view) and view._geometry.overlaps:
        raise RuntimeError(OVERLAPS)
    if not is_grad_enabled():
        return
    base = view
    while getattr(base, "is_view_of", None) is not None and not base._window.detaches:
        base = base.is_view_of
    if base.requires_grad and base.is_leaf:
        raise RuntimeError(VIEW_OF_LEAF)
    if view._window.several and base.requires_grad:
        raise RuntimeError(WRITTEN.format(*view._window.several) + SEVERAL)
    if view._window.several and value.requires_grad:
        raise RuntimeError(UNTRACKED + SEVERAL)


class View(Viewing, Tensor):
    """A view of a tensor that has a value."""

    __slots__ = (
        "_cached",
        "_first",
        "_own",
        "_placed",
        "_tracked",
        "_where",
        "_window",
        "is_view_of",
    )

    _cached: Any
    _first: Any
    _own: Any
    _placed: tuple[Any, Any] | None

    @property
    def _value(self) -> Any:
        value = self.is_view_of._value
        return self._on_device(value) if is_placed(value) else self._window.array(value)

    @_value.setter
    def _value(self, value: Any) -> None:
        with no_grad():
            write_through(self, core.wrap(value if is_placed(value) else np.asarray(value)))

    def _on_device(self, value: Any) -> Any:
        """Return what is seen of a value of a device, which nobody changes: computed once."""
        known = self._placed
        if known is None or known[0]() is not value:
            known = self._placed = weakref.ref(value), self._window.placed(value)
        return known[1]

    @property
    def _node(self) -> Any:
        if self._own is not None:
            return self._own
        node = None if self._window.detaches else self.is_view_of._node
        if node is None or (isinstance(node, Leaf) and not self._tracked):
            return None
        if self._first is not None and self._first() is not self._base._value:
            which = self._window.several or ()
            raise RuntimeError(BASE_WRITTEN.format(*which) + SEVERAL)
        if self._cached is None or self._cached[0] is not node:
            with enable_grad():
                self._cached = node, self._window.read(self.is_view_of)._node
        return self._cached[1]

    @_node.setter
    def _node(self, node: Any) -> None:
        self._own = node

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a tensor of its own with these values; refuse for one with a history."""
        if self._node is not None:
            raise RuntimeError(NOT_COPIED)
        if (recorder := current_recorder()) is not None:
            recorder.refuse("it copies a view of a tensor from outside")
        made = memo[id(self)] = wrap(self._value.copy())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = wrap(self._value).__reduce__()
        return reduced

    @property
    def is_window(self) -> bool:  # type: ignore[override]  # a constant in the base class
        """Tell whether recordings find its value in that of its base."""
        return self._own is None


class _Unwritten(dict[type, type]):
    """Classes of views inside of transforms and graphs, which cannot be written into."""

    def __missing__(self, kind: type) -> type:
        made = type(kind.__name__, (kind,), {"__slots__": (), "_rebind": _refuse_write})
        FACES[made] = None
        self[kind] = made
        return made


def _refuse_write(self: Any, result: Any) -> Any:
    raise RuntimeError(
        "a view cannot be written into inside a transform of torch.func or a graph; write into "
        "the tensor itself: x[i] = value"
    )


_unwritten = _Unwritten()


def fixed_sizes(tensor: Any) -> bool:
    """Tell whether all sizes are plain numbers."""
    return all(type(size) is int for size in tensor.shape)


def value_now(base: Any) -> Any:
    """Return the value of the graph that a tensor is at this point of a recording."""
    tracer: Any = current_tracer()
    return tracer.value_of(base)


def whole(leaf: Any) -> Any:
    """Return a leaf without gradients, as a view: whoever trains it is seen by this."""
    return view_of(leaf, DETACHED)


DETACHED = DetachedWindow()
LEAF_VIEW.append(whole)
FACES[View] = None
