"""A step of an optimizer as part of a graph: what `minimize` builds for a symbol.

The rule is the same (init, update) pair that eager steps run. The slots stay in `optimizer.state`,
the learning rate in `optimizer.param_groups`: a run reads and writes them there, so that eager and
static steps may alternate, schedules work, and checkpoints are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import gradients
from ..core.dtype import is_float
from ..core.errors import ArgumentError, GradientError, GraphError
from ..core.modes import no_grad
from ..core.op import F
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..graph.frontend import open_tracer
from ..graph.scope import outermost_scope
from ..graph.state import Alone, AttributeKeeper, ItemStep, State, StatePath, number_state
from ..graph.symbol import Symbol, make_number, make_symbol
from ..graph.tracer import Tracer
from ..graph.update import Update, caused_updates
from .eager_step import initial_state, working_dtype
from .groups import effective_settings
from .transform import GradientTransform

# Hyperparameters besides the learning rate that schedules change from step to step. In a recording
# they are read anew in each run; one that is 0 is left out of the rule, and makes another program.
CHANGING = ("momentum", "betas", "weight_decay")


def build_step(optimizer: Any, loss: Symbol) -> Update:
    """Add the gradients of a loss and the update of all parameters to the open graph.

    Fetching the result takes one step. What the program wrote to tensors from outside on its way to
    the loss (the running statistics of batch normalisation) is committed with it.
    """
    tracer = open_tracer("minimize")
    _check(optimizer, loss)
    tracer.observe((id(optimizer), "parameters"), partial(_trained, optimizer))
    params = [p for p in optimizer.parameters() if p.requires_grad]
    found = zip(params, gradients(loss, params), strict=True)
    grads = {p: g for p, g in found if g is not None}
    if not grads:
        raise GradientError("minimize: the loss depends on none of the optimizer's parameters")
    with outermost_scope(("optimizer",)):
        assigns = _assignments(tracer, optimizer, loss, grads)
        caused = caused_updates(tracer.graph, tracer.value_of(loss), assigns)
        assigns += [tracer.assign(state, value) for state, value in caused]
    return Update(assigns, name="minimize")


def record_step(optimizer: Any, recorder: Any, loss: Any) -> None:
    """Take a step of an optimizer, by the gradients that its parameters have, in a recording."""
    if not optimizer.steps_in_graphs:
        recorder.refuse(f"{type(optimizer).__name__} steps by values, in Python")
    recorder.watch.refuse_closed(optimizer)  # whose schedule has stepped
    grads = {p: p.grad for p in optimizer.parameters()}
    grads = {p: g for p, g in grads.items() if g is not None}
    recorder.require(id(optimizer), StepTest(optimizer))
    with outermost_scope(("optimizer",)), no_grad():
        _assignments(recorder, optimizer, loss, grads)


class StepTest:
    """Tests that an optimizer is as it was when a step was recorded, learning rates aside."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._around = _hooked(optimizer)
        self._members = [tuple(group["params"]) for group in optimizer.param_groups]
        groups = enumerate(optimizer.param_groups)
        self._fixed = [_fixed_settings(optimizer, index, group) for index, group in groups]
        self._seen: list[Any] = [None] * len(self._fixed)  # settings that were found to be equal

    def __call__(self) -> bool:
        """Tell whether it is."""
        optimizer, groups = self._optimizer, self._optimizer.param_groups
        if len(groups) != len(self._members) or _hooked(optimizer) != self._around:
            return False
        for index, (group, members) in enumerate(zip(groups, self._members, strict=True)):
            params = group["params"]
            if len(params) != len(members) or not all(map(is_, params, members)):
                return False
            settings = optimizer._settings(index, group)
            if settings is not self._seen[index]:
                if _fixed_settings(optimizer, index, group) != self._fixed[index]:
                    return False
                self._seen[index] = settings
        return True


