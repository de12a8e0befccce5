"""Summaries in plain loops, graphs, loops of graphs, jitted functions and training; read back."""

from __future__ import annotations

import sys
import zlib

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from weft.viz.summary_images import as_image, encoded_png, side_by_side

pytest.importorskip("tensorboardX")


def scalars(folder):
    return [(r.step, r.name, r.value) for r in wf.summary.read(folder) if r.kind == "scalar"]


# -- plain loops -----------------------------------------------------------------------------------


def test_plain_loops(tmp_path):
    with wf.summary.writer(tmp_path) as writer:
        for writer.step in range(3):
            wf.summary.scalar("train/loss", wf.tensor(0.5 * writer.step))
        wf.summary.scalar("epoch", 7, step=100)
        wf.summary.histogram("weights", wf.arange(10.0))
        wf.summary.text("note", "**bold**")
    found = wf.summary.read(tmp_path)
    assert [(r.step, r.name, r.kind) for r in found] == [
        (0, "train/loss", "scalar"),
        (1, "train/loss", "scalar"),
        (2, "train/loss", "scalar"),
        (100, "epoch", "scalar"),
        (2, "weights", "histogram"),
        (2, "note", "text"),
    ]
    assert [r.value for r in found[:4]] == [0.0, 0.5, 1.0, 7.0]
    counted = found[4].value
    assert (counted.num, counted.min, counted.max, counted.sum) == (10, 0, 9, 45)
    assert sum(counted.bucket) == 10
    assert found[5].value == "**bold**"


def test_nothing_happens_without_a_writer():
    wf.summary.scalar("loss", 1.0)
    assert wf.summary.current_writer() is None


def test_writers_inside_of_writers(tmp_path):
    with wf.summary.writer(tmp_path / "a"):
        with wf.summary.writer(tmp_path / "b"):
            wf.summary.scalar("x", 1)
        wf.summary.scalar("x", 2)
    assert scalars(tmp_path / "a") == [(0, "x", 2.0)]
    assert scalars(tmp_path / "b") == [(0, "x", 1.0)]


def test_tensorboardx_names(tmp_path):
    writer = wf.summary.SummaryWriter(tmp_path)
    writer.add_scalar("a b", np.float32(2), 3)
    writer.add_histogram("h", np.array([1.0, np.nan, np.inf]), 3)
    writer.add_text("t", "x", 3)
    with wf.Graph() as graph:
        wf.placeholder((), wf.float32)
    writer.add_graph(graph)
    writer.flush()
    writer.close()
    writer.close()
    found = wf.summary.read(tmp_path)
    assert found[0][:3] == (3, "a_b", "scalar")
    assert found[1].value.num == 1  # the others are not finite
    with pytest.raises(ArgumentError, match="is closed"):
        writer.scalar("a", 1)


# -- images ----------------------------------------------------------------------------------------


def decoded(png):
    """Return the pixels of a PNG that encoded_png wrote."""
    width, height = (int.from_bytes(png[i : i + 4], "big") for i in (16, 20))
    start = png.index(b"IDAT") + 4
    length = int.from_bytes(png[start - 8 : start - 4], "big")
    lines = np.frombuffer(zlib.decompress(png[start : start + length]), np.uint8)
    return lines.reshape(height, -1)[:, 1:].reshape(height, width, -1)


def test_images(tmp_path):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 255, (3, 4, 5)).astype(np.uint8)
    with wf.summary.writer(tmp_path):
        wf.summary.image("bytes", picture)
        wf.summary.image("floats", wf.tensor(picture / 255.0))
        wf.summary.image("grey", wf.rand(6, 7))
        wf.summary.image("many", np.zeros((5, 1, 4, 4)), layout="NCHW")
    found = {r.name: decoded(r.value) for r in wf.summary.read(tmp_path)}
    np.testing.assert_array_equal(found["bytes"], picture.transpose(1, 2, 0))
    np.testing.assert_array_equal(found["floats"], found["bytes"])
    assert found["grey"].shape == (6, 7, 1)
    assert found["many"].shape == (4 * 2 + 2, 4 * 3 + 4, 1)


def test_pictures_and_their_layouts():
    assert as_image(np.ones((2, 3, 4)), "HWC", "x").shape == (2, 3, 4)
    assert as_image(np.ones((2, 2), bool), None, "x").max() == 255
    assert as_image(np.array([[np.nan, 2.0]]), None, "x").ravel().tolist() == [0, 255]
    assert side_by_side(np.ones((1, 2, 2, 1), np.uint8)).shape == (2, 2, 1)
    assert encoded_png(np.zeros((1, 1, 2), np.uint8)).startswith(b"\x89PNG")
    for bad in (np.ones(3), np.ones((5, 2, 2)), np.ones((2, 0)), np.array([["a"]])):
        with pytest.raises(ArgumentError, match="x: "):
            as_image(bad, None, "x")
    with pytest.raises(ArgumentError, match="layout 'WH'"):
        as_image(np.ones((2, 2)), "WH", "x")


