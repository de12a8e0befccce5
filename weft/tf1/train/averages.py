"""Moving averages of variables, and clipping by norms."""

from __future__ import annotations

from typing import Any

from ...core.op import F
from ..control import group
from ..graph import Operation, get_default_graph
from ..keys import GraphKeys
from ..math_ops import cast
from ..recording import Tensor, constant, convert_to_tensor, record
from ..reductions import axes_of, global_norm
from ..variable import Variable, change
from .optimizer import made_slot


class ExponentialMovingAverage:
    """Keeps moving averages of variables: shadow -= (1 - decay) * (shadow - variable)."""

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        if zero_debias:
            raise ValueError("ExponentialMovingAverage: zero_debias is not served for variables")
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """Return the name."""
        return self._name

    def apply(self, var_list: Any = None) -> Operation:
        """Return the operation that updates the averages."""
        graph = get_default_graph()
        found = (
            graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
            if var_list is None
            else list(var_list)
        )
        for variable in found:
            if variable not in self._averages:
                self._averages[variable] = self._shadow(variable)
        with graph.name_scope(self._name) as scope:
            decay = self._effective()
            updates = [self._update(v, decay) for v in found]
            return group(*updates, name=scope)

    def _effective(self) -> Tensor:
        decay = convert_to_tensor(self._decay, "float32", name="decay")
        if self._num_updates is None:
            return decay
        count = cast(self._num_updates, "float32")
        made: Tensor = record(
            "Minimum", lambda d, n: F.minimum(d, (1 + n) / (10 + n)), [decay, count]
        )
        return made

    def _shadow(self, variable: Any) -> Variable:
        if isinstance(variable, Variable):
            graph = get_default_graph()
            with graph.building(None), graph.control_dependencies(None), graph.name_scope(None):
                made = Variable(
                    variable.initialized_value(),
                    trainable=False,
                    name=f"{variable.op.name}/{self._name}",
                )
            graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, variable)
            return made
        return made_slot(variable, self._name, 0.0)

    def _update(self, variable: Any, decay: Tensor) -> Tensor:
        shadow = self._averages[variable]
        value = variable.read_value() if isinstance(variable, Variable) else variable

        def moved(env: Any, v: Any, d: Any, x: Any) -> Any:
            old = env.read(v)
            return old - (old - x) * (1 - F.cast(d, old.dtype))

        return change(shadow, "AssignMovingAvg", moved, [decay, value], None)

    def average(self, var: Any) -> Variable | None:
        """Return the average of a variable."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """Return the name under which the average of a variable is saved."""
        if var in self._averages:
            return self._averages[var].op.name
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """Return names of averages, and the variables to which they are restored."""
        graph = get_default_graph()
        chosen = moving_avg_variables
        if chosen is None:
            chosen = [
                *graph.get_collection(GraphKeys.TRAINABLE_VARIABLES),
                *graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES),
            ]
        table = {self.average_name(v): v for v in dict.fromkeys(chosen)}
        known = set(table.values())
        rest = [v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if v not in known]
        for variable in rest:
            table.setdefault(variable.op.name, variable)
        return table


# -- clipping --------------------------------------------------------------------------------------


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor whose norm is at most clip_norm."""
    places = axes_of(axes, None, "axes")
    value = convert_to_tensor(t)

    def compute(x: Any, limit: Any) -> Any:
        length = F.sqrt(F.sum(F.square(x), axis=places, keepdims=True))
        return x * limit / F.maximum(length, limit)

    made: Tensor = record(
        "ClipByNorm",
        compute,
        [value, convert_to_tensor(clip_norm, value.dtype)],
        name=name or "clip_by_norm",
    )
    return made


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """Return a tensor whose norm for each element is at most clip_norm."""
    value = convert_to_tensor(t)

    def compute(x: Any, limit: Any) -> Any:
        length = F.sqrt(F.sum(F.square(x))) / x.numel()
        return x * limit / F.maximum(length, limit)

    made: Tensor = record(
        "ClipByAverageNorm", compute, [value, convert_to_tensor(clip_norm, value.dtype)], name=name
    )
    return made


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Return tensors whose norm together is at most clip_norm, and the norm of before."""
    if not isinstance(t_list, (list, tuple)):
        raise TypeError("t_list should be a sequence")
    whole = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    limit = convert_to_tensor(clip_norm, whole.dtype)
    one = constant(1.0, whole.dtype)

    def compute(x: Any, length: Any, limit: Any, one: Any) -> Any:
        return x * F.cast(limit * F.minimum(1 / length, one / limit), x.dtype)

    made = [
        None if t is None else record("ClipByGlobalNorm", compute, [t, whole, limit, one])
        for t in t_list
    ]
    return made, whole
