"""Losses, metrics and optimizers by Keras's names, with values written out."""

import numpy as np
import pytest

import weft as wf
from weft import keras, optim
from weft.core.errors import WeftError
from weft.keras import layers, losses, metrics, optimizers

TRUE = np.array([[0.0, 1.0], [1.0, 1.0]], "f")
MADE = np.array([[0.2, 0.6], [0.7, 0.9]], "f")
PROBABLE = np.array([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]], "f")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", ((TRUE - MADE) ** 2).mean(1)),
        ("mae", abs(TRUE - MADE).mean(1)),
        ("binary_crossentropy", -(TRUE * np.log(MADE) + (1 - TRUE) * np.log(1 - MADE)).mean(1)),
        ("hinge", np.maximum(1 - (2 * TRUE - 1) * MADE, 0).mean(1)),
        ("squared_hinge", (np.maximum(1 - (2 * TRUE - 1) * MADE, 0) ** 2).mean(1)),
        ("poisson", (MADE - TRUE * np.log(MADE)).mean(1)),
        ("log_cosh", np.log(np.cosh(MADE - TRUE)).mean(1)),
        ("huber", (0.5 * (TRUE - MADE) ** 2).mean(1)),
        ("mean_squared_logarithmic_error", ((np.log1p(TRUE) - np.log1p(MADE)) ** 2).mean(1)),
        (
            "cosine_similarity",
            -(TRUE * MADE).sum(1) / np.linalg.norm(TRUE, axis=1) / np.linalg.norm(MADE, axis=1),
        ),
    ],
)
def test_losses_of_elements(name, expected):
    made = losses.get(name)(wf.tensor(TRUE), wf.tensor(MADE)).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_losses_of_classes():
    expected = -np.log([0.7, 0.5])
    labels = np.array([1, 0])
    sparse = losses.SparseCategoricalCrossentropy()
    assert sparse(labels, PROBABLE).item() == pytest.approx(expected.mean(), rel=1e-5)
    assert sparse(labels[:, None], PROBABLE).item() == pytest.approx(expected.mean(), rel=1e-5)
    one_hot = keras.utils.to_categorical(labels, 3)
    both = losses.CategoricalCrossentropy(reduction="none")(one_hot, PROBABLE)
    np.testing.assert_allclose(both.numpy(), expected, rtol=1e-5)
    logits = losses.SparseCategoricalCrossentropy(from_logits=True)(labels, np.log(PROBABLE))
    assert logits.item() == pytest.approx(expected.mean(), rel=1e-5)
    smooth = losses.CategoricalCrossentropy(label_smoothing=0.3)(one_hot, PROBABLE).item()
    target = one_hot * 0.7 + 0.1
    assert smooth == pytest.approx(-(target * np.log(PROBABLE)).sum(1).mean(), rel=1e-5)


def test_classes_are_the_last_axis_of_sequences():
    made = np.stack([PROBABLE, PROBABLE[::-1]])
    labels = np.array([[1, 0], [0, 1]])
    rows = losses.sparse_categorical_crossentropy(wf.tensor(labels), wf.tensor(made)).numpy()
    np.testing.assert_allclose(rows, -np.log([[0.7, 0.5], [0.5, 0.7]]), rtol=1e-5)
    accuracy = metrics.get("accuracy")
    accuracy.update(made, labels)
    assert accuracy.compute() == 1.0


def test_losses_and_metrics_of_the_users_get_the_truth_first():
    def asymmetric(y_true, y_pred):
        return wf.mean(wf.relu(y_true - y_pred), axis=-1)

    model = keras.Sequential([layers.Dense(1, use_bias=False, input_shape=(1,))])
    model.set_weights([np.array([[1.0]])])
    model.compile("sgd", asymmetric, metrics=[asymmetric])
    found = model.evaluate(np.array([[1.0], [2.0]]), np.array([[3.0], [0.0]]), verbose=0)
    assert found == [1.0, 1.0]


