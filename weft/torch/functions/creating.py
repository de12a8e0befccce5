"""Functions that make tensors: of data, of numbers, of ranges, and like others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core import tensor as core
from ...core.errors import WeftError
from ...core.operands import common_dtype
from ...ops import creation, ranges
from ...ops.signal import windows
from ..adoption import adopt
from ..calls import write_out
from ..deferred import weft_function
from ..devices import usable_device
from ..dtypes import named
from ..phrasing import phrase, phrased
from ..sizes import sizes_of
from ..tensor import listed, wrap

IGNORED = ("layout", "pin_memory", "memory_format", "names")


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that Weft has, of those that PyTorch's creation functions take."""
    found = {name: value for name, value in options.items() if name not in IGNORED}
    if found.get("device") is not None:
        found["device"] = usable_device(found["device"])
    return {name: value for name, value in found.items() if value is not None}


def _made(make: Any, *args: Any, out: Any = None, **options: Any) -> Any:
    if isinstance(options.get("dtype"), str):
        raise TypeError(f"{make.__name__}(): argument 'dtype' must be torch.dtype, not str")
    try:
        result = adopt(make(*args, **_options(options)) if options else make(*args))
    except WeftError as error:
        raise phrase(error, make.__name__, {"args": args, **options}) from None
    return result if out is None else write_out(result, out)


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Return a new tensor of data, which is copied."""
    if isinstance(data, core.Tensor) and not data.symbolic:
        wanted = data.dtype if dtype is None else dt.as_dtype(dtype)
        copy = wrap(np.array(data._read(), dtype=wanted))
        return copy.requires_grad_() if requires_grad else copy
    if dtype is None and isinstance(data, np.generic):
        dtype = data.dtype
    return _made(
        creation.tensor,
        listed(data),
        dtype=dtype,
        device=device,
        requires_grad=requires_grad or None,
    )


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Return data as a tensor; a tensor of that dtype as it is."""
    if isinstance(data, core.Tensor) and not data.weak:
        wanted = None if dtype is None else dt.as_dtype(dtype)
        return data if wanted in (None, data.dtype) else adopt(data).to(wanted)
    if isinstance(data, np.ndarray) and dtype in (None, data.dtype):
        return from_numpy(data)
    return tensor(data, dtype=dtype, device=device)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
    """Return data as a tensor."""
    made = as_tensor(obj, dtype=dtype, device=device)
    made = made.clone() if options.get("copy") else made
    return made.requires_grad_() if options.get("requires_grad") else made


