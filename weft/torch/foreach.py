"""PyTorch's functions of lists of tensors, `_foreach_add` and its like, which optimizers use.

Each is a function of this face, called for one tensor after another; tables say which, and how the
operands beside the first list are given: lists of tensors or of numbers, or one for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core import tensor as core
from . import linalg
from .calls import in_place
from .catalogue import FUNCTIONS as ONES
from .catalogue import copy_
from .names import names

Function = Callable[..., Any]

UNARY = names("""
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
    reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""")

# The function of a tensor and another, and that of a tensor and a number.
BINARY = {
    **{name: (ONES[name], ONES[name]) for name in names("add sub mul div pow")},
    "maximum": (ONES["maximum"], ONES["clamp_min"]),
    "minimum": (ONES["minimum"], ONES["clamp_max"]),
    "clamp_min": (ONES["maximum"], ONES["clamp_min"]),
    "clamp_max": (ONES["minimum"], ONES["clamp_max"]),
}
SCALED = ("add", "sub")  # which take alpha, where the other operands are tensors
ONE_TENSOR = ("add", "mul", "div")  # which take one tensor for all
NAMED = frozenset(names("other scalar scalars exponent"))


def _tensors(given: Any, name: str, what: str = "self", position: int = 1) -> list[Any]:
    """Return a list of tensors; raise in PyTorch's words if it is none."""
    if not isinstance(given, list | tuple):
        raise TypeError(
            f"{name}(): argument '{what}' (position {position}) must be tuple of Tensors, not "
            f"{type(given).__name__}"
        )
    for i, x in enumerate(given):
        if not isinstance(x, core.Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument {position - 1}, but got "
                f"{type(x).__name__}"
            )
    if not given:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(given)


def _beside(count: int, given: Any) -> list[Any]:
    """Return an operand for each of some tensors: of a list its items, else the same for all."""
    if not isinstance(given, list | tuple):
        return [given] * count
    if len(given) == count:
        return list(given)
    if given and isinstance(given[0], core.Tensor):
        raise RuntimeError(
            f"Tensor lists must have the same number of tensors, got {count} and {len(given)}"
        )
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _unary(name: str, function: Function) -> Function:
    def foreach(self: Any, **options: Any) -> tuple[Any, ...]:
        return tuple(function(x, **options) for x in _tensors(self, name))

    return foreach


def _binary(base: str, name: str, functions: tuple[Function, Function]) -> Function:
    with_tensor, with_number = functions

    def foreach(self: Any, *other: Any, alpha: Any = None, **named: Any) -> Sequence[Any]:
        xs = _tensors(self, name)
        others = _beside(len(xs), _one_for_all(base, _only(name, other, named)))
        if not isinstance(others[0], core.Tensor):
            if alpha is not None:
                raise TypeError(f"{name}() takes alpha with tensors, not with numbers")
            return tuple(map(with_number, xs, others))
        scale = {} if alpha is None or base not in SCALED else {"alpha": alpha}
        if alpha is not None and not scale:
            raise TypeError(f"{name}() got an unexpected keyword argument 'alpha'")
        return tuple(with_tensor(x, y, **scale) for x, y in zip(xs, others, strict=True))

    return foreach


def _only(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the only operand beside the list, by position or under one of PyTorch's names."""
    if len(given) + len(named) != 1 or not NAMED.issuperset(named):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got {len(given) + 1} by "
            f"position{''.join(f', {key}=' for key in named)}"
        )
    (operand,) = (*given, *named.values())
    if operand is None or isinstance(operand, str):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got a list and "
            f"{type(operand).__name__}"
        )
    return operand


def _one_for_all(base: str, other: Any) -> Any:
    """Return a tensor for all as the functions take it: most of them as a number."""
    if isinstance(other, core.Tensor) and base not in ONE_TENSOR:
        other = other.item()
    elif isinstance(other, core.Tensor) and other.ndim:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and "
            f"{other.numel()} elements."
        )
    return other


def _ternary(name: str, function: Function) -> Function:
    def foreach(
        self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None
    ) -> Sequence[Any]:
        xs = _tensors(self, name)
        value = value if scalars is None else scalars
        firsts = _beside(len(xs), _tensors(tensor1, name, "tensor1", 2))
        seconds = _beside(len(xs), _tensors(tensor2, name, "tensor2", 3))
        values = _beside(len(xs), _numbers(value, len(xs)))
        rows = zip(xs, firsts, seconds, values, strict=True)
        return tuple(function(x, a, b, value=v) for x, a, b, v in rows)

    return foreach


