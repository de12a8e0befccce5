"""torch.masked: reductions of the elements that a mask lets through."""

from __future__ import annotations

from typing import Any

from ..core.op import F
from .absent import absent
from .adoption import adopt
from .deferred import weft_function
from .functions.table import functions_named
from .functions.without_dims import with_one_dim
from .names import names


def _deviation(name: str) -> Any:
    """Return `var` or `std`, which divide by n - 1 unless told otherwise."""
    compute: Any = weft_function(name, "masked")

    def deviation(
        input: Any,
        dim: Any = None,
        unbiased: bool | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Any = None,
    ) -> Any:
        options = {"correction": correction, "dtype": dtype, "mask": mask}
        return adopt(compute(input, dim, unbiased is not False, keepdim, **options))

    deviation.__name__ = name
    deviation.__doc__ = compute.__doc__
    return deviation


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """Return log(exp(x) + exp(y)), without the parts where their masks are False."""
    compute: Any = weft_function("logaddexp", "masked")
    return adopt(compute(input, other, dtype=dtype, x_mask=input_mask, y_mask=other_mask))


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, **options: Any) -> Any:
    """Return the logarithm of sums of exponentials, in the dtype of what was given."""
    compute: Any = weft_function("logsumexp", "masked")
    found = compute(input, dim, keepdim, **options)
    wanted = options.get("dtype") or input.dtype
    return adopt(found if found.dtype == wanted else F.cast(found, wanted))


def _all_dims(function: Any) -> Any:
    """Return a reduction for which an empty list of dimensions means all of them."""

    def reduce(input: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(kwargs.get("dim"), (tuple, list)) and not kwargs["dim"]:
            kwargs["dim"] = None
        return function(input, *args, **kwargs)

    reduce.__name__ = function.__name__
    reduce.__doc__ = function.__doc__
    return reduce


_SAME = names("""
    amax amin argmax argmin cumprod cumsum log_softmax mean median norm normalize prod softmax
    softmin sum
""")
_REDUCTIONS = {
    **functions_named(_SAME, "masked"),
    **{name: _deviation(name) for name in ("var", "std")},
    "logsumexp": logsumexp,
}
FUNCTIONS: dict[str, Any] = {
    **{name: with_one_dim(_all_dims(function)) for name, function in _REDUCTIONS.items()},
    "logaddexp": logaddexp,
}
globals().update(FUNCTIONS)
_MASKS = "give the functions of this module a tensor and mask="
_REASONS = dict.fromkeys(names("MaskedTensor masked_tensor as_masked_tensor"), _MASKS)
__getattr__ = absent(globals(), _REASONS)
