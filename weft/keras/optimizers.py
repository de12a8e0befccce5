"""Optimizers by Keras's names and defaults, over those of weft.optim.

An optimizer here is a choice: the model's parameters make it one of weft.optim's when training
begins.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .. import optim
from ..core.errors import ArgumentError, ArgumentTypeError
from ..train.registry import hint
from .naming import snake_case


class Optimizer:
    """Base of choices: names and defaults of Keras, and how weft.optim calls them."""

    _core: ClassVar[Any]
    _defaults: ClassVar[dict[str, Any]]
    _called: ClassVar[dict[str, str]] = {"learning_rate": "lr", "epsilon": "eps"}
    global_clipnorm: float | None

    def __init__(self, learning_rate: Any = None, *args: Any, **options: Any) -> None:
        options.pop("name", None)
        if "lr" in options:  # of Keras 2
            learning_rate = options.pop("lr")
        self.global_clipnorm = options.pop("global_clipnorm", None)
        for name in ("clipnorm", "clipvalue", "decay", "use_ema", "ema_momentum"):
            if options.pop(name, None):
                raise ArgumentError(
                    f"{type(self).__name__}: {name} is not served; global_clipnorm and the "
                    "callback LearningRateScheduler are"
                )
        names = list(self._defaults)
        if len(args) > len(names) - 1:
            raise ArgumentTypeError(f"{type(self).__name__} takes {names}")
        given = {**dict(zip(names[1:], args, strict=False)), **options}
        if learning_rate is not None:
            given["learning_rate"] = learning_rate
        for name in given:
            if name not in self._defaults:
                raise ArgumentTypeError(
                    f"{type(self).__name__} has no option {name!r}; {hint(name, self._defaults)}"
                )
        self.config = {**self._defaults, **given}
        if not isinstance(self.config["learning_rate"], int | float):
            raise ArgumentTypeError(
                f"{type(self).__name__}: learning_rate must be a number; a schedule is given to "
                "fit as callbacks.LearningRateScheduler. Received: "
                f"{type(self.config['learning_rate']).__name__}"
            )

    @property
    def learning_rate(self) -> float:
        """Return the rate that training begins with."""
        return float(self.config["learning_rate"])

    lr = learning_rate

    def __call__(self, params: Any) -> optim.Optimizer:
        """Return the optimizer of some parameters."""
        made: optim.Optimizer = self._core(params, **self._arguments())
        return made

    def _arguments(self) -> dict[str, Any]:
        """Return the options under the names of weft.optim."""
        named = {self._called.get(name, name): value for name, value in self.config.items()}
        if "beta_1" in named:
            named["betas"] = (named.pop("beta_1"), named.pop("beta_2"))
        return {name: value for name, value in named.items() if value is not None}

    def get_config(self) -> dict[str, Any]:
        """Return the options."""
        return {**self.config, "global_clipnorm": self.global_clipnorm}


_MOMENTS = {"learning_rate": 1e-3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}


class SGD(Optimizer):
    """Gradient descent, with momentum; the rate is 0.01."""

    _core = optim.SGD
    _defaults: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.01,
        "momentum": 0.0,
        "nesterov": False,
        "weight_decay": None,
    }

    def _arguments(self) -> dict[str, Any]:
        named = super()._arguments()
        named["nesterov"] = bool(named["nesterov"] and named["momentum"])
        return named


class Adam(Optimizer):
    """Adam; epsilon is 1e-7."""

    _core = optim.Adam
    _defaults: ClassVar[dict[str, Any]] = {**_MOMENTS, "amsgrad": False}


class AdamW(Optimizer):
    """Adam with decoupled weight decay of 0.004."""

    _core = optim.AdamW
    _defaults: ClassVar[dict[str, Any]] = {
        "learning_rate": 1e-3,
        "weight_decay": 0.004,
        **_MOMENTS,
        "amsgrad": False,
    }


class Adamax(Optimizer):
    """Adamax."""

    _core, _defaults = optim.Adamax, _MOMENTS


class Nadam(Optimizer):
    """Adam with Nesterov's momentum."""

    _core, _defaults = optim.NAdam, _MOMENTS


class RMSprop(Optimizer):
    """RMSprop; rho is 0.9 and epsilon 1e-7."""

    _core = optim.RMSprop
    _called: ClassVar[dict[str, str]] = {**Optimizer._called, "rho": "alpha"}
    _defaults: ClassVar[dict[str, Any]] = {
        "learning_rate": 1e-3,
        "rho": 0.9,
        "momentum": 0.0,
        "epsilon": 1e-7,
        "centered": False,
    }


class Adagrad(Optimizer):
    """Adagrad; its sums begin at 0.1."""

    _core = optim.Adagrad
    _defaults: ClassVar[dict[str, Any]] = {
        "learning_rate": 1e-3,
        "initial_accumulator_value": 0.1,
        "epsilon": 1e-7,
    }


class Adadelta(Optimizer):
    """Adadelta."""

    _core = optim.Adadelta
    _defaults: ClassVar[dict[str, Any]] = {"learning_rate": 1e-3, "rho": 0.95, "epsilon": 1e-7}


class Lion(Optimizer):
    """Lion."""

    _core = optim.Lion
    _defaults: ClassVar[dict[str, Any]] = {"learning_rate": 1e-3, "beta_1": 0.9, "beta_2": 0.99}


_CLASSES: tuple[type[Optimizer], ...] = (
    *(SGD, Adam, AdamW, Adamax, Nadam, RMSprop, Adagrad, Adadelta, Lion),
)
OPTIMIZERS = {name: c for c in _CLASSES for name in (c.__name__, c.__name__.lower())}


def get(identifier: Any) -> Any:
    """Return an optimizer from its name, a configuration, or as it was given."""
    if isinstance(identifier, dict):
        config = {k: v for k, v in identifier.get("config", {}).items() if v is not None}
        return _named(identifier["class_name"])(**config)
    return _named(identifier)() if isinstance(identifier, str) else identifier


def _named(name: str) -> type[Optimizer]:
    found = OPTIMIZERS.get(name) or OPTIMIZERS.get(snake_case(name))
    if found is None:
        known = hint(name, [n for n in OPTIMIZERS if n.islower()])
        raise ArgumentError(f"there is no optimizer {name!r}; {known}")
    return found


def serialize(optimizer: Any) -> Any:
    """Return an optimizer as JSON can hold it; None for one that is made of parameters."""
    if isinstance(optimizer, Optimizer):
        return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}
    return optimizer if isinstance(optimizer, str) else None
