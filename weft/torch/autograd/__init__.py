"""torch.autograd: gradients of results, and functions with a backward of one's own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autodiff import detect_anomaly as core_detect_anomaly
from ...autodiff.reverse import gradients
from ...core import tensor as core
from ...core.errors import GradientError
from ...core.imports import lazy_attributes
from ...core.modes import GradMode, enable_grad, is_grad_enabled, set_grad_enabled
from ..absent import absent
from ..adoption import adopt
from ..backward import NO_GRAPH, NOT_SCALAR, in_their_words
from ..parts import serve_parts
from ..storage import check_versions
from .function import Function

if TYPE_CHECKING:
    from . import functional

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


class no_grad(GradMode):  # noqa: N801  (PyTorch's name)
    """A context, or a decorator, in which nothing is recorded for differentiation."""

    __slots__ = ()

    def __init__(self, orig_func: Any = None) -> None:
        super().__init__(False)

    def __new__(cls, orig_func: Any = None) -> Any:
        """Return the context; of a function, the function that runs inside of it."""
        made = super().__new__(cls)
        if orig_func is None:
            return made
        GradMode.__init__(made, False)
        return GradMode.__call__(made, orig_func)


def inference_mode(mode: Any = True) -> Any:
    """Return a context, or a decorator, in which nothing is recorded: here as `no_grad`."""
    if callable(mode) and not isinstance(mode, bool):
        return no_grad(mode)
    return GradMode(False) if mode else GradMode(is_grad_enabled())


def Variable(data: Any, requires_grad: bool = False, volatile: Any = None) -> Any:  # noqa: N802
    """Return a tensor that requires gradients if asked for: variables are tensors."""
    made = data.detach() if requires_grad else data
    return made.requires_grad_() if requires_grad else made


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of outputs with respect to inputs; `.grad` is left alone."""
    ys = [outputs] if isinstance(outputs, core.Tensor) else list(outputs)
    xs = [inputs] if isinstance(inputs, core.Tensor) else list(inputs)
    gs = grad_outputs
    if gs is not None:
        gs = [gs] if isinstance(gs, core.Tensor) else list(gs)
    _check(ys, xs, gs)
    try:
        found = gradients(ys, xs, gs, retain_graph=retain_graph, create_graph=create_graph)
    except GradientError as error:
        raise in_their_words(error) from None
    unused = next((i for i, g in enumerate(found) if g is None), None)
    if unused is not None and not (allow_unused or materialize_grads):
        raise RuntimeError(
            f"The differentiated Tensor at index {unused} appears to not have been used in the "
            "graph. Set allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        found = [
            core.wrap(np.zeros(x.shape, x.dtype)) if g is None else g
            for g, x in zip(found, xs, strict=True)
        ]
    return tuple(adopt(g) for g in found)


def _check(ys: list[Any], xs: list[Any], gs: Any) -> None:
    if gs is None and any(y.numel() != 1 for y in ys):
        raise RuntimeError(NOT_SCALAR)
    if not any(y.requires_grad for y in ys):
        raise RuntimeError(NO_GRAPH)
    if any(not x.requires_grad for x in xs):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    check_versions([y._node for y in ys if not y.symbolic])


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors to `.grad` of every leaf they depend on."""
    ys = [tensors] if isinstance(tensors, core.Tensor) else list(tensors)
    gs: Any = [None] * len(ys) if grad_tensors is None else grad_tensors
    gs = [gs] if isinstance(gs, core.Tensor) else list(gs)
    for i, (y, g) in enumerate(zip(ys, gs, strict=True)):
        keep = True if i + 1 < len(ys) else retain_graph
        y.backward(g, keep, create_graph, inputs)


class detect_anomaly:  # noqa: N801  (PyTorch's name)
    """A context in which the operation that makes a NaN is named."""

    def __init__(self, check_nan: bool = True) -> None:
        self._context = core_detect_anomaly()

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._context.__exit__(*exc)


class set_detect_anomaly:  # noqa: N801  (PyTorch's name)
    """Switch on, or off, that the operation which makes a NaN is named."""

    _on: Any = None

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        kind = type(self)
        if mode and kind._on is None:
            kind._on = core_detect_anomaly()
            kind._on.__enter__()
        elif not mode and kind._on is not None:
            kind._on.__exit__(None, None, None)
            kind._on = None

    def __enter__(self) -> None:
        """Keep what the constructor set."""

    def __exit__(self, *exc: object) -> None:
        set_detect_anomaly(False)


def gradcheck(
    func: Any,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_forward_ad: bool = False,
    order: int = 1,
    **_: Any,
) -> bool:
    """Tell whether gradients, up to an order, are those of finite differences."""
    from ...autodiff.check import check_grads  # noqa: PLC0415  (for tests alone)

    given = (inputs,) if isinstance(inputs, core.Tensor) else tuple(inputs)
    modes = ("rev", "fwd") if check_forward_ad else ("rev",)
    try:
        check_grads(func, given, order=order, modes=modes)
    except GradientError:
        if raise_exception:
            raise
        return False
    return True


gradgradcheck = partial(gradcheck, order=2)
serve_parts(__name__, {"variable": {"Variable": Variable}})
__getattr__ = lazy_attributes(  # whose transforms few programs need
    globals(),
    {},
    ("functional",),
    otherwise=absent(globals(), {"profiler": "use executable.profile(), see docs/debugging.md"}),
)
