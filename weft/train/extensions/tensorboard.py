"""TensorBoard: scalars, histograms and images for its web page (needs tensorboardX)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.imports import require
from ...core.row_sparse import kept_values
from ...viz.summaries import SummaryWriter, enter, leave
from ..extension import PRIORITY_READER, Extension
from ..summary import scalars_of
from ..triggers import as_trigger

if TYPE_CHECKING:
    from ..trainer import Trainer

Images = Callable[["Trainer"], Mapping[str, Any]]


class TensorBoard(Extension):
    """Write what is observed to event files.

    directory           within the output directory
    scalars             trigger for numbers
    histograms          trigger for histograms of parameters and their gradients (None: none)
    images              a function of the trainer that returns named images: (H, W), (C, H, W) or
                        (N, C, H, W), as floats of 0 to 1 or bytes
    image_trigger       when to call it

    Summaries that the network, or a function of the user's, writes by `wf.summary` go to the same
    files, with the number of the iteration; also where steps are compiled. A resumed run hides the
    events that an interrupted one wrote beyond the checkpoint.
    """

    priority = PRIORITY_READER

    def __init__(
        self,
        directory: str | Path = "tensorboard",
        *,
        scalars: Any = (1, "iteration"),
        histograms: Any = None,
        images: Images | None = None,
        image_trigger: Any = (1, "epoch"),
    ) -> None:
        require("tensorboardX", "tensorboard", "TensorBoard")
        self.directory = directory
        self.images = images
        self._scalars = as_trigger(scalars)
        self._histograms = None if histograms is None else as_trigger(histograms)
        self._image_trigger = as_trigger(image_trigger)
        self._writer: SummaryWriter | None = None

    def initialize(self, trainer: Trainer) -> None:
        """Open the event file."""
        folder = trainer.out_path(self.directory)
        # The purge hides all events from that step on.
        coming = trainer.iteration + 1
        purge = coming if folder.is_dir() else None
        self._writer = SummaryWriter(folder, step=coming, purge_step=purge)
        enter(self._writer)

    def observe(self, trainer: Trainer) -> None:
        """Let summaries of the next iteration have its number."""
        self._open.step = trainer.iteration + 1

    @property
    def _open(self) -> SummaryWriter:
        assert self._writer is not None  # between initialize and finalize
        return self._writer

    def __call__(self, trainer: Trainer) -> None:
        """Write what is due."""
        step = trainer.iteration
        if self._scalars(trainer):
            for key, value in scalars_of(trainer.observation).items():
                self._open.scalar(key, value, step)
        if self._histograms is not None and self._histograms(trainer):
            self._write_histograms(trainer, step)
        if self.images is not None and self._image_trigger(trainer):
            for name, image in self.images(trainer).items():
                self._open.image(name, image, step)

    def _write_histograms(self, trainer: Trainer, step: int) -> None:
        for name, parameter in trainer.model.named_parameters():
            kept = kept_values(parameter.grad)
            for title, tensor in ((name, parameter), (f"{name}/grad", kept)):
                if tensor is not None:
                    self._open.histogram(title, tensor, step)

    def finalize(self) -> None:
        """Write everything out and close the file."""
        if self._writer is not None:
            leave(self._writer)
            self._writer.close()
            self._writer = None
