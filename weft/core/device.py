"""Devices: where values live. Today that is the CPU; other names are refused clearly."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from .errors import ArgumentError

KNOWN = ("cpu", "cuda", "gpu", "mps", "tpu", "xpu", "meta")


class device(str):  # noqa: N801  (a name of values' places, as dtype is of their kinds)
    """A device by its name: where values live, and as a context where a graph's nodes run.

    It is the string of its name, so `x.device == "cpu"` holds. There is only the CPU today.

    >>> import weft as wf
    >>> wf.device("cpu")
    device('cpu')
    >>> wf.tensor([1.0]).device == wf.device("cpu")
    True
    >>> with wf.device("cpu"):
    ...     x = wf.ones(3)
    """

    __slots__ = ()

    def __new__(cls, name: Any) -> device:
        """Return the device of a name; raise unless Weft runs on it."""
        if isinstance(name, str) and name in ("cpu", "cpu:0"):
            return str.__new__(cls, "cpu")
        raise ArgumentError(
            f"device must be 'cpu', the only one supported (see wf.devices()). Received: {name!r}"
        )

    @property
    def type(self) -> str:
        """Return the kind of device: `cpu`."""
        return self.split(":")[0]

    def __enter__(self) -> device:
        """Place the nodes of graphs that are built inside on the device."""
        _around.set((*_around.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        """Return to the device of before, also after an error."""
        _around.set(_around.get()[:-1])

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __str__(self) -> str:
        return self[:]  # a plain string: slices are


CPU = device("cpu")
_around: ContextVar[tuple[device, ...]] = ContextVar("weft_device", default=(CPU,))


def devices() -> list[device]:
    """Return the devices that Weft can run on here.

    >>> import weft as wf
    >>> wf.devices()
    [device('cpu')]
    """
    return [CPU]


def current_device() -> str:
    """Return the name of the device on which nodes built here will run."""
    return str(_around.get()[-1])  # nodes hold plain data: they are written to files and hashed


def is_device(target: Any) -> bool:
    """Tell whether an argument names a device rather than a dtype."""
    return isinstance(target, str) and target.split(":")[0] in KNOWN


def check_device(given: Any) -> device:
    """Return the device that an argument names, the CPU by default; raise if it is none."""
    return CPU if given is None else device(given)


def device_named(name: str) -> device:
    """Return a device by name, whether Weft runs on it or not: graphs may be placed anywhere."""
    return str.__new__(device, name)
