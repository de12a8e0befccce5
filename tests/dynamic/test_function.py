"""Functions of one example, run for many: equal to one by one, with gradients."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees
from weft.dynamic import many_calls, suspension
from weft.dynamic.results import ExampleError


def gradients_of(net, losses):
    for p in net.parameters:
        p.grad = None
    sum(losses).backward()
    return [p.grad.numpy().copy() for p in net.parameters]


@pytest.mark.parametrize(("cells", "width"), [(False, 5), (True, 5), (True, 24)])
def test_trees_equal_one_by_one(cells, width):
    net = TreeNet(width, cells=cells)
    trees = random_trees(12, 2, 9)
    alone = [net.loss(tree) for tree in trees]
    expected = gradients_of(net, alone)
    together = wf.batched(net.loss)(trees)
    np.testing.assert_allclose([float(x) for x in together], [float(x) for x in alone], rtol=1e-12)
    for found, wanted in zip(gradients_of(net, together), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_results_may_be_stacked_or_reduced():
    double = lambda x: wf.tensor(x) * 2.0  # noqa: E731  (one line)
    assert wf.batched(double, reduce="stack")([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert wf.batched(double, reduce="mean")([1.0, 2.0]).item() == 3.0
    assert wf.batched(double, reduce="sum")([1.0, 2.0]).item() == 6.0


def test_zero_examples():
    assert wf.batched(wf.tensor)([]) == []
    with pytest.raises(ValueError, match="no mean of zero examples"):
        wf.batched(wf.tensor, reduce="mean")([])


def test_zeros_and_ones_that_examples_make_are_their_own():
    def written(x):
        first, second, third = wf.zeros(2), wf.zeros(2), wf.ones(2)
        first += x
        return wf.stack([first, second, third, wf.zeros((2,)), wf.zeros(2, dtype=wf.int64) * 1.0])

    function = wf.batched(written)
    for _ in range(2):  # by its code, and by its plan
        for x, found in zip((3.0, 5.0), function([3.0, 5.0]), strict=True):
            assert found.tolist() == [[x, x], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert function.plan().stats()["planned"] == 2


@pytest.mark.parametrize(("size", "words"), [(2.0, "must be an int"), (-2, "negative")])
def test_sizes_of_zeros_are_checked_each_time(size, words):
    def make(sizes):
        return wf.zeros(2) + wf.zeros(sizes)

    with pytest.raises((TypeError, ValueError), match=words):
        wf.batched(make)([2, size])


def fails(x):
    return wf.ones(3) + wf.ones(2) if x == 17 else wf.tensor(float(x))


def test_an_error_names_its_example():
    with pytest.raises(ValueError, match="do not broadcast") as caught:
        wf.batched(fails)(range(64))
    assert "example 17 of 64, at test_function.py:" in caught.value.__notes__[0]


LINEAR = wf.nn.Linear(3, 3)

WRONG = {
    "shapes": lambda x: x + wf.ones(4),
    "a product": lambda x: x @ wf.ones((4, 4)),
    "a list": lambda x: wf.cat([x, wf.ones((2, 2))]),
    "an axis": lambda x: x.sum(5),
    "an index": lambda x: x + x[7],
    "an operand": lambda x: x + None,
    "a layer": lambda x: LINEAR(wf.cat([x, x])),
    "a write": lambda x: x.__setitem__(7, 1.0),
    "a body": lambda x: wf.scan(lambda c, _: (c + wf.ones(4), None), x, wf.arange(2))[0],
    "a computed index": lambda x: wf.take(x, (x[:1] * 0 + 7).to(wf.int64)),
}


def planned(op):
    wrong = []
    function = wf.batched(lambda x: op(LINEAR(x)) if wrong else LINEAR(x))
    for _ in range(3):
        function(list(wf.ones((4, 3))))
    wrong.append(True)
    return function


def called(cell):
    return wf.batched(lambda x: cell(LINEAR(x)))


FORMS = {
    "alone": lambda op: wf.batched(lambda x: op(LINEAR(x))),
    "in a cell": lambda op: called(wf.cell(op)),
    "behind a read": lambda op: wf.batched(lambda x: op(LINEAR(x) * (x.sum().item() + 1))),
    "reduced": lambda op: wf.batched(lambda x: op(LINEAR(x)).sum(), reduce="mean"),
    "with a plan": planned,
    "captured": lambda op: wf.jit(wf.batched(lambda x: op(LINEAR(x)).sum(), reduce="mean")),
}


@pytest.mark.filterwarnings("ignore:jit")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", WRONG)
def test_errors_name_lines_of_the_user_alone(name, form):
    op = WRONG[name]
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        form(op)(list(wf.ones((4, 3))))
    said = "\n".join([str(caught.value), *caught.value.__notes__])
    assert f"test_function.py:{op.__code__.co_firstlineno}" in said
    assert {line.split(":")[0] for line in re.findall(r"\w+\.py:\d+", said)} == {"test_function.py"}


def test_errors_of_operands_run_nothing():
    """What was put off before is not run to say where it came from: it may fail as well."""
    late = WRONG["a computed index"]
    with pytest.raises(ValueError, match="do not broadcast"):
        wf.batched(lambda x: (late(x) + x)[:2] + x)(list(wf.ones((4, 3))))


def test_errors_are_collected():
    results = wf.batched(fails, errors="collect")(range(20))
    assert results[17].index == 17
    assert results[17].line.startswith("test_function.py:")
    assert float(results[19]) == 19.0


def test_a_function_must_return_something():
    with pytest.raises(TypeError, match="Received from example 0: None"):
        wf.batched(lambda x: None)([1])


TABLE = wf.tensor(np.arange(40.0).reshape(20, 2), requires_grad=True)


def row_sum(word):
    return wf.take(TABLE, wf.tensor(word), axis=0).sum()


def test_what_fails_when_it_runs_names_its_example_and_line():
    with pytest.raises(IndexError, match="77 is out of range") as caught:
        wf.batched(row_sum)([1, 2, 77, 3])
    assert "example 2 of 4, at test_function.py:" in caught.value.__notes__[0]
    results = wf.batched(row_sum, errors="collect")([1, 2, 77, 3])
    assert [float(x) for x in (results[0], results[3])] == [5.0, 13.0]
    assert results[2].index == 2


@pytest.mark.parametrize("kind", [suspension.GreenletTask, suspension.ThreadTask, None])
def test_what_fails_before_values_are_read_names_its_example(kind, monkeypatch):
    """The example that reads, and so has what was put off run, need not be the one at fault."""
    monkeypatch.setattr(many_calls, "task_class", lambda: kind or suspension.ThreadTask)

    def read(word):
        if word == 3:
            raise ValueError("no such word")
        found = row_sum(word)
        return found * 2.0 if word == 5 or found > 0 else found

    function = wf.batched(read)
    function.reads = kind is not None
    with pytest.raises(IndexError, match="77 is out of range") as caught:
        function([1, 2, 77, 5])
    assert "example 2 of 4, at test_function.py:" in caught.value.__notes__[0]
    collecting = wf.batched(read, errors="collect")
    collecting.reads = kind is not None
    for _ in range(3):
        results = collecting([1, 2, 77, 5, 3])
        assert [float(x) for x in (*results[:2], results[3])] == [10.0, 18.0, 42.0]
        assert [x.index for x in results if isinstance(x, ExampleError)] == [2, 4]
        assert isinstance(results[2].error, IndexError)
        assert "no such word" in str(results[4])


def test_examples_that_fail_alone_are_ended():
    ended = []

    def read(word):
        try:
            return row_sum(word) * (2.0 if row_sum(word) > 0 else 1.0)
        finally:
            ended.append(word)

    function = wf.batched(read, errors="collect")
    for _ in range(3):
        ended.clear()
        function([1, 77, 3])
        assert ended.count(77) == 3  # with the others, without them, and one operation at a time


def test_rows_named_by_numbers_are_data():
    words = [[1, 2, 3], [4, 5], [1, 1, 19, 7]]
    function = wf.batched(lambda ws: sum((TABLE[w] * TABLE[w]).sum() for w in ws))
    found = function(words)
    expected = [sum((TABLE[w] * TABLE[w]).sum() for w in ws) for ws in words]
    assert [float(x) for x in found] == [float(x) for x in expected]
    assert function.plan().stats()["mean width"] > 2
    TABLE.grad = None
    sum(found).backward()
    grad, TABLE.grad = TABLE.grad.numpy(), None
    sum(expected).backward()
    np.testing.assert_allclose(grad, TABLE.grad.numpy())
    with pytest.raises(IndexError, match="20"):
        function([[3], [20]])


def deep(node):
    return wf.tensor(1.0) + deep(node["next"])


def test_a_cyclic_structure_says_so():
    ring = {}
    ring["next"] = {"next": ring}
    with pytest.raises(RecursionError) as caught:
        wf.batched(deep)([ring])
    assert "cyclic" in caught.value.__notes__[0]
    assert "example 0 of 1" in caught.value.__notes__[1]


@pytest.mark.parametrize("cells", [False, True])
def test_second_derivatives(cells):
    net, trees = TreeNet(4, cells=cells), random_trees(5, 2, 6)

    def second(losses):
        first = wf.gradients(sum(losses), net.parameters, create_graph=True)
        return wf.gradients(sum((g * g).sum() for g in first), net.parameters)

    expected = second([net.loss(tree) for tree in trees])
    found = second(wf.batched(net.loss)(trees))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9, atol=1e-11)


def test_transforms_go_around():
    net, trees = TreeNet(3), random_trees(4, 2, 5)
    score = wf.batched(lambda tree, w: (net.state(tree)[0] * w).sum(), reduce="sum")
    w = wf.tensor(np.arange(1.0, 4.0))
    expected = wf.grad(lambda w: sum((net.state(t)[0] * w).sum() for t in trees))(w)
    np.testing.assert_allclose(wf.grad(lambda w: score(trees, w))(w).numpy(), expected.numpy())
    _, tangent = wf.jvp(lambda w: score(trees, w), (w,), (w,))
    np.testing.assert_allclose(float(tangent), float((expected * w).sum()))
    rows = wf.vmap(lambda w: score(trees, w))(wf.tensor(np.eye(3)))
    np.testing.assert_allclose(rows.numpy(), expected.numpy())


def test_a_jitted_step_goes_around():
    net, trees = TreeNet(3), random_trees(4, 2, 5)
    optimizer, mean = wf.optim.SGD(net.parameters, lr=0.1), wf.batched(net.loss, reduce="mean")

    @wf.jit
    def step(trees):
        optimizer.zero_grad()
        loss = mean(trees)
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step(trees)) for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]
    assert "wf.batched runs what it puts off by programs" in step.explain()
    assert [part["compiled_calls"] for part in step.stats()["parts"]] == [3]


def test_writing_in_place_is_of_one_example():
    def writes(n):
        x = wf.zeros(3)
        x[1] = 2.0
        x += n
        y = x.clone()
        y[0] = x[2] * 3
        x.zero_()
        return x + y

    assert [x.tolist() for x in wf.batched(writes)([1.0, 2.0])] == [[3, 3, 1], [6, 4, 2]]
    buffer = wf.zeros(())

    def outside(n):
        buffer.add_(wf.tensor(n))
        return buffer + 0.0

    with pytest.raises(ValueError, match="shared by all examples"):
        wf.batched(outside)([1.0])


def test_writing_at_an_index_is_put_off():
    """A memory: what is written into it are values of the example, and nothing runs for it."""
    weight = wf.tensor([2.0, 3.0], requires_grad=True)

    def memory(n):
        x = wf.zeros(3)
        x[1:] = weight * n
        x[0] = x[1] * 2.0
        x[wf.tensor([2])] = n
        return x.sum()

    function = wf.batched(memory)
    for planned in (0, 2):
        weight.grad = None
        results = function([1.0, 2.0])
        sum(results).backward()
        assert [float(x) for x in results] == [7.0, 14.0]
        assert weight.grad.tolist() == [9.0, 0.0]
        stats = function.plan().stats()
        assert (stats["rounds"], stats["planned"]) == (1, planned)


def test_what_examples_made_may_be_written_when_it_has_run():
    """What has run on the way is plain, and still the example's own, and not shared by all."""
    weight = wf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def emptied(n):
        x = wf.zeros((2, 2))
        x.fill_(2.0)
        y = (x * n).sum()  # of what was there before x is written
        x[0] = weight[1] * n
        x.zero_()
        x[1, 0] = y
        x[1, 1] = weight[0, 1]
        return y + x.sum()

    def copied(n):
        x = wf.zeros((2, 2))
        x.copy_(weight)
        y = x @ weight[0]
        x[0] = y * n
        return (x @ x).sum()

    def shown(n):
        x = wf.zeros((2, 2))
        x[0] = weight[1] * n
        y, text = x * 2.0, repr(x)
        x[1] = y[0] * len(text)
        positive = x[x > 1.0].sum()  # as many as there are
        x += n
        x[0, 0] = y[0, 1]
        return (x * y).sum() + positive

    for call in (emptied, copied, shown):
        function = wf.batched(call)
        for scale in (1.0, 1.0, 0.5):
            with wf.no_grad():
                weight.mul_(scale)
            found = []
            for run in (function, lambda ns, call=call: [call(n) for n in ns]):
                weight.grad = None
                results = run([1.0, 2.0, 3.0])
                sum(results).backward()
                found.append([[float(x) for x in results], weight.grad])
            assert found[0][0] == found[1][0]
            np.testing.assert_allclose(*[g.numpy() for _, g in found])
        assert function.plan().stats()["planned"] == (0 if call is shown else 3)


