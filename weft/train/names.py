"""The registries: every layer, architecture, loss, optimizer, schedule, metric and transform.

`register` is the door for extensions: what a package registers can be named in a configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import nn, optim
from ..core.errors import ArgumentError
from ..data import transforms
from ..nn import models
from .datasets import DATASETS
from .losses import LOSSES
from .metrics import METRICS
from .optimizers import OPTIMIZERS
from .registry import Registry, hint

# Modules that are no layers of a list: bases, containers, losses, and those made for code.
_NO_LAYERS = frozenset(
    {
        *("Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"),
        *("Transformer", "TransformerEncoder", "TransformerDecoder"),
        *("RNNBase", "RNNCellBase", "AdaptiveLogSoftmaxWithLoss"),
    }
)
_JOINS = ("Add", "Subtract", "Multiply", "Concat", "Reshape", "Permute", "Select")
_BATCH_TRANSFORMS = ("MixUp", "CutMix")
_NO_TRANSFORMS = frozenset({"Compose", "Transform", "RandomApply", "RandomChoice"})

_SCHEDULES = {
    "constant": optim.lr.ConstantLR,
    "linear": optim.lr.LinearLR,
    "step": optim.lr.StepLR,
    "multistep": optim.lr.MultiStepLR,
    "exponential": optim.lr.ExponentialLR,
    "inverse": optim.lr.InverseLR,
    "poly": optim.lr.PolyLR,
    "sigmoid": optim.lr.SigmoidLR,
    "cosine": optim.lr.CosineAnnealingLR,
    "cosine_restarts": optim.lr.CosineAnnealingWarmRestarts,
    "cyclic": optim.lr.CyclicLR,
    "plateau": optim.lr.ReduceLROnPlateau,
    "swa": optim.lr.SWALR,
}
# Their length is the run's by default.
_SCHEDULES_OF_A_RUN = {"one_cycle": optim.lr.OneCycleLR, "polynomial": optim.lr.PolynomialLR}


def snake_case(name: str) -> str:
    """Return a class name in the style of configuration files.

    >>> snake_case("RandomHorizontalFlip"), snake_case("MixUp")
    ('random_horizontal_flip', 'mix_up')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _layers() -> Registry:
    registry = Registry("layer")
    for name in nn.__all__:
        made = getattr(nn, name)
        is_layer = isinstance(made, type) and issubclass(made, nn.Module)
        special = name in _NO_LAYERS or name.startswith("Lazy") or name.endswith("Loss")
        if is_layer and not special:
            registry.add(name, made)
    for name in _JOINS:
        registry.add(name, getattr(models, name))
    return registry


def _architectures() -> Registry:
    registry = Registry("architecture")
    for name, make in models.ARCHITECTURES.items():
        # Losses and metrics of this package look for classes at axis 1.
        changes: dict[str, Any] = {"classes_first": True} if name in {"gpt", "lstm_lm"} else {}
        registry.add(name, make, **changes)
    return registry


def _schedules() -> Registry:
    registry = Registry("schedule", given=frozenset({"optimizer", "epochs", "steps_per_epoch"}))
    for name, make in _SCHEDULES.items():
        registry.add(name, make)
    for name, make in _SCHEDULES_OF_A_RUN.items():
        registry.add(name, make, traits={"run"})
    return registry


def _transforms(batch: bool) -> Registry:
    registry = Registry("batch transform" if batch else "transform")
    for name in transforms.__all__:
        if name not in _NO_TRANSFORMS and (name in _BATCH_TRANSFORMS) == batch:
            registry.add(snake_case(name), getattr(transforms, name))
    return registry


LAYERS = _layers()
ARCHITECTURES = _architectures()
SCHEDULES = _schedules()
TRANSFORMS = _transforms(batch=False)
BATCH_TRANSFORMS = _transforms(batch=True)

REGISTRIES: dict[str, Registry] = {
    "layers": LAYERS,
    "architectures": ARCHITECTURES,
    "losses": LOSSES,
    "optimizers": OPTIMIZERS,
    "schedules": SCHEDULES,
    "metrics": METRICS,
    "transforms": TRANSFORMS,
    "batch_transforms": BATCH_TRANSFORMS,
    "datasets": DATASETS,
}


def register(kind: str, name: str, make: Callable[..., Any]) -> None:
    """Name a class or function of your own, for `fit`, estimators and configurations.

    Its parameters are its options.

    kind   "layers", "architectures", "losses", "optimizers", "schedules", "metrics",
           "transforms", "batch_transforms" or "datasets"

    A package does so when its entry point in the group "weft.extensions" is loaded, which every
    command does first.
    """
    if kind not in REGISTRIES:
        raise ArgumentError(f"there is no registry {kind!r}; {hint(kind, REGISTRIES)}")
    text: Any = name
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z_][\w-]*", text):
        raise ArgumentError(f"a name must be made of letters, digits and _. Received: {name!r}")
    REGISTRIES[kind].add(name, make)