# -- programs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False])
def test_graphs_write_once_in_each_run_and_in_order(tmp_path, compiled):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = x * 2
        wf.summary.scalar("first", y.sum())
        z = wf.cond(y.sum() > 6, lambda: _told("large", y), lambda: _told("small", -y))
        wf.summary.histogram("z", z, wf.tensor(70) + 7)
        wf.gradients(z.sum(), x)
    session = wf.Session(graph, compiled=compiled)
    with wf.summary.writer(tmp_path) as writer:
        for writer.step in range(1, 4):
            session.run(z, {x: np.full(3, writer.step, np.float32)})
    names = [(r.step, r.name) for r in wf.summary.read(tmp_path)]
    assert names == [
        *((1, "first"), (1, "small"), (77, "z")),
        *((2, "first"), (2, "large"), (77, "z")),
        *((3, "first"), (3, "large"), (77, "z")),
    ]
    session.run(z, {x: np.ones(3, np.float32)})  # nobody listens any more
    assert len(wf.summary.read(tmp_path)) == 9


def _told(name, y):
    wf.summary.scalar(name, y.mean())
    return y


def test_loops_of_graphs_write_in_each_trip(tmp_path):
    def body(state):
        i, x = state
        wf.summary.scalar("x", x, i)
        return i + 1, x * 2

    with wf.Graph() as graph:
        start = wf.placeholder((), wf.float32)
        _, end = wf.while_loop(lambda s: s[0] < 4, body, (wf.tensor(0), start))
    with wf.summary.writer(tmp_path):
        wf.Session(graph).run(end, {start: 1.0})
    assert scalars(tmp_path) == [(i, "x", 2.0**i) for i in range(4)]


def test_jitted_functions_write_in_each_call(tmp_path):
    layer = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(layer.parameters(), lr=0.1)

    @wf.jit
    def step(x):
        optimizer.zero_grad()
        loss = (layer(x) ** 2).mean()
        wf.summary.scalar("loss", loss)
        loss.backward()
        optimizer.step()
        return loss

    with wf.summary.writer(tmp_path) as writer:
        returned = []
        for writer.step in range(5):
            returned.append(float(step(wf.ones(4, 3))))
    found = scalars(tmp_path)
    assert [r[0] for r in found] == list(range(5))
    np.testing.assert_allclose([r[2] for r in found], returned, rtol=1e-6)


def test_examples_of_a_batch_have_names_of_their_own(tmp_path):
    def told(x):
        wf.summary.scalar("x", x * 2)
        return x

    with wf.summary.writer(tmp_path):
        wf.vmap(told)(wf.tensor([1.0, 2.0]))
    assert scalars(tmp_path) == [(0, "x/0", 2.0), (0, "x/1", 4.0)]


# -- training --------------------------------------------------------------------------------------


@pytest.mark.parametrize("compile", [True, False])
def test_a_trainer_gives_summaries_of_the_network_its_iterations(tmp_path, compile):
    class Net(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = wf.nn.Linear(2, 1)

        def forward(self, x):
            h = self.layer(x)
            wf.summary.scalar("mean", h.mean())
            return h

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 2)).astype(np.float32), np.zeros((8, 1), np.float32)
    net = Net()
    data = wf.data.DataLoader(wf.data.TensorDataset(wf.tensor(x), wf.tensor(y)), batch_size=4)
    updater = wf.train.Updater(
        net, wf.optim.SGD(net.parameters(), lr=0.1), wf.nn.MSELoss(), data, compile=compile
    )
    trainer = wf.train.Trainer(updater, stop=(2, "epoch"), out=tmp_path)
    trainer.extend(wf.train.TensorBoard())
    trainer.run()
    found = scalars(tmp_path / "tensorboard")
    assert [r[0] for r in found if r[1] == "mean"] == [1, 2, 3, 4]
    assert [r[0] for r in found if r[1] == "train/loss"] == [1, 2, 3, 4]
    assert wf.summary.current_writer() is None


# -- mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_explained(tmp_path, monkeypatch):
    with wf.summary.writer(tmp_path) as writer:
        for name in ("", 3):
            with pytest.raises(ArgumentTypeError, match="a name must be a string"):
                wf.summary.scalar(name, 1.0)
        with pytest.raises(ArgumentError, match=r"takes one number.*\(3,\)"):
            wf.summary.scalar("x", wf.ones(3))
        with pytest.raises(ArgumentTypeError, match="takes numbers"):
            wf.summary.histogram("x", ["a"])
        for bins in (0, "twelve", [2.0, 1.0]):
            with pytest.raises(ArgumentError, match="bins must be a number of bins"):
                wf.summary.histogram("x", wf.ones(3), bins=bins)
        with pytest.raises(ArgumentTypeError, match="takes a string"):
            wf.summary.text("x", 3)
        with pytest.raises(ArgumentError, match="must be"):
            wf.summary.image("x", np.ones(3))
        with pytest.raises(TypeError, match="step"):
            writer.scalar("x", 1.0, "late")
    with pytest.raises(ArgumentTypeError, match="folder must be a path"):
        wf.summary.writer(3)
    with pytest.raises(ArgumentError, match="no event files"):
        wf.summary.read(tmp_path / "empty")
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "weft\[tensorboard\]"'):
        wf.summary.writer(tmp_path)


def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
    with wf.summary.writer(tmp_path):
        for i in range(5):
            wf.summary.scalar("x", i, i)
    (path,) = tmp_path.glob("events*")
    path.write_bytes(path.read_bytes()[:-7])
    assert len(wf.summary.read(tmp_path)) == 4
