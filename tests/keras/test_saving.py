"""Architecture as JSON, weights as safetensors, and both in one file."""

import json

import numpy as np
import pytest

import weft as wf
from weft import keras
from weft.core.errors import WeftError
from weft.keras import layers

X = np.random.default_rng(0).normal(size=(8, 6, 3)).astype("f")


def doubled(x):
    """Return 2 x."""
    return x * 2.0


def network():
    """Return a model with most kinds of layers, one of them called twice."""
    inputs = keras.Input((6, 3), name="steps")
    same = layers.Dense(4, kernel_initializer=keras.initializers.HeNormal(seed=1))
    a = layers.LSTM(4, return_sequences=True)(same(inputs))
    b = same(layers.Lambda(doubled)(inputs))
    c = layers.Bidirectional(layers.GRU(2, return_sequences=True))(layers.Add()([a, b]))
    d = layers.BatchNormalization()(layers.Conv1D(3, 2, padding="causal")(c))
    e = layers.TimeDistributed(layers.Dense(2))(layers.Dropout(0.1)(d))
    return keras.Model(inputs, [layers.Flatten(name="flat")(e), e])


def test_json_describes_layers_and_calls():
    model = network()
    entry = json.loads(model.to_json())
    assert entry["class_name"] == "Functional"
    dense = next(e for e in entry["config"]["layers"] if e["class_name"] == "Dense")
    assert len(dense["inbound_nodes"]) == 2
    again = keras.models.model_from_json(model.to_json(), {"doubled": doubled})
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights]
    again.set_weights(model.get_weights())
    for made, expected in zip(again(X), model(X), strict=True):
        np.testing.assert_array_equal(made.detach().numpy(), expected.detach().numpy())
    with pytest.raises(WeftError, match="custom_objects"):
        keras.models.model_from_json(model.to_json())


def test_text_of_keras_2_is_read():
    text = json.dumps(
        {
            "class_name": "Functional",
            "keras_version": "2.15.0",
            "config": {
                "name": "model",
                "layers": [
                    {
                        "class_name": "InputLayer",
                        "name": "input_1",
                        "config": {
                            "batch_input_shape": [None, 4],
                            "dtype": "float32",
                            "sparse": False,
                            "ragged": False,
                            "name": "input_1",
                        },
                        "inbound_nodes": [],
                    },
                    {
                        "class_name": "Dense",
                        "name": "dense",
                        "config": {
                            "name": "dense",
                            "trainable": True,
                            "dtype": "float32",
                            "units": 2,
                            "activation": "relu",
                            "use_bias": True,
                            "kernel_initializer": {
                                "class_name": "GlorotUniform",
                                "config": {"seed": None},
                            },
                            "bias_initializer": {"class_name": "Zeros", "config": {}},
                            "kernel_regularizer": None,
                            "activity_regularizer": None,
                        },
                        "inbound_nodes": [[["input_1", 0, 0, {}]]],
                    },
                ],
                "input_layers": [["input_1", 0, 0]],
                "output_layers": [["dense", 0, 0]],
            },
        }
    )
    model = keras.models.model_from_json(text)
    assert model.output_shape == (None, 2)
    assert model.input_names == ("input_1",)


def test_one_file_holds_all(tmp_path):
    model = network()
    model.compile(keras.optimizers.Adam(0.01), {"flat": "mse"}, metrics={"flat": ["mae"]})
    target = {"flat": np.zeros((8, 12), "f")}
    model.fit(X, target, verbose=0)
    path = tmp_path / "model.keras"
    model.save(path)
    assert "graph.lstm.core.weight_ih_l0" in wf.load(path) or len(wf.load(path)) > 10
    again = keras.models.load_model(path, custom_objects={"doubled": doubled})
    for made, expected in zip(again.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(made, expected)
    found = again.evaluate(X, target, verbose=0)
    assert found == pytest.approx(model.evaluate(X, target, verbose=0))
    again.fit(X, target, verbose=0)
    with pytest.raises(WeftError, match="overwrite"):
        model.save(path, overwrite=False)


def test_weights_alone(tmp_path):
    model, other = network(), network()
    path = tmp_path / "weights.safetensors"
    model.save_weights(path)
    with pytest.raises(WeftError, match="load_weights"):
        keras.models.load_model(path)
    names = dict(zip(other.state_dict(), model.state_dict(), strict=True))
    assert len(names) == len(model.state_dict())
    same = keras.models.model_from_json(model.to_json(), {"doubled": doubled})
    same.load_weights(path)
    np.testing.assert_array_equal(same.get_weights()[0], model.get_weights()[0])


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "theirs.keras"
    path.write_bytes(b"PK\x03\x04 and more")
    with pytest.raises(WeftError, match="written by Keras itself"):
        keras.models.load_model(path)
    with pytest.raises(WeftError, match="no file"):
        keras.models.load_model(tmp_path / "nothing")
    with pytest.raises(WeftError, match="text of to_json"):
        keras.models.model_from_json("{")
    with pytest.raises(WeftError, match="'class_name'"):
        keras.models.model_from_json("{}")
    unknown = json.dumps(
        {"class_name": "Sequential", "config": {"layers": [{"class_name": "Dens", "config": {}}]}}
    )
    with pytest.raises(WeftError, match="no layer 'Dens'"):
        keras.models.model_from_json(unknown)


def test_models_of_the_users_need_a_configuration(tmp_path):
    class Own(keras.Model):
        """Without get_config."""

        def call(self, x):
            """Return x."""
            return x

    with pytest.raises(WeftError, match="get_config"):
        Own().save(tmp_path / "own")
    fresh = keras.models.clone_model(keras.Sequential([layers.Dense(2, input_shape=(3,))]))
    assert fresh.output_shape == (None, 2)
