"""The optimizer: parameter groups with hyperparameters, around a pure transform.

A step runs in this order: the loss-scale check (which may skip the step), the hooks before, t += 1,
the update, the hooks after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import count
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from ..autodiff.reverse import forget_gradients
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import current_recorder, enable_grad, modes
from ..core.parts import current_parts
from ..core.tensor import Tensor
from ..graph.symbol import Symbol
from .clip import clip_grad_norm_
from .eager_step import initial_state, run_transform
from .graph_step import GraphNumbers, GraphRule, build_step, record_step
from .groups import MULTIPLIERS, Group, as_groups, complete_group, effective_settings
from .large_step import run_large
from .placed_step import aligned
from .row_step import check_forms
from .state import dump_optimizer, load_optimizer
from .transform import GradientTransform, State

Closure = Callable[[], Any]
StepHook = Callable[["Optimizer"], Any]
_next_hook = count().__next__


class LossScaling(Protocol):
    """What may be put in `optimizer.loss_scaling`: training in half precision needs it."""

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss multiplied by the current scale."""

    def accept(self, optimizer: Optimizer) -> bool:
        """Divide the gradients by the scale; return whether they are fit for a step."""


class Optimizer(ABC):
    """Base of all optimizers; a subclass says in `transform` how gradients become updates.

    params     parameters, (name, parameter) pairs, or dictionaries: one per group, with "params"
               and the hyperparameters that differ from the defaults
    defaults   hyperparameters of groups that do not say otherwise

    Hyperparameters live in `param_groups` and may be changed between steps. Besides its own, each
    group has `lr_mult` and `decay_mult`, factors of `lr` and `weight_decay`.
    """

    steps_in_graphs = (
        True  # whether a step can be part of a graph: False if Python decides by values
    )
    takes_pairs_of_eps = False  # whether `eps` is several numbers
    takes_dense = True  # whether gradients may be dense: False for methods of row-sparse ones

    def __init__(self, params: Any, **defaults: Any) -> None:
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        self.t = 0
        self.loss_scaling: LossScaling | None = None
        self._before: dict[int, StepHook] = {}
        self._after: dict[int, StepHook] = {}
        self._read = itemgetter(*defaults, *MULTIPLIERS)
        self._seen: dict[int, tuple[Any, Mapping[str, Any]]] = {}
        self._rules: dict[int, tuple[Any, GradientTransform]] = {}
        self._large_steps: dict[tuple[int, ...], Any] = {}
        for group in as_groups(params):
            self.add_param_group(group)

    @abstractmethod
    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the rule of this optimizer for the hyperparameters of a group."""

    def graph_rule(self, loss: Symbol, numbers: GraphNumbers) -> GraphRule:
        """Return the rule for a step in a graph; one that uses the loss may write numbers."""
        return GraphRule(self.transform, {})

    def check_group(self, group: Mapping[str, Any]) -> None:  # noqa: B027  (most need none)
        """Raise if the hyperparameters of a group do not go together."""

    # -- one step ----------------------------------------------------------------------------------

    def step(
        self, closure: Closure | None = None, *, loss: Any = None, clip_norm: float | None = None
    ) -> Any:
        """Update all parameters that have gradients; return the loss if it is known.

        closure     computes the loss and its gradients anew; it is called first
        loss        the loss the gradients belong to, for methods that use its value (Eve)
        clip_norm   scale gradients first so that their joint norm is at most this
        """
        if closure is not None:
            loss = self._evaluate(closure)
        parts = current_parts() if self.steps_in_graphs else None
        if parts is None:
            self._take(loss, clip_norm, closure)
        else:
            known = loss.detach() if isinstance(loss, Tensor) else loss
            parts.run(self, self._take, known, clip_norm)
        return loss

    def _take(self, loss: Any, clip_norm: float | None, closure: Closure | None = None) -> None:
        """Do all of a step that comes behind the gradients."""
        if self.loss_scaling is not None and not self.loss_scaling.accept(self):
            return
        if clip_norm is not None:
            clip_grad_norm_(self.parameters(), clip_norm)
        for hook in tuple(self._before.values()):
            hook(self)
        recorder = current_recorder() if modes.interpreters else None
        if recorder is not None:
            record_step(self, recorder, loss)
        else:
            self.t += 1
            with np.errstate(all="ignore"):
                self._update(loss, closure)
        for hook in tuple(self._after.values()):
            hook(self)

    def minimize(self, loss: Tensor, *, clip_norm: float | None = None) -> Any:
        """Take one step against the gradient of a loss: zero_grad, backward, step.

        clip_norm   scale the gradients so that their joint norm is at most this

        In a graph, build that step instead: fetching the result in a session takes it.
        """
        if loss.symbolic and current_recorder() is None:
            return build_step(self, loss, clip_norm)  # type: ignore[arg-type]  # symbolic: a Symbol
        self.zero_grad()
        scaled = loss if self.loss_scaling is None else self.loss_scaling.scale(loss)
        scaled.backward()
        if clip_norm is None:  # subclasses may have a `step` that does not know of it
            self.step(loss=loss)
        else:
            self.step(loss=loss, clip_norm=clip_norm)
        return None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        forget_gradients(self.parameters(), set_to_none)

    def _evaluate(self, closure: Closure) -> Any:
        if not callable(closure):
            raise ArgumentTypeError(
                f"step takes a function that computes the loss. Received: {closure!r:.60}; "
                "pass a loss as step(loss=...)"
            )
        with enable_grad():
            return closure()

    def _update(self, loss: Any, closure: Closure | None) -> None:
        for index, group in enumerate(self.param_groups):
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                rule = self._rule(index, group)
                check_forms(self, group, rule, {p: p.grad for p in params})
                states = [self._state_of(p, rule) for p in params]
                run_transform(rule, params, states, partial(self._run_large, index, group))

    def _run_large(self, index: int, group: Group, params: Sequence[Tensor]) -> bool:
        """Update the parameters of a large model by machine code; return whether that can be."""
        return self.has_own_rule() and run_large(self, index, group, params)

    def _rule(self, index: int, group: Group) -> GradientTransform:
        """Return the rule of a group, made anew where what it follows from has changed."""
        settings = self._settings(index, group)
        if not _has_own_rule(type(self)):
            return self.transform(settings)
        made_for, rule = self._rules.get(index, (None, None))
        if made_for is not settings or rule is None:
            rule = self.transform(settings)
            self._rules[index] = (settings, rule)
        return rule

    def _settings(self, index: int, group: Group) -> Mapping[str, Any]:
        """Return the hyperparameters of a group, checked again whenever one was changed."""
        values = self._read(group)
        values_before, settings = self._seen.get(index, (None, {}))
        if values_before != values:
            settings = effective_settings(group)
            self.check_group(settings)
            self._seen[index] = (values, settings)
        return settings

    @classmethod
    def has_own_rule(cls) -> bool:
        """Tell whether the rule is Weft's and follows from a group alone; a user's may do more."""
        return _has_own_rule(cls)

    def _state_of(self, p: Tensor, rule: GradientTransform) -> State:
        state = self.state.get(p)
        if state is None:
            state = self.state[p] = initial_state(rule, p)
        elif len(state) < len(rule.slots):  # an option was switched on after the start
            for name, value in initial_state(rule, p).items():
                state.setdefault(name, value)
        return state if modes.base is None else aligned(state, p)

    def expected_state(self, p: Tensor, group: Mapping[str, Any]) -> State:
        """Return what the optimizer keeps of a parameter, as before its first update."""
        return initial_state(self.transform(effective_settings(group)), p)

    # -- parameters --------------------------------------------------------------------------------

    def parameters(self) -> Iterator[Tensor]:
        """Yield the parameters of all groups."""
        return (p for group in self.param_groups for p in group["params"])

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group, e.g. for layers that are unfrozen during training."""
        if not isinstance(group, Mapping):
            raise ArgumentTypeError(f"a group must be a dictionary. Received: {group!r:.60}")
        complete = complete_group(group, self.defaults)
        if isinstance(complete.get("eps"), tuple) and not self.takes_pairs_of_eps:
            raise ArgumentTypeError(f"eps must be a number. Received: {complete['eps']!r}")
        self.check_group(complete)
        known = {id(p) for p in self.parameters()}
        for position, p in enumerate(complete["params"]):
            if id(p) in known:
                raise ArgumentError(
                    f"parameter number {position} of the group, of shape {p.shape}, is given twice"
                )
            known.add(id(p))
        self.param_groups.append(complete)

    # -- hooks -------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: StepHook) -> StepHookHandle:
        """Call `hook(optimizer)` before each update, when the gradients are complete."""
        return StepHookHandle(self._before, hook)

    def register_step_post_hook(self, hook: StepHook) -> StepHookHandle:
        """Call `hook(optimizer)` after each update."""
        return StepHookHandle(self._after, hook)

    # -- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return hyperparameters and state as nested dictionaries of tensors and numbers.

        The tensors are copies. Parameters are numbered in the order of the groups.
        """
        return dump_optimizer(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned; if it does not fit, raise and change nothing.

        The state of PyTorch's optimizer of that name is understood too.
        """
        load_optimizer(self, state)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes over: all but programs, which update these parameters."""
        return {**self.__dict__, "_rules": {}, "_large_steps": {}}

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for index, group in enumerate(self.param_groups):
            shown = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            settings = ", ".join(f"{name}={value}" for name, value in shown.items())
            lines.append(f"  group {index}: {len(group['params'])} parameters, {settings}")
        return "\n".join([*lines, ")"])


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `locals()` of a constructor as what it was called with, each by its name."""
    return {name: x for name, x in arguments.items() if name not in ("self", "__class__")}


