"""The BLAS library that NumPy brings, and a copy of it that never uses a second thread.

How many threads OpenBLAS uses is one number for the whole process (what is called
`openblas_set_num_threads_local` changes it too), and it belongs to the user's own calls of NumPy.
Factorisations whose bits must not depend on it run on a copy of the library: the same code, with
variables of its own, set to one thread for good. It is loaded when it is first needed, from memory
where the system allows that, else from a temporary file.

Where no copy can be made (another BLAS, or another system), `one_thread` lowers the number for the
time of a call and restores it. Then calls that other threads begin meanwhile run on one thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from .locks import fork_safe_lock

# As OpenBLAS is named in NumPy's wheels, with 64-bit or 32-bit indices, and elsewhere: its own
# functions, and those of LAPACK.
_NAMES = (
    ("scipy_openblas_{}64_", "scipy_{}_64_", ctypes.c_int64),
    ("scipy_openblas_{}", "scipy_{}_", ctypes.c_int32),
    ("openblas_{}64_", "{}_64_", ctypes.c_int64),
    ("openblas_{}", "{}_", ctypes.c_int32),
)

_limiting = fork_safe_lock("blas")


class BlasLibrary:
    """A loaded OpenBLAS: its setting, and the functions of LAPACK in it."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        found = [names for names in _NAMES if hasattr(handle, names[0].format("set_num_threads"))]
        if not found:
            raise OSError("not an OpenBLAS whose functions are known")
        self.handle = handle
        own, self._lapack = found[0][:2]
        self.integer: type[ctypes.c_int64 | ctypes.c_int32] = found[0][2]
        self.get_num_threads: Callable[[], int] = handle[own.format("get_num_threads")]
        self.set_num_threads: Callable[[int], None] = handle[own.format("set_num_threads")]

    def lapack(self, name: str) -> Any:
        """Return a function of LAPACK, as `dgesv`."""
        return self.handle[self._lapack.format(name)]


@cache
def numpy_library() -> BlasLibrary | None:
    """Return the OpenBLAS that NumPy's wheel brings (it is loaded by now), or None."""
    for path in _paths():
        try:
            return BlasLibrary(ctypes.CDLL(path))
        except OSError:  # not a library that this process can use
            continue
    return None


def single_library() -> BlasLibrary | None:
    """Return a copy of NumPy's OpenBLAS that runs on the calling thread only, or None."""
    with _limiting:
        return _single_library()


@cache
def _single_library() -> BlasLibrary | None:
    original = numpy_library()
    if original is None or os.name != "posix":
        return None
    before = original.get_num_threads()
    try:
        copy = BlasLibrary(_load_copy(original.handle._name))
    except (OSError, AttributeError):  # the system does not load it, or other functions are in it
        return None
    copy.set_num_threads(1)
    if original.get_num_threads() != before:  # it has no variables of its own after all
        original.set_num_threads(before)
        return None
    shut_down = getattr(copy.handle, "blas_thread_shutdown_", None)
    if shut_down is not None:  # the threads that it has started
        shut_down()
    return copy


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy's BLAS use one thread for as long as the context lasts, where that can be said."""
    library = numpy_library()
    if library is None:
        yield
        return
    with _limiting:
        before = library.get_num_threads()
        library.set_num_threads(1)
        try:
            yield
        finally:
            library.set_num_threads(before)


def _paths() -> Iterator[str]:
    package = os.path.dirname(np.__file__)
    beside = os.path.join(os.path.dirname(package), "numpy.libs")
    for folder in (beside, os.path.join(package, ".dylibs")):
        if os.path.isdir(folder):
            names = sorted(os.listdir(folder))
            yield from (os.path.join(folder, name) for name in names if "openblas" in name)


def _load_copy(path: str) -> ctypes.CDLL:
    """Load a library once more: the system takes a file of its own for another library."""
    try:
        return _load_from_memory(path)
    except (OSError, AttributeError):  # not this system, or it allows no code there
        import shutil  # noqa: PLC0415  (much of Python, which other systems do without)
        import tempfile  # noqa: PLC0415  (likewise)

        with tempfile.TemporaryDirectory() as folder:
            return ctypes.CDLL(shutil.copy(path, folder))


def _load_from_memory(path: str) -> ctypes.CDLL:
    number = os.memfd_create("weft-blas", os.MFD_CLOEXEC)
    with os.fdopen(number, "wb") as copy, open(path, "rb") as original:
        while part := original.read(1 << 20):
            copy.write(part)
        copy.flush()
        return ctypes.CDLL(f"/proc/self/fd/{number}")
