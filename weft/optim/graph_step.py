"""A step of an optimizer as part of a graph: what `minimize` builds for a symbol.

The rule is the same (init, update) pair that eager steps run. The slots stay in `optimizer.state`,
the learning rate in `optimizer.param_groups`: a run reads and writes them there, so that eager and
static steps may alternate, schedules work, and checkpoints are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.exchangers import exchanged_gradients
from ..autodiff.static.reverse import symbol_gradients
from ..core.device_array import DeviceArray
from ..core.dtype import DType, is_float
from ..core.errors import ArgumentError, GradientError, GraphError
from ..core.generated import ObjectNames
from ..core.modes import no_grad
from ..core.op import F
from ..core.row_sparse import RowSparse
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..core.watching import unseen
from ..graph.frontend import open_tracer
from ..graph.repetition import Repetition
from ..graph.scope import outermost_scope
from ..graph.state import Alone, AttributeKeeper, ItemStep, State, StatePath, number_state
from ..graph.symbol import Symbol, make_number, make_symbol
from ..graph.tracer import Tracer, at_one_line
from ..graph.update import Update, caused_updates
from .clip import clipped_together
from .eager_step import initial_state, working_dtype
from .groups import FACTORS, effective_settings
from .row_step import check_forms, rows_of, with_rows
from .transform import GradientTransform, UpdateOne

# Hyperparameters besides the learning rate that schedules change from step to step. They are read
# anew in each run; one that is 0 is left out of the rule, and makes another program.
CHANGING = ("momentum", "betas", "weight_decay")
MOST_WRITTEN_OUT = 16  # parameters of a group that are tested one by one


def build_step(optimizer: Any, loss: Symbol, clip_norm: float | None = None) -> Update:
    """Add the gradients of a loss and the update of all parameters to the open graph.

    Fetching the result takes one step. What the program wrote to tensors from outside on its way to
    the loss (the running statistics of batch normalisation) is committed with it.
    """
    tracer = open_tracer("minimize")
    _check(optimizer, loss)
    tracer.observe((id(optimizer), "parameters"), partial(_trained, optimizer))
    params = [p for p in optimizer.parameters() if p.requires_grad]
    found = zip(params, symbol_gradients([loss], params, [None], rows=True), strict=True)
    grads = {p: g for p, g in found if g is not None}
    if not grads:
        raise GradientError("minimize: the loss depends on none of the optimizer's parameters")
    grads = exchanged_gradients(grads)
    with outermost_scope(("optimizer",)):
        if clip_norm is not None:
            clipped, _ = clipped_together([*grads.values()], clip_norm, owners=[*grads])
            grads = dict(zip(grads, clipped, strict=True))
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
    with ExitStack() as stack, outermost_scope(("optimizer",)), no_grad():
        if optimizer.has_own_rule():  # else code of the user's runs, at its own lines
            stack.enter_context(at_one_line(recorder))
            stack.enter_context(unseen(_settings(optimizer)))
        _assignments(recorder, optimizer, loss, grads)


def _settings(optimizer: Any) -> list[Any]:
    """Return all settings of an optimizer: its groups' without their parameters."""
    pairs = [pair for group in optimizer.param_groups for pair in group.items()]
    return [value for name, value in pairs if name != "params"]


