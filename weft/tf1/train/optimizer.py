"""What all optimizers of TensorFlow 1 have: gradients, slots, and operations that apply them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..control import group
from ..filling import zeros
from ..gradients import gradients
from ..graph import Graph, Operation, get_default_graph
from ..keys import GraphKeys
from ..math_ops import cast
from ..recording import Tensor, convert_to_tensor
from ..variable import Variable, assign, assign_add


class Apply(Operation):
    """Changes a variable and its slots by a gradient."""

    effect = True

    def __init__(
        self,
        graph: Graph,
        variable: Variable,
        slots: Mapping[str, Variable],
        rule: Callable[..., Any],
        inputs: Sequence[Tensor],
        name: str,
    ) -> None:
        super().__init__(graph, "Apply", inputs, name=name, differentiable=False)
        self.changed = variable
        self.slots = dict(slots)
        self.rule = rule
        self.writes = (variable, *self.slots.values())

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Compute the new values, and let the variables have them."""
        gradient, *settings = values
        before = {name: env.read(slot) for name, slot in self.slots.items()}
        new, after = self.rule(env.read(self.changed), gradient, before, *settings)
        env.write(self.changed, new)
        for name, value in after.items():
            env.write(self.slots[name], value)
        return ()


class Optimizer:
    """Base of all optimizers.

    slot_values   the slots of each variable, and what their elements begin with
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    slot_values: ClassVar[Mapping[str, float]] = {}

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._extra: list[Variable] = []

    def get_name(self) -> str:
        """Return the name."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Any = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """Return the operation that takes a step down a loss."""
        pairs = self.compute_gradients(
            loss,
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )
        if all(g is None for g, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                "support "
                f"gradients, between variables {[str(v) for _, v in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: Any = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:
        """Return pairs of a gradient and its variable."""
        target = convert_to_tensor(loss)
        variables = _variables(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        found = gradients(target, variables, None if grad_loss is None else [grad_loss])
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Return the operation that changes variables by gradients."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        used = [(convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not used:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        graph = get_default_graph()
        self._prepare_variables([v for _, v in used])
        with graph.name_scope(name or self._name) as scope:
            applied: list[Operation] = [self._apply(graph, g, v) for g, v in used]
            applied += self._finish(graph, applied)
            applied += _constrained(graph, applied, [v for _, v in used])
            made = self._stepped(graph, applied, global_step, scope)
        if made not in graph.get_collection(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, made)
        return made

    def _stepped(
        self, graph: Graph, applied: list[Operation], global_step: Any, scope: str
    ) -> Operation:
        if global_step is None:
            return group(*applied, name=scope)
        with graph.control_dependencies(applied):
            step = assign_add(global_step, 1, name="step")
        return group(step, name=scope)

    def _apply(self, graph: Graph, gradient: Tensor, variable: Variable) -> Operation:
        settings = [cast(s, variable.dtype) for s in self._settings(variable)]
        slots = {name: table[variable] for name, table in self._slots.items() if variable in table}
        return Apply(
            graph,
            variable,
            slots,
            self._rule,
            [gradient, *settings],
            f"update_{variable.op.name}/Apply",
        )

    # -- what optimizers say -----------------------------------------------------------------------

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        """Return the new value of a variable and of its slots."""
        raise NotImplementedError

    def _settings(self, variable: Variable) -> list[Tensor]:
        """Return the settings that the rule takes, as tensors."""
        raise NotImplementedError

    def _finish(self, graph: Graph, applied: list[Operation]) -> list[Operation]:
        """Return operations that run after all variables have changed."""
        return []

    def _number(self, value: Any, name: str) -> Tensor:
        return convert_to_tensor(
            value() if callable(value) and not isinstance(value, Tensor) else value, name=name
        )

    # -- slots -------------------------------------------------------------------------------------

    def _prepare_variables(self, variables: Sequence[Variable]) -> None:
        for variable in variables:
            for name, value in self.slot_values.items():
                self._slot(variable, name, value)

    def _slot(self, variable: Variable, name: str, value: float) -> Variable:
        table = self._slots.setdefault(name, {})
        if variable not in table:
            table[variable] = made_slot(variable, self._name, value)
        return table[variable]

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return what an optimizer keeps beside a variable."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Return the names of slots."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Return all variables of the optimizer's own."""
        found = [v for table in self._slots.values() for v in table.values()]
        return sorted(found + self._extra, key=lambda v: v.name)


def made_slot(variable: Variable, name: str, value: float, primary: str | None = None) -> Variable:
    """Return a variable that is kept beside another one."""
    graph = get_default_graph()
    sizes = variable.shape.as_list()
    with graph.building(None), graph.control_dependencies(None), graph.name_scope(None):
        start: Any = zeros(sizes, variable.dtype)
        start = start if not value else start + value
        return Variable(start, trainable=False, name=f"{primary or variable.op.name}/{name}")


def _variables(given: Any) -> list[Variable]:
    if given is None:
        return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
    found = list(given) if isinstance(given, (list, tuple)) else [given]
    for variable in found:
        if not isinstance(variable, Variable):
            raise TypeError(f"Argument is not a tf.Variable: {variable!r:.60}")
    return found


def _constrained(
    graph: Graph, applied: Sequence[Operation], variables: Sequence[Variable]
) -> list[Operation]:
    held = [v for v in variables if v.constraint is not None]
    with graph.control_dependencies(applied):
        return [assign(v, v.constraint(v.read_value())).op for v in held]  # type: ignore[misc]
