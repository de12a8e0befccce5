"""Networks that are known by name: built from layers, with the parameter names others use.

`ARCHITECTURES` is what a configuration file may name. Imports the layers beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..module import Module
from .gpt import GPT
from .joins import Add, Concat, Multiply, Permute, Reshape, Select, Subtract
from .layer_graph import LayerGraph
from .lenet import LeNet
from .lstm_lm import LSTMLanguageModel
from .mlp import MLP
from .resnet import ResNet, resnet18, resnet34, resnet50
from .unet import UNet
from .vae import VAE, VAELoss
from .vgg import VGG

ARCHITECTURES: dict[str, Callable[..., Module]] = {
    "mlp": MLP,
    "lenet": LeNet,
    "resnet18": resnet18,
    "resnet34": resnet34,
    "resnet50": resnet50,
    "vgg": VGG,
    "unet": UNet,
    "lstm_lm": LSTMLanguageModel,
    "gpt": GPT,
    "vae": VAE,
}

__all__ = [
    "ARCHITECTURES",
    "GPT",
    "MLP",
    "VAE",
    "VGG",
    "Add",
    "Concat",
    "LSTMLanguageModel",
    "LayerGraph",
    "LeNet",
    "Multiply",
    "Permute",
    "ResNet",
    "Reshape",
    "Select",
    "Subtract",
    "UNet",
    "VAELoss",
    "resnet18",
    "resnet34",
    "resnet50",
]
