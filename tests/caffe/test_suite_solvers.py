"""Caffe's own solvers, unmodified: LeNet on MNIST, the nets of CIFAR-10 on made-up images.

WEFT_CAFFE_SUITE is a folder with Caffe's `examples` in it, WEFT_MNIST one with the four files of
MNIST; what is not there is not run. With --long LeNet trains to its end.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.caffe.inputs.writing import mean_of_database, write_arrays, write_hdf5_list, write_mean
from weft.caffe.message import NetParameter, SolverParameter
from weft.caffe.solver import Solver
from weft.caffe.solver_log import Silence
from weft.caffe.text import print_message, read_message_file
from weft.data import read_idx

from .suite import MNIST, SUITE, needs_mnist, needs_suite

LENET = "examples/mnist/lenet_solver.prototxt"
SOME = ["quick_solver", "full_solver"]
OTHERS = ["quick_solver_lr1", "full_solver_lr1", "full_solver_lr2", "full_sigmoid_solver"]
OTHERS += ["full_sigmoid_solver_bn"]
CIFAR = [*SOME, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]

pytestmark = needs_suite


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with Caffe's examples in it."""
    shutil.copytree(SUITE / "examples", tmp_path / "examples")
    for path in tmp_path.rglob("*"):
        path.chmod(0o755)
    (tmp_path / "examples").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digits(split: str, most: int | None = None) -> tuple[Any, Any]:
    images = read_idx(MNIST / f"{split}-images-idx3-ubyte.gz")
    return images[:most], read_idx(MNIST / f"{split}-labels-idx1-ubyte.gz")[:most]


def databases(most: int | None = None) -> None:
    write_arrays("examples/mnist/mnist_train_lmdb", *digits("train", most))
    write_arrays("examples/mnist/mnist_test_lmdb", *digits("t10k", most))


def as_hdf5(most: int | None = None) -> None:
    """Let LeNet read HDF5 files: its net with the data layers replaced, all else as it is."""
    net = read_message_file("examples/mnist/lenet_train_test.prototxt", NetParameter)
    for layer, split in zip(net.layer[:2], ("train", "t10k"), strict=True):
        images, labels = digits(split, most)
        source = f"examples/mnist/{split}.txt"
        write_hdf5_list(source, images[:, None].astype(np.float32) * np.float32(1 / 256), labels)
        size = layer.data_param.batch_size
        layer.type = "HDF5Data"
        layer.clear("data_param")
        layer.clear("transform_param")
        layer.hdf5_data_param.source, layer.hdf5_data_param.batch_size = source, size
    Path("examples/mnist/lenet_train_test.prototxt").write_text(print_message(net))


SOURCES = {"LMDB": databases, "HDF5": as_hdf5}


@needs_mnist
@pytest.mark.parametrize("source", SOURCES)
def test_lenet_learns(work: Path, source: str) -> None:
    SOURCES[source](1000)
    param = read_message_file(LENET, SolverParameter)
    param.random_seed = 1
    solver = Solver(param, log=Silence())
    before = solver.test()
    solver.step(60)
    after = solver.test()
    assert before["accuracy"] < 0.3
    assert after["accuracy"] > 0.7
    assert after["loss"] < 1.0


@needs_mnist
@pytest.mark.long
@pytest.mark.parametrize("source", SOURCES)
def test_lenet_reaches_ninety_nine_percent(work: Path, source: str) -> None:
    SOURCES[source]()
    solver = Solver(LENET)
    solver.solve()
    accuracy = float(solver.test()["accuracy"])
    print(f"LeNet, {source}: {accuracy:.4f}")
    assert accuracy >= 0.99
    assert (work / "examples/mnist/lenet_iter_10000.solverstate").exists()


@needs_mnist
@pytest.mark.long
@pytest.mark.parametrize("name", ["multistep_solver", "adadelta_solver", "solver_rmsprop"])
def test_other_solvers_of_lenet(work: Path, name: str) -> None:
    databases(500)
    solver = Solver(f"examples/mnist/lenet_{name}.prototxt", log=Silence())
    before = solver.test()["loss"]
    solver.step(40)
    assert solver.test()["loss"] < 0.8 * before


@needs_mnist
def test_the_consolidated_solver_has_two_test_nets(work: Path) -> None:
    databases(600)
    solver = Solver("examples/mnist/lenet_consolidated_solver.prototxt", log=Silence())
    assert [net.network.phase for net in solver.test_nets] == [1, 1]
    solver.step(30)
    on_test, on_train = (solver.test_nets[i].forward() for i in (0, 1))
    assert on_test.keys() == on_train.keys() == {"accuracy", "loss"}


def made_up_images(count: int) -> tuple[Any, Any]:
    """Return images whose class is the place of a bright square."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, count)
    images = rng.integers(0, 80, (count, 3, 32, 32), np.uint8)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = divmod(label, 5)
        image[label % 3, 16 * row : 16 * row + 12, 6 * column : 6 * column + 6] += 150
    return images, labels


@pytest.mark.parametrize("name", CIFAR)
def test_nets_of_cifar_learn(work: Path, name: str, request: pytest.FixtureRequest) -> None:
    count = 3000 if request.config.getoption("--long") else 300
    steps = 200 if request.config.getoption("--long") else 4
    for split in ("train", "test"):
        write_arrays(f"examples/cifar10/cifar10_{split}_lmdb", *made_up_images(count))
    mean = mean_of_database("examples/cifar10/cifar10_train_lmdb")
    write_mean("examples/cifar10/mean.binaryproto", mean)
    solver = Solver(f"examples/cifar10/cifar10_{name}.prototxt", log=Silence())
    before = [blob.value.detach().numpy().copy() for blob in solver.blobs]
    solver.step(steps)
    loss = float(solver.net.blobs["loss"].data)
    assert np.isfinite(loss)
    moved = [
        np.abs(b.value.detach().numpy() - old).max()
        for b, old in zip(solver.blobs, before, strict=True)
    ]
    assert all(change > 0 for change, blob in zip(moved, solver.blobs, strict=True) if blob.lr_mult)
    if steps > 100 and "lr" not in name and "sigmoid" not in name:
        assert loss < 1.5  # from 2.3
