"""Training: updater + extensions + triggers, with a Keras face and a scikit-learn face.

Enter: a model, an optimizer, a loss and batches. Leave: trained weights, and a directory with log,
checkpoints and plots. Imports everything below; only the command line is above it.
"""

from typing import TYPE_CHECKING, Any

from . import callbacks, estimators, extensions, keras, metrics, triggers
from .extension import (
    PRIORITY_EDITOR,
    PRIORITY_READER,
    PRIORITY_SAVER,
    PRIORITY_WRITER,
    Extension,
    make_extension,
)
from .extensions import (
    Average,
    Checkpoint,
    EarlyStopping,
    Evaluator,
    LearningRate,
    Log,
    NanStop,
    NonFiniteError,
    PlotConfusion,
    PlotCurves,
    Profiler,
    ProgressBar,
    Schedule,
    TensorBoard,
    TrainingMetrics,
    evaluate,
    read_log,
)
from .losses import get_loss
from .metrics import Metric, get_metric
from .objective import Objective, Outcome
from .optimizers import get_optimizer
from .summary import Summary
from .trainer import Trainer
from .triggers import BestTrigger, IntervalTrigger, ManualTrigger, OnceTrigger, TimeTrigger
from .updater import Updater

if TYPE_CHECKING:
    WeftClassifier: Any
    WeftRegressor: Any

__all__ = [
    "PRIORITY_EDITOR",
    "PRIORITY_READER",
    "PRIORITY_SAVER",
    "PRIORITY_WRITER",
    "Average",
    "BestTrigger",
    "Checkpoint",
    "EarlyStopping",
    "Evaluator",
    "Extension",
    "IntervalTrigger",
    "LearningRate",
    "Log",
    "ManualTrigger",
    "Metric",
    "NanStop",
    "NonFiniteError",
    "Objective",
    "OnceTrigger",
    "Outcome",
    "PlotConfusion",
    "PlotCurves",
    "Profiler",
    "ProgressBar",
    "Schedule",
    "Summary",
    "TensorBoard",
    "TimeTrigger",
    "Trainer",
    "TrainingMetrics",
    "Updater",
    "WeftClassifier",
    "WeftRegressor",
    "callbacks",
    "evaluate",
    "extensions",
    "get_loss",
    "get_metric",
    "get_optimizer",
    "keras",
    "make_extension",
    "metrics",
    "read_log",
    "triggers",
]


def __getattr__(name: str) -> Any:
    """Make the estimators when they are first used, as that loads scikit-learn."""
    if name in ("WeftClassifier", "WeftRegressor"):
        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
