"""torch.utils.tensorboard: SummaryWriter."""

from __future__ import annotations

import os
import time
from typing import Any

from ...core import tensor as core
from ...viz.summaries import SummaryWriter as CoreWriter


class SummaryWriter:
    """Writes what TensorBoard shows into a folder."""

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        self.log_dir = log_dir or os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + comment)
        self._writer = CoreWriter(self.log_dir, purge_step=purge_step)

    def get_logdir(self) -> str:
        """Return the folder."""
        return str(self.log_dir)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: Any = None, **_: Any
    ) -> None:
        """Write a number."""
        self._writer.scalar(tag, _number(scalar_value), global_step)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Any, global_step: Any = None, walltime: Any = None
    ) -> None:
        """Write several numbers under one heading."""
        for tag, value in tag_scalar_dict.items():
            self._writer.scalar(f"{main_tag}/{tag}", _number(value), global_step)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = 30, **_: Any
    ) -> None:
        """Write how values are distributed."""
        options = {} if isinstance(bins, str) else {"bins": bins}
        self._writer.histogram(tag, _array(values), global_step, **options)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: Any = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image."""
        self._writer.image(tag, _array(img_tensor), global_step, layout=dataformats)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: Any = None
    ) -> None:
        """Write a text."""
        self._writer.text(tag, text_string, global_step)

    def add_hparams(self, hparam_dict: Any, metric_dict: Any, **_: Any) -> None:
        """Write settings as a text, and what they led to as numbers."""
        self._writer.text("hparams", "\n".join(f"{k}: {v}" for k, v in hparam_dict.items()))
        for tag, value in metric_dict.items():
            self._writer.scalar(tag, _number(value))

    def flush(self) -> None:
        """Write everything to the file now."""
        flush = getattr(self._writer, "flush", None)
        if flush is not None:
            flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _number(value: Any) -> float:
    return float(value.item() if hasattr(value, "item") else value)


def _array(values: Any) -> Any:
    return values.detach().numpy() if isinstance(values, core.Tensor) else values
