"""Functions that mean in Weft what they mean in PyTorch, called as PyTorch calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..calls import face_function, of_tensor
from ..deferred import weft_function
from ..names import names

Function = Callable[..., Any]

# Elementwise, of one tensor.
UNARY = names("""
    abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
    bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac hardshrink
    isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not logit
    nan_to_num neg negative positive rad2deg reciprocal relu rsqrt selu sigmoid sign
    signbit sin sinc sinh sqrt square tan tanh trunc celu elu gelu silu mish hardswish
    i0 entr erfcx i0e i1 i1e log_ndtr ndtr ndtri
""")

# Of two or more, which meet in a dtype.
BINARY = names("""
    add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    copysign div divide eq floor_divide fmax fmin fmod ge greater greater_equal gt heaviside hypot
    isclose le lerp less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt
    maximum minimum mul multiply ne nextafter not_equal pow remainder sub subtract true_divide
    xlogy xlog1py ldexp float_power gcd lcm igamma igammac zeta
    addcdiv addcmul addmm addmv addr addbmm baddbmm
""")

# Of a tensor, and others.
SAME = names("""
    allclose amax amin aminmax argmax argmin argsort argwhere
    bincount bmm cdist clamp clip combinations corrcoef cov
    cumprod cumsum cumulative_trapezoid diag diag_embed diagflat diagonal_scatter
    diff dist dot flip fliplr flipud
    index_add index_copy index_fill index_select inner kron log_softmax logcumsumexp logsumexp
    masked_fill masked_scatter masked_select matmul matrix_power mm mv
    nanmean nanquantile nansum outer ger
    quantile repeat_interleave roll rot90 scatter scatter_add scatter_reduce
    select_scatter slice_scatter softmax tensordot trace trapezoid
    tril triu vander vdot vecdot prelu threshold rrelu
    renorm mvlgamma unique_consecutive histogramdd
    index_reduce narrow_copy
""")

# Of what need be no tensor: lists of them, equations, numbers.
FREE = names("""
    atleast_1d atleast_2d atleast_3d block_diag bucketize cartesian_prod cat column_stack concat
    concatenate dstack einsum hstack isin polygamma searchsorted stack vstack
""")


def functions_named(
    names: list[str], namespace: str = "wf", make: Any = of_tensor, **how: Any
) -> dict[str, Function]:
    """Return functions of Weft's as functions of this face, those that there are."""
    found = {name: weft_function(name, namespace) for name in names}
    return {n: make(fn, n, **how) for n, fn in found.items() if fn is not None}


FUNCTIONS: dict[str, Function] = {
    **functions_named(UNARY),
    **functions_named(BINARY, make=face_function, aligns=True),
    **functions_named(SAME),
    **functions_named(FREE, make=face_function),
}
