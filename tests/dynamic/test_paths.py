"""Examples that read values and were seen: their plans run, and their choices are looked at."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import weft as wf
from weft.dynamic import many_calls, suspension

rng = np.random.default_rng(0)
table = wf.tensor(rng.normal(0, 1, (20, 6)), requires_grad=True)
weight = wf.tensor(rng.normal(0, 0.6, (6, 6)), requires_grad=True)
choice = wf.tensor(rng.normal(0, 1, (6, 3)), requires_grad=True)
PARAMETERS = [table, weight, choice]
WORDS = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [10], [11, 12, 13, 14, 15]]


@pytest.fixture(autouse=True)
def _as_it_was():
    kept = [p.numpy().copy() for p in PARAMETERS]
    yield
    for p, array in zip(PARAMETERS, kept, strict=True):
        with wf.no_grad():
            p.assign(wf.tensor(array))
        p.grad = None


def changed(scale):
    with wf.no_grad():
        for p in PARAMETERS:
            p.assign(p * scale)


def steps(h, best):
    """Go on by what is best, which `best` finds among three scores."""
    found = best(h @ choice)
    if found == 0:
        return wf.tanh(h @ weight)
    return (h @ weight) * 0.5 if found == 1 else wf.sin(h) + h


def walk(best):
    def loss(words):
        h = wf.zeros(6, dtype=wf.float64)
        for word in words:
            h = steps(h + table[word], best)
        return (h * h).sum()

    return loss


def by_list(scores):
    listed = scores.tolist()
    return max(range(3), key=lambda i: listed[i])


def by_sorting(scores):
    *_, (_, best) = sorted(zip(scores.tolist(), range(3), strict=True))
    return best


def by_arithmetic(scores):
    a, b, c = scores.tolist()
    return 0 if (a + b) / 2 - c > 0.25 else 1 if abs(a - b) * 1.5 >= -c else 2


def by_unpacking(scores):
    a, b, c = [x.item() for x in scores]
    return 0 if b < a > c else 1 if not a <= b else 2


def by_functions(scores):
    a, b, _ = scores.tolist()
    return int(math.exp(a) > 1.0) + (round(b, 1) > 0.5) + len(f"{a:.1f}") % 2


def by_keys(scores):
    listed = scores.tolist()
    return {x: i for i, x in enumerate(listed)}[max(listed)]


def by_numpy(scores):
    return int(np.argmax(np.asarray(scores.tolist())))


READS = {
    "a list": by_list,
    "sorting": by_sorting,
    "arithmetic": by_arithmetic,
    "items": by_unpacking,
    "functions of numbers": by_functions,
    "keys": by_keys,
    "an array of numbers": by_numpy,
    "an array": lambda scores: int(scores.numpy().argmax()),
    "an index": lambda scores: int(scores.argmax()),
    "an item": lambda scores: scores.argmax().item(),
    "truths": lambda scores: 0 if scores[0] > scores[1] else 1 + bool(scores[2] > 0),
    "a float": lambda scores: 0 if float(scores[0]) > 0.1 else 2,
    "C code that takes floats alone": lambda scores: 2 * (json.dumps(scores[0].item())[0] == "-"),
    "a class": lambda scores: 1 if isinstance(scores[1].item(), float) else 0,
}
OFTEN_THE_SAME = (
    READS.keys()
    - {"functions of numbers", "keys", "an array of numbers"}
    - {*("an array", "a float", "C code that takes floats alone")}
)


def both(function, loss, examples):
    """Return results and gradients, batched and one by one, which must agree."""
    found = []
    for run in (function, lambda given: [loss(x) for x in given]):
        for p in PARAMETERS:
            p.grad = None
        results = run(examples)
        sum(results).backward()
        gradients = [np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in PARAMETERS]
        found.append(([float(x) for x in results], gradients))
    (results, gradients), (expected, expected_gradients) = found
    np.testing.assert_allclose(results, expected, rtol=1e-11)
    for g, h in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-12)
    return function.plan().stats()


@pytest.mark.parametrize("name", READS)
def test_values_are_read_and_change(name):
    """All of what code may do with a value, through steps of training that turn some choices."""
    loss = walk(READS[name])
    function = wf.batched(loss)
    planned = differed = 0
    for step in range(14):
        stats = both(function, loss, WORDS)
        planned += stats["planned"]
        differed += stats["differed"]
        changed(0.8 if step in (4, 9) else 1.002)
    if name in OFTEN_THE_SAME:
        assert planned > 30
    assert differed or name != "arithmetic"


def test_what_was_seen_twice_runs_as_one():
    loss = walk(by_list)
    function = wf.batched(loss)
    for rounds in (6, 6, 1, 1):
        stats = both(function, loss, WORDS)
        assert stats["rounds"] == rounds
    assert stats["planned"] == len(WORDS)
    assert both(function, loss, WORDS[::-1])["rounds"] == 1


def test_paths_that_nobody_goes_have_no_part_in_gradients():
    """What is not to be computed, a logarithm of a negative number, may be NaN on the way."""
    shift = wf.tensor(1.0, requires_grad=True)

    def loss(x):
        y = wf.tensor(float(x)) + shift
        return wf.log(y) * shift if y > 0 else y * shift

    function = wf.batched(loss)
    for value in (1.0, 1.0, 1.0, -2.0, -2.0, 1.0):
        with wf.no_grad():
            shift.assign(wf.tensor(value))
        found = []
        for run in (function, lambda given: [loss(x) for x in given]):
            shift.grad = None
            sum(run([1.0, 2.5, 4.0])).backward()
            found.append(shift.grad.item())
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_what_fails_on_a_path_that_nobody_goes_fails_nowhere():
    place = wf.tensor(2)

    def loss(x):
        i = wf.tensor(x) + place
        return (table[i] if i < 20 else table[0]).sum()

    function = wf.batched(loss)
    for value in (2, 2, 2, 18, 18, 2):
        place.fill_(value)
        assert [float(y) for y in function([0, 1, 5])] == [float(loss(x)) for x in [0, 1, 5]]


def test_random_numbers_are_drawn_once():
    def loss(words):
        h = wf.zeros(6, dtype=wf.float64)
        for word in words:
            h = wf.nn.functional.dropout(h + table[word], 0.5)
            h = h * 2.0 if h.sum() > scale.item() else h
        return h.sum()

    scale = wf.tensor(0.0)
    function = wf.batched(loss)
    drawn = []
    for _ in range(2):
        wf.manual_seed(5)
        drawn.append([[float(x) for x in function(WORDS)] for _ in range(6)])
    assert drawn[0] == drawn[1]
    wf.manual_seed(5)
    fresh = [[float(x) for x in wf.batched(loss)(WORDS)] for _ in range(6)]
    np.testing.assert_allclose(drawn[0], fresh, rtol=1e-12)


def test_numbers_that_are_returned_are_floats():
    def scored(words):
        h = sum(table[word] for word in words)
        score = h.sum().item()
        return h, score, [score * 2, {"best": max(score, 0.0)}]

    function = wf.batched(scored)
    for _ in range(3):
        for (h, score, (twice, best)), words in zip(function(WORDS), WORDS, strict=True):
            assert type(score) is type(twice) is float
            assert type(best["best"]) is float
            assert score == sum(table[word] for word in words).sum().item() == h.sum().item()


def test_numbers_that_are_computed_with_are_numbers():
    def mixed(words):
        h = sum(table[word] for word in words)
        a, b = h.tolist()[:2]
        scaled = (h * a + b - a / h) * wf.tensor(a) + wf.tensor([a, b, 1.0]).sum()
        return wf.where(h > a, scaled, b).sum() + wf.clip(h, -abs(a), abs(a)).sum() + h.sum() ** 2

    function = wf.batched(mixed)
    for scale in (1.0, 1.0, 1.0, 0.9, 0.9):
        changed(scale)
        both(function, mixed, WORDS)


def test_an_error_of_code_is_its_own():
    def fails(words):
        h = sum(table[word] for word in words)
        if h.sum().item() > -1e9 and words == [10]:
            raise TypeError("no such word")
        return h.sum()

    function = wf.batched(fails)
    for _ in range(3):
        with pytest.raises(TypeError, match="no such word") as caught:
            function(WORDS)
        assert "in example 3 of 5" in "".join(caught.value.__notes__)
    collected = wf.batched(fails, errors="collect")
    for _ in range(3):
        assert [type(x).__name__ for x in collected(WORDS)].count("ExampleError") == 1


def test_code_that_has_changed_something_does_not_run_again():
    log = []

    def fails(words):
        h = sum(table[word] for word in words)
        number = h.sum().item()
        log.append(words)
        return h * json.loads(json.dumps(number))

    function = wf.batched(fails)
    for _ in range(3):
        log.clear()
        function(WORDS)
        assert log == WORDS


def test_examples_that_bring_tensors():
    """Structures are equal, and values are not: each example has a path of its own."""

    def loss(pair):
        h = pair["x"] @ weight
        return (h * h).sum() if pair["x"].sum() > 0 else h.sum()

    examples = [{"x": wf.tensor(rng.normal(0, 1, 6))} for _ in range(6)]
    function = wf.batched(loss)
    for step in range(6):
        stats = both(function, loss, examples)
        if step == 3:
            examples[2]["x"].assign(-examples[2]["x"])
    assert stats["planned"] == 6


def test_some_read_and_others_do_not():
    def loss(x):
        h = table[x]
        if x % 2:
            return h.sum()
        return (h @ weight).sum() if h[0] > 0 else h.sum() * 2.0

    function = wf.batched(loss)
    for _ in range(4):
        stats = both(function, loss, [*range(8)])
    assert (stats["rounds"], stats["planned"]) == (1, 8)


def test_paths_that_keep_changing_are_not_tried():
    loss = walk(by_list)
    function = wf.batched(loss)
    planned = []
    for step in range(24):
        planned.append(both(function, loss, WORDS)["planned"])
        with wf.no_grad():
            choice.assign(choice * -1.0 + 0.01 * step)
    assert planned[-1] == 0
    for _ in range(40):
        stats = both(function, loss, WORDS)
    assert stats["planned"] == len(WORDS)


@pytest.mark.parametrize("reads", [True, False])
def test_without_greenlets(reads, monkeypatch):
    monkeypatch.setattr(many_calls, "task_class", lambda: suspension.ThreadTask)
    loss = walk(by_list)
    function = wf.batched(loss)
    function.reads = reads
    for step in range(5):
        stats = both(function, loss, WORDS)
        changed(0.9 if step == 3 else 1.0)
    assert stats["planned"]


def test_second_derivatives():
    loss = walk(by_list)
    function = wf.batched(loss, reduce="sum")

    def squared(total):
        (g,) = wf.gradients(total, [weight], create_graph=True)
        return wf.gradients((g * g).sum(), [weight])[0].numpy()

    expected = squared(sum(loss(words) for words in WORDS))
    for _ in range(4):
        np.testing.assert_allclose(squared(function(WORDS)), expected, rtol=1e-9)
    assert function.plan().stats()["rounds"] == 1


def test_under_transforms_code_runs():
    loss = walk(by_list)
    function = wf.batched(loss, reduce="sum")
    value = float(sum(loss(words) for words in WORDS))
    one, two = wf.tensor(1.0, dtype=wf.float64), wf.tensor(2.0, dtype=wf.float64)
    for _ in range(4):
        found, tangent = wf.jvp(lambda x: function(WORDS) * x, (two,), (one,))
        np.testing.assert_allclose([float(found), float(tangent)], [2 * value, value], rtol=1e-12)


def test_a_trap_for_nans_sees_no_path_that_nobody_goes():
    shift = wf.tensor(1.0)

    def loss(x):
        y = wf.tensor(float(x)) + shift
        return wf.log(y) if y > 0 else y

    function = wf.batched(loss)
    for value in (1.0, 1.0, 1.0, -2.0):
        shift.fill_(value)
        with wf.detect_anomaly():
            function([1.0, 2.5])
        function([1.0, 2.5])


def test_examples_that_are_made_anew():
    loss = walk(by_list)
    function = wf.batched(loss)
    for _ in range(4):
        stats = both(function, loss, [list(words) for words in WORDS])
    assert (stats["rounds"], stats["planned"]) == (1, len(WORDS))


def test_some_are_new():
    """Most have paths, and the code of the others runs beside them."""
    loss = walk(by_list)
    function = wf.batched(loss)
    for _ in range(3):
        both(function, loss, WORDS)
    for step in range(4):
        stats = both(function, loss, [*WORDS, [step, step], [16, 17, step]])
        assert stats["planned"] == len(WORDS)
    changed(0.7)
    both(function, loss, [[3, 2, 1], *WORDS])


def test_what_led_there_is_not_waited_for_again():
    """An example that goes another way at its last read goes there without stopping."""
    end = wf.tensor(1.0, dtype=wf.float64)

    def steered(words):
        h = wf.zeros(6, dtype=wf.float64)
        for word in words:
            h = wf.tanh(h @ weight) + table[word] if h.sum() < 1e6 else h
        return (h * h).sum() if (h * end).sum() > 0 else h.sum()

    function = wf.batched(steered)
    examples = [list(rng.integers(0, 20, 12)) for _ in range(4)]
    rounds = []
    for value in (1.0, 1.0, 1.0, -1.0):
        end.fill_(value)
        stats = both(function, steered, [list(map(int, words)) for words in examples])
        rounds.append((stats["rounds"], stats["differed"]))
    assert rounds[0][0] == rounds[1][0] == 14
    assert rounds[2:4] == [(1, 0), (1, 4)]
