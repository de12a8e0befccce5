"""Optimizers as Chainer has them: set up with a link, they call its loss and update it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.errors import ArgumentTypeError
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..optim import Optimizer as WeftOptimizer
from ..train.captured import Captures, Compile
from .link import Link
from .reporter import gathered
from .variable import Parameter, Variable, wrapped

Hook = Callable[[Any], Any]


class _Handed(NamedTuple):
    """A variable that a step is given, as jit knows its inputs: what it holds is no state."""

    tensor: Tensor


class Hyperparameter:
    """The numbers of an optimizer, as attributes."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def get_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        return f"Hyperparameter({', '.join(f'{k}={v}' for k, v in self.__dict__.items())})"


class Optimizer:
    """Base of optimizers: what they are set up with, and how often they have updated it."""

    target: Any = None
    t = 0
    epoch = 0
    _loss_scale: float | None = None

    def setup(self, link: Link) -> Optimizer:
        """Take the link whose parameters are updated; return the optimizer."""
        if not isinstance(link, Link):
            raise TypeError(f"optimization target must be a link. Received: {type(link).__name__}")
        self.target, self.t, self.epoch = link, 0, 0
        self._hooks: dict[str, Hook] = {}
        return self

    def update(self, lossfun: Any = None, *args: Any, **kwds: Any) -> None:
        """Update the parameters."""
        raise NotImplementedError

    def new_epoch(self, auto: bool = False) -> None:
        """Begin another epoch."""
        self.epoch += 1

    def check_nan_in_grads(self) -> None:
        """Raise if a gradient has a NaN."""
        for name, parameter in self.target.namedparams():
            if parameter.grad is not None and not np.isfinite(parameter.grad).all():
                raise RuntimeError(f"NaN or infinite gradient found: {name}")

    def add_hook(self, hook: Hook, name: str | None = None, timing: str = "auto") -> None:
        """Call `hook(optimizer)` before each update, or after it with timing "post"."""
        if not callable(hook):
            raise TypeError("hook function is not callable")
        if self.target is None:
            raise RuntimeError("call `setup` method before `add_hook` method")
        own = getattr(hook, "name", None) or getattr(hook, "__name__", type(hook).__name__)
        key = str(name or own)
        if key in self._hooks:
            raise KeyError(f"hook {key} already exists")
        self._hooks[key] = hook
        self._timings[key] = getattr(hook, "timing", "pre") if timing == "auto" else timing

    _timings: dict[str, str]

    def remove_hook(self, name: str) -> None:
        """Forget a hook."""
        del self._hooks[name]

    def call_hooks(self, timing: str = "pre") -> None:
        """Call the hooks of a moment."""
        for name, hook in self._hooks.items():
            if self._timings[name] == timing:
                hook(self)

    def serialize(self, serializer: Any) -> None:
        """Write the counters to a serializer, or read them from one."""
        self.t = int(serializer("t", self.t))
        self.epoch = int(serializer("epoch", self.epoch))


