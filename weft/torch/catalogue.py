"""All functions of tensors by PyTorch's names, and the methods and operators made of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from ..core.errors import WeftError
from ..core.op import F
from ..core.tape import next_order
from . import linalg, random, special
from . import view_functions as views
from .adoption import adopt
from .calls import NUMBERS, in_place
from .deferred import weft_function
from .functions import adapted, creating, extra, native, reducing, shaping, table
from .names import names
from .phrasing import phrase
from .tensor_methods import TensorMethods
from .views import VIEW_OF_LEAF
from .writing import LEAF_WRITTEN

Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {
    **table.FUNCTIONS,
    **special.TOP,
    **linalg.TOP,
    **extra.FUNCTIONS,
    **reducing.FUNCTIONS,
    **creating.FUNCTIONS,
    **shaping.FUNCTIONS,
    **random.FUNCTIONS,
    **adapted.FUNCTIONS,
    **native.FUNCTIONS,
}

# Functions that are no methods.
NOT_METHODS = names("""
    Generator manual_seed seed initial_seed get_rng_state set_rng_state rand randn rand_like
    randn_like randint randint_like randperm normal tensor as_tensor asarray from_numpy frombuffer
    scalar_tensor zeros ones empty full zeros_like ones_like full_like empty_like empty_strided
    empty_permuted arange linspace logspace eye tril_indices triu_indices get_default_dtype
    set_default_dtype meshgrid broadcast_tensors broadcast_shapes is_tensor cat concat concatenate
    stack hstack vstack dstack column_stack cartesian_prod combinations block_diag einsum tensordot
    trapz trapezoid cumulative_trapezoid vander bucketize searchsorted isin poisson cdist pdist
    gradient unravel_index numel rsub std_mean var_mean celu elu selu gelu silu mish hardswish
    threshold rrelu grid_sampler grid_sampler_2d grid_sampler_3d native_layer_norm native_group_norm
    native_batch_norm
""")

# Methods that write their result into the tensor: PyTorch's, of the functions above.
WRITING = names("""
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh baddbmm bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max
    clamp_min clip copysign cos cosh cumprod cumsum deg2rad digamma div divide eq erf erfc erfinv
    exp exp2 expm1 fix float_power floor floor_divide fmod frac gcd ge greater greater_equal gt
    heaviside hypot i0 igamma igammac index_add index_copy index_fill index_put index_reduce lcm
    ldexp le lerp less less_equal lgamma log log10 log1p log2 logical_and logical_not logical_or
    logical_xor logit lt masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg negative
    nextafter not_equal polygamma pow put rad2deg reciprocal relu remainder renorm round rsqrt
    scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square sub subtract tan
    tanh tril triu true_divide trunc xlogy
    celu elu selu leaky_relu hardtanh threshold
""")

# Those of them that are functions too.
WRITING_FUNCTIONS = names("""
    abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil
    clamp clamp_max clamp_min clip cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac gcd i0
    index_put lcm ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal round
    rsqrt sigmoid sin sinc sinh sqrt square tan tanh trunc xlogy
""")


def _filled(self: Any, value: Any) -> Any:
    """Return a value as large as a tensor, with a history where the tensor has one."""
    if self.requires_grad or value.requires_grad:
        return F.setitem(self, value, (...,))
    return F.positive(F.broadcast_to(value, tuple(self.shape)))


def zero_(self: Any) -> Any:
    """Set every element to zero."""
    return fill_(self, 0)


def fill_(self: Any, value: Any) -> Any:
    """Set every element to a number."""
    if isinstance(value, core.Tensor) and value.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    begun = next_order()
    number = value if isinstance(value, core.Tensor) else _as_written(value, self.dtype)
    cast = number if number.dtype == self.dtype else F.cast(number, self.dtype)
    return self._overwritten(_filled(self, cast), begun)


def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Take the values of another tensor, broadcast and cast."""
    begun = next_order()
    source = src if isinstance(src, core.Tensor) else core.constant(np.asarray(src))
    value = source if source.dtype == self.dtype else F.cast(source, self.dtype)
    return self._overwritten(_filled(self, value), begun)


def setitem(self: Any, index: Any, value: Any) -> None:
    """Write at an index; a slice or a number writes into the tensor as a view of it would."""
    begun = next_order()
    given = value if isinstance(value, core.Tensor) else _as_written(value, self.dtype)
    try:
        written = F.index_set(self, views.with_arrays(index), given)
    except WeftError as error:
        given = {"x": self, "index": index, "value": given}
        raise phrase(error, "setitem", given) from None
    try:
        self._overwritten(written, begun)
    except RuntimeError as error:
        if str(error) == LEAF_WRITTEN and views.is_basic(index):
            raise RuntimeError(VIEW_OF_LEAF) from None
        raise