def settings_of(optimizer: Any, index: int, group: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the hyperparameters of a group, whose learning rate may be a number of a recording."""
    rate = group.get("lr")
    if not isinstance(rate, Symbol):
        found: Mapping[str, Any] = optimizer._settings(index, group)
        return found
    settings = effective_settings({**group, "lr": 1.0})
    optimizer.check_group(settings)
    return {**settings, "lr": rate * group["lr_mult"]}


def _hooked(optimizer: Any) -> tuple[Any, ...]:
    """Return what runs in Python around a step."""
    return (*optimizer._before.values(), *optimizer._after.values(), optimizer.loss_scaling)


def _fixed_settings(optimizer: Any, index: int, group: Any) -> dict[str, Any]:
    """Return the settings without the numbers that each run reads anew."""
    settings = settings_of(optimizer, index, group)
    return {name: _fixed_part(name, value) for name, value in settings.items() if name != "lr"}


def _fixed_part(name: str, value: Any) -> Any:
    if name in CHANGING and isinstance(value, tuple):
        return tuple(_fixed_part(name, x) for x in value)
    return "a number" if _may_change(name, value) else value


def _may_change(name: str, value: Any) -> bool:
    """Tell whether a setting is a number of its group's that may be another in each run."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return name in CHANGING and is_number and value != 0


def _trained(optimizer: Any) -> list[tuple[int, bool]]:
    """Return which parameters an optimizer has, and which of them it trains."""
    return [(id(p), p.requires_grad) for p in optimizer.parameters()]


def _assignments(
    tracer: Tracer, optimizer: Any, loss: Any, grads: Mapping[Tensor, Any]
) -> list[Symbol]:
    """Return the updates of one step."""
    numbers = GraphNumbers(tracer)
    rule = optimizer.graph_rule(loss, numbers)
    numbers.attribute("t", optimizer, "t")
    assigns = [
        numbers.assign("t", numbers.read("t") + 1),
        *(numbers.assign(name, value) for name, value in rule.written.items()),
    ]
    for index, group in enumerate(optimizer.param_groups):
        members = [p for p in group["params"] if p in grads]
        if members:
            assigns += GroupStep(tracer, optimizer, index, group).build(members, grads, rule)
    return assigns


def _check(optimizer: Any, loss: Symbol) -> None:
    one = loss.size == 1  # surely: an unknown size could be another
    if not one or not is_float(loss.dtype):
        raise GradientError(
            f"minimize: the loss must be one floating-point number. Received: {loss!r}"
        )
    if optimizer.loss_scaling is not None:
        raise ArgumentError("minimize: loss scaling belongs to eager training; it is set here")
    if optimizer._before or optimizer._after:
        raise ArgumentError(
            "minimize: hooks run in Python, which a graph does not; remove them, and clip "
            "gradients with a transform (wf.optim.TransformOptimizer)"
        )


class GraphRule(NamedTuple):
    """How gradients become updates in a graph, and the numbers a step writes besides."""

    transform: Callable[[Mapping[str, Any]], GradientTransform]
    written: Mapping[str, Any]


class GraphNumbers:
    """Numbers that are attributes of an optimizer, as states of a graph."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.states: dict[str, State] = {}

    def attribute(self, name: str, owner: Any, attribute: str) -> Symbol:
        """Return an attribute that holds a number, to be read anew in each run; None is NaN."""
        kind = int if isinstance(getattr(owner, attribute), int) else float
        keeper = AttributeKeeper(owner) if kind is int else _nan_for_none(owner, attribute)
        self.states[name] = number_state(
            owner, kind, keeper, attribute, name=f"optimizer/{name}", label=name
        )
        return self.read(name)

    def read(self, name: str) -> Symbol:
        """Return the value of a number at the start of a run."""
        return make_number(self.tracer.graph, self.tracer.read_state(self.states[name]))

    def number(self, symbol: Symbol) -> Symbol:
        """Return a symbol with one element as a number."""
        alone = F.reshape(F.cast(symbol, np.dtype(np.float64)), ())
        return make_number(self.tracer.graph, self.tracer.value_of(alone))

    def assign(self, name: str, value: Any) -> Symbol:
        """Return the update that gives a number another value."""
        state = self.states[name]
        return self.tracer.assign(state, self.tracer.value_of(value.to(state.type.dtype)))


def _nan_for_none(owner: Any, attribute: str) -> Alone:
    """Return the keeper of an attribute that may be None, which is NaN in a graph."""

    def get() -> float:
        value = getattr(owner, attribute)
        return math.nan if value is None else value

    def put(value: float) -> None:
        setattr(owner, attribute, None if math.isnan(value) else value)

    return Alone(get, put)


class GroupStep:
    """The update of the parameters of one group."""

    def __init__(self, tracer: Tracer, optimizer: Any, index: int, group: Any) -> None:
        self.tracer = tracer
        self.optimizer = optimizer
        self.index = index
        self.group = group
        self.settings = dict(settings_of(optimizer, index, group))

    def build(
        self, params: list[Tensor], grads: Mapping[Tensor, Any], graph_rule: GraphRule
    ) -> list[Symbol]:
        """Return the assignments of new parameters and slots."""
        rule = graph_rule.transform(self._settings_in_graph())
        values = [self._in_working_precision(self.tracer.symbol_of(p)) for p in params]
        gs = [grads[p].to(v.dtype) for p, v in zip(params, values, strict=True)]
        slots = [self._slots(rule, p) for p in params]
        read = [{name: self._symbol(s) for name, s in slot.items()} for slot in slots]
        updates, changed = rule.update(gs, read, values)
        assigns = []
        for p, v, u, slot, new in zip(params, values, updates, slots, changed, strict=True):
            assigns.append(self._assign(self.tracer.tensor_state(p), v + u))
            assigns += [self._assign(slot[name], value) for name, value in new.items()]
        return assigns

    def _settings_in_graph(self) -> dict[str, Any]:
        """Return the hyperparameters, with the learning rate read anew in each run."""
        recording = self.tracer.root.recording
        settings = self._recorded_settings() if recording else self.settings
        if "lr" not in settings:
            return settings
        optimizer, index, group = self.optimizer, self.index, self.group
        if self.tracer.root.has_written(group, "lr"):
            return settings  # of this point of the function
        # Those of a recording have been looked at, see StepTest.
        others = {} if recording else {n: v for n, v in settings.items() if n != "lr"}
        values, rate = None, math.nan

        def get() -> float:
            nonlocal values, rate
            now = optimizer._read(group)
            if now != values:  # which compares identities first, and is most often all that is done
                found = optimizer._settings(index, group)
                _check_unchanged(others, found, index)
                values, rate = now, float(found["lr"])
            return rate

        name = f"optimizer/lr_{index}"
        label = f"lr{index}"
        state = number_state(optimizer, float, Alone(get), name=name, label=label, writable=False)
        return {**settings, "lr": self._symbol(state)}

    def _recorded_settings(self) -> dict[str, Any]:
        """Return the hyperparameters for a recording: some of them are numbers of it."""
        written = self.tracer.root.has_written
        return {
            name: value if written(self.group, name) else self._recorded_setting(name, value)
            for name, value in self.settings.items()
        }

    def _recorded_setting(self, name: str, value: Any) -> Any:
        if name in CHANGING and isinstance(value, tuple):
            return tuple(self._recorded_number(name, i, x) for i, x in enumerate(value))
        return self._recorded_number(name, None, value)

    def _recorded_number(self, name: str, part: int | None, value: Any) -> Any:
        if not _may_change(name, value):
            return value
        optimizer, index, group = self.optimizer, self.index, self.group

        def get() -> float:
            now = optimizer._settings(index, group)[name]
            return float(now if part is None else now[part])

        label = f"{name}{index}" if part is None else f"{name}{index}.{part}"
        state = number_state(
            optimizer, float, Alone(get), name=f"optimizer/{label}", label=label, writable=False
        )
        return self._symbol(state)

    def _in_working_precision(self, p: Symbol) -> Any:
        dtype = working_dtype(p.dtype)
        return p if p.dtype == dtype else F.cast(p, dtype)

    def _slots(self, rule: GradientTransform, p: Tensor) -> dict[str, State]:
        known = self.optimizer.state.setdefault(p, {})
        for name, value in initial_state(rule, p).items():
            known.setdefault(name, value)
        return {name: slot_state(self.optimizer, p, name, known[name]) for name in known}

    def _symbol(self, state: State) -> Symbol:
        value = self.tracer.read_state(state)
        make = make_number if state.number else make_symbol
        return make(self.tracer.graph, value)

    def _assign(self, state: State, value: Any) -> Symbol:
        given = value if isinstance(value, Tensor) else self._literal(value, state)
        return self.tracer.assign(state, self.tracer.value_of(given.to(state.type.dtype)))

    def _literal(self, value: Any, state: State) -> Symbol:
        return self.tracer.constant(np.array(value, state.type.dtype))


def _check_unchanged(built: Mapping[str, Any], now: Mapping[str, Any], index: int) -> None:
    """Raise if a hyperparameter that is part of the graph has another value by now."""
    for name, value in built.items():
        if now[name] != value:
            raise GraphError(
                f"{name} of group {index} was {value} when minimize() built the step and "
                f"is {now[name]} now; only lr may change between runs: build the step anew"
            )


class Slots(NamedTuple):
    """The keeper of an optimizer's slots: a key is a parameter and the name of a slot."""

    optimizer: Any

    def read(self, keys: Sequence[tuple[Tensor, str]]) -> list[Any]:
        """Return the slots now."""
        state = self.optimizer.state
        return [state[p][name] for p, name in keys]

    def write(self, keys: Sequence[tuple[Tensor, str]], values: Iterable[Any]) -> None:
        """Give slots new values."""
        state = self.optimizer.state
        for (p, name), value in zip(keys, values, strict=True):
            state[p][name] = value

    def path(self, key: tuple[Tensor, str]) -> StatePath:
        """Return where a slot is."""
        p, name = key
        return StatePath(self.optimizer, ("state", ItemStep(p), ItemStep(name)))


def slot_state(optimizer: Any, p: Tensor, name: str, value: Any) -> State:
    """Return the state that a slot of a parameter is: an array, or a Python number."""
    shown, label = f"optimizer/{name}", f"{name} of {id(p)}"
    keeper, place = Slots(optimizer), (p, name)
    # It belongs to the optimizer and not to the parameter, which may have slots of several.
    if not isinstance(value, np.ndarray):
        return number_state(optimizer, type(value), keeper, place, name=shown, label=label)
    kind = TensorType(value.shape, value.dtype)
    return State(optimizer, kind, keeper, place, name=shown, label=label, held=True)
