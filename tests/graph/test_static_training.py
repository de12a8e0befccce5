"""Training by sessions gives the weights that training by eager steps gives.

The same kernels run on the same values in the same order, so the weights, buffers and optimizer
states are equal to the last bit.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.tree import flatten
from weft.graph.identity.canonical import canonical_hash

F = wf.nn.functional
F32 = np.float32
STEPS = 100
RNG = np.random.default_rng(3)


# -- models: a network, its loss, and a stream of batches ------------------------------------------


class Perceptron(wf.nn.Module):
    """A classifier with two hidden layers."""

    def __init__(self):
        super().__init__()
        self.hidden = wf.nn.Linear(8, 16)
        self.second = wf.nn.Linear(16, 16)
        self.head = wf.nn.Linear(16, 4)

    def forward(self, x):
        return self.head(F.relu(self.second(self.hidden(x).tanh())))

    types = (((None, 8), wf.float32), ((None,), wf.int64))

    @staticmethod
    def batch(i):
        size = 5 + i % 3  # the batch has any size
        x = np.random.default_rng(i).standard_normal((size, 8)).astype(F32)
        return x, (np.abs(x[:, :4])).argmax(axis=1)


class Convnet(wf.nn.Module):
    """Convolution, batch normalisation, pooling, dropout."""

    def __init__(self):
        super().__init__()
        self.conv = wf.nn.Conv2d(1, 4, 3, padding=1)
        self.norm = wf.nn.BatchNorm2d(4)
        self.deep = wf.nn.Conv2d(4, 6, 3)
        self.drop = wf.nn.Dropout(0.25)
        self.head = wf.nn.Linear(6, 3)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        y = F.relu(self.deep(y)).mean(axis=(2, 3))
        return self.head(self.drop(y))

    types = (((4, 1, 8, 8), wf.float32), ((4,), wf.int64))

    @staticmethod
    def batch(i):
        rng = np.random.default_rng(i)
        return rng.standard_normal((4, 1, 8, 8)).astype(F32), rng.integers(0, 3, 4)


class LanguageModel(wf.nn.Module):
    """Predicts the next token: embedding, LSTM, projection."""

    def __init__(self):
        super().__init__()
        self.embed = wf.nn.Embedding(11, 6)
        self.lstm = wf.nn.LSTM(6, 8, batch_first=True)
        self.head = wf.nn.Linear(8, 11)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embed(tokens))
        return self.head(hidden).reshape(-1, 11)

    types = (((3, 5), wf.int64), ((15,), wf.int64))

    @staticmethod
    def batch(i):
        tokens = np.random.default_rng(i).integers(0, 11, (3, 6))
        return tokens[:, :-1], tokens[:, 1:].reshape(-1)


class AnyBatchLanguageModel(LanguageModel):
    """The same with an unknown batch."""

    types = ((("n", 5), wf.int64), ((None,), wf.int64))

    @staticmethod
    def batch(i):
        tokens = np.random.default_rng(i).integers(0, 11, (2 + i % 3, 6))
        return tokens[:, :-1], tokens[:, 1:].reshape(-1)


MODELS = [Perceptron, Convnet, LanguageModel, AnyBatchLanguageModel]
OPTIMIZERS = {
    "momentum": lambda ps: wf.optim.SGD(ps, lr=0.05, momentum=0.9),
    "adam": lambda ps: wf.optim.Adam(ps, lr=0.01),
}
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
optimizers = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


class Training:
    """A model and an optimizer, trained in either mode."""

    def __init__(self, model, make):
        wf.manual_seed(1)
        self.net = model()
        self.optimizer = make(self.net.parameters())
        self.session = None
        wf.manual_seed(2)

    def eager(self, i):
        x, t = map(wf.tensor, self.net.batch(i))
        loss = F.cross_entropy(self.net(x), t)
        self.optimizer.minimize(loss)
        return float(loss)

    def build(self):
        with wf.Graph() as graph:
            self.x, self.t = (wf.placeholder(*kind) for kind in self.net.types)
            self.loss = F.cross_entropy(self.net(self.x), self.t)
            self.train = self.optimizer.minimize(self.loss)
        self.session = wf.Session(graph)

    def static(self, i):
        if self.session is None:
            self.build()
        x, t = self.net.batch(i)
        return float(self.session.run([self.loss, self.train], {self.x: x, self.t: t})[0])

    def checkpoint(self):
        return [self.net.state_dict(), self.optimizer.state_dict(), wf.get_rng_state()]


def assert_equal(found, expected):
    leaves, structure = flatten(expected)
    for a, b in zip(structure.flatten_like(found), leaves, strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@optimizers
@models
def test_static_equals_eager(model, make):
    eager = Training(model, make)
    losses = [eager.eager(i) for i in range(STEPS)]
    expected = eager.checkpoint()
    static = Training(model, make)
    assert [static.static(i) for i in range(STEPS)] == losses
    assert_equal(static.checkpoint(), expected)
    assert np.isfinite(losses).all()
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) * 1.05


@models
def test_modes_alternate(model):
    make = OPTIMIZERS["adam"]
    eager = Training(model, make)
    for i in range(20):
        eager.eager(i)
    expected = eager.checkpoint()
    mixed = Training(model, make)
    for i in range(20):
        (mixed.static if i // 3 % 2 else mixed.eager)(i)
    assert_equal(mixed.checkpoint(), expected)


@models
def test_a_schedule_moves_the_learning_rate(model):
    checkpoints = []
    for mode in ("eager", "static"):
        training = Training(model, OPTIMIZERS["momentum"])
        schedule = wf.optim.lr.CosineAnnealingLR(training.optimizer, 20)
        for i in range(20):
            getattr(training, mode)(i)
            schedule.step()
        checkpoints.append(training.checkpoint())
    assert_equal(checkpoints[1], checkpoints[0])


@models
def test_evaluation_after_static_training(model):
    training = Training(model, OPTIMIZERS["adam"])
    for i in range(5):
        training.static(i)
    training.net.eval()
    x, _ = training.net.batch(0)
    expected = training.net(wf.tensor(x)).numpy()
    with wf.Graph() as graph:
        symbol = wf.placeholder(*training.net.types[0])
        y = training.net(symbol)
    np.testing.assert_array_equal(wf.Session(graph).run(y, {symbol: x}), expected)


# -- the order of Python does not matter -----------------------------------------------------------


def hash_of(model, *, reordered):
    """Return the canonical hash of a training graph, built in one of two orders.

    Placeholders are known by their names, everything else by what is computed.
    """
    wf.manual_seed(1)
    net = model()
    parameters = list(net.parameters())
    optimizer = wf.optim.Adam(parameters, lr=0.01)
    kind_x, kind_t = model.types
    with wf.Graph() as graph:
        if reordered:
            t = wf.placeholder(*kind_t, name="labels")
            _ = [p * 1.0 for p in reversed(parameters)]  # unused: not part of what is fetched
            x = wf.placeholder(*kind_x, name="data")
            with wf.name_scope("elsewhere"):
                y = net(x)
                loss = F.cross_entropy(y, t)
        else:
            x = wf.placeholder(*kind_x, name="data")
            t = wf.placeholder(*kind_t, name="labels")
            loss = F.cross_entropy(net(x), t)
        train = optimizer.minimize(loss)
    return canonical_hash(graph, [loss, *train.symbols])


@models
def test_the_hash_does_not_depend_on_the_order_of_statements(model):
    assert hash_of(model, reordered=False) == hash_of(model, reordered=True)


def test_the_hash_tells_models_apart():
    assert len({hash_of(model, reordered=False) for model in MODELS}) == len(MODELS)