def from_numpy(ndarray: Any) -> Any:
    """Return a tensor around an array, which it does not copy; writes into it make a copy."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return _made(creation.from_numpy, ndarray)


def scalar_tensor(s: Any, **options: Any) -> Any:
    """Return a number as a tensor of the default float dtype."""
    options.setdefault("dtype", dt.default_float())
    return _made(creation.tensor, s, **options)


def _filled(make: Any) -> Any:
    def filled(*size: Any, out: Any = None, **options: Any) -> Any:
        sizes = sizes_of(size or (options.pop("size"),))
        return _made(make, sizes, out=out, **options)

    filled.__name__ = make.__name__
    filled.__doc__ = make.__doc__
    return filled


def full(size: Any, fill_value: Any = None, *, out: Any = None, **options: Any) -> Any:
    """Return a tensor of given sizes in which all elements are one number."""
    if fill_value is None:
        raise TypeError('full() missing 1 required positional arguments: "fill_value"')
    if isinstance(fill_value, core.Tensor) and not fill_value.weak:
        options.setdefault("dtype", fill_value.dtype)
        fill_value = fill_value.item()
    elif options.get("dtype") is None:
        options["dtype"] = common_dtype([fill_value])
    return _made(creation.full, tuple(size), fill_value, out=out, **options)


def _like(name: str) -> Any:
    make: Any = weft_function(name)

    def like(input: Any, *args: Any, **options: Any) -> Any:
        return _made(make, input, *args, **options)

    like.__name__ = name
    return like


def empty_like(input: Any, **options: Any) -> Any:
    """Return a tensor of arbitrary values, of the sizes and dtype of another."""
    return _made(creation.empty_like, input, **options)


def empty_strided(size: Any, stride: Any, **options: Any) -> Any:
    """Return a tensor of arbitrary values; strides are not kept."""
    return _made(creation.empty, tuple(size), **options)


def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Any:
    """Return a tensor of arbitrary values; the order of its memory is not kept."""
    return _made(creation.empty, tuple(size), **options)


def arange(*args: Any, out: Any = None, **options: Any) -> Any:
    """Return numbers from a start to an end, which is left out."""
    bounds = [options.pop(n) for n in ("start", "end", "step") if n in options]
    numbers = [_bound(x) for x in (*args, *bounds)]
    if options:
        numbers = _cut(options.get("dtype"), *numbers)
    if len(numbers) == 3 and (numbers[1] - numbers[0]) * numbers[2] < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return _made(ranges.arange, *numbers, out=out, **options)


def _bound(x: Any) -> Any:
    """Return a bound of a range as a number: of a tensor, or of True and False."""
    if isinstance(x, core.Tensor):
        return x.item()
    return int(x) if x.__class__ is bool else x


def _cut(dtype: Any, *numbers: Any) -> list[Any]:
    """Return numbers as PyTorch takes them for a dtype: for whole ones without fractions."""
    if dtype is None or not dt.is_integer(dt.as_dtype(dtype)):
        return list(numbers)
    return [int(x) if isinstance(x, float) else x for x in numbers]


def linspace(start: Any, end: Any, steps: int = 100, *, out: Any = None, **options: Any) -> Any:
    """Return numbers at equal distances from a start to an end."""
    options.setdefault("dtype", None)
    wanted = options["dtype"] = options["dtype"] or dt.default_float()
    if dt.is_integer(dt.as_dtype(wanted)):
        first, last = _cut(wanted, _number(start), _number(end))
        steps = int(_number(steps))
        return _whole(_spaced(first, last, steps, np.float64), out, options)
    return _made(ranges.linspace, start, end, steps, out=out, **options)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, core.Tensor) else x


def _spaced(first: int, last: int, count: int, real: Any) -> Any:
    """Return numbers between two, counted from the nearer of these by steps of a precision."""
    step = real(last - first) / real(max(count - 1, 1))
    places = np.arange(count)
    near = places < max(count // 2, 1)
    return np.where(near, first + step * places, last - step * (count - 1 - places))


def _whole(numbers: Any, out: Any, options: dict[str, Any]) -> Any:
    """Return numbers without their fractions."""
    made = tensor(numbers.astype(dt.as_dtype(options["dtype"])))
    return made if out is None else write_out(made, out)


def logspace(
    start: Any, end: Any, steps: int = 100, base: float = 10.0, *, out: Any = None, **options: Any
) -> Any:
    """Return powers of a base whose exponents are at equal distances."""
    wanted = options["dtype"] = options.get("dtype") or dt.default_float()
    if dt.is_integer(dt.as_dtype(wanted)):
        first, last = _cut(wanted, _number(start), _number(end))
        powers = _spaced(first, last, int(_number(steps)), np.float32)
        return _whole(float(base) ** powers, out, options)
    return _made(ranges.logspace, start, end, steps, base=base, out=out, **options)


def eye(n: int, m: int | None = None, *, out: Any = None, **options: Any) -> Any:
    """Return a matrix with ones on its diagonal."""
    return _made(creation.eye, n, m, out=out, **options)


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """Return the rows and columns of the elements on and below a diagonal."""
    return _indices("tril_indices", row, col, offset, options)


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """Return the rows and columns of the elements on and above a diagonal."""
    return _indices("triu_indices", row, col, offset, options)


def _indices(name: str, row: int, col: int, offset: int, options: dict[str, Any]) -> Any:
    make: Any = {"tril_indices": np.tril_indices, "triu_indices": np.triu_indices}[name]
    found = np.stack(make(row, offset, col)).astype(options.get("dtype") or np.int64)
    return tensor(found)


def get_default_dtype() -> Any:
    """Return the dtype that Python floats become."""
    return named(dt.default_float())


@phrased
def set_default_dtype(d: Any) -> None:
    """Set the dtype that Python floats become."""
    dt.set_default_dtype(getattr(d, "dtype", d))


def _window(make: Any) -> Any:
    """Return a window function as it was before torch.signal: a period, unless told otherwise."""

    def window(window_length: int, periodic: bool = True, **options: Any) -> Any:
        return _made(make, window_length, sym=not periodic, **options)

    window.__name__ = window.__qualname__ = f"{make.__name__}_window"
    window.__doc__ = make.__doc__
    return window


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Any:
    """Return alpha - beta cos(t)."""
    weights = [alpha, beta]
    return _made(windows.general_cosine, window_length, a=weights, sym=not periodic, **options)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Any:
    """Return i0(beta sqrt(1 - t**2)) / i0(beta), t from -1 to 1."""
    return _made(windows.kaiser, window_length, beta=beta, sym=not periodic, **options)


def from_dlpack(ext_tensor: Any) -> Any:
    """Return a tensor around the memory of another library's tensor."""
    return _made(creation.from_dlpack, ext_tensor)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, **_: Any) -> Any:
    """Return a tensor of the bytes of an object."""
    return tensor(np.frombuffer(buffer, dt.as_dtype(dtype), count, offset))


