"""`keras.models`: the classes of models, and reading them."""

from __future__ import annotations

from .functional import Functional
from .model import Model
from .saving import clone_model, load_model, model_from_config, model_from_json, save_model
from .sequential import Sequential

__all__ = [
    "Functional",
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_config",
    "model_from_json",
    "save_model",
]