class StepHookHandle:
    """Lets a hook of an optimizer be removed, and put back."""

    def __init__(self, hooks: dict[int, StepHook], hook: StepHook) -> None:
        if not callable(hook):
            raise ArgumentTypeError(f"a hook must be callable. Received: {hook!r}")
        self._hooks, self._hook = hooks, hook
        self._key = _next_hook()
        self.restore()

    def restore(self) -> None:
        """Register the hook again under its key; doing so twice is harmless."""
        self._hooks[self._key] = self._hook

    def remove(self) -> None:
        """Unregister the hook; doing so twice is harmless."""
        self._hooks.pop(self._key, None)


class TransformOptimizer(Optimizer):
    """An optimizer made from a transform, or from a function of a group that returns one.

    >>> import weft as wf
    >>> from weft.optim import transform as tx
    >>> w = wf.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wf.optim.TransformOptimizer(
    ...     [w],
    ...     lambda group: tx.chain(tx.clip_by_global_norm(1.0), tx.sign(), tx.scale(-group["lr"])),
    ...     lr=0.5,
    ... )
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([ 0.5, -1.5])
    """

    def __init__(
        self,
        params: Any,
        transform: GradientTransform | Callable[[Mapping[str, Any]], GradientTransform],
        **defaults: Any,
    ) -> None:
        if not isinstance(transform, GradientTransform) and not callable(transform):
            raise ArgumentTypeError(
                "TransformOptimizer takes a transform or a function of a group. "
                f"Received: {transform!r:.60}"
            )
        self._transform = transform
        super().__init__(params, **defaults)

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the given transform."""
        chosen = self._transform
        return chosen if isinstance(chosen, GradientTransform) else chosen(group)


@cache
def _has_own_rule(cls: type[Optimizer]) -> bool:
    """Tell whether a rule follows from its group alone; a user's may read what changes."""
    rules = [cls.transform, getattr(cls, "scaling", cls.transform)]
    ours = all(rule.__module__.startswith(f"{__package__}.") for rule in rules)
    fixed = cls.transform is not TransformOptimizer.transform
    return ours and fixed and cls.graph_rule is Optimizer.graph_rule