def new_tensor(input: Any, data: Any, **options: Any) -> Any:
    """Return data as a new tensor of the dtype of another."""
    options["dtype"] = options.get("dtype") or (
        data.dtype if isinstance(data, core.Tensor) else input.dtype
    )
    return tensor(data, **{k: v for k, v in options.items() if k not in IGNORED})


def _new(make: Any) -> Any:
    def new(input: Any, *size: Any, **options: Any) -> Any:
        options["dtype"] = options.get("dtype") or input.dtype
        sizes = sizes_of(size or (options.pop("size"),))
        return _made(make, sizes, **options)

    new.__name__ = f"new_{make.__name__}"
    return new


def new_full(input: Any, size: Any, fill_value: Any, **options: Any) -> Any:
    """Return a tensor of the dtype of another in which all elements are one number."""
    options["dtype"] = options.get("dtype") or input.dtype
    return full(size, fill_value, **options)


def new_empty_strided(input: Any, size: Any, stride: Any, **options: Any) -> Any:
    """Return a tensor of arbitrary values of the dtype of another; strides are not kept."""
    options["dtype"] = options.get("dtype") or input.dtype
    return _made(creation.empty, tuple(size), **options)


FUNCTIONS: dict[str, Any] = {
    "tensor": tensor,
    "as_tensor": as_tensor,
    "asarray": asarray,
    "from_numpy": from_numpy,
    "frombuffer": frombuffer,
    "scalar_tensor": scalar_tensor,
    "zeros": _filled(creation.zeros),
    "ones": _filled(creation.ones),
    "empty": _filled(creation.empty),
    "full": full,
    "zeros_like": _like("zeros_like"),
    "ones_like": _like("ones_like"),
    "full_like": _like("full_like"),
    "empty_like": empty_like,
    "empty_strided": empty_strided,
    "empty_permuted": empty_permuted,
    "arange": arange,
    "linspace": linspace,
    "logspace": logspace,
    "eye": eye,
    "tril_indices": tril_indices,
    "triu_indices": triu_indices,
    "from_dlpack": from_dlpack,
    "bartlett_window": _window(windows.bartlett),
    "blackman_window": _window(windows.blackman),
    "hamming_window": hamming_window,
    "hann_window": _window(windows.hann),
    "kaiser_window": kaiser_window,
    "get_default_dtype": get_default_dtype,
    "set_default_dtype": set_default_dtype,
}
METHODS: dict[str, Any] = {
    "new_tensor": new_tensor,
    "new_zeros": _new(creation.zeros),
    "new_ones": _new(creation.ones),
    "new_empty": _new(creation.empty),
    "new_full": new_full,
    "new_empty_strided": new_empty_strided,
}
