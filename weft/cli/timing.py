"""Times of each layer, forward and backward.

A model runs once while the calls of its layers are noted; then each layer is timed by itself on
the inputs it was given. A layer is what has no layer inside it that ran too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ..autodiff import gradients
from ..core import dtype as dt
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..core.tree import tree_leaves, tree_map
from ..nn import Module


@dataclass
class TimedCall:
    """One call of a layer, and how long it takes (seconds, the median of some repetitions)."""

    name: str
    kind: str
    module: Module
    args: tuple[Any, ...]
    shape: str = ""
    forward: float = 0.0
    backward: float = 0.0


def layer_calls(model: Module, inputs: Sequence[Any]) -> list[TimedCall]:
    """Return the calls of the layers of a model, in order."""
    calls: list[TimedCall] = []
    inner: list[bool] = []

    def before(module: Module, args: Any) -> None:
        inner.append(False)

    def after(module: Module, args: Any, output: Any) -> None:
        has_inner = inner.pop()
        if not has_inner:
            shapes = [tuple(x.shape) for x in tree_leaves(output) if isinstance(x, Tensor)]
            shown = " ".join(map(str, shapes[:1])) + (" ..." if shapes[1:] else "")
            calls.append(TimedCall(names[id(module)], type(module).__name__, module, args, shown))
        if inner:
            inner[-1] = True

    names = {id(module): name for name, module in model.named_modules()}
    with ExitStack() as stack, no_grad():
        for module in model.modules():
            stack.enter_context(module.register_forward_pre_hook(before))
            stack.enter_context(module.register_forward_hook(after))
        model(*inputs)
    return calls


def time_call(call: TimedCall, repeat: int) -> None:
    """Measure one call of a layer, forward and backward."""
    args = tree_map(_leaf, call.args)
    parameters = [p for p in call.module.parameters() if p.requires_grad]
    leaves = [x for x in tree_leaves(args) if isinstance(x, Tensor) and x.requires_grad]
    call.forward = median_time(lambda: call.module(*args), repeat)
    wanted = [*leaves, *parameters]
    if wanted:
        call.backward = _backward_time(lambda: call.module(*args), wanted, repeat)


def time_model(model: Module, inputs: Sequence[Any], repeat: int) -> tuple[float, float]:
    """Return the seconds of a whole forward and backward pass."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    forward = median_time(lambda: model(*inputs), repeat)
    return forward, _backward_time(lambda: model(*inputs), wanted, repeat) if wanted else 0.0


def median_time(run: Callable[[], Any], repeat: int) -> float:
    """Return the median seconds of a function, after one call that does not count."""
    _wait(run())
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        _wait(run())
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def _backward_time(run: Callable[[], Any], wanted: list[Any], repeat: int) -> float:
    times = []
    for _ in range(repeat + 1):
        outputs = [y for y in tree_leaves(run()) if isinstance(y, Tensor) and y.requires_grad]
        if not outputs:
            return 0.0
        ones = [y.detach() * 0 + 1 for y in outputs]
        _wait(ones)
        start = time.perf_counter()
        _wait(gradients(outputs, wanted, ones))
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[repeat // 2]


def _wait(results: Any) -> None:
    """Wait for the devices that results are on, which may still compute them."""
    for where in {x.device for x in tree_leaves(results) if isinstance(x, Tensor)}:
        where.synchronize()


def _leaf(value: Any) -> Any:
    """Return a tensor as one whose gradient can be asked for, if it is of floats."""
    if not isinstance(value, Tensor) or not dt.is_float(value.dtype):
        return value
    leaf = value.detach().clone()
    leaf.requires_grad = True
    return leaf