class StepTest:
    """Tests that an optimizer is as it was when a step was recorded, learning rates aside."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._around = _hooked(optimizer)
        self._groups = list(optimizer.param_groups)
        self._members = [tuple(group["params"]) for group in self._groups]
        self._fixed = [_fixed_settings(optimizer, *pair) for pair in enumerate(self._groups)]
        self._values: list[Any] = [None] * len(self._fixed)  # of which this was found to be true

    def __call__(self) -> bool:
        """Tell whether it is."""
        groups = self._optimizer.param_groups
        if len(groups) != len(self._groups) or not all(map(is_, groups, self._groups)):
            return False
        return _hooked(self._optimizer) == self._around and all(
            self._has_members(index) and self._has_settings(index) for index in range(len(groups))
        )

    def conditions(self, names: ObjectNames) -> Iterator[str]:
        """Yield the same as expressions; numbers are looked into only where some have changed."""
        optimizer = names.of(self._optimizer)
        if any(self._around):
            yield f"{names.of(self, 'test')}()"
            return
        yield f"not {optimizer}._before and not {optimizer}._after"
        yield f"{optimizer}.loss_scaling is None"
        yield f"len({optimizer}.param_groups) == {len(self._groups)}"
        for index, group in enumerate(self._groups):
            yield from self._conditions_on_group(names, index, group)

    def _conditions_on_group(self, names: ObjectNames, index: int, group: Any) -> Iterator[str]:
        count, known = len(self._members[index]), names.of(group, "group")
        yield f"{names.of(self._optimizer)}.param_groups[{index}] is {known}"
        yield f"len(params := {known}['params']) == {count}"
        if count <= MOST_WRITTEN_OUT:
            yield from (f"params[{i}] is {names.of(p)}" for i, p in enumerate(self._members[index]))
        else:
            members = names.of(self._members[index], "members")
            yield f"all(map({names.of(is_, 'same')}, params, {members}))"
        read, values = names.of(self._optimizer._read, "read"), names.of(self._values, "values")
        yield (
            f"{read}({known}) == {values}[{index}] "
            f"or {names.of(self._has_settings, 'has_settings')}({index})"
        )

    def _has_members(self, index: int) -> bool:
        params, members = self._groups[index]["params"], self._members[index]
        return len(params) == len(members) and all(map(is_, params, members))

    def _has_settings(self, index: int) -> bool:
        group = self._groups[index]
        values = self._optimizer._read(group)
        if values != self._values[index]:
            if _fixed_settings(self._optimizer, index, group) != self._fixed[index]:
                return False
            self._values[index] = values
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
        recording = tracer.root.recording
        # A rule of the user's may look at numbers, which only a recording allows.
        self.changing = CHANGING if recording or optimizer.has_own_rule() else ()
        self.keeper: Any = (
            SettingKeeper(optimizer, index, group)  # the rest is tested, see StepTest
            if recording
            else CheckedSettingKeeper(optimizer, index, group, self.changing)
        )

    def build(
        self, params: list[Tensor], grads: Mapping[Tensor, Any], graph_rule: GraphRule
    ) -> list[Symbol]:
        """Return the assignments of new parameters and slots."""
        rule = graph_rule.transform(self._settings_in_graph())
        check_forms(self.optimizer, self.group, rule, {p: grads[p] for p in params})
        parts = [self._part(rule, p, grads[p]) for p in params]
        updates, changed = self._updates(rule, parts)
        assigns = []
        for part, u, new in zip(parts, updates, changed, strict=True):
            assigns.append(part.assign(part.state, part.value + u))
            assigns += [part.assign(part.slots[name], value) for name, value in new.items()]
        return assigns

    def _updates(
        self, rule: GradientTransform, parts: Sequence[SymbolPart]
    ) -> tuple[Sequence[Any], Sequence[dict[str, Any]]]:
        """Return what a rule makes of gradients, and the slots that it changes."""
        grads, states = [part.gradient for part in parts], [part.read() for part in parts]
        values = [part.value for part in parts]
        if rule.each is None or not self.optimizer.has_own_rule():
            return rule.update(grads, states, values)
        repeated = RepeatedRule(self.tracer, rule.each[1])
        found = [repeated(g, s, p) for g, s, p in zip(grads, states, values, strict=True)]
        return [update for update, _ in found], [new for _, new in found]

    def _part(self, rule: GradientTransform, p: Tensor, g: Any) -> SymbolPart:
        """Return what the rule sees of a parameter."""
        kind = SymbolRows if isinstance(g, RowSparse) else SymbolPart
        return kind(self, self.tracer.tensor_state(p), self._slots(rule, p), g)

    def _settings_in_graph(self) -> dict[str, Any]:
        """Return the hyperparameters; those that change from step to step are read in each run."""
        written = self.tracer.root.has_written
        return {
            name: value if written(self.group, name) else self._setting(name, value)
            for name, value in self.settings.items()
        }

    def _setting(self, name: str, value: Any) -> Any:
        if name == "lr":
            return self._state(name, None)
        if name not in self.changing:
            return value
        if isinstance(value, tuple):
            return tuple(
                self._state(name, i) if _may_change(name, x) else x for i, x in enumerate(value)
            )
        return self._state(name, None) if _may_change(name, value) else value

    def _state(self, name: str, part: int | None) -> Symbol:
        """Return a setting that each run reads anew."""
        label = f"{name}{self.index}" if part is None else f"{name}{self.index}.{part}"
        state = number_state(
            self.optimizer,
            float,
            self.keeper,
            (name, part),
            name=f"optimizer/{label}",
            label=label,
            writable=False,
        )
        return self.symbol(state)

    def _slots(self, rule: GradientTransform, p: Tensor) -> dict[str, State]:
        known = self.optimizer.state.setdefault(p, {})
        for name, value in initial_state(rule, p).items():
            known.setdefault(name, value)
        return {name: slot_state(self.optimizer, p, name, known[name]) for name in known}

    def symbol(self, state: State) -> Symbol:
        """Return the value of a state at this point."""
        value = self.tracer.read_state(state)
        make = make_number if state.number else make_symbol
        return make(self.tracer.graph, value)

    def assign(self, state: State, value: Any) -> Symbol:
        """Return the update that gives a state another value."""
        given = value if isinstance(value, Tensor) else self._literal(value, state)
        return self.tracer.assign(state, self.tracer.value_of(given.to(state.type.dtype)))

    def _literal(self, value: Any, state: State) -> Symbol:
        return self.tracer.constant(np.array(value, state.type.dtype))


class RepeatedRule:
    """A rule of Weft's for one parameter, whose nodes are copied for others like it."""

    def __init__(self, tracer: Tracer, update: UpdateOne) -> None:
        self._tracer, self._update = tracer, update
        self._by_slots: dict[tuple[str, ...], Repetition] = {}

    def __call__(self, g: Any, s: dict[str, Any], p: Any) -> tuple[Any, dict[str, Any]]:
        """Return the update of a parameter, and the slots that it changes."""
        names = tuple(s)
        if names not in self._by_slots:
            self._by_slots[names] = self._with_slots(names)
        (update, *values), changed = self._by_slots[names]([g, p, *s.values()])
        return update, dict(zip(changed, values, strict=True))

    def _with_slots(self, names: tuple[str, ...]) -> Repetition:
        def run(operands: Sequence[Any]) -> tuple[list[Any], tuple[str, ...]]:
            g, p, *slots = operands
            update, new = self._update(g, dict(zip(names, slots, strict=True)), p)
            return [update, *new.values()], tuple(new)

        return Repetition(self._tracer, run)


