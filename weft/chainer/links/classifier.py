"""Classifier: a predictor with a loss and an accuracy, which it reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..functions.evaluation import accuracy
from ..functions.loss import softmax_cross_entropy
from ..link import Chain, Link
from ..reporter import report


class Classifier(Chain):
    """Compute the loss of a predictor's output; report "loss" and "accuracy"."""

    compute_accuracy = True

    def __init__(
        self,
        predictor: Link,
        lossfun: Callable[..., Any] = softmax_cross_entropy,
        accfun: Callable[..., Any] = accuracy,
        label_key: int | str = -1,
    ) -> None:
        if not isinstance(label_key, (int, str)):
            raise TypeError(f"label_key must be int or str, but is {type(label_key).__name__}")
        super().__init__()
        self.lossfun, self.accfun, self.label_key = lossfun, accfun, label_key
        self.y = self.loss = self.accuracy = None
        with self.init_scope():
            self.predictor = predictor

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss of inputs and labels."""
        if isinstance(self.label_key, int):
            if not -len(args) <= self.label_key < len(args):
                raise ValueError(f"Label key {self.label_key} is out of bounds")
            t = args[self.label_key]
            args = (
                args[:-1]
                if self.label_key == -1
                else (*args[: self.label_key], *args[self.label_key + 1 :])
            )
        else:
            if self.label_key not in kwargs:
                raise ValueError(f"Label key {self.label_key!r} is not found")
            t = kwargs.pop(self.label_key)
        self.y = self.loss = self.accuracy = None
        self.y = self.predictor(*args, **kwargs)
        self.loss = self.lossfun(self.y, t)
        report({"loss": self.loss}, self)
        if self.compute_accuracy:
            self.accuracy = self.accfun(self.y, t)
            report({"accuracy": self.accuracy}, self)
        return self.loss
