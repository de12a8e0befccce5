"""Epochs of one net in every face of Weft, against the plain loop with its step under `wf.jit`.

    python benchmarks/by_face.py [--rounds 9] [--threads 1]
    python benchmarks/by_face.py --net 784-512-10 --batch 64
    python benchmarks/by_face.py --net 8-8-2 --batch 4 --steps 2000    # what an iteration costs

784-1000-10 with ReLU (the sizes of Chainer's first example), mean squares, gradient descent, 120
batches of 100 an epoch, in the order of the rows; examples/by_face says such a net in each face's
words. Faces take turns epoch by epoch in one process, after one epoch in which they compile, each
between two epochs of the jitted loop. A row gives the least processor time of an epoch, the median
of its ratio to the mean of those two, and the median of the microseconds that an iteration takes
beyond theirs; the jitted loop's own row tells what that is worth. The bar is 1.05. Processor time
counts all threads, those that read data ahead too; on a machine with other work it is fairer than
the clock.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import weft as wf
import weft.chainer.functions as chainer_functions
import weft.chainer.links as chainer_links
import weft.nn.functional as F
import weft.tf1 as tf
from weft import chainer, keras, nn
from weft.caffe.inputs.writing import write_hdf5_list
from weft.caffe.message import SolverParameter
from weft.caffe.solver import Solver
from weft.caffe.solver_log import Silence
from weft.caffe.text import read_message
from weft.cli.assemble import build_run, build_updater
from weft.cli.config import read_source
from weft.data import DataLoader, TensorDataset
from weft.train import Trainer, Updater

BAR = 1.05
RATE = 0.01
Epoch = Callable[[], Any]


class Task(NamedTuple):
    """What all faces train: a net of one hidden layer, on batches of rows."""

    inputs: int
    hidden: int
    outputs: int
    batch: int
    steps: int

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(0)
        rows = self.batch * self.steps
        return rng.random((rows, self.inputs), np.float32), rng.random(
            (rows, self.outputs), np.float32
        )

    def batches(self, x: Any, y: Any) -> Any:
        for start in range(0, len(x), self.batch):
            yield x[start : start + self.batch], y[start : start + self.batch]

    def net(self) -> nn.Module:
        return nn.Sequential(
            nn.Linear(self.inputs, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.outputs)
        )


def by_jit(task: Task, x: Any, y: Any) -> Epoch:
    model = task.net()
    optimizer = wf.optim.SGD(model.parameters(), lr=RATE)

    @wf.jit
    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    def epoch() -> None:
        for inputs, targets in task.batches(x, y):
            step(wf.tensor(inputs), wf.tensor(targets)).item()

    return epoch


def by_session(task: Task, x: Any, y: Any) -> Epoch:
    model = task.net()
    with wf.Graph() as graph:
        inputs = wf.placeholder((task.batch, task.inputs), wf.float32, name="x")
        targets = wf.placeholder((task.batch, task.outputs), wf.float32, name="y")
        loss = F.mse_loss(model(inputs), targets)
        step = wf.optim.SGD(model.parameters(), lr=RATE).minimize(loss)
    session = wf.Session(graph)

    def epoch() -> None:
        for a, b in task.batches(x, y):
            session.run([loss, step], {inputs: a, targets: b})

    return epoch


def of_updater(updater: Updater, steps: int) -> Epoch:
    def epoch() -> None:
        end = (updater.iteration + steps, "iteration")
        Trainer(updater, stop=end, out=None).run()

    return epoch


def by_trainer(task: Task, x: Any, y: Any) -> Epoch:
    model = task.net()
    optimizer = wf.optim.SGD(model.parameters(), lr=RATE)
    loader = DataLoader(TensorDataset(x, y), batch_size=task.batch)
    return of_updater(Updater(model, optimizer, F.mse_loss, loader), task.steps)


CONFIG = """
loss = "mse"
data.train = {{ type = "npz", path = "data.npz" }}
data.batch_size = {task.batch}
data.shuffle = false
model.layers = [
    {{ type = "Linear", in_features = {task.inputs}, out_features = {task.hidden} }},
    {{ type = "ReLU" }},
    {{ type = "Linear", in_features = {task.hidden}, out_features = {task.outputs} }},
]
optimizer = {{ type = "sgd", lr = {rate} }}
trainer = {{ epochs = 1 }}
"""


def by_config(task: Task, x: Any, y: Any) -> Epoch:
    """Return what `weft train` runs, without the directory that it writes."""
    np.savez("data.npz", x=x, y=y)
    with open("run.toml", "w", encoding="utf-8") as file:
        file.write(CONFIG.format(task=task, rate=RATE))
    return of_updater(build_updater(build_run(read_source("run.toml", []))), task.steps)


def by_fit(task: Task, x: Any, y: Any) -> Epoch:
    model = task.net()
    model.compile(wf.optim.SGD(model.parameters(), lr=RATE), "mse")
    return lambda: model.fit(x, y, batch_size=task.batch, epochs=1, shuffle=False, verbose=0)


def by_keras(task: Task, x: Any, y: Any) -> Epoch:
    inputs = keras.Input((task.inputs,))
    hidden = keras.layers.Dense(task.hidden, activation="relu")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(task.outputs)(hidden))
    model.compile(keras.optimizers.SGD(RATE), "mse")
    return lambda: model.fit(x, y, batch_size=task.batch, epochs=1, shuffle=False, verbose=0)


class Chain(chainer.Chain):
    def __init__(self, task: Task) -> None:
        super().__init__()
        with self.init_scope():
            self.l1 = chainer_links.Linear(task.inputs, task.hidden)
            self.l2 = chainer_links.Linear(task.hidden, task.outputs)

    def forward(self, x: Any, y: Any) -> Any:
        out = self.l2(chainer_functions.relu(self.l1(x)))
        return chainer_functions.mean_squared_error(out, y)


def by_chainer(task: Task, x: Any, y: Any) -> Epoch:
    model = Chain(task)
    optimizer = chainer.optimizers.SGD(lr=RATE)
    optimizer.setup(model)

    def epoch() -> None:
        for inputs, targets in task.batches(x, y):
            optimizer.update(model, inputs, targets)

    return epoch


def by_tf1(task: Task, x: Any, y: Any) -> Epoch:
    with tf.Graph().as_default():
        inputs = tf.placeholder(tf.float32, [task.batch, task.inputs])
        targets = tf.placeholder(tf.float32, [task.batch, task.outputs])
        hidden = tf.layers.dense(inputs, task.hidden, tf.nn.relu)
        loss = tf.losses.mean_squared_error(targets, tf.layers.dense(hidden, task.outputs))
        step = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())

    def epoch() -> None:
        for a, b in task.batches(x, y):
            session.run([loss, step], feed_dict={inputs: a, targets: b})

    return epoch


SOLVER = """
net_param {{
  layer {{ name: "rows" type: "HDF5Data" top: "data" top: "label"
    hdf5_data_param {{ source: "rows.txt" batch_size: {task.batch} }} }}
  layer {{ name: "fc1" type: "InnerProduct" bottom: "data" top: "fc1"
    inner_product_param {{ num_output: {task.hidden} weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "relu" type: "ReLU" bottom: "fc1" top: "fc1" }}
  layer {{ name: "fc2" type: "InnerProduct" bottom: "fc1" top: "fc2"
    inner_product_param {{ num_output: {task.outputs} weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "loss" type: "EuclideanLoss" bottom: "fc2" bottom: "label" top: "loss" }}
}}
base_lr: 0.001 lr_policy: "fixed" snapshot_after_train: false
"""


def by_caffe(task: Task, x: Any, y: Any) -> Epoch:
    write_hdf5_list("rows.txt", x, y)
    solver = Solver(read_message(SOLVER.format(task=task), SolverParameter), log=Silence())

    def epoch() -> None:
        solver.param.max_iter = solver.iter + task.steps
        solver.solve()

    return epoch


FACES: dict[str, Callable[[Task, Any, Any], Epoch]] = {
    "jit": by_jit,
    "session": by_session,
    "Trainer": by_trainer,
    "fit": by_fit,
    "weft train": by_config,
    "Chainer": by_chainer,
    "Keras": by_keras,
    "TensorFlow 1": by_tf1,
    "Caffe": by_caffe,
}


def measured(epoch: Epoch) -> float:
    start = time.process_time()
    epoch()
    return time.process_time() - start


def pair(epoch: Epoch, jitted: Epoch) -> tuple[float, float]:
    """Return the seconds of an epoch, and the mean of the jitted ones before and after it."""
    before, own, after = measured(jitted), measured(epoch), measured(jitted)
    return own, (before + after) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--net", default="784-1000-10", help="inputs-hidden-outputs")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    wf.set_num_threads(options.threads)
    inputs, hidden, outputs = map(int, options.net.split("-"))
    task = Task(inputs, hidden, outputs, options.batch, options.steps)
    x, y = task.data()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        epochs = {name: make(task, x, y) for name, make in FACES.items()}
        for epoch in epochs.values():
            epoch()
        times = {name: [pair(epoch, epochs["jit"])] for name, epoch in epochs.items()}
        for _ in range(options.rounds - 1):
            for name, epoch in epochs.items():
                times[name].append(pair(epoch, epochs["jit"]))
    print(f"{options.net}, batches of {task.batch}, {task.steps} an epoch")
    print(f"load {os.getloadavg()[0]:.1f}; {options.threads} thread(s); bar {BAR}")
    for name, pairs in times.items():
        ratio = statistics.median(own / jitted for own, jitted in pairs)
        extra = statistics.median(own - jitted for own, jitted in pairs) / task.steps * 1e6
        verdict = "ok" if ratio <= BAR else "above the bar"
        least = min(own for own, _ in pairs) * 1e3
        print(f"{name:12} {least:8.1f} ms  {ratio:6.3f}  {extra:+7.1f} us  {verdict}")


if __name__ == "__main__":
    main()
