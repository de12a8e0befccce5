"""NVRTC, the compiler of CUDA C++, by ctypes: it needs no device to be there."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any

from ...core.device_array import DeviceError

# Every operation is rounded by itself, as IEEE 754 has it; sums of products are fused where the
# text says so.
OPTIONS = ("--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")


class CompiledText:
    """What NVRTC has made of a text: code for one architecture, and what it had to say."""

    def __init__(self, architecture: str, code: bytes, log: str) -> None:
        self.architecture = architecture
        self.code = code
        self.log = log


def compile_source(source: str, architecture: str) -> CompiledText:
    """Return the code of a text for an architecture: `sm_80`, or `compute_80` for PTX."""
    nvrtc = library()
    program = ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"weft.cu", 0, None, None
    )
    _check(nvrtc, made)
    try:
        options = [o.encode() for o in (f"--gpu-architecture={architecture}", *OPTIONS)]
        given = (ctypes.c_char_p * len(options))(*options)
        failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
        log = _read(nvrtc, program, "ProgramLog").decode().strip("\0\n ")
        if failed:
            raise DeviceError(f"NVRTC refuses kernels for {architecture}: {log}")
        kind = "CUBIN" if architecture.startswith("sm_") else "PTX"
        return CompiledText(architecture, _read(nvrtc, program, kind), log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(nvrtc: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, text))
    return text.raw


def _check(nvrtc: Any, result: int) -> None:
    if result:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise DeviceError(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(result).decode()}")


@cache
def library() -> Any:
    """Return NVRTC; raise with how to get it if it is not here."""
    for name in _names():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(
        "device 'cuda' needs NVRTC, which compiles its kernels: pip install "
        "nvidia-cuda-nvrtc-cu12, or install NVIDIA's CUDA toolkit"
    )


def _names() -> Iterator[str]:
    """Yield where NVRTC may be: in NVIDIA's packages, or where the system has its libraries."""
    for folder in sys.path:
        found = Path(folder or ".") / "nvidia" / "cuda_nvrtc" / "lib"
        yield from map(str, sorted(found.glob("libnvrtc.so.*")))
    yield from ("libnvrtc.so.12", "libnvrtc.so")
    system = find_library("nvrtc")
    if system is not None:
        yield system
