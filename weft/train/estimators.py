"""The scikit-learn face: WeftClassifier and WeftRegressor.

They follow scikit-learn's rules for estimators (parameters are only stored by the constructor, what
is learnt ends in an underscore, input is validated), so that Pipeline, GridSearchCV and clone work.
scikit-learn is loaded when one of the two names is first used: their bases come from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.imports import require
from ..core.rng import default_generator
from ..nn import Linear, Module, Sequential
from ..nn.models.mlp import ACTIVATIONS
from .arrays import Arrays, BatchSource, source_of_arrays
from .extensions import EarlyStopping, Evaluator, Log
from .fitting import BATCH_SIZE, CompiledObjective, FitUpdater
from .keras import predict
from .losses import get_loss
from .optimizers import get_optimizer
from .trainer import Trainer


# scikit-learn reads the parameters from the constructor, and has its own repr and comparison.
@dataclass(eq=False, repr=False)
class NetworkEstimator:
    """What both estimators share: parameters, building and training.

    module               a function (n_inputs, n_outputs) -> Module, or a Module to be copied; None:
                         layers of `hidden_layer_sizes` with `activation` between them
    loss                 as in `model.compile`
    optimizer, lr        a name or a function of the parameters, and its learning rate; None: the
                         optimizer's own
    weight_decay         given to the optimizer if it is not 0
    epochs, batch_size   length of training
    early_stopping       keep `validation_fraction` of the samples and stop when their loss has not
                         improved for `patience` epochs; the best weights are kept
    dtype                of weights, data and results; float32 is faster for large networks
    random_state         of weights, shuffling and the split
    compile              whether training and prediction run as compiled programs: "auto" (what
                         cannot be compiled runs eagerly, with a warning), True (or else an error)
                         or False
    verbose              print a line per epoch

    After `fit`: `module_`, `n_iter_` (epochs), `loss_curve_`, `n_features_in_`.
    """

    module: Any = None
    _: KW_ONLY
    hidden_layer_sizes: Any = (100,)
    activation: str = "relu"
    loss: Any = None
    optimizer: Any = "adam"
    lr: float | None = None
    weight_decay: float = 0.0
    epochs: int = 100
    batch_size: int = BATCH_SIZE
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 10
    dtype: str = "float64"
    random_state: Any = None
    compile: Any = "auto"
    verbose: int = 0
    device: Any = None

    # -- training --------------------------------------------------------------------------------

    def _train(self, X: Array, y: Array, weights: Array | None, outputs: int, loss: str) -> None:
        """Build and train the network; random numbers of the rest of the program stay as they were.

        X and y are checked; y has the form that the loss takes.
        """
        seed = _random_state(self.random_state).randint(np.iinfo(np.int32).max)
        with _seeded(seed):
            module = self._build(X.shape[1], outputs)
            training, kept = self._split(Arrays(X, y, weights), seed)
            self._run(module, training, kept, get_loss(self.loss or loss))
        self.module_: Module = module.eval()

    def _run(
        self, module: Module, training: BatchSource, kept: BatchSource | None, loss: Any
    ) -> None:
        options = {"weight_decay": self.weight_decay} if self.weight_decay else {}
        if self.lr is not None:
            options["lr"] = self.lr
        optimizer = get_optimizer(self.optimizer, module, **options)
        updater = FitUpdater(
            CompiledObjective(module, loss, training),
            optimizer,
            training.loader,
            compile=self.compile,
        )
        trainer = Trainer(updater, stop=(self.epochs, "epoch"), out=None)
        log = Log(filename=None, console=bool(self.verbose))
        if kept is not None:
            objective = CompiledObjective(module, loss, kept)
            trainer.extend(Evaluator(kept.loader, objective=objective))
            trainer.extend(EarlyStopping(patience=self.patience, restore_best=True))
        trainer.extend(log)
        trainer.run()
        self.loss_curve_ = [entry["train/loss"] for entry in log.entries]
        self.n_iter_ = trainer.epoch

    def _build(self, inputs: int, outputs: int) -> Module:
        given = self.module
        if given is None:
            built: Any = self._layers(inputs, outputs)
        elif isinstance(given, Module):
            built = deepcopy(given)
        elif callable(given):
            built = given(inputs, outputs)
        else:
            built = given
        if not isinstance(built, Module):
            raise ArgumentTypeError(
                "module must be a Module or a function (n_inputs, n_outputs) -> Module. "
                f"Received: {type(built).__name__}"
            )
        built.to(dt.as_dtype(self.dtype))
        return built if self.device is None else built.to(device=self.device)

    def _layers(self, inputs: int, outputs: int) -> Module:
        if self.activation not in ACTIVATIONS:
            raise ArgumentError(
                f"activation must be one of {', '.join(ACTIVATIONS)}. Received: {self.activation!r}"
            )
        sizes = self.hidden_layer_sizes
        hidden = [sizes] if isinstance(sizes, int) else list(sizes)
        layers: list[Module] = []
        for before, after in zip([inputs, *hidden], hidden, strict=False):
            layers += [Linear(before, after), ACTIVATIONS[self.activation]()]
        return Sequential(*layers, Linear(hidden[-1] if hidden else inputs, outputs))

    def _split(self, arrays: Arrays, seed: int) -> tuple[BatchSource, BatchSource | None]:
        options = {"batch_size": self.batch_size, "seed": seed}
        if not self.early_stopping:
            return source_of_arrays(arrays, shuffle=True, **options), None
        count = round(self.validation_fraction * arrays.samples)
        if not 0 < count < arrays.samples:
            raise ArgumentError(
                f"validation_fraction={self.validation_fraction} of {arrays.samples} samples "
                "leaves one part empty"
            )
        order = np.random.RandomState(seed).permutation(arrays.samples)
        first, last = (
            Arrays(*(None if part is None else part[chosen] for part in arrays))
            for chosen in (order[count:], order[:count])
        )
        return source_of_arrays(first, shuffle=True, **options), source_of_arrays(last, **options)

    # -- input and output ------------------------------------------------------------------------

    def _validated(self, *data: Any, **options: Any) -> Any:
        validation = _sklearn("utils.validation", type(self).__name__)
        return validation.validate_data(self, *data, dtype=np.dtype(self.dtype), **options)

    def _outputs(self, X: Any) -> Array:
        _sklearn("utils.validation", type(self).__name__).check_is_fitted(self)
        checked = self._validated(X, reset=False)
        # One matrix product for all rows, so that a row's result depends little on its neighbours.
        found: Array = predict(
            self.module_,
            checked,
            batch_size=max(len(checked), 1),
            verbose=0,
            compile=self.compile,
        )
        return found


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierFace(NetworkEstimator):
    """Classify with a network, as a scikit-learn estimator; see NetworkEstimator for parameters.

    class_weight   a dictionary from label to weight, or "balanced"

    >>> import weft as wf
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = wf.train.WeftClassifier(epochs=30, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    class_weight: Any = None

    def fit(self, X: Any, y: Any) -> Any:
        """Train on samples X (n, features) with labels y (n,)."""
        classes = _sklearn("utils.multiclass", "WeftClassifier")
        X, y = self._validated(X, y)
        classes.check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        weights = self._sample_weights(y)
        self._train(X, labels.astype(np.int64), weights, len(self.classes_), "cross_entropy")
        return self

    def _sample_weights(self, y: Array) -> Array | None:
        if self.class_weight is None:
            return None
        helper = _sklearn("utils.class_weight", "WeftClassifier")
        weights: Array = helper.compute_sample_weight(self.class_weight, y)
        return weights.astype(self.dtype)

    def predict(self, X: Any) -> Array:
        """Return the most probable label of each sample."""
        best = self._outputs(X).argmax(axis=1)
        labels: Array = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of all classes, in the order of `classes_`."""
        scores = self._outputs(X)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Array = powers / powers.sum(axis=1, keepdims=True)
        return found

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        scores = self._outputs(X)
        scores = scores - scores.max(axis=1, keepdims=True)
        found: Array = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return found


class RegressorFace(NetworkEstimator):
    """Predict numbers with a network, as a scikit-learn estimator; see NetworkEstimator.

    >>> import numpy as np
    >>> import weft as wf
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> model = wf.train.WeftRegressor(epochs=30, random_state=0).fit(X, 2 * X[:, 0] + 1)
    >>> bool(model.score(X, 2 * X[:, 0] + 1) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any) -> Any:
        """Train on samples X (n, features) with targets y (n,) or (n, outputs)."""
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        if y.ndim == 2 and y.shape[1] == 1:
            helper = _sklearn("utils.validation", "WeftRegressor")
            y = helper.column_or_1d(y, warn=True)
        self._is_single = y.ndim == 1
        columns = y.reshape(len(y), -1).astype(self.dtype)
        self._train(X, columns, None, columns.shape[1], "mse")
        return self

    def predict(self, X: Any) -> Array:
        """Return the predictions, in the shape of the targets that were learnt."""
        found = self._outputs(X)
        return found[:, 0] if self._is_single else found


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Run a block with a seed of its own."""
    kept = default_generator.get_state()
    default_generator.seed(seed)
    try:
        yield
    finally:
        default_generator.set_state(kept)


def _sklearn(part: str, user: str) -> Any:
    """Return a module of scikit-learn."""
    return require(f"sklearn.{part}", "sklearn", user)


def _random_state(given: Any) -> Any:
    return _sklearn("utils", "WeftClassifier").check_random_state(given)


# -- the classes, made when scikit-learn is there --------------------------------------------------


def _classifier() -> type:
    base = _sklearn("base", "WeftClassifier")
    return _made("WeftClassifier", (base.ClassifierMixin, ClassifierFace, base.BaseEstimator))


def _regressor() -> type:
    base = _sklearn("base", "WeftRegressor")
    bases = (base.MultiOutputMixin, base.RegressorMixin, RegressorFace, base.BaseEstimator)
    return _made("WeftRegressor", bases)


def _made(name: str, bases: tuple[type, ...]) -> type:
    face = next(base for base in bases if issubclass(base, NetworkEstimator))
    # Pickles name a class by its module, where `__getattr__` below makes it again.
    return type(name, bases, {"__doc__": face.__doc__, "__module__": __name__})


_MAKERS = {"WeftClassifier": _classifier, "WeftRegressor": _regressor}


def __getattr__(name: str) -> Any:
    if name not in _MAKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _MAKERS[name]()
    return made
