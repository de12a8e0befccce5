"""Samples: what a generative model makes, as a picture or a text in the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.tensor import wrap
from ..nn import Module
from ..train import Extension, Trainer
from ..train.images import image_grid, write_image
from ..train.objective import evaluating
from .config import ConfigSource

PICTURE, TEXT = "samples.png", "samples.txt"


class Samples(Extension):
    """Write a grid of images of a model with `sample`, or a text of one with `generate`."""

    trigger = (1, "epoch")

    def __init__(
        self, model: Module, count: int, facts: Mapping[str, Any], source: ConfigSource
    ) -> None:
        self.model, self.count = model, count
        self.symbols: list[str] = facts.get("vocabulary", [])
        self.draws_images = hasattr(model, "sample")
        if not self.draws_images and not (hasattr(model, "generate") and self.symbols):
            raise source.error(
                ("trainer", "samples"),
                f"{type(model).__name__} makes no samples; it is for vae, gpt and lstm_lm",
            )

    def __call__(self, trainer: Trainer) -> None:
        """Draw samples and write them; training continues as if nothing had been drawn."""
        with evaluating(self.model):
            made: Any = self.model
            if self.draws_images:
                images = made.sample(self.count).numpy().astype(np.float64)
                write_image(trainer.out_path(PICTURE), image_grid(images))
                return
            tokens = made.generate(wrap(np.zeros((1, 1), np.int64)), self.count)
        text = "".join(self.symbols[i] for i in tokens.numpy()[0, 1:])
        with trainer.out_path(TEXT).open("a", encoding="utf-8") as file:
            file.write(f"--- epoch {trainer.epoch_detail:g} ---\n{text}\n")
