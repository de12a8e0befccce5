"""Metrics, gathered batch by batch.

Each has `update(output, target)`, `compute()`, `reset()` and `state_dict()`. Outputs and targets
are tensors, arrays or lists; see `inputs` for the shapes that are understood.
"""

from .classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, TopKAccuracy
from .language import Perplexity
from .metric import FunctionMetric, Mean, Metric
from .ranking import AUC
from .registry import METRICS, get_metric, improves_upwards, named_metrics
from .regression import MAE, MSE, R2, RMSE

__all__ = [
    "AUC",
    "F1",
    "MAE",
    "METRICS",
    "MSE",
    "R2",
    "RMSE",
    "Accuracy",
    "ConfusionMatrix",
    "FunctionMetric",
    "Mean",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
    "TopKAccuracy",
    "get_metric",
    "improves_upwards",
    "named_metrics",
]
