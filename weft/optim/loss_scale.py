"""Loss scaling: keep small gradients of half-precision training from vanishing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from ..core.errors import ArgumentError
from ..core.modes import current_recorder, no_grad
from ..core.op import F
from ..core.row_sparse import kept_values
from ..core.tensor import Tensor
from .graph_step import GraphNumbers
from .optimizer import Optimizer

SMALLEST, LARGEST = 2.0**-24, 2.0**126  # beyond, products with a float32 vanish or overflow


class LossScaler:
    """Multiply the loss before backward and divide the gradients before the step.

    It installs itself as `optimizer.loss_scaling`, so `optimizer.minimize(loss)` scales by itself;
    in a loop of one's own write `scaler.scale(loss).backward()` and `optimizer.step()`. A step with
    gradients that are not finite is skipped. The scale falls by `backoff` then, and rises by
    `growth` after `interval` good steps in a row; `growth=1` and `backoff=1` keep it fixed
    (Micikevicius et al. 2018, section 3.2).

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> optimizer = wf.optim.SGD([w], lr=0.5)
    >>> scaler = LossScaler(optimizer, scale=1024.0)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([0.])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        scale: float = 2.0**16,
        *,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        if not scale > 0.0 or not growth >= 1.0 or not 0.0 < backoff <= 1.0 or interval < 1:
            raise ArgumentError(
                "LossScaler needs scale > 0, growth >= 1, 0 < backoff <= 1 and interval >= 1. "
                f"Received: {scale=}, {growth=}, {backoff=}, {interval=}"
            )
        self.factor = float(scale)
        self.growth, self.backoff, self.interval = growth, backoff, interval
        self.good_steps = 0
        self.skipped = 0
        optimizer.loss_scaling = self

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss multiplied by the current scale."""
        recorder = current_recorder()
        factor = self.factor if recorder is None else self._numbers(recorder).read("factor")
        return loss * factor

    def accept(self, optimizer: Optimizer) -> bool:
        """Divide the gradients by the scale; return whether all of them are finite."""
        recorder = current_recorder()
        if recorder is not None:
            return self._accept_recorded(recorder, optimizer)
        grads = [(p, p.grad.detach()) for p in optimizer.parameters() if p.grad is not None]
        if all(bool(F.all(F.isfinite(kept_values(g)))) for _, g in grads):
            for p, g in grads:
                p.grad = g * (1.0 / self.factor)
            self._advance()
            return True
        self.factor = max(self.factor * self.backoff, SMALLEST)
        self.good_steps = 0
        self.skipped += 1
        return False

    def _advance(self) -> None:
        self.good_steps += 1
        if self.good_steps == self.interval:
            self.good_steps = 0
            self.factor = min(self.factor * self.growth, LARGEST)

    # -- in a recording ----------------------------------------------------------------------------

    def _numbers(self, recorder: Any) -> GraphNumbers:
        """Return the scale and the counts as numbers of a recording."""
        recorder.observe((id(self), "settings"), self._settings)
        numbers = GraphNumbers(recorder)
        for name in ("factor", "good_steps", "skipped"):
            numbers.attribute(name, self, name)
        return numbers

    def _settings(self) -> tuple[float, ...]:
        return self.growth, self.backoff, self.interval

    def _accept_recorded(self, recorder: Any, optimizer: Optimizer) -> bool:
        """Do what `accept` does; steps that are taken and steps that are not are two paths."""
        numbers = self._numbers(recorder)
        with no_grad():
            with_grads = [p for p in optimizer.parameters() if p.grad is not None]
            finite = [F.all(F.isfinite(kept_values(p.grad))) for p in with_grads]
            accepted = bool(reduce(F.logical_and, finite)) if finite else True
            if accepted:
                inverse = 1.0 / numbers.read("factor")
                for p in with_grads:
                    p.grad = p.grad * inverse
                self._advance_recorded(numbers)
            else:
                numbers.assign("factor", F.maximum(numbers.read("factor") * self.backoff, SMALLEST))
                numbers.assign("good_steps", numbers.read("good_steps") * 0)
                numbers.assign("skipped", numbers.read("skipped") + 1)
        return accepted

    def _advance_recorded(self, numbers: GraphNumbers) -> None:
        factor, good = numbers.read("factor"), numbers.read("good_steps") + 1
        grows = F.equal(good, self.interval)
        numbers.assign("good_steps", F.where(grows, 0, good))
        grown = F.minimum(factor * self.growth, LARGEST)
        numbers.assign("factor", F.where(grows, grown, factor))

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and the counts."""
        return {
            "factor": self.factor,
            "good_steps": self.good_steps,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.factor = float(state["factor"])
        self.good_steps = int(state["good_steps"])
        self.skipped = int(state["skipped"])
