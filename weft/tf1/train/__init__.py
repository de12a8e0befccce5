"""`tf.train`: optimizers, schedules, averages, savers, coordinators."""

from __future__ import annotations

from ...faces.absent import absent_names
from ..checkpoint_files import CheckpointState as CheckpointState
from ..checkpoint_files import NewCheckpointReader as NewCheckpointReader
from ..checkpoint_files import checkpoint_exists as checkpoint_exists
from ..checkpoint_files import generate_checkpoint_state_proto as generate_checkpoint_state_proto
from ..checkpoint_files import get_checkpoint_mtimes as get_checkpoint_mtimes
from ..checkpoint_files import get_checkpoint_state as get_checkpoint_state
from ..checkpoint_files import latest_checkpoint as latest_checkpoint
from ..checkpoint_files import list_variables as list_variables
from ..checkpoint_files import load_checkpoint as load_checkpoint
from ..checkpoint_files import load_variable as load_variable
from ..checkpoint_files import remove_checkpoint as remove_checkpoint
from ..checkpoint_files import update_checkpoint_state as update_checkpoint_state
from ..example_messages import BytesList as BytesList
from ..example_messages import Example as Example
from ..example_messages import Feature as Feature
from ..example_messages import Features as Features
from ..example_messages import FloatList as FloatList
from ..example_messages import Int64List as Int64List
from ..hooks import CheckpointSaverHook as CheckpointSaverHook
from ..hooks import CheckpointSaverListener as CheckpointSaverListener
from ..hooks import FeedFnHook as FeedFnHook
from ..hooks import FinalOpsHook as FinalOpsHook
from ..hooks import SecondOrStepTimer as SecondOrStepTimer
from ..hooks import SessionRunArgs as SessionRunArgs
from ..hooks import SessionRunContext as SessionRunContext
from ..hooks import SessionRunHook as SessionRunHook
from ..hooks import SessionRunValues as SessionRunValues
from ..hooks import StopAtStepHook as StopAtStepHook
from ..inputs import batch as batch
from ..inputs import batch_join as batch_join
from ..inputs import input_producer as input_producer
from ..inputs import limit_epochs as limit_epochs
from ..inputs import match_filenames_once as match_filenames_once
from ..inputs import range_input_producer as range_input_producer
from ..inputs import shuffle_batch as shuffle_batch
from ..inputs import shuffle_batch_join as shuffle_batch_join
from ..inputs import slice_input_producer as slice_input_producer
from ..inputs import string_input_producer as string_input_producer
from ..meta_graph import export_meta_graph as export_meta_graph
from ..monitored import ChiefSessionCreator as ChiefSessionCreator
from ..monitored import MonitoredSession as MonitoredSession
from ..monitored import MonitoredTrainingSession as MonitoredTrainingSession
from ..monitored import Scaffold as Scaffold
from ..monitored import SingularMonitoredSession as SingularMonitoredSession
from ..monitored import WorkerSessionCreator as WorkerSessionCreator
from ..queue_runner import Coordinator as Coordinator
from ..queue_runner import LooperThread as LooperThread
from ..queue_runner import QueueRunner as QueueRunner
from ..queue_runner import add_queue_runner as add_queue_runner
from ..queue_runner import start_queue_runners as start_queue_runners
from ..saver import Saver as Saver
from ..saver import SaverDef as SaverDef
from ..saver import import_meta_graph as import_meta_graph
from ..summary_messages import summary_iterator as summary_iterator
from ..watching_hooks import LoggingTensorHook as LoggingTensorHook
from ..watching_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from ..watching_hooks import NanTensorHook as NanTensorHook
from ..watching_hooks import StepCounterHook as StepCounterHook
from ..watching_hooks import SummarySaverHook as SummarySaverHook
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
    "Supervisor": "use tf.train.MonitoredTrainingSession, or tf.Session with tf.train.Saver",
}
__getattr__ = absent_names(globals(), _REASONS)
