"""torch.nn.parallel: modules that several processes train."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any

from ... import distributed
from ..absent import absent
from .module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class _Wrapped(Module):
    """A module that stands around another, whose names begin with `module.`."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module."""
        return self.module(*args, **kwargs)


class DataParallel(_Wrapped):
    """A module on all devices of this process, which has one: the module as it is."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__(module)


class DistributedDataParallel(_Wrapped):
    """A module whose gradients are the means of those of all processes: `wf.distributed.parallel`.

    >>> from weft import torch
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    >>> model(torch.zeros(1, 3)).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        **unused: Any,
    ) -> None:
        super().__init__(module)
        bucket = 25.0 if bucket_cap_mb is None else bucket_cap_mb
        made = distributed.parallel(
            module, group=process_group, bucket_mib=bucket, unused=find_unused_parameters
        )
        self.__dict__["_parallel"] = made
        weakref.finalize(self, made.close).atexit = False  # gradients travel as long as it is there

    def no_sync(self) -> AbstractContextManager[None]:
        """Let gradients stay those of this process, to be accumulated, inside a `with` block."""
        found: AbstractContextManager[None] = self.__dict__["_parallel"].no_sync()
        return found


__getattr__ = absent(globals(), {})
