"""Large operands: when machine code takes over, and what is remembered."""

import numpy as np
import pytest

import weft as wf
from weft.core.config import config
from weft.core.large import LARGE
from weft.eager import choosers, compilation, uses
from weft.eager.choosers import make_chooser
from weft.eager.uses import Operations


class Compiler:
    """Stands in for the compiler: notes what it is asked for, and returns what it is told to."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.asked = []

    def __call__(self, name, types, attrs):
        self.asked.append((name, types, attrs))
        kernel = self.kernel
        if kernel is None:
            return None

        def code(*arrays):  # which looks at the arrays itself
            return kernel(*arrays) if [(x.shape, x.dtype) for x in arrays] == types else None

        return code


@pytest.fixture
def compiler(monkeypatch):
    """Compile at once, in this thread."""
    made = Compiler(lambda x: x + 100)
    monkeypatch.setattr(compilation, "compile_kernel", made)
    monkeypatch.setattr(uses.background, "submit", lambda job: job() or True)
    monkeypatch.setattr(choosers, "operations", Operations())
    return made


X = np.zeros(LARGE, np.float32)
Y = np.zeros(LARGE, np.float32)


@pytest.mark.parametrize(("name", "array"), [("neg", X[:-1]), ("f", Y[:-1])])
def test_small_operands_never_count(compiler, name, array):
    choose = make_chooser(name, np.negative, 1, exact=name == "neg")
    for _ in range(4):
        choose(array)
    assert compiler.asked == []


def test_code_that_rounds_otherwise_computes_from_the_first_use_on(compiler):
    choose = make_chooser("f", np.negative, 1, exact=False)
    assert [float(choose(Y)[0]) for _ in range(3)] == [100] * 3
    assert compiler.asked == [("f", [((LARGE,), Y.dtype)], ())]


def test_exact_code_takes_over_when_ready(compiler):
    choose = make_chooser("neg", np.negative, 1, exact=True)
    assert [float(choose(X)[0]) for _ in range(4)] == [0, 100, 100, 100]


@pytest.mark.parametrize("kernel", [None, lambda x: None])
def test_what_code_does_not_take_goes_to_numpy(compiler, kernel):
    compiler.kernel = kernel
    choose = make_chooser("neg", np.cos, 1, exact=True)
    assert [float(choose(X)[0]) for _ in range(5)] == [1] * 5
    assert len(compiler.asked) == 1


def test_operations_are_told_apart(compiler):
    choose = make_chooser("neg", lambda x, *attrs: x, 1, by_text=True, exact=True)
    given = [(X, 0.0), (X, -0.0), (X, 1), (X, 1.0), (X, True), (X.reshape(2, -1), 0.0)]
    given.append((X.astype(np.float64), 0.0))
    for args in given:
        choose(*args)
        choose(*args)
    assert len(compiler.asked) == len(given)


def test_operations_that_alternate_keep_their_own_code(compiler):
    choose = make_chooser("neg", lambda x, *attrs: x, 1, exact=True)
    given = [(X, 1), (X, 2), (X.reshape(2, -1), 2), (X.reshape(2, -1), 1)]
    for added, args in enumerate(given):
        compiler.kernel = lambda x, added=added: x + added
        choose(*args), choose(*args)
    for _ in range(3):
        for added, (x, attr) in enumerate(given):
            result = choose(x, attr)
            assert (result.shape, float(result.flat[0])) == (x.shape, added)


@pytest.mark.parametrize("count", [2, 3])
def test_any_operand_may_be_the_large_one(compiler, count):
    compiler.kernel = lambda *xs: sum(xs) + 100
    choose = make_chooser("neg", lambda *xs: sum(xs), count, exact=True)
    one = np.ones((), np.float32)
    for place in range(count):
        args = [one] * count
        args[place] = X
        assert [float(choose(*args)[0]) for _ in range(2)] == [count - 1, count + 99]


@pytest.mark.parametrize(("name", "asked"), [("mul", 1), ("f", 0)])
def test_small_operands_may_make_a_large_result(compiler, name, asked):
    compiler.kernel = np.multiply
    choose = make_chooser(name, np.multiply, 2, exact=name == "mul")
    column, row = np.ones((LARGE // 256, 1), np.float32), np.ones(256, np.float32)
    for _ in range(3):
        choose(column, row)
        choose(column, column)
    with pytest.raises(ValueError, match="could not be broadcast"):
        choose(np.ones((200, 200)), np.ones(256))
    assert len(compiler.asked) == asked  # code that rounds otherwise would depend on the past


@pytest.mark.parametrize("args", [(X, 2.0), (2.0, X), (X, 2.0, X), (2.0, 2.0)])
def test_numbers_are_left_to_numpy(compiler, args):
    choose = make_chooser("neg", lambda *xs: sum(xs), len(args), exact=True)
    for _ in range(5):
        choose(*args)
    assert compiler.asked == []


def test_switch_holds_from_the_next_operation_on(compiler, monkeypatch):
    choose = make_chooser("neg", np.negative, 1, exact=True)
    choose(X), choose(X)
    monkeypatch.setattr(config, "eager_kernels", False)
    assert float(choose(X)[0]) == 0
    monkeypatch.setattr(config, "eager_kernels", True)
    assert float(choose(X)[0]) == 100


def test_operations_not_used_lately_are_forgotten(compiler, monkeypatch):
    monkeypatch.setattr(uses, "MOST_USES", 4)
    choose = make_chooser("neg", np.negative, 1, exact=True)
    arrays = [np.zeros(LARGE + i, np.float32) for i in range(12)]
    for array in arrays:
        choose(array), choose(array), choose(arrays[0])
    assert len(choosers.operations.known) <= 4
    assert len(compiler.asked) == 12  # the first one stayed


def test_failing_compiler_is_reported_and_harmless(compiler, monkeypatch):
    def fail(*_):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(compilation, "compile_kernel", fail)
    choose = make_chooser("neg", np.cos, 1, exact=True)
    choose(X)
    with pytest.warns(UserWarning, match="not compiled: no such thing"):
        choose(X)
    for _ in range(5):
        assert float(choose(X)[0]) == 1


def test_without_a_thread_numpy_goes_on(compiler, monkeypatch):
    monkeypatch.setattr(uses.background, "submit", lambda job: False)
    choose = make_chooser("neg", np.cos, 1, exact=True)
    assert [float(choose(X)[0]) for _ in range(5)] == [1] * 5


@pytest.mark.parametrize("exponent", [2, 3, 4, 0.5, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_large_tensors_go_the_quicker_way(exponent: float, dtype: type) -> None:
    x = wf.tensor(np.linspace(0.5, 2, 2 * LARGE).astype(dtype), requires_grad=True)
    small = wf.tensor(x.numpy()[:100], requires_grad=True)
    (x**exponent).sum().backward()
    (small**exponent).sum().backward()
    np.testing.assert_array_equal((x**exponent).numpy()[:100], (small**exponent).numpy())
    np.testing.assert_allclose(x.grad.numpy()[:100], small.grad.numpy(), rtol=1e-6)
