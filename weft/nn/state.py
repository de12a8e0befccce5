"""State dictionaries: compare a module with a given state, and swap its tensors for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError, WeftError
from ..core.modes import no_grad
from ..core.tensor import Tensor

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
            target._value = value._value
        else:
            target.copy_(value)


def convert(tensors: list[Tensor], dtype: dt.DType) -> None:
    """Convert floating-point tensors and their gradients to a dtype, in place."""
    if not dt.is_float(dtype):
        raise ArgumentTypeError(f"a module is converted to a float dtype. Received: {dtype}")
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
            owner.__dict__[attribute] = tensor
        yield module
    finally:
        for owner, attribute, tensor in kept:
            owner.__dict__[attribute] = tensor


def _places(module: Module, tensors: Mapping[str, Any]) -> list[tuple[Module, str, Any]]:
    slots = module._state_slots(transient=True)
    unknown = [name for name in tensors if name not in slots]
    if unknown:
        raise ArgumentError(
            f"functional_call: {type(module).__name__} has no tensor {unknown[0]!r}"
        )
    by_identity = {id(_held(slots[name])): tensor for name, tensor in tensors.items()}
    found = []
    for name, (owner, attribute) in slots.items():
        given = tensors.get(name, by_identity.get(id(_held((owner, attribute)))))
        if given is not None:
            found.append((owner, attribute, given))
    return found


def _held(slot: tuple[Module, str]) -> Any:
    return slot[0].__dict__[slot[1]]


def functional_call(module: Module, tensors: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Return `module(*args, **kwargs)` computed with other tensors as parameters and buffers.

    >>> import weft as wf
    >>> layer = wf.nn.Linear(2, 1, bias=False)
    >>> wf.nn.functional_call(layer, {"weight": wf.tensor([[1.0, 2.0]])}, wf.tensor([3.0, 4.0]))
    tensor([11.])
    """
    with using(module, tensors):
        return module(*args, **kwargs)
