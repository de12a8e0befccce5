"""`with wf.batching():`, in which operations are put off and run together when needed."""

from __future__ import annotations

from typing import Any

from ..core.modes import current_transform, interpret_with, refuse_recording
from ..core.tensor import Tensor
from .deferred import DeferredTensor
from .deferring import Deferring
from .signatures import SignatureTable
from .statistics import BatchPlan


class ContextRun(Deferring):
    """Operations of one context, which is one example: what it writes it may."""

    def write(self, target: Tensor, x: DeferredTensor) -> None:
        """Give a tensor from outside the value of a put-off operation."""
        self.flush()  # what waits needs the value of before
        x.settled()._move_into(target)


class batching:  # noqa: N801  (used like a function)
    """Put operations off inside a `with` block, and run those that are alike as one.

    They run when a value is read, when gradients are computed, and at the end. The block gives the
    plan by which they are run.

    >>> import weft as wf
    >>> with wf.batching() as plan:
    ...     ys = [wf.tensor(float(i)) * 2.0 for i in range(100)]
    >>> float(sum(ys)), len(plan.batches)
    (9900.0, 1)
    """

    def __enter__(self) -> BatchPlan:
        """Begin to put operations off."""
        refuse_recording("operations are put off by wf.batching")
        self._run = ContextRun(SignatureTable(), current_transform())
        self._context = interpret_with(self._run)
        self._context.__enter__()
        return self._run.plan

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Run what was put off."""
        self._context.__exit__(kind, error, traceback)
        if kind is None:
            self._run.close()
