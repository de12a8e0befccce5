"""torch.optim.lr_scheduler: schedules of the learning rate."""

from __future__ import annotations

from typing import Any

from ...optim import lr as core_lr
from ..absent import absent
from ..names import description, names
from ..phrasing import phrased

NAMES = names("""
    ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR
    ExponentialLR LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR
    ReduceLROnPlateau SequentialLR StepLR
""")


class _Rates:
    """Mixed into schedules: the rates that a class of the user's gives by `get_lr`."""

    _has_rates = False
    _step_count = 0
    optimizer: Any
    last_epoch: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._has_rates = cls._has_rates or "get_lr" in vars(cls)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group for `last_epoch`, given those of the step before."""
        own: Any = self
        groups = self.optimizer.param_groups
        return [own.next_lr(group["lr"], own._base(i)) for i, group in enumerate(groups)]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or jump to a given one, and set the rates."""
        own: Any = super()
        if not self._has_rates:
            own.step(epoch)
            return
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        closed = getattr(self, "_get_closed_form_lr", self.get_lr)
        rates = self.get_lr() if epoch is None else closed()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            group["lr"] = rate
        self._last_lr = own.get_last_lr()


class LRScheduler(_Rates, core_lr.LRScheduler):
    """Base of schedules; a subclass gives `get_lr`, the rate of each group for `last_epoch`.

    >>> from weft import torch
    >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = Halving(optimizer)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def next_lr(self, lr: float, base: float) -> float:
        """Return the rate of one group for `last_epoch`: there is none but by `get_lr`."""
        raise NotImplementedError


def _schedule_class(name: str) -> Any:
    """Return the schedule of a name, whose constructor refuses in PyTorch's words."""
    behind: Any = getattr(core_lr, name)
    attributes = {
        "__init__": phrased(behind.__init__, f"{name}.__init__"),
        "__doc__": description(behind.__doc__),
        "__module__": __name__,
    }
    bases = (_Rates, behind) if issubclass(behind, core_lr.LRScheduler) else (behind,)
    made = type(behind)(name, bases, attributes)
    LRScheduler.register(made)
    return made


CLASSES: dict[str, Any] = {name: _schedule_class(name) for name in NAMES}
globals().update(CLASSES)
_LRScheduler = LRScheduler
__all__ = ["LRScheduler"]
__getattr__ = absent(globals(), {})
