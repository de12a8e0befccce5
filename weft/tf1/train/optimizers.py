"""`tf.train`'s optimizers: names, defaults and slots over the rules of rules.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..graph import Graph, Operation, get_default_graph
from ..recording import Tensor, convert_to_tensor
from ..variable import Variable, assign
from . import rules
from .optimizer import Optimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]


class _Rated(Optimizer):
    """An optimizer with settings in the order in which its rule takes them."""

    def __init__(self, use_locking: bool, name: str, **settings: Any) -> None:
        super().__init__(use_locking, name)
        self._given = settings

    def _settings(self, variable: Variable) -> list[Tensor]:
        return [self._number(value, name) for name, value in self._given.items()]


class GradientDescentOptimizer(_Rated):
    """Follow the gradient."""

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name, learning_rate=learning_rate)

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.descend(p, g, slots, *settings)


class MomentumOptimizer(_Rated):
    """Follow a running sum of gradients."""

    slot_values: ClassVar[Mapping[str, float]] = {"momentum": 0.0}

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name, learning_rate=learning_rate, momentum=momentum)
        self._nesterov = use_nesterov

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.momentum(p, g, slots, *settings, nesterov=self._nesterov)


class AdamOptimizer(_Rated):
    """Adam, with the powers of both betas as variables."""

    slot_values: ClassVar[Mapping[str, float]] = {"m": 0.0, "v": 0.0}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-08,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
        )

    def _prepare_variables(self, variables: Sequence[Variable]) -> None:
        if not self._extra or self._extra[0].graph is not get_default_graph():
            graph = get_default_graph()
            with graph.building(None), graph.control_dependencies(None), graph.name_scope(None):
                self._extra = [
                    Variable(
                        self._given[beta],
                        dtype=variables[0].dtype,
                        trainable=False,
                        name=f"{beta}_power",
                    )
                    for beta in ("beta1", "beta2")
                ]
        super()._prepare_variables(variables)

    def _settings(self, variable: Variable) -> list[Tensor]:
        return [*super()._settings(variable), *[convert_to_tensor(power) for power in self._extra]]

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.adam(p, g, slots, *settings)

    def _finish(self, graph: Graph, applied: list[Operation]) -> list[Operation]:
        with graph.control_dependencies(applied):
            return [
                assign(power, power.read_value() * self._number(self._given[beta], beta)).op
                for power, beta in zip(self._extra, ("beta1", "beta2"), strict=True)
            ]


class AdagradOptimizer(_Rated):
    """Rates that fall with the squares of all gradients so far."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name, learning_rate=learning_rate)
        self.slot_values = {"accumulator": initial_accumulator_value}  # type: ignore[misc]

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.adagrad(p, g, slots, *settings)


class AdadeltaOptimizer(_Rated):
    """Steps whose size follows from steps of the past."""

    slot_values: ClassVar[Mapping[str, float]] = {"accum": 0.0, "accum_update": 0.0}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-08,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name, learning_rate=learning_rate, rho=rho, epsilon=epsilon)

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.adadelta(p, g, slots, *settings)


class RMSPropOptimizer(_Rated):
    """Rates that fall with a moving average of squared gradients."""

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            decay=decay,
            momentum=momentum,
            epsilon=epsilon,
        )
        centre = {"mg": 0.0} if centered else {}
        self.slot_values = {"rms": 1.0, **centre, "momentum": 0.0}  # type: ignore[misc]

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.rmsprop(p, g, slots, *settings)


class FtrlOptimizer(_Rated):
    """Follow the regularised leader."""

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: Any = None,
        linear_name: Any = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power} needs to be negative or zero"
            )
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            power=learning_rate_power,
            l1=l1_regularization_strength,
            l2=l2_regularization_strength,
        )
        self._shrinkage = l2_shrinkage_regularization_strength
        self.slot_values = {"accum": initial_accumulator_value, "linear": 0.0}  # type: ignore[misc]

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.ftrl(p, g, slots, *settings, shrinkage=self._shrinkage)


class ProximalGradientDescentOptimizer(_Rated):
    """Follow the gradient, then shrink by both penalties."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            l1=l1_regularization_strength,
            l2=l2_regularization_strength,
        )

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.proximal_descend(p, g, slots, *settings)


class ProximalAdagradOptimizer(_Rated):
    """Follow Adagrad, then shrink by both penalties."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            l1=l1_regularization_strength,
            l2=l2_regularization_strength,
        )
        self.slot_values = {"accumulator": initial_accumulator_value}  # type: ignore[misc]

    def _rule(self, p: Any, g: Any, slots: Any, *settings: Any) -> Any:
        return rules.proximal_adagrad(p, g, slots, *settings)