class SymbolPart:
    """What a rule sees in a graph of a parameter: all of it, and of its slots."""

    def __init__(self, step: GroupStep, state: State, slots: dict[str, State], g: Any) -> None:
        self.step, self.state, self.slots = step, state, slots
        self.take(g, working_dtype(state.type.dtype))

    def take(self, g: Any, precision: DType) -> None:
        """Set the parameter and its gradient, in the precision that updates are computed in."""
        value = self.step.symbol(self.state)
        self.value = value if value.dtype == precision else F.cast(value, precision)
        self.gradient = g.to(precision)

    def read(self) -> dict[str, Any]:
        """Return the slots."""
        return {name: self.step.symbol(state) for name, state in self.slots.items()}

    def assign(self, state: State, value: Any) -> Symbol:
        """Return the update of the parameter or of one of its slots."""
        return self.step.assign(state, value)


class SymbolRows(SymbolPart):
    """The same of a parameter with a row-sparse gradient: its rows, each once."""

    def take(self, g: RowSparse, precision: DType) -> None:
        """Set the rows that have a gradient, and what that is."""
        self.rows = g.coalesce()
        self.value = self._near(self.state, precision)
        self.gradient = self.rows.values
        if self.gradient.dtype != precision:
            self.gradient = F.cast(self.gradient, precision)

    def read(self) -> dict[str, Any]:
        """Return these rows of the slots."""
        return {name: self._near(state) for name, state in self.slots.items()}

    def assign(self, state: State, value: Any) -> Symbol:
        """Return the update of these rows."""
        if not self._is_table(state):
            return super().assign(state, value)
        table = self.step.symbol(state)
        return super().assign(state, with_rows(table, self.rows, value.to(table.dtype)))

    def _near(self, state: State, precision: DType | None = None) -> Any:
        value = self.step.symbol(state)
        found = rows_of(value, self.rows) if self._is_table(state) else value
        return found if precision in (None, found.dtype) else F.cast(found, precision)

    def _is_table(self, state: State) -> bool:
        return not state.number and state.type.shape == self.state.type.shape


