"""The scikit-learn face."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import MissingDependencyError, WeftError
from weft.train import WeftClassifier, WeftRegressor, estimators

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("make", [WeftClassifier, WeftRegressor])
def test_all_checks_of_scikit_learn_pass(make: Any) -> None:
    results = check_estimator(make(), on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert all(r["status"] in ("passed", "skipped") for r in results)
    assert len(results) > 40


def test_pipeline_and_grid_search() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    pipeline = make_pipeline(StandardScaler(), WeftClassifier(epochs=15, lr=0.01, random_state=0))
    search = GridSearchCV(pipeline, {"weftclassifier__hidden_layer_sizes": [(), (8,)]}, cv=2)
    search.fit(X, names)
    assert search.best_score_ > 0.8
    assert set(search.predict(X)) <= set(names)
    assert cross_val_score(clone(pipeline), X, names, cv=2).mean() > 0.8


def test_probabilities() -> None:
    model = WeftClassifier(epochs=10, random_state=0).fit(X, Y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X))
    np.testing.assert_array_equal(model.classes_[p.argmax(1)], model.predict(X))
    assert len(model.loss_curve_) == model.n_iter_ == 10


def test_random_state_decides_everything_and_disturbs_nothing() -> None:
    wf.manual_seed(1)
    expected = wf.rand(2).tolist()
    wf.manual_seed(1)
    one, two, three = (
        WeftClassifier(epochs=3, random_state=seed).fit(X, Y).predict_proba(X) for seed in (0, 0, 1)
    )
    assert wf.rand(2).tolist() == expected
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, three)


def test_pickle_in_another_process() -> None:
    model = WeftClassifier(epochs=2, random_state=0).fit(X, Y)
    program = (
        "import pickle, sys; m = pickle.load(sys.stdin.buffer); "
        "print(type(m).__name__, m.predict([[5.0, 3.0, 1.0, 0.0]])[0])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(model), capture_output=True, check=True
    )
    assert result.stdout.decode().split()[0] == "WeftClassifier"


def test_own_modules() -> None:
    def build(inputs: int, outputs: int) -> Any:
        return wf.nn.Sequential(wf.nn.Linear(inputs, 5), wf.nn.Tanh(), wf.nn.Linear(5, outputs))

    assert WeftClassifier(build, epochs=30, lr=0.01, random_state=0).fit(X, Y).score(X, Y) > 0.8
    given = build(4, 3)
    before = given[0].weight.tolist()
    WeftClassifier(given, epochs=2).fit(X, Y)
    assert given[0].weight.tolist() == before


def test_early_stopping_keeps_the_best() -> None:
    model = WeftClassifier(early_stopping=True, patience=3, epochs=200, lr=0.1, random_state=0)
    model.fit(X, Y)
    assert model.n_iter_ < 200
    assert model.score(X, Y) > 0.8


def test_class_weight_and_dtype() -> None:
    heavy = WeftClassifier(
        class_weight={0: 1e-6, 1: 1.0, 2: 1e-6}, epochs=20, random_state=0, dtype="float32"
    )
    heavy.fit(X, Y)
    assert (heavy.predict(X) == 1).mean() > 0.9
    assert heavy.predict_proba(X).dtype == np.float32
    WeftClassifier(class_weight="balanced", epochs=1).fit(X, Y)


def test_regressor_of_several_outputs() -> None:
    x = np.linspace(-1, 1, 100)[:, None]
    y = np.hstack([x, -2 * x, x**2])
    model = WeftRegressor(epochs=60, random_state=0).fit(x, y)
    assert model.predict(x).shape == (100, 3)
    assert model.score(x, y) > 0.9
    assert model.fit(x, y[:, 0]).predict(x).shape == (100,)


def test_options_of_training() -> None:
    model = WeftRegressor(
        hidden_layer_sizes=8,
        activation="tanh",
        loss="huber",
        optimizer="sgd",
        weight_decay=1e-3,
        batch_size=64,
        epochs=2,
        random_state=np.random.RandomState(0),
    )
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


def test_verbose_prints_lines(capsys: Any) -> None:
    WeftRegressor(epochs=2, verbose=1).fit(X, Y)
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "rleu"}, "activation must be one of relu"),
        ({"module": "mlp"}, "module must be a Module or a function"),
        ({"module": lambda a, b: 3}, "Received: int"),
        ({"optimizer": "adm"}, "did you mean 'adam'"),
        ({"early_stopping": True, "validation_fraction": 0.0}, "leaves one part empty"),
    ],
)
def test_bad_parameters(options: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        WeftClassifier(**options).fit(X, Y)


def test_missing_package_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "weft\[sklearn\]"'):
        estimators._classifier()
    with pytest.raises(AttributeError, match="has no attribute 'WeftTransformer'"):
        _ = wf_train_attribute("WeftTransformer")


def wf_train_attribute(name: str) -> Any:
    return getattr(estimators, name)
