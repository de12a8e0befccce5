"""`tf.estimator`: not served; each name says what to use."""

from __future__ import annotations

from ..faces.absent import absent_names

_USE = "use weft.keras (tf.keras) with model.fit, or weft.train.Trainer, or a session of your own"
_REASONS = dict.fromkeys(
    (
        *("Estimator", "EstimatorSpec", "ModeKeys", "RunConfig", "TrainSpec", "EvalSpec"),
        *("DNNClassifier", "DNNRegressor", "LinearClassifier", "LinearRegressor", "inputs"),
        "train_and_evaluate",
    ),
    _USE,
)
__getattr__ = absent_names(globals(), _REASONS)
