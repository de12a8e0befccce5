"""Devices: where values live and programs run. Each is a back end, a folder of weft/backends."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .errors import ArgumentError, WeftError
from .imports import Injected, injected

_backend_names: Injected[Callable[[], tuple[str, ...]]] = injected("backend_names")
_device_names: Injected[Callable[[], list[str]]] = injected("device_names")
device_runtime: Injected[Any] = injected("device_runtime")  # see core/device_array.py
_device_count: Injected[Callable[[str], int | None]] = injected("device_count")

AUTO = "auto"  # in a graph: wherever it takes least time
KNOWN = ("cpu", "cuda", "gpu", "mps", "tpu", "xpu", "meta")  # names that mean a device, not a dtype


class device(str):  # noqa: N801  (a name of values' places, as dtype is of their kinds)
    """A device by its name: where values live, and as a context where values and nodes are made.

    It is the string of its name, so `x.device == "cpu"` holds. `wf.devices()` lists what there is:
    the CPU, and `reference`, which runs programs by NumPy, slowly and plainly. Those of a kind are
    numbered, `opencl:0` and `opencl:1`; without a number the first one is meant. `auto` places the
    nodes of a graph where it takes least time.

    >>> import weft as wf
    >>> wf.device("cpu")
    device('cpu')
    >>> wf.tensor([1.0]).device == wf.device("cpu")
    True
    >>> with wf.device("reference"):
    ...     wf.ones(3).device
    device('reference')
    """

    __slots__ = ()

    def __new__(cls, name: Any) -> device:
        """Return the device of a name; raise unless Weft runs on it."""
        if isinstance(name, device):
            return name
        found, why = None, ""
        try:
            found = _full_name(name) if isinstance(name, str) else None
        except WeftError as error:  # there is such a kind, and no driver
            why = f"; {error}"
        if found is None:
            known = ", ".join(map(repr, _device_names()))
            raise ArgumentError(
                f"device must be one of {known} (see wf.devices()). Received: {name!r}{why}"
            )
        return str.__new__(cls, found)

    @property
    def type(self) -> str:
        """Return the kind of device: `cpu`."""
        return self.split(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]  # str's method finds text
        """Return its number among those of its kind; None for the only one."""
        number = self.partition(":")[2]
        return int(number) if number else None

    def stats(self) -> dict[str, Any]:
        """Return what was done for tensors in the memory of this device so far.

        copies in, copies out, bytes in, bytes out
                     between the host and the device; `flags read`, besides, are looks at whether an
                     index was out of range
        launches     of kernels for eager operations; programs: of all programs, those among them
        allocations, bytes
                     how often memory was taken, and what tensors hold now
        host         the operators that the host computed instead, on copies, with the reasons

        >>> import weft as wf
        >>> wf.device("reference").stats()["host"]  # which works in the memory of the host
        []
        """
        found: dict[str, Any] = device_runtime.get().stats(self)
        return found

    def synchronize(self) -> None:
        """Wait until all that was started on the device is done; reading a tensor waits too.

        >>> import weft as wf
        >>> wf.device("cpu").synchronize()  # which has done everything already
        """
        if self != "cpu":
            device_runtime.get().synchronize(self)

    def __enter__(self) -> device:
        """Make tensors, and place the nodes of graphs that are built inside, on the device."""
        scopes.append(self)
        _around.set((*_around.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        """Return to the device of before, also after an error."""
        _around.set(_around.get()[:-1])
        scopes.pop()

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __str__(self) -> str:
        return self[:]  # a plain string: slices are


def _full_name(name: str) -> str | None:
    """Return the name that a device goes by, or None: `cpu:0` is `cpu`, `opencl` is `opencl:0`."""
    kind, colon, index = name.partition(":")
    if name == AUTO:
        return name
    if kind == "cpu":
        return "cpu" if index in ("", "0") else None
    if kind not in _backend_names() or (colon and not index.isdecimal()):
        return None
    count, number = _device_count(kind), int(index or 0)
    if count is None:
        return kind if number == 0 else None
    return f"{kind}:{number}" if number < count else None


CPU = device("cpu")
_around: ContextVar[tuple[device, ...]] = ContextVar("weft_device", default=(CPU,))
scopes: list[device] = []  # of all threads: while there are none, nobody asks for their own


def devices() -> list[device]:
    """Return the devices that Weft can run on here.

    >>> import weft as wf
    >>> [d for d in wf.devices() if d.type in ("cpu", "reference")]  # these are always here
    [device('cpu'), device('reference')]
    """
    return [device(name) for name in _device_names()]


def is_pinned() -> bool:
    """Tell whether nodes built here are to run on the CPU because a context says so."""
    return bool(scopes) and len(_around.get()) > 1 and _around.get()[-1] == CPU


def current_device() -> str:
    """Return the name of the device on which nodes built here will run."""
    return str(_around.get()[-1])  # nodes hold plain data: they are written to files and hashed


def is_device(target: Any) -> bool:
    """Tell whether an argument names a device rather than a dtype."""
    if not isinstance(target, str):
        return False
    kind = target.split(":")[0]
    if kind in KNOWN or kind == AUTO or isinstance(target, device):
        return True
    return kind in _backend_names()


def check_device(given: Any) -> device:
    """Return the device that an argument names, by default that of the context; else raise."""
    if given is None:
        found = _around.get()[-1] if scopes else CPU
        return CPU if found == AUTO else found
    found = device(given)
    if found == AUTO:
        raise ArgumentError(
            "a tensor is on one device, and 'auto' chooses among several for the nodes of a graph: "
            "`with wf.device('auto'):`, or wf.Session(graph, device='auto'). Received: 'auto'"
        )
    return found


def check_program_device(given: Any) -> device | None:
    """Return the device that a program is to run on, perhaps `auto`; None: where its nodes are."""
    return None if given is None else device(given)


def device_named(name: str) -> device:
    """Return a device by name, whether Weft runs on it or not: graphs may be placed anywhere."""
    return str.__new__(device, name)