@pytest.mark.parametrize(
    ("metric", "made", "true", "expected"),
    [
        (metrics.get("accuracy"), PROBABLE, [1, 2], 0.5),
        (metrics.get("sparse_categorical_accuracy"), PROBABLE, [[1], [0]], 1.0),
        (metrics.get("binary_accuracy"), [[0.2], [0.9]], [[1], [1]], 0.5),
        (metrics.get("mae"), TRUE, MADE, 0.25),
        (metrics.get("mean_squared_error"), [[1.0]], [[3.0]], 4.0),
        (metrics.get("categorical_accuracy"), PROBABLE, [[0.0, 1, 0], [0, 1, 0]], 0.5),
    ],
)
def test_metrics(metric, made, true, expected):
    metric.update(np.asarray(made, "f"), np.asarray(true))
    assert metric.compute() == pytest.approx(expected, rel=1e-4)


def test_metric_objects_are_called_with_the_truth_first():
    precision = keras.metrics.Precision()
    precision.update_state([0, 1, 1, 0], [0.1, 0.9, 0.2, 0.8])
    assert precision.result() == 0.5
    precision.reset_state()
    assert keras.metrics.BinaryAccuracy(threshold=0.1)([1, 1], [0.2, 0.05]) == 0.5


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adamax", "nadam", "rmsprop"])
def test_optimizers_have_the_defaults_of_keras(name):
    made = optimizers.get(name)([wf.nn.Parameter(wf.zeros(2))])
    group = made.param_groups[0]
    assert isinstance(made, optim.Optimizer)
    assert group["lr"] == (0.01 if name == "sgd" else 0.001)
    assert group.get("eps", 1e-7) == 1e-7


def test_options_of_optimizers():
    chosen = optimizers.RMSprop(learning_rate=0.5, rho=0.8)
    group = chosen([wf.nn.Parameter(wf.zeros(2))]).param_groups[0]
    assert (group["lr"], group["alpha"]) == (0.5, 0.8)
    again = optimizers.get(optimizers.serialize(chosen))
    assert again.config == chosen.config
    assert optimizers.SGD(lr=0.2).learning_rate == 0.2
    assert optimizers.SGD(0.1, 0.9, True)([wf.nn.Parameter(wf.zeros(2))]).param_groups[0][
        "nesterov"
    ]
    for name in ("adagrad", "adadelta", "lion"):
        assert optimizers.get(name)([wf.nn.Parameter(wf.zeros(2))])
    with pytest.raises(TypeError, match="did you mean 'beta_1'"):
        optimizers.Adam(beta1=0.5)
    with pytest.raises(TypeError, match="LearningRateScheduler"):
        optimizers.Adam(lambda step: 0.1)
    with pytest.raises(WeftError, match="global_clipnorm"):
        optimizers.Adam(clipnorm=1.0)


def test_unknown_names():
    with pytest.raises(WeftError, match="no loss 'mze'"):
        losses.get("mze")
    with pytest.raises(WeftError, match="did you mean 'accuracy'"):
        metrics.get("acuracy")
    with pytest.raises(WeftError, match="reduction"):
        losses.MeanSquaredError(reduction="average")


@pytest.mark.parametrize(
    ("name", "target", "match"),
    [
        ("sparse_categorical_crossentropy", np.eye(3, dtype="f")[:2], r"\(2, 3\); for one-hot"),
        ("categorical_crossentropy", np.array([0, 1]), r"\(2,\); for labels use sparse_cat"),
        ("categorical_crossentropy", np.array([[0], [1]]), r"\(2, 1\); for labels use sparse_cat"),
    ],
)
def test_labels_and_one_hot_targets_are_not_mixed_up(name, target, match):
    with pytest.raises(WeftError, match=match):
        losses.get(name)(wf.tensor(target), wf.tensor(PROBABLE))
