"""torch.cuda: there is no such device, and every question is answered so."""

from __future__ import annotations

from typing import Any

from ..absent import absent
from ..devices import no_cuda
from . import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Tell whether there is a GPU: there is none."""
    return False


def is_initialized() -> bool:
    """Tell whether a GPU is in use: none is."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether a GPU computes in bfloat16: there is none."""
    return False


def device_count() -> int:
    """Return how many GPUs there are."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there is no GPU to draw on."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Do nothing."""


def memory_allocated(device: Any = None) -> int:
    """Return the memory in use on a GPU."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing."""


def synchronize(device: Any = None) -> None:
    """Refuse: there is no GPU to wait for."""
    raise no_cuda()


def set_device(device: Any) -> None:
    """Refuse: there is no GPU to choose."""
    raise no_cuda()


def current_device() -> int:
    """Refuse: there is no GPU."""
    raise no_cuda()


def get_device_name(device: Any = None) -> str:
    """Refuse: there is no GPU."""
    raise no_cuda()


__getattr__ = absent(
    globals(), dict.fromkeys(("Stream", "Event", "stream"), "the CPU is the only device")
)
