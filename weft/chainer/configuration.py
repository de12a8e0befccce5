"""`chainer.config`: settings, with global ones behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ..core.modes import is_grad_enabled, set_grad_enabled


class GlobalConfig:
    """Settings of all threads; make others by assigning them."""

    def __init__(self) -> None:
        self.train = True
        self.debug = False
        self.type_check = True
        self.keep_graph_on_report = False
        self.dtype: Any = np.dtype(np.float32)
        self.autotune = False
        self.cudnn_deterministic = False
        self.cudnn_fast_batch_normalization = False
        self.use_cudnn = "auto"
        self.use_cudnn_tensor_core = "auto"
        self.use_ideep = "never"
        self.lazy_grad_sum = False
        self.in_recomputing = False

    @property
    def enable_backprop(self) -> bool:
        """Tell whether operations are recorded for backward."""
        return is_grad_enabled()

    @enable_backprop.setter
    def enable_backprop(self, flag: bool) -> None:
        set_grad_enabled(bool(flag))

    def show(self, file: Any = None) -> None:
        """Print the settings, one in a line."""
        for name in sorted({*vars(self), "enable_backprop"}):
            print(f"{name:<30} {getattr(self, name)}", file=file)


class LocalConfig:
    """Settings that stand before the global ones.

    They hold for all threads, but for `enable_backprop`: what is local to a thread cannot be part
    of a compiled program.
    """

    def __init__(self, shared: GlobalConfig) -> None:
        self.__dict__.update(_shared=shared, _own={})

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__["_own"]
        return own[name] if name in own else getattr(self.__dict__["_shared"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "enable_backprop":  # a mode of Weft's, of the thread
            self._shared.enable_backprop = value
        else:
            self._own[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self._own:
            raise AttributeError(f"there is no setting {name!r} of its own")
        del self._own[name]

    def is_local(self, name: str) -> bool:
        """Tell whether a setting stands before the global one."""
        return name in self._own

    def show(self, file: Any = None) -> None:
        """Print the settings, one in a line."""
        for name in sorted({*vars(self._shared), *self._own, "enable_backprop"}):
            print(f"{name:<30} {getattr(self, name)}", file=file)


global_config = GlobalConfig()
config = LocalConfig(global_config)


@contextmanager
def using_config(name: str, value: Any, config: LocalConfig = config) -> Iterator[None]:
    """Give a setting of this thread another value inside a `with` block."""
    was_local = name == "enable_backprop" or config.is_local(name)
    before = getattr(config, name, None)
    setattr(config, name, value)
    try:
        yield
    finally:
        if was_local:
            setattr(config, name, before)
        else:
            delattr(config, name)


def no_backprop_mode() -> AbstractContextManager[None]:
    """Record no operations inside a `with` block."""
    return using_config("enable_backprop", False)


def force_backprop_mode() -> AbstractContextManager[None]:
    """Record operations inside a `with` block, whatever is around it."""
    return using_config("enable_backprop", True)


def get_dtype(dtype: Any = None, map_mixed16: Any = None) -> np.dtype[Any]:
    """Return a dtype, by default the one of the settings."""
    return np.dtype(config.dtype if dtype is None else dtype)


def set_debug(flag: bool) -> None:
    """Look for NaN in all operations, or stop doing so."""
    global_config.debug = bool(flag)


def is_debug() -> bool:
    """Tell whether debug mode is on."""
    return bool(config.debug)