def test_devices():
    x = wf.tensor([1.0, 2.0], device="reference", requires_grad=True)
    results = wf.batched(lambda n: (x * wf.tensor(n, device="reference")).sum())([1.0, 2.0])
    assert str(results[0].device) == "reference"
    sum(results).backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("cell", [False, True])
def test_what_is_put_off_sees_tensors_as_they_were(cell):
    """A tensor from outside that an example writes has its old value in what was put off before."""
    state = wf.tensor([1.0, 1.0])
    read = (lambda x: (state * x).sum()) if not cell else wf.cell(lambda x: (state * x).sum())

    def counted(x):
        before = read(wf.tensor(x))
        with wf.no_grad():
            state.assign(state + x)
        return before, read(wf.tensor(1.0))

    together = wf.batched(counted)
    found = [[float(y) for y in pair] for _ in range(2) for pair in together([1.0, 2.0])]
    state.assign(wf.ones(2))
    assert found == [[float(y) for y in counted(x)] for x in (1.0, 2.0, 1.0, 2.0)]


def test_gradients_of_tensors_that_are_written():
    weight = wf.tensor([2.0, 3.0], requires_grad=True)

    def halved(x):
        loss = (weight * weight * wf.tensor(x)).sum()
        with wf.no_grad():
            weight.assign(weight * 0.5)
        return loss

    sum(wf.batched(halved)([1.0, 1.0])).backward()
    assert weight.grad.tolist() == [2 * 2.0 + 2 * 1.0, 2 * 3.0 + 2 * 1.5]
