"""Devices: the CPU, those of Weft's by its names, and what PyTorch asks about GPUs."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core import tensor as core
from ..core.device import device as core_device
from ..core.device import is_device
from ..core.errors import WeftError
from .phrasing import phrase

NO_CUDA = (
    "Torch not compiled with CUDA enabled: Weft computes on the CPU; leave .cuda() out, or use "
    'device = "cuda" if torch.cuda.is_available() else "cpu"'
)


def no_cuda() -> Exception:
    """Return the error for whoever wants a GPU."""
    return AssertionError(NO_CUDA)


def usable_device(where: Any) -> Any:
    """Return a device of Weft's; raise in PyTorch's words for one that is not there."""
    name = str(where)
    kind = name.partition(":")[0]
    if isinstance(where, int):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if kind in ("cuda", "mps", "xpu"):
        raise no_cuda()
    if kind == "cpu":
        return core_device("cpu")
    if kind == "meta":
        raise RuntimeError("there is no device 'meta': every tensor has a value; use 'cpu'")
    try:
        return core_device(name)
    except WeftError as error:
        raise phrase(error, "device", {"device": where}) from None


class _DeviceClass(type):
    """A device of Weft's, which tensors tell, is one of this face."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or is_device(instance)


class device(metaclass=_DeviceClass):  # noqa: N801  (PyTorch's name)
    """Where a tensor is: `torch.device("cpu")`.

    >>> from weft import torch
    >>> torch.device("cpu").type
    'cpu'
    """

    __slots__ = ("index", "type")

    def __init__(self, where: Any, index: int | None = None) -> None:
        kind, _, number = str(where).partition(":")
        self.type = kind
        self.index = int(number) if number else index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, (device, core_device)):
            return str(self) == str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __enter__(self) -> device:
        usable_device(self).__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        """Return to the device of before."""
        usable_device(self).__exit__(*exc)


def conversion(targets: tuple[Any, ...], dtype: Any, where: Any) -> tuple[Any, Any]:
    """Return the dtype and the device that arguments of `to` ask for, None for what stays."""
    for target in targets:
        if isinstance(target, core.Tensor):
            dtype, where = target.dtype, target.device
        elif isinstance(target, device) or is_device(target) or _names_device(target):
            where = target
        elif not isinstance(target, bool):
            dtype = target
    return dtype, where


def _names_device(target: Any) -> bool:
    if isinstance(target, int) and not isinstance(target, bool):
        return True
    return isinstance(target, str) and not dt.is_dtype(target)
