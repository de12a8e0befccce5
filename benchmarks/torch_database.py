"""PyTorch's operator database, called on `weft.torch` exactly as PyTorch is called.

    python benchmarks/torch_database.py [--only NAME ...] [--shard I/N] [--show COUNT]

Needs PyTorch, with `expecttest`, beside Weft. For every name of the database, and every sample with
real numbers that it has, values and gradients of the face are held against PyTorch's. What differs
is listed, and counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import types
import warnings
from collections import Counter
from typing import Any

import numpy as np

warnings.filterwarnings("ignore")

import torch  # noqa: E402  (after the warnings are off)
from torch.testing._internal import common_methods_invocations as database  # noqa: E402

import weft.torch as face  # noqa: E402

# Whose numbers need not be PyTorch's: random, or whatever memory held.
DRAWN = ("empty", "rand", "normal", "bernoulli", "multinomial", "dropout", "cauchy", "exponential",
         "geometric", "log_normal", "uniform", "rrelu", "fractional", "lowrank")  # fmt: skip

# Not of tensors that Weft has: complex numbers, sparse and nested tensors, internals.
OUT_OF_SCOPE = ("jiterator", "torch.ops.", "torch._scaled", "sparse.", "to_sparse", "fft.")


def find(name: str) -> Any:
    """Return the function of the face that a name of the database stands for, or None."""
    owner: Any = face
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    for place in (owner, *([] if path else [face.Tensor])):
        found = None if place is None else getattr(place, last, None)
        if found is not None:
            return _reading(found)
    return None


def _reading(found: Any) -> Any:
    """Return what gives the value of a property; a function as it is."""
    return found.fget if isinstance(found, property) else found


def call_of(info: Any) -> Any:
    """Return what computes an entry of the database by the face, or None if it is missing."""
    function = info.op
    if isinstance(function, types.FunctionType) and function.__name__ in (
        "<lambda>",
        "wrapper_func",
    ):
        return _rebound(function)
    if isinstance(function, types.FunctionType) and "testing" in function.__module__:
        return _rebound(function)
    return find(info.name)


def _rebound(function: Any) -> Any:
    """Return a function of the database's own, which sees the face where it says `torch`."""
    scope = {**function.__globals__, "torch": face}
    cells = function.__closure__
    made = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def ours(value: Any, leaves: list[Any]) -> Any:
    """Return an argument of PyTorch's as one of the face; leaves are collected."""
    if isinstance(value, torch.Tensor):
        array = value.detach().numpy().copy()
        made = face.tensor(array)
        if value.requires_grad:
            made.requires_grad_()
            leaves.append(made)
        return made
    if isinstance(value, torch.dtype):
        return getattr(face, str(value).removeprefix("torch."), None) or np.dtype("void")
    if isinstance(value, torch.Size):
        return face.Size(value)
    if isinstance(value, torch.device):
        return face.device(str(value))
    if isinstance(value, dict):
        return {name: ours(part, leaves) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [ours(part, leaves) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def tensors_in(value: Any, kind: Any) -> list[Any]:
    """Return all tensors of a nest, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in tensors_in(part, kind)]
    return []


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


def seeds(arrays: list[Any]) -> list[Any]:
    """Return fixed weights for the outputs, whose weighted sum is differentiated."""
    return [
        np.cos(np.arange(a.size, dtype=np.float64)).reshape(a.shape).astype(a.dtype) for a in arrays
    ]


def compare(call: Any, info: Any, sample: Any) -> tuple[str, str]:
    """Return how the values, and the gradients, of a sample compare: equal, or what is wrong."""
    leaves: list[Any] = []
    args = [ours(x, leaves) for x in (sample.input, *sample.args)]
    kwargs = {n: ours(x, leaves) for n, x in sample.kwargs.items()}
    theirs = info.op(sample.input, *sample.args, **sample.kwargs)
    try:
        mine = call(*args, **kwargs)
    except Exception as error:  # whatever it is, it is counted
        return f"raises {type(error).__name__}: {str(error)[:90]}", "none"
    t_out, m_out = tensors_in(theirs, torch.Tensor), tensors_in(mine, face.Tensor)
    if not t_out:
        return ("equal" if theirs == mine else f"gives {mine!r:.40}"), "none"
    if len(t_out) != len(m_out):
        return f"{len(m_out)} results instead of {len(t_out)}", "none"
    t_values = [x.detach().numpy() for x in t_out]
    drawn = any(part in info.name for part in DRAWN) or sample.kwargs.get("dropout_p")
    if drawn and all(tuple(m.shape) == t.shape for m, t in zip(m_out, t_values, strict=True)):
        return "equal", "none"
    for m, t in zip(m_out, t_values, strict=True):
        if not close(m.detach().numpy(), t):
            return f"differs: {tuple(m.shape)} {m.dtype} for {t.shape} {t.dtype}", "none"
    if not leaves:
        return "equal", "none"
    return "equal", gradients(t_out, m_out, sample, leaves)


def gradients(t_out: list[Any], m_out: list[Any], sample: Any, leaves: list[Any]) -> str:
    """Return how gradients compare."""
    t_roots = [(x, i) for i, x in enumerate(t_out) if x.requires_grad]
    if not t_roots:
        return "none"
    weights = seeds([x.detach().numpy() for x, _ in t_roots])
    t_leaves = [
        x
        for x in tensors_in([sample.input, sample.args, sample.kwargs], torch.Tensor)
        if x.requires_grad
    ]
    total = sum((x * torch.from_numpy(w)).sum() for (x, _), w in zip(t_roots, weights, strict=True))
    try:
        t_grads = torch.autograd.grad(total, t_leaves, allow_unused=True)
    except RuntimeError:
        return "none"
    try:
        mine = sum(
            (m_out[i] * face.tensor(w)).sum() for (_, i), w in zip(t_roots, weights, strict=True)
        )
        m_grads = face.autograd.grad(mine, leaves, allow_unused=True)
    except Exception as error:  # counted too
        return f"raises {type(error).__name__}: {str(error)[:90]}"
    for m, t, leaf in zip(m_grads, t_grads, t_leaves, strict=True):
        a = np.zeros(leaf.shape) if m is None else m.detach().numpy()
        b = np.zeros(leaf.shape) if t is None else t.detach().numpy()
        if not close(a, b.astype(leaf.detach().numpy().dtype)):
            return "differs"
    return "equal"


def dtype_of(info: Any) -> Any:
    """Return the dtype with which an entry is tried."""
    known = info.supported_dtypes("cpu")
    for dtype in (torch.float64, torch.float32, torch.int64, torch.bool):
        if dtype in known:
            return dtype
    return None


def run(names: list[str], shard: tuple[int, int]) -> dict[str, Any]:
    """Try the entries of the database, and return what was found."""
    found: dict[str, Any] = {"names": {}, "values": Counter(), "grads": Counter(), "wrong": []}
    entries = [i for i in database.op_db if not i.name.startswith(OUT_OF_SCOPE)]
    entries = [i for i in entries if not names or i.name in names][shard[0] :: shard[1]]
    for info in entries:
        call, dtype = call_of(info), dtype_of(info)
        known = find(info.name) is not None
        found["names"][info.name] = found["names"].get(info.name, False) or known
        if call is None or not known or dtype is None:
            continue
        _try_samples(info, call, dtype, found)
    return found


def _try_samples(info: Any, call: Any, dtype: Any, found: dict[str, Any]) -> None:
    torch.manual_seed(0)
    wants_grad = info.supports_autograd and dtype.is_floating_point
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=wants_grad))
    except Exception:  # of the database itself
        return
    for number, sample in enumerate(samples):
        try:
            value, grad = compare(call, info, sample)
        except Exception as error:  # PyTorch's own
            value, grad = f"not compared: {type(error).__name__}: {str(error)[:80]}", "none"
        label = f"{info.name}.{info.variant_test_name}".rstrip(".")
        found["values"]["equal" if value == "equal" else "wrong"] += 1
        if grad != "none":
            found["grads"]["equal" if grad == "equal" else "wrong"] += 1
        if value != "equal" or grad not in ("none", "equal"):
            found["wrong"].append((label, number, value, grad))


def main() -> None:
    """Read options, run, and print counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    index, count = map(int, options.shard.split("/"))
    begun = time.perf_counter()
    found = run(options.only, (index, count))
    shown: Counter[str] = Counter()
    for label, number, value, grad in found["wrong"]:
        shown[label] += 1
        if shown[label] <= options.show:
            print(
                f"{label} [{number}]: {value}"
                + ("" if grad in ("none", "equal") else f"; gradient {grad}")
            )
    names = found["names"]
    print("missing:", *sorted(n for n, known in names.items() if not known))
    print(f"names: {sum(names.values())} of {len(names)}")
    for kind in ("values", "grads"):
        right, wrong = found[kind]["equal"], found[kind]["wrong"]
        print(f"{kind}: {right} of {right + wrong} equal ({right / max(right + wrong, 1):.2%})")
    print("by name:", *[f"{n}:{c}" for n, c in shown.most_common()])
    print(f"{time.perf_counter() - begun:.0f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"wrong": found["wrong"]}, file)


if __name__ == "__main__":
    sys.exit(main())
