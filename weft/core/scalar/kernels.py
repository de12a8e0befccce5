"""The eager kernel of an operator that says what it computes by its `lower` rule alone.

The rule runs once for each combination of dtypes that is met, and what it gives is written as NumPy
source (text.py). A rule that is one function of the operands has that function for its kernel:
`np.exp` itself. 16-bit floats are computed in float32 and rounded once.

The kernel finds its variant by the dtypes of its operands and the types of its attributes, and by
the values of those that the rule looks at (attributes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..dtype import DType, bool_, float32, float64, is_half
from ..errors import GENERATED_PREFIX
from ..generated import show_source
from ..shape import TensorType, size_of
from .attributes import Attribute
from .builder import Expr
from .functions import FUNCTIONS
from .text import ExpressionSource, NumpyBuilder

if TYPE_CHECKING:
    from ..op import Op

Kernel = Callable[..., Any]

MOST_VARIANTS = 512  # of one operator: for dtypes, and for attributes that its rule looks at


def derived_kernel(op: Op) -> Kernel:
    """Return the kernel that follows from an operator's `lower` rule."""
    return _single_function(op) or _Derived(op).kernel


def _single_function(op: Op) -> Kernel | None:
    """Return the function that a rule is, if it takes the operands as they are."""
    if op.kind == "reduction":
        return _single_reduction(op)
    if op.attrs:
        return None
    dtypes = [float64 if op.promote is None or n in op.promoted else bool_ for n in op.inputs]
    builder = NumpyBuilder()
    operands = tuple(builder.load(i, dtype) for i, dtype in enumerate(dtypes))
    assert op.lower_rule is not None
    expr: Expr = op.lower_rule(builder, *operands)
    record = FUNCTIONS.get(expr.kind)
    plain = record is not None and record.result != "given" and expr.args == operands
    return record.numpy if record is not None and plain else None


def _single_reduction(op: Op) -> Kernel | None:
    """Return the kernel of the largest or smallest element, which is one call for all dtypes."""
    builder = NumpyBuilder()
    (x,) = operands = (builder.load(0, float64),)
    given = _given(op.attrs, tuple(op.attrs.values()), set())
    assert op.lower_rule is not None
    expr: Expr = op.lower_rule(builder, *operands, *given)
    if expr.kind != "reduce" or expr.data not in ("max", "min") or expr.args != (x,):
        return None
    source = ExpressionSource(op.inputs, expr)
    text = _function((*op.inputs, *op.attrs), source)
    variant = Variant(text, source.scope, ())
    kernel = _compiled(op.name, variant.text, variant.scope)
    kernel.variant = lambda dtypes, attrs, alone=False: variant  # type: ignore[attr-defined]  # as below
    return kernel


def formula_kernel(formula: Callable[..., Any], dtypes: Sequence[DType | None]) -> Kernel:
    """Return a formula of a builder and values as a function of arrays, or numbers for None."""
    builder, names = NumpyBuilder(), [f"x{i}" for i in range(len(dtypes))]
    values = [
        Attribute(name, None, set()) if dtype is None else builder.load(i, dtype)
        for i, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
    ]
    source = ExpressionSource(names, formula(builder, *values), axes=True)
    return _compiled(formula.__name__, _function(names, source), source.scope | builder.rules)


def _function(
    parameters: Sequence[str], source: ExpressionSource, before: Sequence[str] = ()
) -> str:
    lines = (*before, *source.lines, f"return {source.result}")
    body = "".join(f"    {line}\n" for line in lines)
    return f"def kernel({', '.join(parameters)}):\n{body}"


class Variant(NamedTuple):
    """The source of a kernel for given dtypes, what it uses, and what its rule looked at."""

    text: str
    scope: dict[str, Any]
    seen: tuple[str, ...]


