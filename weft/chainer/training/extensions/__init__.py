"""`chainer.training.extensions`."""

from __future__ import annotations

from ....faces.absent import absent_names
from .evaluator import Evaluator
from .graphs import DumpGraph, dump_graph
from .reports import FailOnNonNumber, LogReport, MicroAverage, PlotReport, PrintReport, ProgressBar
from .shifts import (
    ExponentialShift,
    InverseShift,
    LinearShift,
    MultistepShift,
    PolynomialShift,
    StepShift,
    WarmupShift,
)
from .snapshots import snapshot, snapshot_object
from .values import observe_lr, observe_value, unchain_variables

__all__ = [
    "DumpGraph",
    "Evaluator",
    "ExponentialShift",
    "FailOnNonNumber",
    "InverseShift",
    "LinearShift",
    "LogReport",
    "MicroAverage",
    "MultistepShift",
    "PlotReport",
    "PolynomialShift",
    "PrintReport",
    "ProgressBar",
    "StepShift",
    "WarmupShift",
    "dump_graph",
    "observe_lr",
    "observe_value",
    "snapshot",
    "snapshot_object",
    "unchain_variables",
]

_REASONS = {
    "ParameterStatistics": "write a function of the trainer that reports what you need",
    "VariableStatisticsPlot": "use PlotReport",
    "snapshot_writers": "snapshots are written at once",
}
__getattr__ = absent_names(globals(), _REASONS)
