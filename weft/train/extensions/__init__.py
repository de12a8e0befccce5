"""What can happen beside training: evaluation, logs, plots, checkpoints, stopping."""

from .average import Average
from .checkpoint import Checkpoint
from .evaluator import Evaluator, TrainingMetrics, evaluate
from .log import Log, read_log
from .plot import PlotConfusion, PlotCurves, draw_confusion, draw_curves
from .profiler import Profiler
from .progress import ProgressBar
from .rates import LearningRate, Schedule
from .stopping import EarlyStopping, NanStop, NonFiniteError
from .tensorboard import TensorBoard

__all__ = [
    "Average",
    "Checkpoint",
    "EarlyStopping",
    "Evaluator",
    "LearningRate",
    "Log",
    "NanStop",
    "NonFiniteError",
    "PlotConfusion",
    "PlotCurves",
    "Profiler",
    "ProgressBar",
    "Schedule",
    "TensorBoard",
    "TrainingMetrics",
    "draw_confusion",
    "draw_curves",
    "evaluate",
    "read_log",
]
