"""Gradient accumulation: several small batches make one step of a large one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.row_sparse import RowSparse
from ..core.tensor import Tensor, placed_like, wrap
from .groups import positive_int
from .optimizer import Optimizer
from .state import dump_slots, load_slots


class GradientAccumulator:
    """Sum the gradients of `steps` losses and step with their mean.

    Mean losses over equal batches then give the step of one batch that is `steps` times as large.

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> accumulator = GradientAccumulator(wf.optim.SGD([w], lr=0.1), steps=2)
    >>> accumulator.minimize((w * 2.0).sum()), accumulator.minimize((w * 4.0).sum())
    (False, True)
    >>> w.detach()
    tensor([0.7])
    """

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        self.optimizer = optimizer
        self.steps = positive_int("steps", steps)
        self.count = 0
        self._total_loss = 0.0

    def minimize(self, loss: Tensor) -> bool:
        """Add the gradient of a loss; step if it was the last of its round; tell whether it was."""
        if self.count == 0:
            self.optimizer.zero_grad()
        scaling = self.optimizer.loss_scaling
        scaled = loss if scaling is None else scaling.scale(loss)
        (scaled * (1.0 / self.steps)).backward()
        self._total_loss += loss.item()
        self.count += 1
        if self.count < self.steps:
            return False
        self._step()
        return True

    def flush(self) -> bool:
        """Step with what a round that was cut short has gathered; tell whether there was any."""
        if self.count == 0:
            return False
        missing = self.steps / self.count
        for p in self.optimizer.parameters():
            if p.grad is not None:
                p.grad = p.grad.detach() * missing
        self._step()
        return True

    def _step(self) -> None:
        mean_loss = self._total_loss / self.count
        self.count, self._total_loss = 0, 0.0
        self.optimizer.step(loss=mean_loss)
        self.optimizer.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the round and the gradients gathered so far."""
        gathered = enumerate(self.optimizer.parameters()) if self.count else ()
        grads = {str(i): _dumped(p.grad) for i, p in gathered if p.grad is not None}
        state = {"count": self.count, "total_loss": self._total_loss, "gradients": grads}
        found: dict[str, Any] = dump_slots(state)
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned, gradients included."""
        grads = load_slots(state["gradients"])
        self.count, self._total_loss = int(state["count"]), float(state["total_loss"])
        for number, p in enumerate(self.optimizer.parameters()):
            found = grads.get(str(number))
            if p.requires_grad:
                p.grad = None if found is None else _loaded(found, p)


def _dumped(gradient: Any) -> Any:
    """Return a gradient as an array, or as those of its rows and values."""
    if not isinstance(gradient, RowSparse):
        return gradient._value
    parts = gradient.on_arrays()
    return {"rows": parts.rows, "values": parts.values}


def _loaded(saved: Any, p: Tensor) -> Any:
    if not isinstance(saved, Mapping):
        return placed_like(p, wrap(saved))
    return RowSparse(wrap(saved["rows"]), wrap(saved["values"]), p.shape)
