"""The layers: Weft's classes as modules of this face, with PyTorch's order of arguments."""

from __future__ import annotations

from typing import Any

from ... import nn as core_nn
from ...core import tensor as core
from ...core.errors import WeftError
from ...core.recordings import LAYERS as OPAQUE
from ..adoption import adopt
from ..devices import usable_device
from ..legacy import by_name, by_place
from ..names import description, names
from ..phrasing import phrase
from .module import Module

LAYERS = names("""
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d
    BatchNorm1d BatchNorm2d BatchNorm3d Bilinear CELU ChannelShuffle CircularPad1d CircularPad2d
    CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d
    ConvTranspose2d ConvTranspose3d CosineSimilarity Dropout Dropout1d Dropout2d Dropout3d ELU
    Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold FractionalMaxPool2d FractionalMaxPool3d
    GELU GLU GRU GRUCell GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh Identity
    InstanceNorm1d InstanceNorm2d InstanceNorm3d LPPool1d LPPool2d LPPool3d LSTM LSTMCell LayerNorm
    LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d
    LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d
    LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LeakyReLU Linear LocalResponseNorm LogSigmoid
    LogSoftmax MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish
    MultiheadAttention PReLU PairwiseDistance PixelShuffle PixelUnshuffle RMSNorm RNN RNNCell RReLU
    ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
    ReplicationPad3d SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh
    Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
    TransformerEncoderLayer Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d
    ZeroPad1d ZeroPad2d ZeroPad3d
""")
CONTAINERS = names("ModuleDict ModuleList ParameterDict ParameterList Sequential")
# What operands of `forward` are called, where it is not `input` alone.
OPERANDS = {"Bilinear": ("input1", "input2")}
# Losses, with PyTorch's order of arguments.
LOSSES = {
    "BCELoss": "weight size_average reduce reduction",
    "BCEWithLogitsLoss": "weight size_average reduce reduction pos_weight",
    "CTCLoss": "blank reduction zero_infinity",
    "CosineEmbeddingLoss": "margin size_average reduce reduction",
    "CrossEntropyLoss": "weight size_average ignore_index reduce reduction label_smoothing",
    "GaussianNLLLoss": "full eps reduction",
    "HingeEmbeddingLoss": "margin size_average reduce reduction",
    "HuberLoss": "reduction delta",
    "KLDivLoss": "size_average reduce reduction log_target",
    "L1Loss": "size_average reduce reduction",
    "MSELoss": "size_average reduce reduction",
    "MarginRankingLoss": "margin size_average reduce reduction",
    "MultiLabelMarginLoss": "size_average reduce reduction",
    "MultiLabelSoftMarginLoss": "weight size_average reduce reduction",
    "MultiMarginLoss": "p margin weight size_average reduce reduction",
    "NLLLoss": "weight size_average ignore_index reduce reduction",
    "PoissonNLLLoss": "log_input full size_average eps reduce reduction",
    "SmoothL1Loss": "size_average reduce reduction beta",
    "SoftMarginLoss": "size_average reduce reduction",
    "TripletMarginLoss": "margin p eps swap size_average reduce reduction",
    "TripletMarginWithDistanceLoss": "",
}


class Layer(Module):
    """What the layers of this face add to Weft's: their tensors and results are this face's."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`; parameters that got their shape by it are this face's too."""
        pending = self._pending
        result = super().__call__(*args, **kwargs)
        if pending:
            _adopt_tensors(self)
        return result


def _adopt_tensors(module: Any) -> None:
    """Let everything that a module holds be this face's."""
    for _, part in module.named_modules():
        for name, held in list(part.__dict__.items()):
            if isinstance(held, core.Tensor):
                part.__dict__[name] = adopt(held)


def layer_class(name: str, order: tuple[str, ...] | None = None) -> Any:
    """Return the layer of a name as a class of this face.

    order   PyTorch's order of arguments, where it is another than Weft's
    """
    behind: Any = getattr(core_nn, name)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  (of the class)
        options = {n: kwargs.pop(n) for n in ("device", "dtype") if n in kwargs}
        if order is not None:
            args, kwargs = (), by_name(order, args, kwargs)
        try:
            behind.__init__(self, *args, **kwargs)
        except WeftError as error:
            raise phrase(error, f"{name}.__init__", {"args": (self, *args), **kwargs}) from None
        _adopt_tensors(self)
        if options.get("device") is not None:
            usable_device(options["device"])
        if options.get("dtype") is not None:
            self.to(options["dtype"])

    attributes = {
        "__init__": __init__,
        "forward": _forward(name, behind),
        "__doc__": description(behind.__doc__),
        "__module__": __name__,
        "__qualname__": name,
        "_behind": behind,
    }
    make: Any = type(Module)
    return make(name, (Layer, behind), attributes)


def _forward(name: str, behind: Any) -> Any:
    """Return what a layer computes: what Weft's does, with PyTorch's names and words."""
    operands = OPERANDS.get(name, ("input",))

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = by_place(operands, args, kwargs)
        try:
            return adopt(behind.forward(self, *args, **kwargs))
        except Exception as error:  # of others it is raised as it is
            given = {"self": self, "input": args[0] if args else None, "args": args, **kwargs}
            found = phrase(error, f"{name}.forward", given)
            if found is error and isinstance(error, TypeError):
                found = _missing(name, behind.forward, (self, *args), kwargs) or error
            if found is error:
                raise
            raise found from None

    forward.__doc__ = description(behind.forward.__doc__)
    return forward


def _missing(
    name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TypeError | None:
    """Return the error of a call that lacks operands, with PyTorch's names for them."""
    code = function.__code__
    needed = code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
    lacking = [n for n in needed[len(args) :] if n not in kwargs]
    if not lacking:
        return None
    shown = [repr("input" if n == "x" else n) for n in lacking]
    words = f"{len(shown)} required positional argument{'s' * (len(shown) > 1)}"
    return TypeError(f"{name}.forward() missing {words}: {' and '.join(shown)}")


CLASSES: dict[str, Any] = {
    **{name: layer_class(name) for name in LAYERS if hasattr(core_nn, name)},
    **{name: layer_class(name) for name in CONTAINERS},
    **{name: layer_class(name, tuple(order.split())) for name, order in LOSSES.items() if order},
    "TripletMarginWithDistanceLoss": layer_class("TripletMarginWithDistanceLoss"),
}
CLASSES["MultiheadAttention"].extra_repr = lambda self: ""  # as PyTorch prints it
globals().update(CLASSES)
OPAQUE.append(__name__)