@dataclass(frozen=True, eq=False)
class SettingKeeper:
    """The keeper of hyperparameters of a group: a key is a name, and the place in a tuple."""

    optimizer: Any
    index: int
    group: Any

    def read(self, keys: Sequence[tuple[str, int | None]]) -> list[float]:
        """Return the settings now, with the group's factors."""
        now = self.optimizer._settings(self.index, self.group)
        return [float(now[name] if part is None else now[name][part]) for name, part in keys]

    def write(self, keys: Sequence[Any], values: Iterable[Any]) -> None:
        """Refuse: a step reads settings, and writes none."""
        raise AssertionError("settings are read-only")

    def path(self, key: tuple[str, int | None]) -> StatePath | None:
        """Return where a setting is, if nothing is done to it: its factor is 1.

        Whoever reads there has looked at factors and ranges before, see StepTest.
        """
        name, _ = key
        if name in FACTORS and self.group[FACTORS[name]] != 1:
            return None
        return StatePath(self.group, tuple(ItemStep(x) for x in key if x is not None))


class CheckedSettingKeeper:
    """The same for a graph that nobody tests before it runs: raises if the rest has changed."""

    def __init__(self, optimizer: Any, index: int, group: Any, changing: Collection[str]) -> None:
        self._optimizer, self._index, self._group = optimizer, index, group
        self._changing = changing
        self._built = settings_of(optimizer, index, group)
        self._values: Any = None  # of which it was found that they are all right
        self._now: Mapping[str, Any] = {}

    def read(self, keys: Sequence[tuple[str, int | None]]) -> list[float]:
        """Return the settings now, with the group's factors."""
        values = self._optimizer._read(self._group)
        if values != self._values:  # which compares identities first: most often that is all
            self._now = self._optimizer._settings(self._index, self._group)
            self._check()
            self._values = values
        now = self._now
        return [float(now[name] if part is None else now[name][part]) for name, part in keys]

    def write(self, keys: Sequence[Any], values: Iterable[Any]) -> None:
        """Refuse: a step reads settings, and writes none."""
        raise AssertionError("settings are read-only")

    def _check(self) -> None:
        """Raise if a hyperparameter that is part of the graph has another value by now."""
        for name, value in self._built.items():
            now = self._now[name]
            fixed = _fixed_part if name in self._changing else (lambda _, value: value)
            if name != "lr" and fixed(name, now) != fixed(name, value):
                raise GraphError(
                    f"{name} of group {self._index} was {value} when minimize() built the step "
                    f"and is {now} now, which is another rule: build the step anew"
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
    if not isinstance(value, (np.ndarray, DeviceArray)):
        return number_state(optimizer, type(value), keeper, place, name=shown, label=label)
    kind = TensorType(value.shape, value.dtype)
    return State(optimizer, kind, keeper, place, name=shown, label=label, held=True)
