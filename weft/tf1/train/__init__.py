"""`tf.train`: optimizers, schedules, averages, savers, coordinators."""

from __future__ import annotations

from ...faces.absent import absent_names
from .averages import ExponentialMovingAverage as ExponentialMovingAverage
from .optimizer import Optimizer as Optimizer
from .optimizers import AdadeltaOptimizer as AdadeltaOptimizer
from .optimizers import AdagradOptimizer as AdagradOptimizer
from .optimizers import AdamOptimizer as AdamOptimizer
from .optimizers import FtrlOptimizer as FtrlOptimizer
from .optimizers import GradientDescentOptimizer as GradientDescentOptimizer
from .optimizers import MomentumOptimizer as MomentumOptimizer
from .optimizers import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from .optimizers import ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer
from .optimizers import RMSPropOptimizer as RMSPropOptimizer
from .schedules import cosine_decay as cosine_decay
from .schedules import cosine_decay_restarts as cosine_decay_restarts
from .schedules import create_global_step as create_global_step
from .schedules import exponential_decay as exponential_decay
from .schedules import get_global_step as get_global_step
from .schedules import get_or_create_global_step as get_or_create_global_step
from .schedules import global_step as global_step
from .schedules import inverse_time_decay as inverse_time_decay
from .schedules import linear_cosine_decay as linear_cosine_decay
from .schedules import natural_exp_decay as natural_exp_decay
from .schedules import piecewise_constant as piecewise_constant
from .schedules import piecewise_constant_decay as piecewise_constant_decay
from .schedules import polynomial_decay as polynomial_decay

_ALONE = "there are no other processes: use tf.Session in each, or weft's Trainer"
_REASONS = {
    "AdagradDAOptimizer": "use AdagradOptimizer, or FtrlOptimizer",
    "SyncReplicasOptimizer": _ALONE,
    "Server": _ALONE,
    "ClusterSpec": _ALONE,
    "replica_device_setter": _ALONE,
    "Supervisor": "use tf.Session, with tf.train.Saver for checkpoints",
    "MonitoredSession": "use tf.Session, with tf.train.Saver for checkpoints",
    "MonitoredTrainingSession": "use tf.Session, with tf.train.Saver for checkpoints",
}
__getattr__ = absent_names(globals(), _REASONS)
