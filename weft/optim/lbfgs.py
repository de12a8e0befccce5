"""L-BFGS: a quasi-Newton method for objectives that can be evaluated several times a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.row_sparse import dense
from ..core.tensor import Tensor
from .line_search import Array, LinePoint, strong_wolfe
from .optimizer import Closure, Optimizer
from .state import check_layout, dump_slots, load_slots
from .transform import GradientTransform

MIN_CURVATURE = 1e-10  # pairs with less are left out, so that the approximation stays positive


class LBFGS(Optimizer):
    """Minimize with limited memory of past gradients (Nocedal & Wright 2006, algorithm 7.5).

    Each step makes up to `max_iter` iterations and calls `closure` several times; the closure must
    zero the gradients, compute the loss, call backward and return the loss.

    max_eval           evaluations per step (default: 5/4 of max_iter)
    tolerance_grad     stop when no element of the gradient is larger
    tolerance_change   stop when loss and parameters change less
    history_size       number of past pairs that approximate the curvature
    line_search_fn     None: take steps of `lr`; "strong_wolfe": search along each direction
    """

    steps_in_graphs = False

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        self.history = CurvatureHistory()
        super().__init__(
            params,
            lr=lr,
            max_iter=max_iter,
            max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Take the one group there can be."""
        if self.param_groups:
            raise ArgumentError("LBFGS treats all parameters as one vector: give one group only")
        super().add_param_group(group)

    def check_group(self, group: Mapping[str, Any]) -> None:
        """Raise unless the options make sense."""
        for name in ("max_iter", "max_eval", "history_size"):
            if not isinstance(group[name], int) or group[name] < 1:
                raise ArgumentError(f"{name} must be a positive integer. Received: {group[name]!r}")
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentError(
                f"line_search_fn must be None or 'strong_wolfe'. Received: "
                f"{group['line_search_fn']!r}"
            )

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Refuse: the update calls the objective, which a pure rule cannot."""
        raise ArgumentTypeError("LBFGS evaluates the objective itself and is no transform")

    def step(
        self, closure: Closure | None = None, *, loss: Any = None, clip_norm: float | None = None
    ) -> Any:
        """Make up to `max_iter` iterations; return the loss at their start."""
        if closure is None:
            raise ArgumentTypeError(
                "LBFGS evaluates the objective several times: pass a function that zeroes the "
                "gradients, computes the loss, calls backward and returns the loss"
            )
        if self.loss_scaling is not None:
            raise ArgumentError("LBFGS compares losses and gradients and cannot scale the loss")
        if clip_norm is not None:
            raise ArgumentError("LBFGS compares gradients and cannot clip them")
        return super().step(closure)

    def minimize(self, loss: Tensor, *, clip_norm: float | None = None) -> None:
        """Refuse: one value of the loss is not enough."""
        raise ArgumentTypeError("LBFGS needs a closure: call step(closure) instead of minimize")

    def _update(self, loss: Any, closure: Closure | None) -> None:
        assert closure is not None
        _Iterations(self, closure, float(loss)).run()

    # -- all parameters as one vector --------------------------------------------------------------

    def gather(self) -> Array:
        """Return all parameters as one vector."""
        return np.concatenate([p._value.reshape(-1) for p in self.parameters()])

    def gather_grad(self) -> Array:
        """Return all gradients as one vector, zero where there is none; rows become dense."""
        return np.concatenate(
            [
                np.zeros(p.size, p.dtype) if p.grad is None else dense(p.grad)._value.reshape(-1)
                for p in self.parameters()
            ]
        )

    def scatter(self, vector: Array) -> None:
        """Set all parameters from one vector."""
        start = 0
        for p in self.parameters():
            part = vector[start : start + p.size].reshape(p.shape)
            p._value = part.astype(p.dtype, copy=False)
            start += p.size

    def state_dict(self) -> dict[str, Any]:
        """Return hyperparameters and the memory of past pairs."""
        return {**super().state_dict(), "history": dump_slots(self.history.__dict__)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        history = CurvatureHistory()
        check_layout(self, state)
        saved = load_slots(state.get("history", {}))
        unknown = [name for name in saved if name not in vars(history)]
        if unknown or state["state"]:
            raise ArgumentError(
                f"LBFGS keeps one history for all parameters ({', '.join(vars(history))}) and "
                f"nothing of each. Received: {unknown or state['state']!r:.60}"
            )
        super().load_state_dict(state)
        vars(history).update(saved)
        self.history = history


class CurvatureHistory:
    """Past steps s and changes of the gradient y, which stand for the inverse Hessian."""

    def __init__(self) -> None:
        self.iterations = 0
        self.steps: list[Array] = []
        self.changes: list[Array] = []
        self.weights: list[float] = []  # 1 / (s . y)
        self.diagonal = 1.0
        self.direction: Array | None = None
        self.length = 0.0
        self.gradient: Array | None = None

    def remember(self, g: Array, limit: int) -> None:
        """Add the pair of the last iteration, given the gradient after it."""
        assert self.direction is not None
        assert self.gradient is not None
        y, s = g - self.gradient, self.direction * self.length
        curvature = float(y @ s)
        if curvature <= MIN_CURVATURE:
            return
        if len(self.steps) >= limit:
            for past in (self.steps, self.changes, self.weights):
                del past[0]
        self.steps.append(s)
        self.changes.append(y)
        self.weights.append(1.0 / curvature)
        self.diagonal = curvature / float(y @ y)

    def descend(self, g: Array) -> Array:
        """Return the direction -H g by the two-loop recursion (algorithm 7.4)."""
        q = -g
        pairs = list(zip(self.steps, self.changes, self.weights, strict=True))
        shares = []
        for s, y, weight in reversed(pairs):
            share = float(s @ q) * weight
            q -= share * y
            shares.append(share)
        r: Array = q * self.diagonal
        for (s, y, weight), share in zip(pairs, reversed(shares), strict=True):
            r += (share - float(y @ r) * weight) * s
        return r


class _Iterations:
    """The iterations of one step."""

    def __init__(self, optimizer: LBFGS, closure: Closure, loss: float) -> None:
        self.optimizer = optimizer
        self.closure = closure
        self.options = optimizer.param_groups[0]
        self.loss = loss
        self.g = optimizer.gather_grad()
        self.evaluations = 1

    def run(self) -> None:
        if self._flat():
            return
        for iteration in range(1, self.options["max_iter"] + 1):
            if not self._choose_direction():
                return
            before = self.loss
            self._move(last=iteration == self.options["max_iter"])
            if self._finished(before):
                return

    def _flat(self) -> bool:
        """Tell whether the gradient is small everywhere."""
        return not self.g.size or bool(np.abs(self.g).max() <= self.options["tolerance_grad"])

    def _choose_direction(self) -> bool:
        """Set direction and step length; return whether they lead downhill."""
        past, lr = self.optimizer.history, self.options["lr"]
        past.iterations += 1
        if past.iterations == 1:
            past.direction = -self.g
            past.length = min(1.0, 1.0 / float(np.abs(self.g).sum())) * lr
        else:
            past.remember(self.g, self.options["history_size"])
            past.direction = past.descend(self.g)
            past.length = lr
        past.gradient = self.g
        self.slope = float(self.g @ past.direction)
        return not self.slope > -self.options["tolerance_change"]

    def _move(self, *, last: bool) -> None:
        past = self.optimizer.history
        assert past.direction is not None
        x = self.optimizer.gather()
        if self.options["line_search_fn"] is not None:
            self._search(x, past.direction)
            self.optimizer.scatter(x + past.length * past.direction)
            return
        self.optimizer.scatter(x + past.length * past.direction)
        if not last:  # the loss after the last iteration is the next step's business
            self.loss, self.g = self._evaluate()
            self.evaluations += 1

    def _search(self, x: Array, direction: Array) -> None:
        def objective(t: float) -> tuple[float, Array]:
            self.optimizer.scatter(x + t * direction)
            return self._evaluate()

        past = self.optimizer.history
        start = LinePoint(0.0, self.loss, self.g, self.slope)
        left = self.options["max_eval"] - self.evaluations
        found, evaluations = strong_wolfe(objective, past.length, direction, start, max_trials=left)
        past.length, self.loss, self.g = found.t, found.f, found.g
        self.evaluations += evaluations

    def _evaluate(self) -> tuple[float, Array]:
        loss = float(self.optimizer._evaluate(self.closure))
        return loss, self.optimizer.gather_grad()

    def _finished(self, before: float) -> bool:
        past, options = self.optimizer.history, self.options
        assert past.direction is not None
        return (
            self.evaluations >= options["max_eval"]
            or self._flat()
            or float(np.abs(past.direction).max()) * past.length <= options["tolerance_change"]
            or abs(self.loss - before) < options["tolerance_change"]
        )
