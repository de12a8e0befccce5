"""Batched functions whose tensors are in the memory of devices, or marked as being on one."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.models import MODELS
from tests.dynamic.test_models import CASES, assert_equal, results_and_gradients
from tests.dynamic.test_training import TreeModel, with_targets
from tests.dynamic.trees import random_trees
from tests.opaque import opaque  # noqa: F401  (a fixture)
from tests.programs.per_example import PerExample, examples
from weft.core.errors import ArgumentError
from weft.core.tree import flatten
from weft.dynamic.blocks import Blocks
from weft.eager.on_devices import DeviceRunner

THERE = "opaque:0"

pytestmark = [
    pytest.mark.usefixtures("opaque"),
    pytest.mark.filterwarnings("ignore::weft.eager.on_devices.HostRunWarning"),
]


def there(values, **options):
    return wf.tensor(values, device=THERE, **options)


@pytest.mark.parametrize("where", [THERE, "reference"])
@pytest.mark.parametrize(("name", "cells"), CASES)
def test_models_are_the_cpus(name, cells, where):
    here = MODELS[name]("float64", cells)
    with wf.device(where):
        model = MODELS[name]("float64", cells)
    given, together = here.examples(5), wf.batched(model.loss)
    expected = results_and_gradients(here, wf.batched(here.loss)(given))
    for _ in range(3):  # by code, by code that notes what it reads, by plans
        with wf.device(where):
            results = together(given)
        tensors = [leaf for leaf in flatten(results)[0] if isinstance(leaf, wf.Tensor)]
        assert {x.device for x in tensors} == {where}
        assert_equal(results_and_gradients(model, results), expected, "float64")
    assert all(p.grad is None or p.grad.device == where for p in model.parameters)


def test_plans_read_the_values_of_a_device():
    """Examples that read go by plans there as well, and one that goes another way by code."""
    w = there(2.0)

    def steps(x):
        y, count = w * there(x), 0
        while y > 1.0 and count < 9:
            y, count = y * 0.5, count + 1
        return y + float(count)

    together, numbers = wf.batched(steps, reduce="stack"), [1.0, 5.0, 9.0, 0.2]
    planned = []
    for scale in (2.0, 2.0, 2.0, 2.1, 8.0):
        w.copy_(there(scale))
        expected = [steps(x).item() for x in numbers]
        assert together(numbers).tolist() == expected
        planned.append(together.plan().stats()["planned"])
    assert planned == [0, 0, 4, 3, 0]


def test_examples_bring_tensors_of_a_device():
    w = there([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    examples = [[there([float(i), 1.0]) for i in range(n)] for n in (1, 3, 2)]
    together = wf.batched(lambda xs: sum(wf.tanh(x @ w).sum() for x in xs), reduce="sum")
    for _ in range(2):
        w.grad = None
        total = together(examples)
        total.backward()
        expected = wf.tensor(w.numpy(), requires_grad=True)
        alone = sum(wf.tanh(wf.tensor(x.numpy()) @ expected).sum() for xs in examples for x in xs)
        alone.backward()
        np.testing.assert_allclose(total.item(), alone.item(), rtol=1e-6)
        np.testing.assert_allclose(w.grad.numpy(), expected.grad.numpy(), rtol=1e-6)


def test_plans_tell_tensors_of_the_cpu_from_those_of_a_device():
    together = wf.batched(lambda x: x * 2.0 + 1.0)
    for _ in range(2):
        for make in (wf.tensor, there):
            (found,) = together([make([1.0, 2.0])])
            assert found.device == make(0.0).device
            assert found.tolist() == [3.0, 5.0]


def test_a_model_that_moves():
    linear = wf.nn.Linear(2, 3)
    together = wf.batched(lambda x: wf.relu(linear(wf.tensor(x))), reduce="stack")
    examples = [[1.0, 2.0], [3.0, 4.0]]
    expected = together(examples).numpy()
    for where in (THERE, "reference", "cpu", THERE):
        linear.to(where)
        found = together(examples)
        assert found.device == where
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("cell", [False, True])
def test_indices_go_where_they_are_needed(cell):
    """As they do one by one; a cell that is given some is a cell there, too."""
    table, w = there(np.eye(4), requires_grad=True), there(np.ones((4, 4)))

    def step(h, symbol):
        return wf.tanh(h @ w + table[symbol])

    taken = wf.cell(step) if cell else step

    def code(symbols):
        h = there(np.zeros(4))
        for symbol in symbols:
            h = taken(h, wf.tensor(symbol))
        return h.sum()

    examples = [[0, 1, 3], [2], [3, 3]]
    together, found = wf.batched(code, reduce="sum"), []
    for run in (together, together, lambda xs: sum(code(x) for x in xs)):
        table.grad = None
        total = run(examples)
        total.backward()
        found.append((total.item(), table.grad.numpy()))
    for total, gradient in found[:2]:
        np.testing.assert_allclose(total, found[2][0], rtol=1e-6)
        np.testing.assert_allclose(gradient, found[2][1], rtol=1e-6)
    if cell:
        assert {batch.signature.name for batch in together.plan().batches} >= {"step"}


def test_code_moves_tensors_to_a_device_and_back():
    """Operations on two devices are of two kinds, with copies between them."""
    w, v = there([1.0, 2.0], requires_grad=True), wf.tensor([3.0, 4.0], requires_grad=True)

    def code(x):
        inside = wf.exp(w * x)
        assert inside.device == THERE
        outside = inside.cpu() * v
        assert outside.device == "cpu"
        back = outside.to(THERE)
        return (back + inside).sum()

    together = wf.batched(code, reduce="sum")
    for _ in range(2):
        w.grad = v.grad = None
        together([0.1, 0.2, 0.3]).backward()
        numbers = np.array([0.1, 0.2, 0.3])[:, None]
        inside = np.exp(numbers * [1.0, 2.0])
        np.testing.assert_allclose(v.grad.numpy(), inside.sum(0), rtol=1e-5)
        np.testing.assert_allclose(w.grad.numpy(), (numbers * inside).sum(0) * [4, 5], rtol=1e-5)
        assert (w.grad.device, v.grad.device) == (THERE, "cpu")


def test_values_of_the_cpu_are_read_before_a_device_is_met():
    w = there(3.0, requires_grad=True)

    def code(x):
        y = wf.tensor(x) * 2.0
        if y.item() > 2.0:
            return y.to(THERE) * w
        return w * x

    total = wf.batched(code, reduce="sum")([0.5, 2.0, 3.0])
    total.backward()
    assert total.item() == 3.0 * (0.5 + 4.0 + 6.0)
    assert w.grad.item() == 10.5


def test_operands_on_two_devices_are_refused_at_the_line():
    w, x = there([1.0, 2.0]), wf.tensor([1.0, 2.0])
    message = r"mul: operands are on device\('opaque:0'\) and device\('cpu'\); move one of them"
    for code in (lambda n: x * w, lambda n: (x * n) * w, lambda n: (w * n) * x):
        with pytest.raises(ArgumentError, match=message):
            wf.batched(code)([1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"opaque:0.*reference|reference.*opaque:0"):
        wf.batched(lambda n: w * wf.tensor([n, n], device="reference"))([1.0])
    with pytest.raises(ArgumentError, match=message) as caught:
        wf.batched(lambda x: x * w)([x, x])  # as it would be one by one
    assert "in example 0 of 2, at test_devices.py" in caught.value.__notes__[0]


def test_learned_tensors_of_the_cpu_are_refused():
    linear = wf.nn.Linear(2, 3)
    with pytest.raises(ArgumentError, match=r"model.to\('opaque:0'\)"):
        wf.batched(lambda n: linear(there([n, n])))([1.0, 2.0])


def test_random_numbers_are_those_of_the_cpu():
    def draw(n):
        return wf.nn.functional.dropout(wf.ones(8) * n, 0.5) + wf.rand(8)

    together, found = wf.batched(draw, reduce="stack"), []
    for where in ("cpu", THERE):
        with wf.device(where):
            for _ in range(2):
                wf.manual_seed(3)
                found.append(together([1.0, 2.0, 3.0]))
                assert found[-1].device == where
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].numpy(), other.numpy())


def test_derivatives_of_higher_order():
    x = there([0.3, 0.4], requires_grad=True)
    together = wf.batched(lambda n: (wf.sin(x) * x * n).sum(), reduce="sum")
    (first,) = wf.gradients(together([1.0, 2.0]), [x], create_graph=True)
    (second,) = wf.gradients(first.sum(), [x])
    values = np.array([0.3, 0.4])
    np.testing.assert_allclose(
        second.numpy(), 3 * (2 * np.cos(values) - values * np.sin(values)), rtol=1e-5
    )
    assert second.device == THERE


def test_transforms_around_calls():
    w = there([1.0, 2.0])
    total = wf.batched(lambda n, x: (wf.tanh(x) * n * w).sum(), reduce="sum")
    x = there([0.1, 0.2])
    expected = 3 * (1 - np.tanh([0.1, 0.2]) ** 2) * [1.0, 2.0]
    gradient = wf.grad(lambda x: total([1.0, 2.0], x))(x)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5)
    _, slope = wf.jvp(lambda x: total([1.0, 2.0], x), (x,), (there([1.0, 0.0]),))
    np.testing.assert_allclose(slope.item(), expected[0], rtol=1e-5)
    rows = wf.vmap(lambda x: total([1.0, 2.0], x))(there([[0.1, 0.2], [0.3, 0.4]]))
    assert rows.device == THERE
    np.testing.assert_allclose(rows.numpy()[0], 3 * (np.tanh([0.1, 0.2]) * [1, 2]).sum(), rtol=1e-5)


def test_the_context_puts_off_there():
    w = there([1.0, 2.0], requires_grad=True)
    with wf.batching() as plan:
        parts = [wf.tanh(w * float(i)) for i in range(12)]
        assert {part.device for part in parts} == {THERE}
    assert plan.stats()["batches"] < 24
    sum(part.sum() for part in parts).backward()
    assert w.grad.device == THERE


def test_what_the_cpu_holds_stays_quick_beside_a_device(opaque, monkeypatch):  # noqa: F811
    """Who has something on a device runs functions of the CPU as before, and copies nothing."""
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    together = wf.batched(lambda x: wf.tanh(x * w).sum(), reduce="sum")
    kept = there([1.0])
    before = dict(opaque.copies)
    with monkeypatch.context() as patch:
        patch.setattr(Blocks, "run", None)  # values are rows of arrays, and so are gradients
        together([1.0, 2.0]).backward()
    slopes = 1 - np.tanh([[1.0, 2.0], [2.0, 4.0]]) ** 2
    np.testing.assert_allclose(w.grad.numpy(), (slopes * [[1.0], [2.0]]).sum(0), rtol=1e-5)
    assert w.grad.grad_fn is None
    assert not w.grad.requires_grad
    (first,) = wf.gradients(together([1.0, 2.0]), [w], create_graph=True)
    assert first.requires_grad
    assert dict(opaque.copies) == before
    assert kept.item() == 1.0


def test_batches_of_other_widths_take_no_other_kernels(monkeypatch):
    """For a device each shape is compiled: what a batch has too little is filled up."""
    w = there(np.eye(3), requires_grad=True)

    def code(numbers):
        rows = [wf.tanh(there([x, 1.0, 2.0]) @ w) for x in numbers]
        state = rows[0]
        for row in rows[1:]:
            state = wf.tanh(state * row + rows[0])
        return state.sum()

    together = wf.batched(code)
    rng, made = np.random.default_rng(0), []
    monkeypatch.setattr(
        DeviceRunner,
        "_made",
        lambda *args, original=DeviceRunner._made: made.append(args) or original(*args),
    )
    for round_ in range(12):
        count = 9 + rng.integers(8)
        sum(together([rng.random(2 + rng.integers(3)) for _ in range(count)])).backward()
        if round_ == 5:
            known = len(made)
            assert known > 0
    assert len(made) - known < known / 10


def test_reading_copies_the_block_of_a_batch_once(opaque):  # noqa: F811
    w = there([2.0])
    together = wf.batched(lambda x: (w * there(x)).sum().item() > 5.0)
    together([1.0, 2.0, 3.0, 4.0])
    before = opaque.copies["out"]
    assert together([float(i) for i in range(20)])[3] is True
    assert opaque.copies["out"] - before <= 2


def test_training_there():
    def trained(where):
        wf.manual_seed(0)
        model = wf.nn.Sequential(wf.nn.Linear(2, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1)).to(where)
        optimizer = wf.optim.Adam(model.parameters(), 0.05)

        def depth(tree):
            if not isinstance(tree, tuple):
                return wf.tensor([tree, 1.0])
            left, right = map(depth, tree)
            return wf.concat([model(left), model(right)])

        loss = wf.batched(lambda tree: (depth(tree) ** 2).sum(), reduce="mean")
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            value = loss([(1.0, (2.0, 3.0)), (0.5, 1.0), ((1.0, 2.0), (3.0, 4.0))])
            value.backward()
            optimizer.step()
            losses.append(value.item())
        return losses

    np.testing.assert_allclose(trained(THERE), trained("cpu"), rtol=1e-5)


def test_a_trainer_and_fit_train_there():
    """With batches of trees, which no device has."""

    def by_trainer(model, trees, where):
        loader = wf.data.DataLoader(trees, batch_size=8, collate_fn=lambda ts: (ts,))
        optimizer = wf.optim.Adam(model.parameters(), lr=0.01)
        updater = wf.train.Updater(model, optimizer, lambda y: (y**2).mean(), loader, target=None)
        wf.train.Trainer(updater, stop=(3, "epoch"), out=None, device=where).run()

    def by_fit(model, trees, where):
        model.compile(optimizer="adam", loss="mse")
        model.fit(with_targets(trees), epochs=2, verbose=0, device=where)

    for train in (by_trainer, by_fit):
        found = []
        for where in ("cpu", THERE):
            model = TreeModel()
            with wf.device(where):  # for what the code of the model makes
                train(model, random_trees(16, 2, 6), where)
            assert {p.device for p in model.parameters()} == {where}
            found.append([p.numpy() for p in model.parameters()])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", [THERE, "reference"])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, where):
    here, given = PerExample(seed, "float64"), examples(seed, 6, "float64")
    expected = results_and_gradients(here, [here(example) for example in given])
    with wf.device(where):
        program = PerExample(seed, "float64")
        given, together = examples(seed, 6, "float64"), wf.batched(program)
        for _ in range(3):
            assert_equal(results_and_gradients(program, together(given)), expected, "float64")
