"""compile, fit, evaluate, predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.train.helpers import Affine, squared_error
from weft.core.errors import WeftError
from weft.data import DataLoader, TensorDataset
from weft.nn import Module
from weft.nn import functional as F
from weft.optim import SGD, Adam
from weft.train import Checkpoint, Log, Trainer, Updater, keras
from weft.train.callbacks import Callback, LambdaCallback
from weft.train.losses import LOSSES, get_loss
from weft.train.optimizers import OPTIMIZERS, get_optimizer

RNG = np.random.default_rng(4)
X = RNG.normal(size=(50, 3))
Y = X @ np.array([[1.0, -1.0], [2.0, 0.0], [0.5, 1.0]])
LABELS = Y.argmax(1)


def fitted(epochs: int = 2, optimizer: Any = "sgd", loss: Any = "mse", **options: Any) -> Any:
    model = Affine()
    keras.compile(model, optimizer, loss, metrics=options.pop("metrics", None))
    data = options.pop("data", (X, Y))
    history = keras.fit(model, *data, epochs=epochs, verbose=0, seed=9, **options)
    return model, history


def state(model: Module) -> list[Any]:
    return [value.tolist() for value in model.state_dict().values()]


def test_loop_trainer_and_fit_give_the_same_bits() -> None:
    x, y = X.astype("float32"), Y.astype("float32")

    def make_loader() -> DataLoader:
        return DataLoader(TensorDataset(x, y), 32, shuffle=True, seed=9)

    by_hand = Affine()
    optimizer = Adam(by_hand.parameters())
    loader = make_loader()
    for _ in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.mse_loss(by_hand(a), b).backward()
            optimizer.step()
    trained = Affine()
    updater = Updater(trained, Adam(trained.parameters()), F.mse_loss, make_loader())
    Trainer(updater, stop=(3, "epoch"), out=None).run()
    model, _ = fitted(3, "adam")
    assert state(by_hand) == state(trained) == state(model)


def test_history() -> None:
    _, history = fitted(3, metrics=["mae"], validation_split=0.2)
    assert history.epoch == [0, 1, 2]
    assert set(history.history) == {"loss", "mae", "val_loss", "val_mae"}
    assert history.history["loss"][2] < history.history["loss"][0]


def test_validation_split_takes_the_last_samples_before_shuffling() -> None:
    one, first = fitted(2, validation_split=0.3)
    kept = 35  # floor(50 * (1 - 0.3))
    two, second = fitted(
        2, data=(X[:kept], Y[:kept]), validation_data=(X[kept:], Y[kept:]), shuffle=True
    )
    assert state(one) == state(two)
    assert first.history == second.history


def test_evaluate_and_predict() -> None:
    model, _ = fitted(metrics=["mae"])
    expected = X.astype("float32") @ model.weight.numpy() + model.bias.numpy()
    np.testing.assert_allclose(keras.predict(model, X, batch_size=7), expected, rtol=1e-5)
    loss, mae = keras.evaluate(model, X, Y, verbose=0)
    assert loss == pytest.approx(((expected - Y) ** 2).mean(), rel=1e-5)
    assert mae == pytest.approx(np.abs(expected - Y).mean(), rel=1e-5)
    found = keras.evaluate(model, X, Y, verbose=0, return_dict=True)
    assert found == {"loss": loss, "mae": mae}
    keras.compile(model, "sgd", "mse")
    assert keras.evaluate(model, X, Y, verbose=0) == loss
    assert model.training


def test_data_in_all_forms() -> None:
    expected = state(fitted()[0])
    x, y = X.astype("float32"), Y.astype("float32")
    dataset = TensorDataset(x, y)
    for data in [
        (wf.tensor(X), wf.tensor(Y)),
        (X.tolist(), Y.tolist()),
        (dataset,),
        (DataLoader(dataset, 32, shuffle=True, seed=9),),
        ({"x": X}, Y),
        ((X,), Y),
    ]:
        assert state(fitted(data=data)[0]) == expected


def test_several_inputs_and_outputs() -> None:
    class Two(Affine):
        def forward(self, a: Any, b: Any) -> Any:
            total = super().forward(a + b)
            return {"sum": total, "double": total * 2}

    model = Two()
    keras.compile(model, "sgd", lambda output, y: squared_error(output["sum"], y))
    keras.fit(model, (X, X), Y, verbose=0)
    keras.fit(model, {"a": X, "b": X}, Y, verbose=0)
    found = keras.predict(model, (X, X), batch_size=20)
    assert found["double"].shape == (50, 2)
    np.testing.assert_array_equal(found["double"], found["sum"] * 2)


def test_weights_of_samples_and_classes_follow_keras() -> None:
    weights = RNG.random(50)

    def loss_of(**options: Any) -> float:
        model = Affine()
        keras.compile(model, SGD(model.parameters(), lr=0.0), "cross_entropy")
        history = keras.fit(model, X, LABELS, batch_size=50, verbose=0, **options)
        return float(history.history["loss"][0])

    scores = X.astype("float32") @ Affine().weight.numpy()
    rows = np.log(np.exp(scores).sum(1)) - scores[np.arange(50), LABELS]
    assert loss_of() == pytest.approx(rows.mean(), rel=1e-5)
    assert loss_of(sample_weight=weights) == pytest.approx((rows * weights).mean(), rel=1e-5)
    by_class = np.where(LABELS == 1, 3.0, 1.0)
    assert loss_of(class_weight={1: 3.0}) == pytest.approx((rows * by_class).mean(), rel=1e-5)
    both = loss_of(class_weight={1: 3.0}, sample_weight=weights)
    assert both == pytest.approx((rows * by_class * weights).mean(), rel=1e-5)


def test_class_weights_of_one_hot_targets_and_loss_modules() -> None:
    model = Affine()
    module = wf.nn.CrossEntropyLoss()
    keras.compile(model, "sgd", module)
    keras.fit(model, X, np.eye(2)[LABELS], class_weight={0: 2.0}, verbose=0)
    assert module.reduction == "mean"
    keras.compile(model, "sgd", lambda output, target: output.mean())
    with pytest.raises(WeftError, match="one number for each of the 32 samples"):
        keras.fit(model, X, LABELS, class_weight={0: 2.0}, verbose=0)


def test_optimizer_lives_on_between_fits() -> None:
    model, _ = fitted(1, "adam")
    first = model.optimizer
    keras.fit(model, X, Y, verbose=0)
    assert model.optimizer is first
    assert first.t == 4
    keras.compile(model, "adam", "mse")
    keras.fit(model, X, Y, verbose=0)
    assert model.optimizer is not first


def test_initial_epoch_and_steps() -> None:
    _, history = fitted(5, initial_epoch=3)
    assert history.epoch == [3, 4]
    assert fitted(3, initial_epoch=3)[1].epoch == []
    model, history = fitted(3, "adam", steps_per_epoch=1)
    assert model.optimizer.t == 3
    assert len(history.epoch) == 3
    _, history = fitted(4, validation_split=0.5, validation_freq=2, validation_steps=1)
    assert len(history.history["val_loss"]) == 2


def test_generator_with_steps() -> None:
    def forever() -> Any:
        while True:
            yield X[:8].astype("float32"), Y[:8].astype("float32")

    model, history = fitted(2, data=(forever(),), steps_per_epoch=3)
    assert len(history.epoch) == 2
    assert keras.predict(model, forever(), steps=2).shape == (16, 2)
    assert keras.evaluate(model, forever(), steps=1, verbose=0) > 0


def test_lazy_layers_learn_their_sizes() -> None:
    model = wf.nn.Sequential(wf.nn.LazyLinear(4), wf.nn.ReLU(), wf.nn.LazyLinear(2))
    keras.compile(model, "adam", "mse")
    keras.fit(model, X, Y, verbose=0)
    assert keras.predict(model, X).shape == (50, 2)


def test_lines_and_bars(capsys: Any) -> None:
    model = Affine()
    keras.compile(model, "sgd", "mse", ["mae"])
    keras.fit(model, X, Y, epochs=2, validation_split=0.1)
    keras.evaluate(model, X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" - ")[0] for line in lines[:2]] == ["Epoch 1/2", "Epoch 2/2"]
    assert lines[0].count(":") == 4
    assert lines[2].startswith("loss: ")


def test_extensions_as_callbacks(tmp_path: Path) -> None:
    extensions = [Log(console=False), Checkpoint()]
    fitted(2, callbacks=extensions, out=tmp_path)
    assert (tmp_path / "log.jsonl").is_file()
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_order_of_events() -> None:
    class Recorder(Callback):
        def __init__(self) -> None:
            self.events: list[str] = []

        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_"):
                events = object.__getattribute__(self, "events")
                return lambda *args: events.append(name.removeprefix("on_"))
            return object.__getattribute__(self, name)

    recorder = Recorder()
    model, _ = fitted(1, validation_split=0.2, callbacks=[recorder])
    batch = ["train_batch_begin", "train_batch_end"]
    assert recorder.events == [
        "train_begin", "epoch_begin", *batch, *batch, "test_begin", "test_end", "epoch_end",
        "train_end",
    ]  # fmt: skip
    assert recorder.model is model
    assert recorder.params == {"epochs": 1, "steps": 2, "verbose": 0}
    recorder.events.clear()
    keras.predict(model, X, callbacks=[recorder])
    keras.evaluate(model, X, Y, verbose=0, callbacks=recorder)
    assert recorder.events == ["predict_begin", "predict_end", "test_begin", "test_end"]


def test_callbacks_listen_to_batches_by_whatever_they_have() -> None:
    heard: list[Any] = []

    class Late(Callback):
        """Listens from the beginning of training on."""

        def on_train_begin(self, logs: Any = None) -> None:
            self.on_train_batch_begin = lambda batch, logs: heard.append(("late", batch))  # type: ignore[method-assign]  # as users do

    given = LambdaCallback(on_train_batch_end=lambda batch, logs: heard.append((batch, [*logs])))
    fitted(1, batch_size=8, callbacks=[Late(), given, LambdaCallback()])
    assert heard[:2] == [("late", 0), (0, ["loss", "size"])]
    assert len(heard) == 2 * -(-len(X) // 8)


def test_validation_needs_targets() -> None:
    with pytest.raises(WeftError, match=r"takes \(x, y\).*Received: an array of shape \(50, 3\)"):
        fitted(1, validation_data=X)
    loader = wf.data.DataLoader(wf.data.TensorDataset(wf.tensor(X)), batch_size=8)
    with pytest.raises(WeftError, match="nothing to evaluate: the loader gave batches without tar"):
        fitted(1, validation_data=loader)


@pytest.mark.parametrize(
    ("given", "described"),
    [
        ((X,), "a tuple of 1 item$"),
        ([X], "a list of 1 item$"),
        (((X, Y),), "a tuple of 1 item$"),
        ((), "a tuple of 0 items"),
        ((X, Y, None, None), "a tuple of 4 items"),
        (X.tolist(), "a list of 50 items"),
        ((X, None), "a tuple whose second item, the targets, is None"),
        ((None, None), "a tuple whose second item, the targets, is None"),
        ({"x": X, "y": Y}, "a dict with the keys 'x', 'y', without targets"),
        (3, "3$"),
        ("data", "'data'$"),
    ],
)
def test_errors_of_validation_data_say_what_was_given(given: Any, described: str) -> None:
    expected = (
        r"validation_data takes \(x, y\), \(x, y, weights\), a dataset or a loader. Received: "
    )
    with pytest.raises(TypeError, match=expected + described):
        fitted(1, validation_data=given)


def test_validation_takes_lists_datasets_and_loaders() -> None:
    dataset = wf.data.TensorDataset(wf.tensor(X), wf.tensor(Y))
    loader = wf.data.DataLoader(dataset, batch_size=8)
    for given in ([X, Y], (X, Y, None), dataset, loader):
        assert "val_loss" in fitted(1, validation_data=given)[1].history


def test_methods_of_module() -> None:
    class Own(Affine):
        pass

    keras.attach(Own)
    model: Any = Own()
    model.compile("sgd", "mse")
    assert model.fit(X, Y, verbose=0).epoch == [0]
    assert model.evaluate(X, Y, verbose=0) > 0
    assert model.predict(X).shape == (50, 2)


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n not in ("sparseadam", "muon")])
@pytest.mark.filterwarnings("ignore:.*LBFGS steps by values")  # so it runs eagerly
def test_every_optimizer_by_name(name: str) -> None:
    fitted(1, name)


@pytest.mark.parametrize("name", ["SparseAdam", "Muon"])
def test_optimizers_of_rows_or_of_matrices_alone_say_so(name: str) -> None:
    with pytest.raises(wf.WeftError, match=name):
        fitted(1, name.lower())


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].traits])
def test_every_loss_by_name_with_and_without_weights(name: str) -> None:
    output = wf.tensor([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    by_class = "classes" in LOSSES[name].traits
    target = wf.tensor([1, 0, 1]) if by_class else wf.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    loss = get_loss(name)
    plain = loss(output, target).item()
    assert loss(output, target, wf.ones(3)).item() == pytest.approx(plain, rel=1e-6)
    assert loss(output, target, wf.tensor([2.0, 2.0, 2.0])).item() == pytest.approx(
        2 * plain, rel=1e-6
    )


def test_a_loss_that_reports_its_parts_by_name() -> None:
    model = wf.nn.models.VAE((4,), latent=2, hidden=(3,))
    keras.compile(model, "adam", "vae")
    x = RNG.uniform(size=(6, 4))
    history = keras.fit(model, x, x, verbose=0).history
    assert history["loss"][0] == pytest.approx(history["reconstruction"][0] + history["kl"][0])


def test_crossentropy_of_keras_takes_probabilities() -> None:
    output = wf.tensor([[0.2, 0.8], [0.6, 0.4]])
    expected = -np.log([0.8, 0.6]).mean()
    for name in ("sparse_categorical_crossentropy", "categorical_crossentropy"):
        assert get_loss(name)(output, wf.tensor([1, 0])).item() == pytest.approx(expected)
        hot = wf.tensor([[0.0, 1.0], [1.0, 0.0]])
        assert get_loss(name)(output, hot).item() == pytest.approx(expected)
    assert np.isfinite(get_loss(name)(wf.tensor([[0.0, 1.0]]), wf.tensor([0])).item())


def test_columns_beside_vectors() -> None:
    output = wf.tensor([[1.0], [2.0]])
    assert get_loss("mse")(output, wf.tensor([1.0, 4.0])).item() == 2.0
    assert get_loss("mse")(output.reshape(2), wf.tensor([[1], [4]])).item() == 2.0
    logits = wf.tensor([[1.0, 2.0], [2.0, 1.0]])
    flat = get_loss("cross_entropy")(logits, wf.tensor([1, 0]))
    assert get_loss("cross_entropy")(logits, wf.tensor([[1], [0]])).item() == flat.item()
    positions = logits.reshape(2, 2, 1)  # one label for each place, not a column
    assert get_loss("cross_entropy")(positions, wf.tensor([[1], [0]])).item() == flat.item()
    with pytest.raises(WeftError, match=r"one shape. Received: \(2, 3\) and \(3, 2\)"):
        get_loss("mse")(wf.zeros(2, 3), wf.zeros(3, 2))


# -- arguments -----------------------------------------------------------------------------------


def compiled() -> Affine:
    model = Affine()
    keras.compile(model, "sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: keras.fit(Affine(), X, Y), "say first how the model is trained"),
        (lambda: keras.compile(Affine(), "sgd"), "compile needs a loss"),
        (lambda: keras.compile(Affine(), "adm", "mse"), "no optimizer 'adm'; did you mean 'adam'"),
        (lambda: keras.compile(Affine(), 3, "mse"), "an optimizer is a name"),
        (lambda: keras.compile(Affine(), "sgd", "msee"), "no loss 'msee'; did you mean 'mse'"),
        (lambda: keras.compile(Affine(), "sgd", 3), "a loss is a name"),
        (lambda: keras.compile(Affine(), "sgd", "mse", ["acuracy"]), "did you mean 'accuracy'"),
        (lambda: get_optimizer(lambda p: 3, Affine()), "must return an Optimizer"),
        (lambda: keras.fit(compiled(), None), "there is no data: x is None"),
        (lambda: keras.fit(compiled(), X), "training needs targets"),
        (lambda: keras.fit(compiled(), X, Y[:-1]), "same number of samples"),
        (lambda: keras.fit(compiled(), X[:0], Y[:0]), "there are no samples"),
        (lambda: keras.fit(compiled(), 3.0, Y), "needs a first dimension"),
        (lambda: keras.fit(compiled(), np.array(["a"]), Y[:1]), "must be real numbers"),
        (lambda: keras.fit(compiled(), X, Y, epochs=-1), "epochs must be an integer from 0"),
        (lambda: keras.fit(compiled(), X, Y, epochs="2"), "epochs must be an integer"),
        (lambda: keras.fit(compiled(), X, Y, batch_size=-1), "batch_size"),
        (lambda: keras.fit(compiled(), X, Y, verbose=3), "verbose must be"),
        (lambda: keras.fit(compiled(), X, Y, callbacks=[print]), "callbacks must be Callback"),
        (lambda: keras.fit(compiled(), X, Y, validation_split=1.0), "between 0 and 1"),
        (lambda: keras.fit(compiled(), X[:2], Y[:2], validation_split=0.9), "one part empty"),
        (
            lambda: keras.fit(compiled(), TensorDataset(X, Y), validation_split=0.5),
            "validation_split takes arrays",
        ),
        (lambda: keras.fit(compiled(), TensorDataset(X, Y), Y), "brings its own targets"),
        (lambda: keras.fit(compiled(), X, Y, sample_weight=Y), "one number for each sample"),
        (lambda: keras.fit(compiled(), iter([(1, 2, 3, 4)])), "4 parts"),
        (lambda: keras.predict(compiled(), iter([])), "nothing to predict"),
        (
            lambda: keras.fit(compiled(), X, Y, validation_split=0.5, validation_freq=0),
            "validation_freq must be an integer from 1",
        ),
    ],
)
def test_bad_arguments(act: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        act()