def _numbers(value: Any, count: int) -> Any:
    """Return the numbers in a tensor that holds one for each."""
    if not isinstance(value, core.Tensor):
        return value
    if value.ndim != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {value.ndim} instead."
        )
    if value.numel() != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got "
            f"{value.numel()} instead."
        )
    return value.tolist()


def _lerp(self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None) -> Sequence[Any]:
    """Return points on the way from tensors to others."""
    xs = _tensors(self, "_foreach_lerp")
    ends = _beside(len(xs), _tensors(tensors1, "_foreach_lerp", "tensors1", 2))
    return tuple(
        map(ONES["lerp"], xs, ends, _beside(len(xs), weight if weights is None else weights))
    )


def _pow(self: Any, *given: Any, **named: Any) -> Sequence[Any]:
    """Return powers; the base may be a number for all."""
    if isinstance(self, list | tuple):
        return _POWERS(self, *given, **named)  # type: ignore[no-any-return]  # a tuple
    exponent = _only("_foreach_pow", given, named)
    return tuple(ONES["pow"](self, x) for x in _tensors(exponent, "_foreach_pow", "exponent", 2))


def _norm(self: Any, ord: Any = 2, dtype: Any = None) -> Sequence[Any]:
    """Return a norm of each tensor, taken as a vector."""
    xs = _tensors(self, "_foreach_norm")
    return tuple(linalg.vector_norm(x, ord, dtype=dtype) for x in xs)


def _powsum(self: Any, ord: Any = 2, dtype: Any = None) -> Sequence[Any]:
    """Return for each tensor the sum of the powers of its absolute values."""
    power, absolute, total = ONES["pow"], ONES["abs"], ONES["sum"]
    xs = _tensors(self, "_foreach_powsum")
    return tuple(total(power(absolute(x), ord), dtype=dtype) for x in xs)


def _mm(self: Any, mat2: Any) -> Sequence[Any]:
    """Return the products of matrices with others."""
    xs = _tensors(self, "_foreach_mm")
    return tuple(map(ONES["mm"], xs, _beside(len(xs), _tensors(mat2, "_foreach_mm", "mat2", 2))))


def _copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Let tensors take the values of others; return their list."""
    xs = _tensors(self, "_foreach_copy_")
    for x, y in zip(xs, _beside(len(xs), _tensors(src, "_foreach_copy_", "src", 2)), strict=True):
        copy_(x, y)
    return self


def _zero_(self: Any) -> Any:
    """Set every element of some tensors to zero; return their list."""
    for x in _tensors(self, "_foreach_zero_"):
        ONES["zero_"](x)
    return self


def _writing(name: str, function: Function) -> Function:
    """Return a function of lists as one that writes into the tensors of the first."""
    take = in_place(lambda x, result: result, name)

    def foreach(self: Any, *args: Any, **kwargs: Any) -> Any:
        for x, result in zip(_tensors(self, name), function(self, *args, **kwargs), strict=True):
            take(x, result)
        return self

    return foreach


_POWERS = _binary("pow", "_foreach_pow", BINARY["pow"])

# Those that write into their first list too, under names with a `_` at the end.
_BOTH: dict[str, Function] = {
    **{name: _unary(f"_foreach_{name}", ONES[name]) for name in UNARY},
    **{name: _binary(name, f"_foreach_{name}", both) for name, both in BINARY.items()},
    **{name: _ternary(f"_foreach_{name}", ONES[name]) for name in ("addcdiv", "addcmul")},
    "lerp": _lerp,
    "pow": _pow,
}
_ALONE: dict[str, Function] = {
    "clone": _unary("_foreach_clone", ONES["clone"]),
    "max": _unary("_foreach_max", ONES["max"]),
    "mm": _mm,
    "norm": _norm,
    "powsum": _powsum,
    "copy_": _copy_,
    "zero_": _zero_,
}


def _named(found: Iterable[tuple[str, Function]]) -> dict[str, Function]:
    """Return functions under the names that programs call them by."""
    made = {f"_foreach_{name}": function for name, function in found}
    for name, function in made.items():
        function.__name__ = function.__qualname__ = name
        function.__doc__ = function.__doc__ or f"Do what `{name[9:]}` does, with each tensor."
    return made


FUNCTIONS: dict[str, Function] = _named(
    [
        *_BOTH.items(),
        *((f"{name}_", _writing(f"_foreach_{name}_", made)) for name, made in _BOTH.items()),
        *_ALONE.items(),
    ]
)
