"""What PyTorch says of data, sizes and dtypes that no tensor can be made of."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from .refused import Refused, Rule, always

DEVICES = (
    "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, "
    "lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {}"
)
FLOATS = "Only Tensors of floating point and complex dtype can require gradients"


def tensor(refused: Refused) -> Exception | None:
    """Say it of data."""
    data = refused["args"][0]
    if refused.is_a(DTypeError):
        return RuntimeError(FLOATS) if "undifferentiable" in refused.facts else None
    if refused.is_a(ShapeError):
        dim, wanted, found = _ragged(data)
        return ValueError(f"expected sequence of length {wanted} at dim {dim} (got {found})")
    if not refused.is_a(ArgumentTypeError):
        return None
    if _holds_text(data):
        return TypeError("new(): invalid data type 'str'")
    return RuntimeError(f"Could not infer dtype of {type(_first(data)).__name__}")


def _ragged(data: Any, dim: int = 0) -> tuple[int, int, int]:
    """Return where nested lists differ in length: the dimension, and both lengths."""
    lengths = [len(row) for row in data]
    if len(set(lengths)) > 1:
        return dim + 1, lengths[0], next(n for n in lengths if n != lengths[0])
    return _ragged([x for row in data for x in row], dim + 1)


def _holds_text(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(map(_holds_text, data))
    return isinstance(data, str)


def _first(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def filled(refused: Refused) -> Exception | None:
    """Say it of the sizes of a new tensor."""
    name, size = refused.function, refused["args"][0]
    if refused.is_a(DTypeError):
        return RuntimeError(FLOATS) if "undifferentiable" in refused.facts else None
    if refused.is_a(ArgumentTypeError):
        place, wrong = next((i, n) for i, n in enumerate(size) if not isinstance(n, int))
        if not place:
            return TypeError(
                f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
                f"{type(wrong).__name__}"
            )
        return TypeError(
            f"{name}(): argument 'size' failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {type(wrong).__name__}"'
        )
    if refused.is_a(ShapeError):
        return negative(refused)
    return None


def negative(refused: Refused) -> Exception | None:
    """Say it of sizes below zero."""
    size = list(refused["args"][0])
    if refused.function == "zeros":
        return RuntimeError("zeros: Dimension size must be non-negative.")
    wrong = next(n for n in size if n < 0)
    return RuntimeError(f"Trying to create tensor with negative dimension {wrong}: {size}")


def arange(refused: Refused) -> Exception | None:
    """Say it of steps."""
    return RuntimeError("step must be nonzero") if refused.is_a(ArgumentError) else None


def eye(refused: Refused) -> Exception | None:
    """Say it of rows and columns."""
    n = refused["args"][0]
    return RuntimeError(f"n must be greater or equal to 0, got {n}")


def randint(refused: Refused) -> Exception | None:
    """Say it of bounds."""
    low, high, _ = refused["args"]
    return RuntimeError(
        f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
    )


def randperm(refused: Refused) -> Exception | None:
    """Say it of a count."""
    n = refused["args"][0]
    return RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")


def normal(refused: Refused) -> Exception | None:
    """Say it of a deviation."""
    std = next(x for x in refused["args"][1:] if isinstance(x, (int, float)))
    return RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def from_numpy(refused: Refused) -> Exception | None:
    """Say it of an array whose elements are no numbers."""
    kind = refused["args"][0].dtype.type
    return TypeError(
        f"can't convert np.ndarray of type {kind.__module__}.{kind.__name__}. The only supported "
        "types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
        "uint64, uint32, uint16, uint8, and bool."
    )


def device(refused: Refused) -> Exception | None:
    """Say it of a device that there is not."""
    return RuntimeError(DEVICES.format(str(refused["device"]).partition(":")[0]))


def grad(refused: Refused) -> Exception | None:
    """Say it of a gradient that is set."""
    x, value = refused["x"], refused["value"]
    if refused.is_a(ArgumentTypeError):
        return TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(value).__name__}"
        )
    if refused.is_a(ShapeError):
        return RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
            f"'{list(x.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )
    if refused.is_a(DTypeError):
        return RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with dtype "
            f"'{x.dtype}'. Please ensure that the gradient and the tensor have the same dtype"
        )
    return None


RULES: dict[str, Rule] = {
    "tensor": tensor,
    **dict.fromkeys(("zeros", "ones", "empty", "full", "rand", "randn"), filled),
    "arange": arange,
    "linspace": always(RuntimeError, "number of steps must be non-negative"),
    "eye": eye,
    "randint": randint,
    "randperm": randperm,
    "normal": normal,
    "device": device,
    "from_numpy": from_numpy,
    "set_default_dtype": always(
        TypeError, "only floating-point types are supported as the default type"
    ),
    "requires_grad": always(RuntimeError, FLOATS),
    "grad": grad,
}
