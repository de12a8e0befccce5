"""torch.optim.lr_scheduler: schedules of the learning rate."""

from __future__ import annotations

from typing import Any

from ...optim import lr as core_lr
from ...optim.lr import LRScheduler
from ..absent import absent
from ..names import description, names
from ..phrasing import phrased

NAMES = names("""
    ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR
    ExponentialLR LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR
    ReduceLROnPlateau SequentialLR StepLR
""")


def _schedule_class(name: str) -> Any:
    """Return the schedule of a name, whose constructor refuses in PyTorch's words."""
    behind: Any = getattr(core_lr, name)
    attributes = {
        "__init__": phrased(behind.__init__, f"{name}.__init__"),
        "__doc__": description(behind.__doc__),
        "__module__": __name__,
    }
    return type(behind)(name, (behind,), attributes)


CLASSES: dict[str, Any] = {name: _schedule_class(name) for name in NAMES}
globals().update(CLASSES)
_LRScheduler = LRScheduler
__all__ = ["LRScheduler"]
__getattr__ = absent(globals(), {})
