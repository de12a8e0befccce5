"""Move a tensor from one device to another."""

from __future__ import annotations

from ...core.device import CPU, device_named, is_device
from ...core.errors import ArgumentError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor


@op(general, linear=("x",), method=False, work="nothing", identity=True, transfers=True)
def transfer(x: Tensor, target: str, source: str = "cpu") -> Tensor:
    """Return x, which is on one device, copied to another; gradients go the other way.

    `x.to(device)` calls it; in a graph it stands where a value goes from a device to another.
    """


@transfer.canon
def _(x, target, source):
    for name in (target, source):
        if not is_device(name):
            raise ArgumentError(f"expected the name of a device. Received: {name!r}")
    return str(device_named(target)), str(device_named(source))


@transfer.infer
def _(x, target, source):
    return TensorType(x.shape, x.dtype)


@transfer.eval
def _(x, target, source):
    return x  # core/placing.py moves it: where a graph runs by nodes, all of it is on the host


@transfer.vjp("x")
def _(g, target, source):
    return F.transfer(g, source, target)


@transfer.batch
def _(x, target, source):
    return F.transfer(x, target, source)


@transfer.samples
def _(s):
    yield Sample(s.real(2, 3), str(CPU))
    yield Sample(s.integers(3), str(CPU), str(CPU), label="integers")


@transfer.error_samples
def _(s):
    yield ErrorSample(s.real(2), 3, error=ValueError, match="name of a device.*3")