def _as_written(value: Any, dtype: Any) -> Any:
    return core.constant(np.asarray(value).astype(dtype))


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Return the tensor with a number where a mask is true."""
    made: Any = weft_function("masked_fill")
    return adopt(made(input, mask, value))


def apply_(self: Any, callable: Any) -> Any:
    """Let every element be what a Python function makes of it."""
    made = np.vectorize(callable, otypes=[self.dtype])(self._read())
    return self._overwritten(core.wrap(made), next_order())


def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Write a number on the main diagonal."""
    array = np.array(self._read())
    np.fill_diagonal(array, fill_value, wrap)
    mask = np.zeros(array.shape, bool)
    np.fill_diagonal(mask, True, wrap)
    value = core.constant(np.asarray(fill_value, self.dtype))
    return self._overwritten(F.where(core.constant(mask), value, self), next_order())


def _cast(name: str, dtype: Any) -> Function:
    def cast(self: Any, memory_format: Any = None) -> Any:
        return self.to(dtype)

    cast.__name__ = name
    return cast


def bfloat16(self: Any, memory_format: Any = None) -> Any:
    """Return the tensor in bfloat16, which a package of its own provides."""
    return self.to(dt.bfloat16())


CASTS = {
    "half": dt.float16,
    "float": dt.float32,
    "double": dt.float64,
    "char": dt.int8,
    "byte": dt.uint8,
    "short": dt.int16,
    "int": dt.int32,
    "long": dt.int64,
    "bool": dt.bool_,
}

# Python's operators: the function, and whether the operands are exchanged.
OPERATORS = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}
COMPARISONS = {
    "__lt__": operator.lt,
    "__le__": operator.le,
    "__gt__": operator.gt,
    "__ge__": operator.ge,
    "__eq__": operator.eq,
    "__ne__": operator.ne,
}
PAIRED = ("__matmul__",)


def attach() -> None:
    """Give the tensors of this face PyTorch's methods and operators."""
    for name, function in FUNCTIONS.items():
        if name not in NOT_METHODS and name not in vars(TensorMethods):
            setattr(TensorMethods, name, _method(function))
    for name in WRITING:
        if name in FUNCTIONS or name in extra.ACTIVATIONS:
            function = FUNCTIONS.get(name) or extra.ACTIVATIONS[name]
            setattr(TensorMethods, f"{name}_", in_place(function, f"{name}_"))
    for name, dtype in CASTS.items():
        setattr(TensorMethods, name, _cast(name, dtype))
    for table_ in (random.METHODS, creating.METHODS, extra.METHODS, OWN):
        for name, function in table_.items():
            setattr(TensorMethods, name, _method(function))
    _attach_operators()


def writing_functions() -> dict[str, Function]:
    """Return the functions of `torch` that write into their first argument."""
    return {f"{name}_": getattr(TensorMethods, f"{name}_") for name in WRITING_FUNCTIONS}


def _method(function: Function) -> Function:
    """Return a function that Python binds to a tensor."""

    def method(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return function if hasattr(function, "__get__") else method


def _attach_operators() -> None:
    for name, function in OPERATORS.items():
        bare = name.strip("_")
        setattr(TensorMethods, name, FUNCTIONS[function])
        setattr(TensorMethods, f"__r{bare}__", _reflected(bare, FUNCTIONS[function]))
        setattr(TensorMethods, f"__i{bare}__", in_place(FUNCTIONS[function], f"{function}_"))
    TensorMethods.__rdiv__ = TensorMethods.__rtruediv__  # type: ignore[attr-defined]  # just made
    for name in COMPARISONS:
        setattr(TensorMethods, name, _comparison(name))
    for name, method in {**_SPECIAL, **_PROPERTIES}.items():
        setattr(TensorMethods, name, method)


def _reflected(name: str, function: Function) -> Function:
    behind = getattr(core.Tensor, f"__r{name}__", None)

    def reflected(self: Any, other: Any) -> Any:
        if behind is not None and other.__class__ in NUMBERS:
            return adopt(behind(self, other))
        return function(other, self)

    return reflected


def _comparison(name: str) -> Function:
    behind = getattr(core.Tensor, name)

    def compare(self: Any, other: Any) -> Any:
        found = getattr(core.Tensor, name)(self, other)
        return adopt(found)

    compare.__name__ = name
    compare.__doc__ = behind.__doc__
    return compare


def _iterate(self: Any) -> Any:
    """Yield the parts along the first dimension."""
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(views.unbind(self, 0))


_SPECIAL: dict[str, Any] = {
    "__hash__": core.Tensor.__hash__,  # by identity
    "__neg__": FUNCTIONS["neg"],
    "__pos__": FUNCTIONS["positive"],
    "__abs__": FUNCTIONS["abs"],
    "__invert__": FUNCTIONS["bitwise_not"],
    "__getitem__": views.getitem,
    "__setitem__": setitem,
    "__iter__": _iterate,
}
_PROPERTIES: dict[str, Any] = {
    "T": property(views.reversed_axes),
    "mT": property(views.matrix_transpose),
    "H": property(views.matrix_transpose),
    "mH": property(views.matrix_transpose),
    "real": property(views.alias),
}
OWN: dict[str, Function] = {
    "zero_": zero_,
    "fill_": fill_,
    "copy_": copy_,
    "masked_fill": masked_fill,
    "masked_fill_": in_place(masked_fill, "masked_fill_"),
    "apply_": apply_,
    "fill_diagonal_": fill_diagonal_,
    "bfloat16": bfloat16,
}
FUNCTIONS |= {"zero_": zero_, "fill_": fill_}
