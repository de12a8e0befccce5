"""Schedules by a formula of the epoch: steps, powers, ramps."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core.errors import ArgumentTypeError
from ..groups import non_negative, number, positive_int
from ..optimizer import Optimizer
from .base import LRScheduler, same_count

Factor = Callable[[Any], float]


class FactorLR(LRScheduler):
    """Base of schedules whose rate is the initial one times a function of the epoch."""

    @abstractmethod
    def factor(self, epoch: int) -> float:
        """Return the factor of the initial rate at an epoch."""

    def next_lr(self, lr: float, base: float) -> float:
        """Return the current rate times the change of the factor."""
        if self.last_epoch == 0:
            return lr * self.factor(0)
        now, before = self.factor(self.last_epoch), self.factor(self.last_epoch - 1)
        # A factor of zero cannot be left by multiplying; the closed form can.
        return lr if now == before else lr * (now / before) if before else base * now

    def lr_at(self, lr: float, base: float) -> float:
        """Return the initial rate times the factor."""
        return base * self.factor(self.last_epoch)


class PowerLR(LRScheduler):
    """Base of schedules that multiply by `gamma` again and again."""

    gamma: float

    @abstractmethod
    def exponent(self, epoch: int) -> int:
        """Return how often the rate has been multiplied by gamma at an epoch."""

    def next_lr(self, lr: float, base: float) -> float:
        """Return the current rate times gamma for each multiplication of this epoch."""
        before = self.exponent(self.last_epoch - 1) if self.last_epoch > 0 else 0
        return float(lr * self.gamma ** (self.exponent(self.last_epoch) - before))

    def lr_at(self, lr: float, base: float) -> float:
        """Return the initial rate times the power of gamma."""
        return float(base * self.gamma ** self.exponent(self.last_epoch))


class StepLR(PowerLR):
    """Multiply by `gamma` every `step_size` epochs.

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> optimizer = wf.optim.SGD([w], lr=0.1)
    >>> schedule = wf.optim.lr.StepLR(optimizer, step_size=2)
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.01]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = positive_int("step_size", step_size)
        self.gamma = number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def exponent(self, epoch: int) -> int:
        """Return the number of full steps."""
        return epoch // self.step_size


class MultiStepLR(PowerLR):
    """Multiply by `gamma` at each of the given epochs; one that is given twice counts twice."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = sorted(milestones)
        self.gamma = number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def exponent(self, epoch: int) -> int:
        """Return the number of milestones reached."""
        return bisect_right(self.milestones, epoch)


class ExponentialLR(PowerLR):
    """Multiply by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def exponent(self, epoch: int) -> int:
        """Return the epoch."""
        return epoch


class ConstantLR(FactorLR):
    """Multiply by `factor` during the first `total_iters` epochs: a flat warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = non_negative("factor", factor)
        self.total_iters = positive_int("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the factor before the end of the warm-up, one after."""
        return self.start_factor if epoch < self.total_iters else 1.0


class LinearLR(FactorLR):
    """Go linearly from `start_factor` to `end_factor` in `total_iters` epochs: a warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = non_negative("start_factor", start_factor)
        self.end_factor = non_negative("end_factor", end_factor)
        self.total_iters = positive_int("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the factor on the line between start and end."""
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


class PolynomialLR(FactorLR):
    """Fall as (1 - epoch/total_iters) ** power, to zero at the end."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = positive_int("total_iters", total_iters)
        self.power = number("power", power)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the power of the share that is left."""
        return float((1.0 - min(epoch, self.total_iters) / self.total_iters) ** self.power)


class PolyLR(PolynomialLR):
    """Caffe's "poly": base * (1 - iteration/max_iter) ** power, zero at the end and after it."""

    def __init__(
        self, optimizer: Optimizer, max_iter: int, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, positive_int("max_iter", max_iter), power, last_epoch)


class InverseLR(FactorLR):
    """Caffe's "inv": base * (1 + gamma * iteration) ** -power."""

    def __init__(
        self, optimizer: Optimizer, gamma: float = 1e-4, power: float = 0.75, last_epoch: int = -1
    ) -> None:
        self.gamma = non_negative("gamma", gamma)
        self.power = number("power", power)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the inverse power."""
        return float((1.0 + self.gamma * epoch) ** -self.power)


class SigmoidLR(FactorLR):
    """Caffe's "sigmoid": base / (1 + exp(-gamma * (iteration - step_size))).

    A negative gamma lets the rate fall around `step_size`, a positive one lets it rise.
    """

    def __init__(
        self, optimizer: Optimizer, gamma: float, step_size: int, last_epoch: int = -1
    ) -> None:
        self.gamma = number("gamma", gamma)
        self.step_size = positive_int("step_size", step_size)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the logistic function, without overflow on either side."""
        x = self.gamma * (epoch - self.step_size)
        return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


class FunctionLR(LRScheduler):
    """Base of schedules by functions that the user gives, one for all groups or one for each."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ) -> None:
        count = len(optimizer.param_groups)
        several = isinstance(lr_lambda, (list, tuple))
        functions: list[Any] = (
            same_count("lr_lambda", lr_lambda, count) if several else [lr_lambda] * count  # type: ignore[arg-type]  # `several` says it is a sequence
        )
        for function in functions:
            if not callable(function):
                raise ArgumentTypeError(f"lr_lambda must be callable. Received: {function!r}")
        self.lr_lambdas: list[Factor] = functions
        super().__init__(optimizer, last_epoch)

    _unsaved = ("optimizer", "lr_lambdas")

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one, and set the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        for index, group in enumerate(self.optimizer.param_groups):
            function = self.lr_lambdas[min(index, len(self.lr_lambdas) - 1)]
            group["lr"] = self.rate(group["lr"], self._base(index), function)

    @abstractmethod
    def rate(self, lr: float, base: float, function: Factor) -> float:
        """Return the rate from the current and the initial one and the group's function."""

    def next_lr(self, lr: float, base: float) -> float:
        """Return the rate by the first group's function."""
        return self.rate(lr, base, self.lr_lambdas[0])


class LambdaLR(FunctionLR):
    """Set the rate to the initial one times a function of the epoch; functions are not saved."""

    def rate(self, lr: float, base: float, function: Factor) -> float:
        """Return the initial rate times the function."""
        return base * function(self.last_epoch)


class MultiplicativeLR(FunctionLR):
    """Multiply the rate each epoch by a function of the epoch; functions are not saved."""

    def rate(self, lr: float, base: float, function: Factor) -> float:
        """Return the current rate times the function."""
        return lr * function(self.last_epoch) if self.last_epoch > 0 else lr
