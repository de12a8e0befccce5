"""`chainer.grad` and `chainer.backward`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autodiff import gradients
from .variable import Variable, as_tensor, wrapped


def grad(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    grad_outputs: Sequence[Any] | None = None,
    grad_inputs: Sequence[Any] | None = None,
    set_grad: bool = False,
    retain_grad: bool = False,
    enable_double_backprop: bool = False,
    loss_scale: float | None = None,
) -> list[Variable | None]:
    """Return the gradients of outputs with respect to inputs; None where they do not depend."""
    for name, given in (("outputs", outputs), ("inputs", inputs)):
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"{name} must be a tuple or a list, not {type(given).__name__}")
    starts = None if grad_outputs is None else [as_tensor(g) for g in grad_outputs]
    found = gradients(
        [y._tensor for y in outputs],
        [x._tensor for x in inputs],
        starts,
        create_graph=enable_double_backprop,
        retain_graph=True,
    )
    result: list[Variable | None] = [None if g is None else wrapped(g) for g in found]
    for position, extra in enumerate(grad_inputs or ()):
        if extra is not None:
            mine = result[position]
            result[position] = (
                wrapped(as_tensor(extra)) if mine is None else mine + as_tensor(extra)
            )
    if set_grad:
        for x, g in zip(inputs, result, strict=True):
            x.grad_var = g
    return result


def backward(outputs: Sequence[Variable], **options: Any) -> None:
    """Go back from several variables at once, each with the gradient that it holds."""
    for output in outputs:
        output.backward(**options)
