"""A step of an optimizer as part of a graph: what `minimize` builds for a symbol.

The rule is the same (init, update) pair that eager steps run. The slots stay in `optimizer.state`,
the learning rate in `optimizer.param_groups`: a run reads and writes them there, so that eager and
static steps may alternate, schedules work, and checkpoints are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import gradients
from ..core.dtype import is_float
from ..core.errors import ArgumentError, GradientError, GraphError
from ..core.op import F
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..graph.frontend import open_tracer
from ..graph.scope import outermost_scope
from ..graph.state import Alone, State, number_state
from ..graph.symbol import Symbol, make_number, make_symbol
from ..graph.tracer import Tracer
from ..graph.update import Update, caused_updates
from .eager_step import initial_state, working_dtype
from .transform import GradientTransform


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
    return Update(assigns, name="minimize")


def _trained(optimizer: Any) -> list[tuple[int, bool]]:
    """Return which parameters an optimizer has, and which of them it trains."""
    return [(id(p), p.requires_grad) for p in optimizer.parameters()]


def _assignments(
    tracer: Tracer, optimizer: Any, loss: Symbol, grads: Mapping[Tensor, Any]
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
    caused = caused_updates(tracer.graph, tracer.value_of(loss), assigns)
    return assigns + [tracer.assign(state, value) for state, value in caused]


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

        def get() -> float:
            value = getattr(owner, attribute)
            return math.nan if value is None else value

        def put(value: float) -> None:
            setattr(owner, attribute, None if math.isnan(value) else value)

        self.states[name] = number_state(
            owner, kind, Alone(get, put), name=f"optimizer/{name}", label=name
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


class GroupStep:
    """The update of the parameters of one group."""

    def __init__(self, tracer: Tracer, optimizer: Any, index: int, group: Any) -> None:
        self.tracer = tracer
        self.optimizer = optimizer
        self.index = index
        self.group = group
        self.settings = dict(optimizer._settings(index, group))

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
        if "lr" not in self.settings:
            return self.settings
        optimizer, index, group = self.optimizer, self.index, self.group
        others = {name: v for name, v in self.settings.items() if name != "lr"}
        checked: Mapping[str, Any] = {}

        def get() -> float:
            nonlocal checked
            now = optimizer._settings(index, group)
            if now is not checked:  # else the very mapping of the run before
                _check_unchanged(others, now, index)
                checked = now
            return float(now["lr"])

        name = f"optimizer/lr_{index}"
        label = f"lr{index}"
        state = number_state(optimizer, float, Alone(get), name=name, label=label, writable=False)
        return {**self.settings, "lr": self._symbol(state)}

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


def slot_state(optimizer: Any, p: Tensor, name: str, value: Any) -> State:
    """Return the state that a slot of a parameter is: an array, or a Python number."""
    shown, label = f"optimizer/{name}", f"{name} of {id(p)}"
    keeper, place = Slots(optimizer), (p, name)
    # It belongs to the optimizer and not to the parameter, which may have slots of several.
    if not isinstance(value, np.ndarray):
        return number_state(optimizer, type(value), keeper, place, name=shown, label=label)
    kind = TensorType(value.shape, value.dtype)
    return State(optimizer, kind, keeper, place, name=shown, label=label, held=True)
