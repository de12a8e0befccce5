"""Count floating-point operations, operator by operator, while a program runs.

A multiplication and an addition count one each, so a multiply-add counts two. Every other
elementwise function counts one for each element, a reduction one for each element it reads. Moving
data, choosing elements and drawing random numbers count nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.modes import current_interpreter, interpret_with
from ..core.shape import size_of
from ..core.tensor import Tensor

Rule = Callable[[tuple[Any, ...], tuple[Any, ...], Any], int]


class CountFlops:
    """Run operations as before and count their floating-point operations in `total`.

    >>> import weft as wf
    >>> with CountFlops() as counter:
    ...     product = wf.ones((2, 3)) @ wf.ones((3, 4))
    >>> counter.total
    48
    """

    def __init__(self) -> None:
        self.total = 0
        self._below: Any = None
        self._contexts: list[interpret_with] = []

    def __enter__(self) -> CountFlops:
        """Start counting."""
        self._below = current_interpreter()
        self._contexts.append(interpret_with(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop counting, also after an error."""
        self._contexts.pop().__exit__(*exc)

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation and count it."""
        with interpret_with(self._below):
            if self._below is None:
                result = op.specialized.execute(inputs, attrs)
            else:
                result = self._below.apply(op, inputs, attrs)
        self.total += flops_of(op, inputs, attrs, result)
        return result


def flops_of(op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], result: Any) -> int:
    """Return the floating-point operations of one operation."""
    rule = RULES.get(op.name) or KINDS.get(op.kind)
    return 0 if rule is None else rule(inputs, attrs, _first(result))


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _each_output(inputs: Any, attrs: Any, out: Any) -> int:
    return int(out.size)


def _each_input(inputs: Any, attrs: Any, out: Any) -> int:
    return sum(x.size for x in inputs if isinstance(x, Tensor))


def _nothing(inputs: Any, attrs: Any, out: Any) -> int:
    return 0


def _matmul(inputs: Any, attrs: Any, out: Any) -> int:
    return 2 * int(out.size) * int(inputs[0].shape[-1])


def _linear(inputs: Any, attrs: Any, out: Any) -> int:
    return _matmul(inputs, attrs, out) + (0 if inputs[2] is None else int(out.size))


def _conv(inputs: Any, attrs: Any, out: Any) -> int:
    return 2 * int(out.size) * size_of(inputs[1].shape[1:])


def _conv_input_grad(inputs: Any, attrs: Any, out: Any) -> int:
    return 2 * int(inputs[0].size) * size_of(inputs[1].shape[1:])


def _window(inputs: Any, attrs: Any, out: Any) -> int:
    kernel = attrs[0] if isinstance(attrs[0], tuple) else (attrs[0],) * (inputs[0].ndim - 2)
    return int(out.size) * size_of(kernel)


KINDS: dict[str, Rule] = {"elementwise": _each_output, "reduction": _each_input}
RULES: dict[str, Rule] = {
    "matmul": _matmul,
    "linear": _linear,
    "conv": _conv,
    "conv_input_grad": _conv_input_grad,
    "conv_weight_grad": lambda inputs, attrs, out: _conv((inputs[0], out), attrs, inputs[1]),
    "max_pool": _window,
    "sum_pool": _window,
    "adaptive_max_pool": _each_input,
    "resize_axis": _each_output,
    "cumsum": _each_output,
    "cumprod": _each_output,
    # Elementwise in form only: they copy, convert or choose.
    **dict.fromkeys(("cast", "positive", "stop_gradient", "where", "fill_like"), _nothing),
}
