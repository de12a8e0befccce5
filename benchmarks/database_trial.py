"""One sample of PyTorch's operator database, computed by PyTorch and by `weft.torch`."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import torch
from database_notes import DRAWN

import weft.torch as face

# -- the functions that are compared --------------------------------------------------------------


def find(name: str) -> Any:
    """Return the function of the face that a name of the database stands for, or None."""
    owner: Any = face
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    for place in (owner, *([] if path else [face.Tensor])):
        found = None if place is None else getattr(place, last, None)
        if found is not None:
            return found.fget if isinstance(found, property) else found
    return None if path else getattr(face.Tensor, f"{last}_", None)  # as uniform is: uniform_


def call_of(info: Any) -> Any:
    """Return what computes an entry of the database by the face, or None if it is missing."""
    function = info.op
    if isinstance(function, types.FunctionType) and "testing" in function.__module__:
        return rebound(function)
    return find(info.name)


def rebound(function: Any) -> Any:
    """Return a function of the database's own, which sees the face where it says `torch`."""
    if not isinstance(function, types.FunctionType) or "testing" not in function.__module__:
        return function
    scope = {**function.__globals__, "torch": face}
    made = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# -- arguments and results ------------------------------------------------------------------------


def mapped(value: Any, change: Any) -> Any:
    """Return a nest of arguments with every part that is no list or dictionary changed."""
    if isinstance(value, torch.Size):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(part, change) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [mapped(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return change(value)


class Conversion:
    """PyTorch's arguments as those of the face, each tensor once; leaves in PyTorch's order."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self.leaves: list[Any] = []
        self.origins: list[Any] = []

    def __call__(self, value: Any) -> Any:
        """Return one argument as the face takes it."""
        if isinstance(value, torch.Tensor):
            return self.made.get(id(value)) if id(value) in self.made else self._tensor(value)
        if isinstance(value, torch.dtype):
            return getattr(face, str(value).removeprefix("torch."), None) or np.dtype("void")
        if isinstance(value, torch.nn.Module):  # a distance: the face's with the same settings
            return getattr(face.nn, type(value).__name__)(**_settings(value))
        if isinstance(value, torch.Size):
            return face.Size(value)
        if isinstance(value, torch.device):
            return face.device(str(value))
        return value

    def _tensor(self, value: Any) -> Any:
        made = _within_memory(value)
        if value.requires_grad:
            made.requires_grad_()
            self.leaves.append(made)
            self.origins.append(value)
        self.made[id(value)] = made
        return made


def _settings(module: Any) -> dict[str, Any]:
    return {{"norm": "p"}.get(n, n): vars(module)[n] for n in module.__constants__}


def _within_memory(value: Any) -> Any:
    """Return a tensor; one that is a part of a longer vector as a view of that."""
    whole, first = value.untyped_storage().nbytes() // value.element_size(), value.storage_offset()
    if value.ndim != 1 or value.stride() != (1,) or whole == value.numel():
        return face.tensor(value.detach().numpy().copy())
    memory = torch.as_strided(value.detach(), (whole,), (1,), 0)
    return face.tensor(memory.numpy().copy())[first : first + value.numel()]


def tensors_in(value: Any, kind: Any) -> list[Any]:
    """Return all tensors of a nest, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in tensors_in(part, kind)]
    return []


def is_complex(value: Any) -> bool:
    """Tell whether complex numbers are among arguments or results."""
    found = []
    mapped(value, found.append)
    return any(
        isinstance(x, complex) or getattr(x, "is_complex", False) is True
        if not isinstance(x, torch.Tensor)
        else x.is_complex()
        for x in found
    )


def close(mine: Any, theirs: Any) -> bool:
    """Tell whether two arrays are equal up to rounding, in shape and value."""
    a, b = np.asarray(mine), np.asarray(theirs)
    if a.shape != b.shape:
        return False
    if b.dtype.kind in "fc":
        exact = b.dtype.itemsize >= 8
        return np.allclose(
            a, b, rtol=1e-6 if exact else 2e-3, atol=1e-7 if exact else 2e-4, equal_nan=True
        )
    return bool(np.array_equal(a, b))


# -- one sample -----------------------------------------------------------------------------------


class Trial:
    """A sample of the database, computed by PyTorch and by the face."""

    def __init__(self, call: Any, info: Any, sample: Any) -> None:
        self.call, self.info, self.sample = call, info, sample
        self.given = [sample.input, list(sample.args), dict(sample.kwargs)]

    def compare(self) -> tuple[str, str]:
        """Return how the values, and the gradients, compare: equal, or what is wrong."""
        convert = Conversion()
        first, args, kwargs = mapped(self.given, convert)
        theirs = self._of_torch(self.given)
        if is_complex(self.given) or is_complex([theirs]):
            return "complex", "none"
        try:
            mine = self.call(first, *args, **kwargs)
            mine = rebound(self.sample.output_process_fn_grad)(mine)
        except Exception as error:  # whatever it is, it is counted
            return f"raises {type(error).__name__}: {str(error)[:90]}", "none"
        return self._compared(theirs, mine, convert)

    def _of_torch(self, given: Any) -> Any:
        first, args, kwargs = given
        return self.sample.output_process_fn_grad(self.info.op(first, *args, **kwargs))

    def _compared(self, theirs: Any, mine: Any, convert: Conversion) -> tuple[str, str]:
        t_out, m_out = tensors_in(theirs, torch.Tensor), tensors_in(mine, face.Tensor)
        if not t_out:
            same = mapped(theirs, Conversion()) == mine
            return ("equal" if same else f"gives {mine!r:.40}"), "none"
        if len(t_out) != len(m_out):
            return f"{len(m_out)} results instead of {len(t_out)}", "none"
        for m, t in zip(m_out, map(_numbers, t_out), strict=True):
            if close(_numbers(m), t):
                continue
            if self.info.name in DRAWN and tuple(m.shape) == t.shape:
                return "equal", "none"
            return f"differs: {tuple(m.shape)} {m.dtype} for {t.shape} {t.dtype}", "none"
        if not convert.leaves:
            return "equal", "none"
        return "equal", self._gradients(t_out, m_out, convert)

    def _gradients(self, t_out: list[Any], m_out: list[Any], convert: Conversion) -> str:
        roots = [i for i, x in enumerate(t_out) if x.requires_grad]
        if not roots:
            return "none"
        self.roots = roots
        self.weights = [_weights(t_out[i]) for i in roots]
        try:
            t_grads = torch.autograd.grad(self._total(t_out), convert.origins, allow_unused=True)
        except RuntimeError:
            return "none"
        try:
            pairs = zip(roots, self.weights, strict=True)
            total = sum((m_out[i] * _of_face(w).to(m_out[i].dtype)).sum() for i, w in pairs)
            m_grads = face.autograd.grad(total, convert.leaves, allow_unused=True)
        except Exception as error:  # counted too
            return f"raises {type(error).__name__}: {str(error)[:90]}"
        theirs = [_array(g, x) for g, x in zip(t_grads, convert.origins, strict=True)]
        ours = [_array(g, x) for g, x in zip(m_grads, convert.origins, strict=True)]
        if all(map(close, ours, theirs)):
            return "equal"
        return self._judge(ours, theirs, convert.origins)

    def _total(self, out: list[Any]) -> Any:
        return sum((out[i] * w).sum() for i, w in zip(self.roots, self.weights, strict=True))

    def _judge(self, ours: list[Any], theirs: list[Any], origins: list[Any]) -> str:
        """Say who is right, by the slope of PyTorch's function where the two differ most."""
        if any(x.dtype != torch.float64 for x in origins):
            return "differs"
        direction = [
            np.nan_to_num(a - b) + np.isnan(a - b) for a, b in zip(ours, theirs, strict=True)
        ]
        length = np.sqrt(sum(float((d * d).sum()) for d in direction)) or 1.0
        direction = [d / length for d in direction]
        slope = (
            self._shifted(origins, direction, 1e-6) - self._shifted(origins, direction, -1e-6)
        ) / 2e-6
        a, b = (
            sum(float((g * d).sum()) for g, d in zip(gs, direction, strict=True))
            for gs in (ours, theirs)
        )
        near = 1e-5 * max(1.0, abs(slope))
        if abs(a - slope) < near and not abs(b - slope) < near:
            return "ours is right by finite differences"
        right = "PyTorch's" if abs(b - slope) < near else "neither"
        return f"differs; {right} is right by finite differences"

    def _shifted(self, origins: list[Any], direction: list[Any], step: float) -> float:
        moved = {
            id(x): x.detach() + step * torch.from_numpy(np.asarray(d)).reshape(x.shape)
            for x, d in zip(origins, direction, strict=True)
        }
        given = mapped(self.given, lambda x: moved.get(id(x), x))
        with torch.no_grad():
            return float(self._total(tensors_in(self._of_torch(given), torch.Tensor)))


def _numbers(x: Any) -> Any:
    """Return the numbers of a tensor of either; NumPy has no bfloat16 of its own."""
    wide = x.float() if "bfloat16" in str(x.dtype) else x
    return wide.detach().numpy(force=True)


def _of_face(x: Any) -> Any:
    return face.tensor(_numbers(x))


def _weights(x: Any) -> Any:
    """Return fixed weights for an output, whose weighted sum is differentiated."""
    found = np.cos(np.arange(x.numel(), dtype=np.float64)).reshape(tuple(x.shape))
    return torch.from_numpy(np.asarray(found)).to(x.dtype)


def _array(gradient: Any, leaf: Any) -> Any:
    if gradient is None:
        return np.zeros(tuple(leaf.shape))
    return _numbers(gradient)