class _Derived:
    """Makes the variants of one operator's kernel."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.seen: dict[str, bool] = {}  # attributes looked at, and whether zeros have signs
        self.variants: dict[Any, Kernel] = {}
        self.scope = {"variants": self.variants, "missing": self._missing, "distinct": _distinct}
        self.kernel = _compiled(op.name, self._dispatch(), self.scope)
        self.kernel.variant = self.variant  # type: ignore[attr-defined]  # see autodiff/kernel_text.py

    def _dispatch(self) -> str:
        """Return the text of the kernel: it finds the variant for its operands and attributes."""
        parameters = ", ".join((*self.op.inputs, *self.op.attrs))
        return (
            f"def kernel({parameters}):\n"
            "    try:\n"
            f"        run = variants[{', '.join(self._key_parts())}]\n"
            "    except (AttributeError, KeyError):\n"
            f"        run = missing({parameters})\n"
            f"    return run({parameters})\n"
        )

    def _key_parts(self) -> list[str]:
        parts = [f"{x}.dtype" for x in self.op.inputs]
        for name in self.op.attrs:
            parts.append(f"{name}.__class__")
            if name in self.seen:
                parts.append(f"distinct({name})" if self.seen[name] else name)
        return parts

    def _missing(self, *arguments: Any) -> Kernel:
        count = len(self.op.inputs)
        operands, attrs = arguments[:count], arguments[count:]
        if self._differ(operands):  # a rule mixes dtypes, or gives numbers
            return lambda *given: self.kernel(*self._brought(given[:count]), *given[count:])
        variant = self.variant(tuple(x.dtype for x in operands), attrs)
        self._look_at(variant.seen, attrs)
        if len(self.variants) >= MOST_VARIANTS:
            self.variants.clear()
        made = _compiled(self.op.name, variant.text, variant.scope)
        return self.variants.setdefault(self._key(operands, attrs), made)

    def _look_at(self, names: Sequence[str], attrs: Sequence[Any]) -> None:
        """Let the kernel look at attributes that a rule looks at, if it does not yet."""
        found = dict(self.seen)
        for name, value in zip(self.op.attrs, attrs, strict=True):
            if name in names:
                found[name] = found.get(name, False) or isinstance(value, float)
        if found != self.seen:
            self.seen = found
            self.variants.clear()
            self.kernel.__code__ = _compiled(self.op.name, self._dispatch(), {}).__code__

    def _key(self, operands: Sequence[Any], attrs: Sequence[Any]) -> Any:
        key: list[Any] = [x.dtype for x in operands]
        for name, value in zip(self.op.attrs, attrs, strict=True):
            key.append(value.__class__)
            if name in self.seen:
                key.append(_distinct(value) if self.seen[name] else value)
        return tuple(key) if len(key) > 1 else key[0]

    def _differ(self, operands: Sequence[Any]) -> bool:
        """Tell whether operands are numbers, or differ in dtype where they should not."""
        dtypes = [getattr(x, "dtype", None) for x in operands]
        meeting = {d for d, name in zip(dtypes, self.op.inputs, strict=True) if self._meets(name)}
        return any(d is None for d in dtypes) or len(meeting) > 1

    def _meets(self, name: str) -> bool:
        return self.op.promote is not None and name in self.op.promoted

    def _brought(self, operands: Sequence[Any]) -> list[Any]:
        """Return arrays that meet in one dtype, as they would in NumPy."""
        pairs = list(zip(operands, self.op.inputs, strict=True))
        meeting = [x for x, name in pairs if self._meets(name)]
        common = np.result_type(*meeting) if meeting else None
        return [np.asarray(x, common if self._meets(name) else None) for x, name in pairs]

    def variant(
        self, dtypes: tuple[Any, ...], attrs: Sequence[Any], *, alone: bool = False
    ) -> Variant:
        """Return the kernel for operands of given dtypes, as text.

        alone   for these attributes, and with nothing but NumPy
        """
        op, builder, seen = self.op, NumpyBuilder(), set[str]()
        lines, operands = [], []
        for number, (name, dtype) in enumerate(zip(op.inputs, dtypes, strict=True)):
            if is_half(dtype):
                lines.append(f"{name} = {name}.astype(float32)")
            operands.append(builder.load(number, float32 if is_half(dtype) else dtype))
        result = self._result(dtypes, attrs)
        builder.result = float32 if is_half(result) else result
        given = list(attrs) if alone else _given(op.attrs, attrs, seen)
        if op.kind == "reduction":
            builder.count = Attribute("count", None, seen)  # type: ignore[assignment]  # a parameter
        assert op.lower_rule is not None
        expr = builder.cast(op.lower_rule(builder, *operands, *given), builder.result)
        source = ExpressionSource(op.inputs, builder.cast(expr, result), alone=alone)
        source.scope |= {"float32": float32, "size_of": size_of, **builder.rules}
        if any("count" in line for line in source.lines):
            lines.append(f"count = size_of({op.inputs[0]}.shape[a] for a in axis)")
        names = tuple(name for name in op.attrs if name in seen)
        return Variant(_function((*op.inputs, *op.attrs), source, lines), source.scope, names)

    def _result(self, dtypes: tuple[Any, ...], attrs: Sequence[Any]) -> DType:
        axes = attrs[list(self.op.attrs).index("axis")] if "axis" in self.op.attrs else ()
        shape = (1,) * (1 + max(axes, default=-1))
        types = tuple(TensorType(shape, dtype) for dtype in dtypes)
        dtype: DType = self.op.type_rule(types, tuple(attrs)).dtype
        return dtype


def _given(names: Any, attrs: Sequence[Any], seen: set[str]) -> list[Any]:
    """Return attributes as a rule gets them; of what cannot be wrapped it is taken to look."""
    given: list[Any] = []
    for name, value in zip(names, attrs, strict=True):
        if isinstance(value, (bool, int, float, str, tuple)):
            given.append(Attribute(name, value, seen))
        else:
            given.append(value)
            if value is not None:  # which its type says already
                seen.add(name)
    return given


def _distinct(value: Any) -> Any:
    """Return a key that differs for 0.0 and -0.0."""
    return (value, copysign(1.0, value)) if value.__class__ is float else value


def _compiled(name: str, text: str, scope: dict[str, Any]) -> Kernel:
    filename = f"{GENERATED_PREFIX}{name} kernel {_numbered(text)}>"
    scope = {"__name__": f"weft.ops.{name}", **scope}
    exec(compile(text, filename, "exec"), scope)
    show_source(filename, text)
    kernel: Kernel = scope["kernel"]
    return kernel


_texts: dict[str, int] = {}


def _numbered(text: str) -> int:
    return _texts.setdefault(text, len(_texts))
