"""State dictionaries: compare a module with a given state, and swap its tensors for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import dtype as dt
from ..core.device import device
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError, WeftError
from ..core.modes import no_grad, refuse_recording
from ..core.placing import place
from ..core.tensor import Tensor
from .version import count_change

if TYPE_CHECKING:
    from .module import Module

Slots = Mapping[str, tuple["Module", str]]


class LoadReport(NamedTuple):
    """What `load_state_dict` found: names missing in the state, unexpected, or of another shape."""

    missing: list[str]
    unexpected: list[str]
    mismatched: list[str]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.mismatched)

    @property
    def mismatched_names(self) -> set[str]:
        """Return the names of tensors of another shape, without the description."""
        return {line.split(":")[0] for line in self.mismatched}


def compare(slots: Slots, state: Mapping[str, Any]) -> LoadReport:
    """Return how a state differs from the tensors of a module."""
    mismatched = []
    for name, (module, attribute) in slots.items():
        if name in state:
            expected = module._expected_shape(attribute, state, name[: -len(attribute)])
            received = shape_of(state[name])
            if received != expected:
                mismatched.append(f"{name}: expected {expected}, received {received}")
    missing = [name for name in slots if name not in state]
    return LoadReport(missing, [name for name in state if name not in slots], mismatched)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, an array or a number."""
    return tuple(getattr(value, "shape", ()))


def misfit(module: Module, report: LoadReport) -> WeftError:
    """Return the error for a state that does not fit."""
    parts = [f"{type(module).__name__} does not fit the given state."]
    for title, names in zip(("Missing", "Unexpected", "Mismatched"), report, strict=True):
        if names:
            more = f" and {len(names) - 10} more" if len(names) > 10 else ""
            parts.append(f"{title}: {', '.join(names[:10])}{more}.")
    parts.append("Pass strict=False to load what fits.")
    return (ShapeError if report.mismatched else ArgumentError)(" ".join(parts))


def check_mapping(state: Any) -> None:
    """Raise unless a state is a mapping of names to tensors."""
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(
            "load_state_dict: expected a mapping of names to tensors, as state_dict() returns. "
            f"Received: {type(state).__name__}"
        )


def load(target: Tensor, value: Any, assign: bool) -> None:
    """Write a value of a state into a tensor; with `assign` it brings its own dtype."""
    with no_grad():
        if assign and isinstance(value, Tensor):
            refuse_recording("load_state_dict(assign=True) gives parameters other arrays")
            target._value = value._value
        else:
            target.copy_(value)


def move(tensors: list[Tensor], where: device) -> None:
    """Put tensors and their gradients on a device, in place."""
    if any(tensor.device != where for tensor in tensors):
        refuse_recording("a module is moved to another device")
    for tensor in tensors:
        grad = tensor._kept_grad()
        place(tensor, where)
        if grad is not None:
            tensor._keep_grad(grad.to(device=where))


def convert(tensors: list[Tensor], dtype: dt.DType) -> None:
    """Convert floating-point tensors and their gradients to a dtype, in place."""
    if not dt.is_float(dtype):
        raise ArgumentTypeError(f"a module is converted to a float dtype. Received: {dtype}")
    refuse_recording("a module is converted to another dtype")
    for tensor in tensors:
        if dt.is_float(tensor.dtype) and tensor.dtype != dtype:
            grad = tensor.grad
            tensor._value = tensor._value.astype(dtype)
            if grad is not None:
                tensor.grad = grad.to(dtype)


@contextmanager
def using(module: Module, tensors: Mapping[str, Any]) -> Iterator[Module]:
    """Run a block with other tensors in the place of a module's parameters and buffers.

    A tensor that the module shares between several names is exchanged under all of them.
    """
    places = _places(module, tensors)
    kept = [(owner, attribute, owner.__dict__[attribute]) for owner, attribute, _ in places]
    try:
        for owner, attribute, tensor in places:
            count_change()
            owner.__dict__[attribute] = tensor
        yield module
    finally:
        for owner, attribute, tensor in kept:
            count_change()
            owner.__dict__[attribute] = tensor


def _places(module: Module, tensors: Mapping[str, Any]) -> list[tuple[Module, str, Any]]:
    slots = module._state_slots(transient=True)
    by_identity: dict[int, tuple[str, Any]] = {}
    for name, tensor in tensors.items():
        if name not in slots:
            raise ArgumentError(f"functional_call: {type(module).__name__} has no tensor {name!r}")
        other, same = by_identity.setdefault(id(_held(slots[name])), (name, tensor))
        if same is not tensor:
            raise ArgumentError(
                f"functional_call: {other!r} and {name!r} are one tensor of "
                f"{type(module).__name__}; give it once, or the same tensor twice"
            )
    return [
        (*slot, by_identity[id(_held(slot))][1])
        for slot in slots.values()
        if id(_held(slot)) in by_identity
    ]


def _held(slot: tuple[Module, str]) -> Any:
    return slot[0].__dict__[slot[1]]


def functional_call(module: Module, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `module(*args, **kwargs)` computed with other tensors as parameters and buffers.

    tensors   a mapping of dotted names, or of names to further mappings; or a list or tuple of such
              mappings, e.g. parameters and buffers. What is not named stays the module's own.

    A tensor that several modules share is named once. As in PyTorch, a buffer that the call updates
    (running statistics) changes the tensor that was given for it, and the module's own only if none
    was given.

    >>> import weft as wf
    >>> layer = wf.nn.Linear(2, 1, bias=False)
    >>> wf.nn.functional_call(layer, {"weight": wf.tensor([[1.0, 2.0]])}, wf.tensor([3.0, 4.0]))
    tensor([11.])
    """
    with using(module, _by_dotted_name(tensors)):
        return module(*args, **kwargs)


def _by_dotted_name(tensors: Any, prefix: str = "") -> dict[str, Any]:
    """Return tensors by their full names, from mappings in one another."""
    found: dict[str, Any] = {}
    for mapping in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
        if not isinstance(mapping, Mapping):
            raise ArgumentTypeError(
                "functional_call: tensors must be a mapping of names to tensors, or several. "
                f"Received: {type(mapping).__name__}"
            )
        for name, value in mapping.items():
            found.update(_named(f"{prefix}{name}", value))
    return found


def _named(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return _by_dotted_name(value, f"{name}.")
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(
            f"functional_call: {name!r} must be a tensor. Received: {type(value).__name__}"
        )
    return {name: value}
