"""Dense, Embedding, activations, Dropout, Lambda, and layers of the user's."""

import numpy as np
import pytest

import weft as wf
from weft import keras, nn
from weft.core.errors import WeftError
from weft.keras import layers


def test_dense_is_a_linear_layer_with_the_kernel_of_inputs_by_units():
    layer = layers.Dense(3, activation="relu")
    x = np.arange(8.0, dtype="f").reshape(2, 4) - 4
    layer(x)
    kernel = np.linspace(-1, 1, 12, dtype="f").reshape(4, 3)
    layer.set_weights([kernel, np.array([1, 2, 3], "f")])
    expected = np.maximum(x @ kernel + np.array([1, 2, 3], "f"), 0)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-6)
    plain = nn.Linear(4, 3)
    plain.load_state_dict({"weight": kernel.T, "bias": np.array([1, 2, 3], "f")})
    np.testing.assert_array_equal(
        layer(x).detach().numpy(), wf.relu(plain(wf.tensor(x))).detach().numpy()
    )
    np.testing.assert_array_equal(layer.get_weights()[0], kernel)


def test_dense_begins_with_glorot_draws_and_zeros():
    layer = layers.Dense(200)
    layer.build_once((None, 100))
    kernel, bias = layer.get_weights()
    limit = np.sqrt(6 / 300)
    assert 0.98 * limit < abs(kernel).max() <= limit
    assert not bias.any()


def test_weights_are_asked_for_before_there_are_any():
    with pytest.raises(WeftError, match="no weights yet"):
        layers.Dense(3).get_weights()
    layer = layers.Dense(3)
    layer(np.zeros((1, 2)))
    with pytest.raises(WeftError, match="has 2 weights"):
        layer.set_weights([np.zeros((2, 3))])
    with pytest.raises(WeftError, match=r"'kernel' has the shape \(2, 3\)"):
        layer.set_weights([np.zeros((3, 2)), np.zeros(3)])


@pytest.mark.parametrize("name", sorted(keras.activations.ACTIVATIONS))
def test_every_activation_runs_by_name(name):
    x = wf.tensor([[-2.0, 0.5, 1.0]])
    made = layers.Activation(name)(x)
    assert made.shape == (1, 3)
    assert keras.activations.serialize(keras.activations.get(name)) == name


def test_activations_have_the_defaults_of_keras():
    x = np.array([[-1.0, 2.0]], "f")
    np.testing.assert_allclose(layers.LeakyReLU()(x).numpy(), [[-0.3, 2.0]], rtol=1e-6)
    np.testing.assert_allclose(layers.Activation("leaky_relu")(x).numpy(), [[-0.2, 2.0]], rtol=1e-6)
    np.testing.assert_allclose(layers.ReLU(max_value=1.0)(x).numpy(), [[0.0, 1.0]])
    three = layers.Softmax()(np.zeros((1, 2, 4), "f")).numpy()
    np.testing.assert_allclose(three, np.full((1, 2, 4), 0.25))
    with pytest.raises(WeftError, match="did you mean 'relu'"):
        layers.Dense(1, activation="relo")


def test_dropout_acts_in_training_alone():
    layer = layers.Dropout(0.5)
    x = np.ones((100, 10), "f")
    assert (layer(x).numpy() == 1).all()
    made = layer(x, training=True).numpy()
    assert set(np.unique(made)) == {0.0, 2.0}
    assert not layer.training


def test_embedding_takes_rows():
    layer = layers.Embedding(5, 2)
    table = np.arange(10.0, dtype="f").reshape(5, 2)
    layer.set_weights([table])
    np.testing.assert_array_equal(layer(np.array([[1, 4]])).detach().numpy(), table[[[1, 4]]])
    assert abs(layers.Embedding(100, 9).get_weights()[0]).max() <= 0.05
    with pytest.raises(WeftError, match="mask_zero"):
        layers.Embedding(5, 2, mask_zero=True)


class Scaled(layers.Layer):
    """A layer of the user's, with a weight and a count."""

    def __init__(self, start=2.0, **options):
        super().__init__(**options)
        self.start = start

    def build(self, input_shape):
        """Make the weights."""
        start = keras.initializers.Constant(self.start)
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer=start, name="factor")
        self.add_weight(shape=(), initializer="zeros", trainable=False, name="count")
        super().build(input_shape)

    def call(self, inputs, training=None):
        """Scale."""
        return inputs * self.factor if training else inputs * self.factor + 1.0


def test_layers_of_the_users_have_weights_and_modes():
    layer = Scaled(3.0)
    x = np.ones((1, 2), "f")
    np.testing.assert_array_equal(layer(x).detach().numpy(), [[4, 4]])
    np.testing.assert_array_equal(layer(x, training=True).detach().numpy(), [[3, 3]])
    assert [w.name for w in layer.trainable_weights] == ["factor"]
    assert [w.name for w in layer.non_trainable_weights] == ["count"]
    assert set(layer.state_dict()) == {"factor", "count"}
    layer.trainable = False
    assert not layer.trainable_weights


def test_lists_of_layers_are_found():
    class Deep(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [layers.Dense(3), layers.Dense(2)]

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    model = Deep()
    assert model(np.zeros((4, 5), "f")).shape == (4, 2)
    assert len(list(model.parameters())) == 4
    model.compile("sgd", "mse", jit_compile=True)
    history = model.fit(np.ones((8, 5)), np.zeros((8, 2)), epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


def test_options_that_are_not_served_say_what_to_use():
    with pytest.raises(TypeError, match="weight_decay"):
        layers.Dense(3, kernel_regularizer="l2")
    with pytest.raises(TypeError, match="the option unit=3"):
        layers.Dense(2, unit=3)
    with pytest.raises(AttributeError, match="packed sequences"):
        _ = layers.Masking
    with pytest.raises(AttributeError, match="Dense"):
        _ = layers.Dens
    with pytest.raises(WeftError, match="units"):
        layers.Dense(0)
    with pytest.raises(WeftError, match="without dots"):
        layers.Dense(3, name="a.b")


def test_lambda_applies_a_function():
    layer = layers.Lambda(lambda x, by: x * by, arguments={"by": 3.0})
    np.testing.assert_array_equal(layer(np.ones((1, 2), "f")).numpy(), [[3, 3]])
    with pytest.raises(WeftError, match="named function"):
        layer.get_config()
