"""`chainer.links`: Chainer's layers, over its functions."""

from __future__ import annotations

from ...faces.absent import absent_names
from .classifier import Classifier
from .connection import (
    Bias,
    Bilinear,
    EmbedID,
    Highway,
    Inception,
    Linear,
    Maxout,
    NegativeSampling,
    Parameter,
    PReLU,
    Scale,
    SimplifiedDropconnect,
    Swish,
)
from .convolution import (
    Convolution1D,
    Convolution2D,
    Convolution3D,
    ConvolutionND,
    Deconvolution1D,
    Deconvolution2D,
    Deconvolution3D,
    DeconvolutionND,
    DepthwiseConvolution2D,
    DilatedConvolution2D,
    LocalConvolution2D,
    MLPConvolution2D,
)
from .crf import CRF1d
from .n_step import (
    NStepBiGRU,
    NStepBiLSTM,
    NStepBiRNNReLU,
    NStepBiRNNTanh,
    NStepGRU,
    NStepLSTM,
    NStepRNNReLU,
    NStepRNNTanh,
)
from .normalization import BatchNormalization, GroupNormalization, LayerNormalization
from .recurrent import (
    GRU,
    LSTM,
    ChildSumTreeLSTM,
    NaryTreeLSTM,
    StatefulGRU,
    StatelessGRU,
    StatelessLSTM,
)

__all__ = [
    "GRU",
    "LSTM",
    "BatchNormalization",
    "Bias",
    "Bilinear",
    "CRF1d",
    "ChildSumTreeLSTM",
    "Classifier",
    "Convolution1D",
    "Convolution2D",
    "Convolution3D",
    "ConvolutionND",
    "Deconvolution1D",
    "Deconvolution2D",
    "Deconvolution3D",
    "DeconvolutionND",
    "DepthwiseConvolution2D",
    "DilatedConvolution2D",
    "EmbedID",
    "GroupNormalization",
    "Highway",
    "Inception",
    "LayerNormalization",
    "Linear",
    "LocalConvolution2D",
    "MLPConvolution2D",
    "Maxout",
    "NStepBiGRU",
    "NStepBiLSTM",
    "NStepBiRNNReLU",
    "NStepBiRNNTanh",
    "NStepGRU",
    "NStepLSTM",
    "NStepRNNReLU",
    "NStepRNNTanh",
    "NaryTreeLSTM",
    "NegativeSampling",
    "PReLU",
    "Parameter",
    "Scale",
    "SimplifiedDropconnect",
    "StatefulGRU",
    "StatelessGRU",
    "StatelessLSTM",
    "Swish",
]

_PRETRAINED = "its weights are files of other projects; build the network from links"
_REASONS = {
    **dict.fromkeys(
        (
            "GoogLeNet",
            "ResNet101Layers",
            "ResNet152Layers",
            "ResNet50Layers",
            "VGG16Layers",
            "VGG19Layers",
        ),
        _PRETRAINED,
    ),
    "BatchRenormalization": "use BatchNormalization",
    "DecorrelatedBatchNormalization": "use BatchNormalization",
    "DeformableConvolution2D": "use Convolution2D",
    "InceptionBN": "use Inception with BatchNormalization",
    "BinaryHierarchicalSoftmax": "use NegativeSampling",
    "BlackOut": "use NegativeSampling",
    "StatefulMGU": "use StatefulGRU",
    "StatelessMGU": "use StatelessGRU",
    "StatefulPeepholeLSTM": "use LSTM",
    "StatefulZoneoutLSTM": "use StatelessLSTM with functions.zoneout",
    "TheanoFunction": "Theano is not served: write a FunctionNode",
}
__getattr__ = absent_names(globals(), _REASONS)
