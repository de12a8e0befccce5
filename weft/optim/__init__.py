"""Optimizers, as classes around composable pure transforms; schedules; averages of weights.

What enters: parameters (leaf tensors) whose `.grad` backward has filled. What leaves: new values in
the same tensors. `transform` and `scaling` hold the pure (init, update) pairs, `eager_step` runs
them on raw arrays, `optimizer` adds parameter groups, hooks and state. May import core, ops, graph,
autodiff, and the public names of nn, data and io.
"""

from . import lr, transform
from .accumulate import GradientAccumulator
from .adafactor import Adafactor
from .adam import Adam, Adamax, AdamW, Amsgrad, NAdam, RAdam, SparseAdam
from .adaptive import Adadelta, Adagrad, RMSprop
from .asgd import ASGD
from .average import EMA, SWA, WeightAverage, update_bn
from .clip import clip_grad_norm_, clip_grad_value_
from .eve import Eve
from .groups import match_groups
from .layerwise import LAMB, Lion
from .lbfgs import LBFGS
from .loss_scale import LossScaler
from .muon import Muon
from .optimizer import Optimizer, TransformOptimizer
from .rprop import Rprop
from .sgd import SGD, Momentum

__all__ = [
    "ASGD",
    "EMA",
    "LAMB",
    "LBFGS",
    "SGD",
    "SWA",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Amsgrad",
    "Eve",
    "GradientAccumulator",
    "Lion",
    "LossScaler",
    "Momentum",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "TransformOptimizer",
    "WeightAverage",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr",
    "match_groups",
    "transform",
    "update_bn",
]
