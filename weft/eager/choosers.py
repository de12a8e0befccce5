"""Operators on large tensors: choose between the reference kernel and machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.config import config
from ..core.imports import deferred_imports
from ..core.large import LARGE
from ..core.op import Op
from ..core.shape import size_of
from .products import make_product_chooser
from .pullbacks import has_own_pullback, make_pullback_chooser
from .uses import Code, Use, Uses, operations, tick

Chooser = Callable[..., Any]


def accepts(op: Op) -> bool:
    """Tell whether an operator can have kernels: one result, from a fixed number of arrays."""
    simple = not op.variadic and not op.optional and op.outputs == 1 and bool(op.inputs)
    passes = op.lower_rule is not None and op.kind in ("elementwise", "reduction")
    return simple and (passes or op.scatter_rule is not None)


def install_chooser(op: Op, scope: dict[str, Any]) -> None:
    """Put choosers in the places of the kernels that an operator's functions call."""
    if op.multiplications_rule is not None:
        scope["kernel"] = make_product_chooser(op, op.kernel)
    if accepts(op):
        # 1, 1.0 and True are equal, as are 0.0 and -0.0. The attributes of reductions are axes and
        # flags in canonical form.
        by_text = op.kind != "reduction" and bool(op.attrs)
        scope["kernel"] = make_chooser(
            op.name, op.kernel, len(op.inputs), exact=op.exact, by_text=by_text
        )
    if op.shortcut_rule is not None:
        scope["kernel"] = _with_shortcuts(op.shortcut_rule, scope["kernel"])
    if has_own_pullback(op) and "backward" in scope:
        op.backward = scope["backward"] = make_pullback_chooser(op, scope["backward"])
    scope["times"] = _TIMES


def _with_shortcuts(rule: Callable[[Any], Any], chooser: Chooser) -> Chooser:
    """Return a function that goes a quicker way where a number in last place has one."""

    def choose(x: Any, y: Any, *attrs: Any) -> Any:
        if y.__class__ is np.ndarray and y.ndim == 0 and y.dtype.kind == "f":
            quicker = rule(y.item()) if getattr(x, "size", 0) >= LARGE else None
            if quicker is not None:
                return quicker(x)
        return chooser(x, y, *attrs)

    return choose


def make_chooser(
    name: str, kernel: Any, count: int, *, exact: bool, by_text: bool = False
) -> Chooser:
    """Return a function that takes an operator's arrays and attributes to the better kernel.

    by_text   whether attributes that are equal may differ in what they do
    """
    uses: Uses = {}
    make = {1: _of_one, 2: _of_two}.get(count, partial(_of_several, count=count))
    describe: Callable[[Any], Any] = repr if by_text else _as_they_are
    return make(uses, kernel, describe, _newcomer(uses, name, kernel, count, exact), exact)


# The first two are the third, written out for few arrays: after a large operation nothing of the
# interpreter is in the processor's cache, and each step costs several times the usual. For the same
# reason they try the code that ran last before they look an operation up: code looks at the arrays
# itself, and returns None if they are not what it was made for.

_NONE_YET: tuple[Use, Any, Any] = (Use(), None, object())  # no attributes are equal to these


def _of_one(uses: Uses, kernel: Any, describe: Any, new: Any, exact: bool) -> Chooser:
    latest = _NONE_YET

    def choose(x: Any, *attrs: Any) -> Any:
        nonlocal latest
        try:
            large = x.size >= LARGE
        except AttributeError:  # rules may give Python numbers
            large = False
        if not large:
            return kernel(x, *attrs)
        described, (use, run, known) = describe(attrs), latest
        if described == known and config.eager_kernels:
            result = run(x)
            if result is not None:
                use.last = tick()
                return result
        key = (x.shape, x.dtype, described)
        met = uses.get(key)
        if met is not None and met.run is not None:
            latest = (met, met.run, described)
        return new(key, (x, *attrs))

    return choose


def _of_two(uses: Uses, kernel: Any, describe: Any, new: Any, exact: bool) -> Chooser:
    latest = _NONE_YET

    def choose(x: Any, y: Any, *attrs: Any) -> Any:
        nonlocal latest
        try:
            large = max(x.size, y.size) >= LARGE or (exact and _makes_large(x, y))
        except AttributeError:
            large = False
        if not large:
            return kernel(x, y, *attrs)
        described, (use, run, known) = describe(attrs), latest
        if described == known and config.eager_kernels:
            result = run(x, y)
            if result is not None:
                use.last = tick()
                return result
        key = (x.shape, x.dtype, y.shape, y.dtype, described)
        met = uses.get(key)
        if met is not None and met.run is not None:
            latest = (met, met.run, described)
        return new(key, (x, y, *attrs))

    return choose


def _makes_large(x: Any, y: Any) -> bool:
    """Tell whether small operands broadcast against one another to a large result.

    Only exact code may ask: whether the door is open then must not show.
    """
    if x.size * y.size < LARGE or x.shape == y.shape:
        return False
    try:
        return size_of(np.broadcast_shapes(x.shape, y.shape)) >= LARGE
    except ValueError:  # they do not fit; the reference kernel says so
        return False


def _of_several(
    uses: Uses, kernel: Any, describe: Any, new: Any, exact: bool, count: int
) -> Chooser:
    def choose(*args: Any) -> Any:
        arrays = args[:count]
        try:
            large = max(x.size for x in arrays) >= LARGE
            types = [part for x in arrays for part in (x.shape, x.dtype)] if large else None
        except AttributeError:
            types = None
        return kernel(*args) if types is None else new((*types, describe(args[count:])), args)

    return choose


def _newcomer(uses: Uses, name: str, kernel: Any, count: int, exact: bool) -> Callable[..., Any]:
    """Return a function that runs operations whose machine code may not have taken over yet."""

    def run(key: Any, args: tuple[Any, ...]) -> Any:
        if not config.eager_kernels:
            return kernel(*args)
        use = operations.use(uses, key)
        attrs = args[count:]  # the job must not hold the arrays
        code = use.run or use.again(lambda: _compiled(name, key[:-1], attrs), exact=exact)
        result = None if code is None else code(*args[:count])
        return kernel(*args) if result is None else result

    return run


def _as_they_are(attrs: Any) -> Any:
    return attrs


_TIMES = make_chooser(
    "mul", np.multiply, 2, exact=True
)  # what a generated backward multiplies with


def _compiled(name: str, types: Sequence[Any], attrs: tuple[Any, ...]) -> Code | None:
    with deferred_imports:
        from .compilation import compile_kernel  # noqa: PLC0415  (the compiler, slow to import)
    return compile_kernel(name, list(zip(types[::2], types[1::2], strict=True)), attrs)