class GradientMethod(Optimizer):
    """An optimizer that follows gradients; `rule` is the one of Weft's that computes its steps.

    With a loss function, `update` runs as one compiled program where that can be; `compile` says
    so as everywhere in Weft ("auto", True, False).
    """

    rule: ClassVar[type[WeftOptimizer]]
    settings: ClassVar[Mapping[str, str]] = {}  # attribute of Chainer's -> setting of the rule
    fixed: ClassVar[Mapping[str, Any]] = {}  # settings of the rule that do not change
    compile: Compile = "auto"

    def __init__(self, **numbers: Any) -> None:
        self.__dict__["hyperparam"] = Hyperparameter(**numbers)
        self._captures = Captures()
        self._reports: dict[str, Any] = {}
        self._weft: WeftOptimizer | None = None
        self._known: tuple[int, ...] = ()
        self._timings = {}

    def __getattr__(self, name: str) -> Any:
        numbers = self.__dict__.get("hyperparam")
        if numbers is not None and name in numbers.__dict__:
            return numbers.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        numbers = self.__dict__.get("hyperparam")
        if numbers is not None and name in numbers.__dict__:
            setattr(numbers, name, value)
        else:
            object.__setattr__(self, name, value)

    def setup(self, link: Link) -> GradientMethod:
        """Take the link whose parameters are updated; return the optimizer."""
        super().setup(link)
        self._weft, self._timings = None, {}
        return self

    def use_cleargrads(self, use: bool = True) -> None:
        """Do nothing: gradients are forgotten before they are computed in any case."""

    def reallocate_cleared_grads(self) -> None:
        """Do nothing: parameters without gradients are left as they are."""

    # -- one update ----------------------------------------------------------------------------

    def update(self, lossfun: Any = None, *args: Any, **kwds: Any) -> None:
        """Compute the loss and its gradients, if a function is given, and update the parameters."""
        if self.target is None:
            raise RuntimeError("call `setup` method before `update` method")
        params = [*self.target.params()]  # one walk for the whole update
        if lossfun is None:
            self._take_step(self._rule_of_now(params))
        elif not all(p.is_initialized for p in params):  # shapes come with the first batch
            self._backward(lossfun, args, kwds, keep=_have_history(args, kwds))
            self._take_step(self._rule_of_now())
        else:
            step, rule = self._compiled(args, kwds), self._rule_of_now(params)
            with gathered(self._reports):
                step(rule, lossfun, _handed(args), _handed(kwds))
        self.t += 1
        for parameter in params:
            parameter._refresh()

    def _compiled(self, args: tuple[Any, ...], kwds: dict[str, Any]) -> Any:
        """Return a step as `compile` asks for it; one whose inputs have a history runs eagerly."""
        if _have_history(args, kwds):
            return self._joined_step
        return self._captures.get(("update", id(self.target)), self._loss_step, self.compile)

    def _loss_step(
        self, rule: WeftOptimizer, lossfun: Any, args: tuple[Any, ...], kwds: dict[str, Any]
    ) -> None:
        self._backward(lossfun, _taken(args), _taken(kwds))
        self._take_step(rule)

    def _joined_step(
        self, rule: WeftOptimizer, lossfun: Any, args: tuple[Any, ...], kwds: dict[str, Any]
    ) -> None:
        """Make a step whose inputs were computed; they keep their history, for other losses."""
        self._backward(lossfun, _taken(args), _taken(kwds), keep=True)
        self._take_step(rule)

    def _backward(
        self, lossfun: Any, args: tuple[Any, ...], kwds: dict[str, Any], *, keep: bool = False
    ) -> None:
        loss = lossfun(*args, **kwds)
        self.target.cleargrads()
        if keep:
            loss.backward(loss_scale=self._loss_scale)
        else:
            loss.backward_once(self._loss_scale)

    def _take_step(self, rule: WeftOptimizer) -> None:
        self.call_hooks("pre")
        rule.step()
        self.call_hooks("post")

    def _rule_of_now(self, params: list[Parameter] | None = None) -> WeftOptimizer:
        """Return Weft's optimizer of the parameters, with the numbers that stand here now.

        params   those of the target, where somebody has them already
        """
        found = self.target.params() if params is None else params
        known = [p for p in found if p.is_initialized]
        numbers = tuple(map(id, known))
        if self._weft is None or numbers != self._known:
            self._weft, self._known = self._renewed(known), numbers
        group = self._weft.param_groups[0]
        for theirs, ours in self.settings.items():
            value = getattr(self, theirs)
            if group[ours] != value:
                group[ours] = value
        return self._weft

    def _renewed(self, params: list[Parameter]) -> WeftOptimizer:
        made = type(self).rule([p._tensor for p in params], **self._rule_settings(), **self.fixed)
        if self._weft is not None:  # parameters came or went: the states of others stay
            made.t = self._weft.t
            made.state.update(
                {p: s for p, s in self._weft.state.items() if p in set(made.parameters())}
            )
        return made

    def _rule_settings(self) -> dict[str, Any]:
        return {ours: getattr(self, theirs) for theirs, ours in self.settings.items()}

    # -- saving --------------------------------------------------------------------------------

    def serialize(self, serializer: Any) -> None:
        """Write counters, numbers and states to a serializer, or read them from one."""
        super().serialize(serializer)
        state = self._rule_of_now()
        state.t = self.t
        for path, parameter in self.target.namedparams(include_uninit=False):
            inner = serializer[path.strip("/")]
            held = state.state.get(parameter._tensor)
            slots = (
                held
                if held is not None
                else state.expected_state(parameter._tensor, state.param_groups[0])
            )
            found = {name: _kept(inner, name, value) for name, value in slots.items()}
            if any(value is not None for value in found.values()):
                state.state[parameter._tensor] = {**slots, **found}


def _kept(serializer: Any, name: str, value: Any) -> Any:
    """Pass one entry of a state through a serializer."""
    found = serializer(name, np.asarray(value))
    if isinstance(value, (int, np.integer)):
        return int(found)
    return np.asarray(found, value.dtype)


def _have_history(args: tuple[Any, ...], kwds: dict[str, Any]) -> bool:
    """Return whether a variable that a loss is given was computed from others."""
    given = (*args, *kwds.values())
    return any(isinstance(x, Variable) and not x._tensor.is_leaf for x in given)


def _handed(nest: Any) -> Any:
    """Return what a step is given, with its variables as inputs of a program."""
    if type(nest) is Variable and nest._tensor.is_leaf:
        return _Handed(nest._tensor)
    return _mapped(_handed, nest)


def _taken(nest: Any) -> Any:
    """Return what was handed to a step, as its loss function knows it."""
    return wrapped(nest.tensor) if type(nest) is _Handed else _mapped(_taken, nest)


def _mapped(change: Callable[[Any], Any], nest: Any) -> Any:
    if type(nest) in (list, tuple):
        return type(nest)(map(change, nest))
    if type(nest) is dict:
        return {key: change(value) for key, value in nest.items()}
    return nest


def gradients_of(optimizer: GradientMethod) -> list[Parameter]:
    """Return the parameters that have gradients, for hooks."""
    if optimizer.target is None:
        raise ArgumentTypeError("a hook needs an optimizer that is set up")
    return [p for p in optimizer.target.params() if p.is_initialized and p._gradient() is not None]


def change_gradients(optimizer: GradientMethod, change: Callable[[Any, Any], Any]) -> None:
    """Replace each gradient by a function of the parameter and the gradient."""
    with no_grad():
        for parameter in gradients_of(optimizer):
            tensor = parameter._tensor
            tensor.grad = change(tensor.detach(), tensor.grad.detach())
