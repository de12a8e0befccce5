"""Functional models: several inputs and outputs, shared layers, training, bad input."""

import numpy as np
import pytest

import weft as wf
from weft import keras, nn
from weft.core.errors import WeftError
from weft.keras import layers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6)).astype("f")
LABELS = RNG.integers(0, 3, 40)


@pytest.fixture(autouse=True)
def _names():
    keras.backend.clear_session()
    wf.manual_seed(0)


def two_headed():
    """Return a model with two inputs and two outputs, and a layer that is called twice."""
    left, right = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    shared = layers.Dense(8, activation="tanh", name="shared")
    both = layers.concatenate([shared(left), shared(right)])
    label = layers.Dense(3, activation="softmax", name="label")(both)
    number = layers.Dense(1, name="number")(layers.add([shared.calls[0].outputs[0], shared(right)]))
    return keras.Model([left, right], [label, number], name="two")


def test_values_are_those_of_plain_layers():
    model = two_headed()
    weights = model.get_weights()
    first = np.tanh(X @ weights[0] + weights[1])
    second = np.tanh(X[::-1] @ weights[0] + weights[1])
    scores = np.concatenate([first, second], 1) @ weights[2] + weights[3]
    label = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    number = (first + second) @ weights[4] + weights[5]
    made = model.predict([X, X[::-1]], verbose=0)
    np.testing.assert_allclose(made[0], label, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(made[1], number, rtol=1e-4, atol=1e-5)
    named = model({"right": X[::-1].copy(), "left": X})
    np.testing.assert_allclose(named[1].detach().numpy(), number, rtol=1e-4, atol=1e-5)


def test_training_equals_that_of_the_same_network_of_plain_modules():
    inputs = keras.Input((6,))
    hidden = layers.Dense(5, activation="relu")(inputs)
    model = keras.Model(inputs, layers.Dense(3)(hidden))
    plain = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    names = list(plain.state_dict())
    plain.load_state_dict(dict(zip(names, (w.T for w in model.get_weights()), strict=True)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, jit_compile=True)
    plain.compile(lambda p: wf.optim.SGD(p, lr=0.1, momentum=0.9), "cross_entropy", compile=True)
    options = {"epochs": 3, "batch_size": 8, "seed": 1, "verbose": 0}
    ours = model.fit(X, LABELS, **options).history["loss"]
    theirs = plain.fit(X, LABELS, **options).history["loss"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    trained = [w.numpy() for w in plain.state_dict().values()]
    for held, other in zip(model.get_weights(), trained, strict=True):
        np.testing.assert_allclose(held, other.T, rtol=1e-4, atol=1e-6)


def test_several_outputs_are_weighted_and_reported():
    model = two_headed()
    numbers = X.sum(1)
    losses = {"label": "sparse_categorical_crossentropy", "number": "mse"}
    model.compile(
        "adam",
        loss=losses,
        loss_weights={"label": 2.0, "number": 0.5},
        metrics={"label": ["accuracy"], "number": "mae"},
        jit_compile=True,
    )
    data = {"left": X, "right": X}
    y = {"label": LABELS, "number": numbers}
    history = model.fit(data, y, epochs=4, batch_size=20, validation_split=0.5, verbose=0).history
    assert set(history) >= {"loss", "label_loss", "number_loss", "label_accuracy", "number_mae"}
    assert history["loss"][-1] < history["loss"][0]
    np.testing.assert_allclose(
        history["loss"],
        2 * np.array(history["label_loss"]) + 0.5 * np.array(history["number_loss"]),
        rtol=1e-5,
    )
    found = model.evaluate([X, X], [LABELS, numbers], verbose=0)
    label, number = model.predict([X, X], verbose=0)
    expected = -np.log(label[np.arange(40), LABELS]).mean()
    square = ((number[:, 0] - numbers) ** 2).mean()
    accuracy = (label.argmax(1) == LABELS).mean()
    mae = abs(number[:, 0] - numbers).mean()
    whole = 2 * expected + 0.5 * square
    np.testing.assert_allclose(found, [whole, expected, square, accuracy, mae], rtol=1e-4)
    assert model.metrics_names == [
        "loss",
        "label_loss",
        "number_loss",
        "label_accuracy",
        "number_mae",
    ]


def test_weights_of_samples_and_one_batch():
    model = keras.Sequential([layers.Dense(1, use_bias=False, input_shape=(1,))])
    model.set_weights([np.array([[2.0]])])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x, y = np.array([[1.0], [2.0]]), np.array([[0.0], [0.0]])
    assert model.test_on_batch(x, y) == pytest.approx((4 + 16) / 2)
    weighted = model.evaluate(x, y, sample_weight=np.array([1.0, 0.5]), verbose=0)
    assert weighted == pytest.approx((4 + 8) / 2)
    assert model.train_on_batch(x, y) == pytest.approx(10.0)
    np.testing.assert_allclose(model.predict_on_batch(x), [[2], [4]])


def test_frozen_layers_stay_as_they_are():
    model = two_headed()
    model.get_layer("shared").trainable = False
    before = model.get_weights()
    model.compile("sgd", ["sparse_categorical_crossentropy", "mse"])
    model.fit([X, X], [LABELS, X[:, 0]], verbose=0)
    after = model.get_weights()
    np.testing.assert_array_equal(before[0], after[0])
    assert abs(before[2] - after[2]).max() > 0
    assert len(model.trainable_weights) == 4


def test_modes_are_those_of_keras():
    inputs = keras.Input((6,))
    model = keras.Model(inputs, layers.Dropout(0.5)(inputs))
    assert (model(X).numpy() == X).all()
    assert not (model(X, training=True).numpy() == X).all()
    frozen = keras.Model(inputs, model(inputs, training=False))
    assert (frozen(X, training=True).numpy() == X).all()


def test_models_are_layers_and_parts_of_models_are_models():
    inputs = keras.Input((6,))
    features = keras.Model(inputs, layers.Dense(4, name="features")(inputs), name="base")
    outer = keras.Input((6,))
    whole = keras.Model(outer, layers.Dense(2)(features(outer)))
    assert [layer.name for layer in whole.layers] == ["input_layer_1", "base", "dense"]
    part = keras.Model(whole.input, features.calls[0].outputs[0])
    assert part.output_shape == (None, 4)
    np.testing.assert_array_equal(part(X).detach().numpy(), features(X).detach().numpy())
    assert len(whole.get_weights()) == 4
    named = keras.Model(inputs, {"a": layers.Dense(1)(inputs), "b": layers.Dense(2)(inputs)})
    assert {k: v.shape for k, v in named(X).items()} == {"a": (40, 1), "b": (40, 2)}
    named.compile("sgd", {"a": "mse", "b": "mse"}, jit_compile=True)
    named.fit(X, {"a": X[:, :1], "b": X[:, :2]}, verbose=0)


def test_callbacks_see_the_model(tmp_path):
    model = two_headed()
    model.compile("sgd", {"number": "mse"})
    path = tmp_path / "best-{epoch}.safetensors"
    saved = keras.callbacks.ModelCheckpoint(path, monitor="loss", save_best_only=True)
    stop = keras.callbacks.EarlyStopping(monitor="loss", min_delta=1e9, patience=1)
    history = model.fit(
        [X, X], {"number": X[:, 0]}, epochs=9, verbose=0, callbacks=[saved, stop]
    ).history
    assert len(history["loss"]) == 2
    first = keras.models.load_model(tmp_path / "best-1.safetensors")
    assert first.output_names == ("label", "number")
    with pytest.raises(AttributeError, match=r"extensions\.TensorBoard"):
        _ = keras.callbacks.TensorBoard


def test_the_table_of_layers(capsys):
    two_headed().summary()
    shown = capsys.readouterr().out
    assert "shared (Dense)" in shown
    assert "left, right" in shown
    assert "Total weights: 116" in shown


def test_bad_graphs_are_named():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    joined = layers.Add()([a, b])
    with pytest.raises(WeftError, match=r"'b'.*disconnected"):
        keras.Model(a, joined)
    with pytest.raises(WeftError, match="must be symbolic"):
        keras.Model(a, np.zeros(3))
    twice = layers.Dense(2, name="same")(layers.Dense(3, name="same")(a))
    with pytest.raises(WeftError, match="two layers of the model have the name 'same'"):
        keras.Model(a, twice)
    model = keras.Model([a, b], joined)
    zeros = np.zeros((2, 3), "f")
    with pytest.raises(WeftError, match=r"takes 2 inputs \(a, b\). Received: 1"):
        model(zeros)
    with pytest.raises(WeftError, match="'b' is missing"):
        model({"a": zeros})
    with pytest.raises(WeftError, match=r"no input \['c'\]"):
        model({"a": zeros, "b": zeros, "c": zeros})
    with pytest.raises(WeftError, match=r"no input \['bb'\]; it has: a, b"):
        model.predict({"a": zeros, "bb": zeros}, verbose=0)
    with pytest.raises(WeftError, match=r"'a' has the shape \(None, 3\)"):
        model([np.zeros((1, 2, 3), "f"), zeros])
    with pytest.raises(WeftError, match="no layer 'c'"):
        model.get_layer("c")


def test_names_that_the_graph_uses_itself_are_free_for_layers():
    inputs = keras.Input((2,), name="inputs")
    model = keras.Model(inputs, layers.Dense(1, name="outputs")(inputs))
    assert model.output_names == ("outputs",)
    again = keras.models.model_from_json(model.to_json())
    assert [layer.name for layer in again.layers] == ["inputs", "outputs"]


def test_compile_says_what_is_wrong():
    model = two_headed()
    with pytest.raises(WeftError, match="no output 'lable'; did you mean 'label'"):
        model.compile("sgd", {"lable": "mse"})
    with pytest.raises(WeftError, match="one entry for each of the 2 outputs"):
        model.compile("sgd", ["mse"])
    with pytest.raises(WeftError, match="did you mean 'adam'"):
        model.compile("adm", "mse")
    with pytest.raises(WeftError, match="needs a loss"):
        model.compile("adam")
    with pytest.raises(WeftError, match="'steps_per_execution' is not served"):
        model.compile("adam", "mse", steps_per_execution=4)
    model.compile("sgd", {"label": "sparse_categorical_crossentropy", "number": "mse"})
    with pytest.raises(WeftError, match="list or a dictionary of targets"):
        model.fit([X, X], LABELS, verbose=0)


def test_helpers():
    made = keras.utils.to_categorical([[1], [0]], 3)
    np.testing.assert_array_equal(made, [[0, 1, 0], [1, 0, 0]])
    with pytest.raises(WeftError, match=r"0 \.\. 1"):
        keras.utils.to_categorical([2], 2)
    assert keras.utils.normalize([[3.0, 4.0]]).tolist() == [[0.6, 0.8]]
    assert keras.backend.image_data_format() == "channels_last"
    with pytest.raises(AttributeError, match="downloaded"):
        _ = keras.datasets
