"""Callbacks by Keras's names; they are those of `wf.train`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..faces.absent import absent_names
from ..train import callbacks as plain
from ..train.callbacks import (
    Callback,
    CSVLogger,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    ReduceLROnPlateau,
    TerminateOnNaN,
)

__all__ = [
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "TerminateOnNaN",
]


class ModelCheckpoint(plain.ModelCheckpoint):
    """Save the model after epochs, or its weights alone with save_weights_only."""

    def __init__(
        self,
        filepath: str | Path,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
    ) -> None:
        frequency = 1 if save_freq == "epoch" else save_freq
        super().__init__(filepath, monitor, save_best_only, mode, frequency)
        self.save_weights_only, self.verbose = save_weights_only, verbose

    def write(self, path: Path, epoch: int, logs: Mapping[str, float]) -> None:
        """Write the file of an epoch."""
        (self.model.save_weights if self.save_weights_only else self.model.save)(path)
        if self.verbose:
            print(f"Epoch {epoch + 1}: saved {path}")


_REASONS = {
    "TensorBoard": "pass wf.train.extensions.TensorBoard(...) in callbacks",
    "ProgbarLogger": "fit(verbose=1) shows progress",
    "RemoteMonitor": "use LambdaCallback(on_epoch_end=...)",
}
__getattr__ = absent_names(globals(), _REASONS)
