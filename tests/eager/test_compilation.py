"""Eager mode on large tensors: compiled kernels take over, and nothing else changes."""

import gc
import os
import subprocess
import sys
import threading
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.threads import num_threads
from weft.backends.cpu.runtime.buffers import pool_info
from weft.core.errors import GradientError, ShapeError, WeftError
from weft.core.large import LARGE
from weft.core.op import F as OPS
from weft.core.op import registry
from weft.eager import array_program
from weft.eager.choosers import install_chooser
from weft.eager.compilation import compile_kernel
from weft.eager.uses import operations, tick

ROWS, COLUMNS = 2048, 257
SHAPE = (ROWS, COLUMNS)
assert ROWS * COLUMNS >= LARGE

EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x,
    "maximum": wf.maximum,
    "sqrt": lambda x, y: wf.sqrt(abs(x)),
    "less": lambda x, y: x < y,
    "where": lambda x, y: wf.where(x < y, x, y),
    "number on the left": lambda x, y: 2.5 - x,
    "row": lambda x, y: x + y[0],
    "column": lambda x, y: x * y[:, :1],
}
ROUNDED = {
    "exp": lambda x, y: x.exp(),
    "tanh": lambda x, y: x.tanh(),
    "pow": lambda x, y: abs(x) ** y,
    "sum": lambda x, y: x.sum(),
    "sum of rows": lambda x, y: x.sum(axis=1),
    "sum of columns": lambda x, y: x.sum(axis=0, keepdims=True),
    "mean": lambda x, y: x.mean(),
    "logsumexp": lambda x, y: wf.logsumexp(x, axis=1),
}
COMPOSITE = {
    "softmax": lambda x, y: wf.softmax(x),
    "softmax of columns": lambda x, y: x.softmax(axis=0),
    "log_softmax": lambda x, y: wf.log_softmax(x, axis=-1),
    "layer_norm": lambda x, y: F.layer_norm(x, (COLUMNS,), y[0], y[1]),
    "layer_norm alone": lambda x, y: F.layer_norm(x, COLUMNS),
    "rms_norm": lambda x, y: F.rms_norm(x, (COLUMNS,), y[0], eps=1e-6),
}
TOLERANCE = {np.float32: 3e-6, np.float64: 1e-13}


def make(seed, shape=SHAPE, dtype=np.float32, grad=False):
    values = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    return wf.tensor(values, requires_grad=grad)


@pytest.fixture
def by_numpy(monkeypatch):
    """Return a function that runs another one without compiled kernels."""

    def run(function, *args):
        monkeypatch.setattr(wf.config, "eager_kernels", False)
        try:
            return function(*args)
        finally:
            monkeypatch.setattr(wf.config, "eager_kernels", True)

    return run


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", True)


def hot(function, *args):
    """Return the result of a function that was called often enough."""
    function(*args), function(*args)
    for uses, key in operations.known:
        if key in uses and uses[key].ordered:
            assert uses[key].ready.wait(60)
    return function(*args)


def taken_over(since):
    """Return how many operations ran as machine code after a tick, be they new or not."""
    met = [uses[key] for uses, key in operations.known if key in uses]
    return sum(1 for use in met if use.last > since and use.run is not None)


def assert_close(found, expected, dtype=np.float32):
    scale = float(np.abs(expected).max(initial=1))
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", EXACT)
def test_arithmetic_is_equal_bit_for_bit(name, dtype, by_numpy):
    x, y = make(0, dtype=dtype), make(1, dtype=dtype)
    expected = by_numpy(EXACT[name], x, y).numpy()
    before = tick()
    found = hot(EXACT[name], x, y).numpy()
    assert taken_over(since=before)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", {**ROUNDED, **COMPOSITE})
def test_functions_agree_to_rounding(name, dtype, by_numpy):
    function = {**ROUNDED, **COMPOSITE}[name]
    x, y = make(2, dtype=dtype), make(3, dtype=dtype)
    expected = by_numpy(function, x, y).numpy()
    before = tick()
    assert_close(hot(function, x, y).numpy(), expected, dtype)
    assert taken_over(since=before)


@pytest.mark.parametrize("name", ["add", "exp", "sum", "softmax"])
def test_special_values_are_as_numpy_has_them(name, by_numpy):
    function = {**EXACT, **ROUNDED, **COMPOSITE}[name]
    values = np.random.default_rng(4).normal(size=SHAPE).astype(np.float32)
    values[::7, ::5] = np.inf
    values[::11, ::3] = -np.inf
    values[::13, ::4] = np.nan
    x, y = wf.tensor(values), make(5)
    with np.errstate(all="ignore"):
        expected = by_numpy(function, x, y).numpy()
        found = hot(function, x, y).numpy()
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["exp", "sum", "sum of columns", "softmax", "layer_norm"])
def test_threads_do_not_change_a_bit(name):
    function = {**ROUNDED, **COMPOSITE}[name]
    x, y = make(6, (3000, COLUMNS)), make(7, (3000, COLUMNS))
    found = []
    for count in (1, 2):
        with num_threads(count):
            found.append(hot(function, x, y).numpy())
    np.testing.assert_array_equal(*found)


SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-39, 3.4e38, 1.0, -1.0)


@pytest.mark.parametrize("name", sorted(name for name, op in registry.items() if op.exact))
def test_exact_operators_are_exact(name):
    op = registry[name]
    kind = bool if name.startswith("bitwise") else np.float32
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    values = np.concatenate([pairs, np.random.default_rng(0).normal(size=(2, 1000))], axis=1)
    arrays = [x.astype(kind) for x in values][: len(op.inputs)]
    if name == "where":
        arrays = [values[0] > 0, *arrays]
    attrs = {"leaky_relu": (0.1,), "threshold": (0.1, 2.0)}.get(name, ())
    with np.errstate(all="ignore"):
        expected = op.kernel(*arrays, *attrs)
        found = compile_kernel(name, [(x.shape, x.dtype) for x in arrays], attrs)(*arrays)
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("rows", [LARGE // COLUMNS + 1, ROWS])
@pytest.mark.parametrize("name", {**EXACT, **ROUNDED, **COMPOSITE})
def test_results_do_not_depend_on_what_ran_before(name, rows):
    function = {**EXACT, **ROUNDED, **COMPOSITE}[name]
    x, y = make(60, (rows, COLUMNS), grad=True), make(61, (rows, COLUMNS))

    def run():
        out = function(x, y)
        if not out.requires_grad:
            return [out.numpy()]
        return [out.numpy(), wf.gradients(out, x, make(62, out.shape)).numpy()]

    _forget_all()
    first = run()
    for found in (run(), hot(run), run()):
        for a, b in zip(found, first, strict=True):
            np.testing.assert_array_equal(a, b)


def _forget_all():
    for uses, key in operations.known:
        uses.pop(key, None)


def test_operands_in_another_order_are_taken_by_numpy():
    x, y = make(8), make(9, (COLUMNS, ROWS))
    hot(lambda: x + x)
    found = hot(lambda: x + y.T)
    np.testing.assert_array_equal(found.numpy(), x.numpy() + y.numpy().T)


def test_results_are_values_of_their_own():
    x = make(10)
    hot(lambda: x * 2.0)
    first = x * 2.0
    kept = first.numpy().copy()
    rows = (x * 2.0)[3:5]
    for _ in range(5):
        x * 3.0  # would write where `first` lies, if its memory were free
        x * 2.0
    np.testing.assert_array_equal(first.numpy(), kept)
    np.testing.assert_array_equal(rows.numpy(), kept[3:5])
    second = first
    second += 1.0
    np.testing.assert_array_equal((x * 2.0).numpy(), kept)


@pytest.mark.usual_memory
def test_memory_of_results_is_used_again():
    x = make(11, (ROWS + 1, COLUMNS))  # of a program that no test has made in other memory
    hot(lambda: x * 2.0)
    before = pool_info()
    for _ in range(10):
        x * 2.0
    assert pool_info().made <= before.made + 1
    assert pool_info().reused >= before.reused + 9


@pytest.mark.parametrize("name", ["add", "sum", "exp"])
def test_kernels_are_plain_functions_of_arrays(name):
    x = np.ones((3, 5), np.float32)
    count = len(registry[name].inputs)
    attrs = ((0, 1), False, None) if name == "sum" else ()
    kernel = compile_kernel(name, [(x.shape, x.dtype)] * count, attrs)
    expected = registry[name].kernel(*[x] * count, *attrs)
    np.testing.assert_allclose(kernel(*[x] * count), expected, rtol=1e-6)
    assert kernel(*[x.T] * count) is None
    assert kernel(*[np.float32(1)] * count) is None
    assert kernel(*[x.astype(np.float64)] * count) is None


def test_mixed_dtypes_have_no_kernel():
    types = [((5,), np.dtype(np.float32)), ((5,), np.dtype(np.float64))]
    assert compile_kernel("mul", types, ()) is None


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "uint16"])
def test_narrow_dtypes_are_summed_as_by_the_reference(dtype, axis):
    x = np.random.default_rng(0).integers(0, 9, (300, 257)).astype(dtype)
    attrs = ((axis,), False, x.dtype)
    kernel = compile_kernel("sum", [(x.shape, x.dtype)], attrs)
    found = kernel(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, registry["sum"].kernel(x, *attrs))


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", {**ROUNDED, **COMPOSITE})
def test_gradients_agree_to_rounding(name, by_numpy):
    function = {**ROUNDED, **COMPOSITE}[name]
    x, y = make(12, grad=True), make(13, grad=True)

    def gradients():
        out = function(x, y)
        seed = make(14, out.shape)
        return [g for g in wf.gradients([out], [x, y], [seed]) if g is not None]

    expected = by_numpy(gradients)
    found = hot(gradients)
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        assert_close(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_gradients_of_gradients(name, by_numpy):
    x, y = make(15, grad=True), make(16)

    def second():
        (g,) = wf.gradients([COMPOSITE[name](x, y)], [x], [y], create_graph=True)
        return wf.gradients((g * g).sum(), x)

    assert_close(hot(second).numpy(), by_numpy(second).numpy())


def test_tensor_given_twice_gets_both_gradients(by_numpy):
    x = make(17, (LARGE,), grad=True)

    def second():
        out = F.layer_norm(x, (LARGE,), x, x)
        (g,) = wf.gradients([out], [x], [make(18, (LARGE,))], create_graph=True)
        return g, wf.gradients(g.sum(), x)

    for a, b in zip(hot(second), by_numpy(second), strict=True):
        assert_close(a.numpy(), b.numpy())


def test_composite_is_one_node_of_the_tape():
    x = make(19, grad=True)
    out = hot(wf.softmax, x)
    assert out.grad_fn.op.name == "softmax"
    assert "grad_fn=<softmax>" in repr(out)
    assert out.grad_fn.site is not None
    out.backward(make(20))
    with pytest.raises(GradientError, match=r"softmax .*retain_graph"):
        out.backward(make(20))


@pytest.mark.parametrize("name", ["mul", "softmax"])
def test_nothing_is_recorded_without_need(name):
    function = {**EXACT, **COMPOSITE}[name]
    x, y = make(21, grad=True), make(22)
    hot(function, x, y)
    assert function(x, y).requires_grad
    with wf.no_grad():
        assert not hot(function, x, y).requires_grad
    assert not hot(function, x.detach(), y).requires_grad


@pytest.mark.parametrize("name", COMPOSITE)
def test_other_interpreters_see_the_operators(name):
    x, y = make(23), make(24)
    expected = hot(COMPOSITE[name], x, y)
    _, tangent = wf.jvp(lambda t: COMPOSITE[name](t, y), (x,), (y,))
    assert tangent.shape == x.shape
    with wf.Graph() as graph:
        symbol = wf.placeholder(SHAPE, wf.float32)
        out = COMPOSITE[name](symbol, y)
    found = wf.Session(graph).run(out, {symbol: x.numpy()})
    assert_close(found, expected.numpy())


# -- errors and surroundings -----------------------------------------------------------------------


def test_errors_are_those_of_eager_mode():
    x, y = make(25), make(26, (ROWS, 5))
    for _ in range(5):
        with pytest.raises(ShapeError, match=r"add: .*\(2048, 257\)"):
            x + y
        with pytest.raises(WeftError, match=r"softmax: .*7"):
            wf.softmax(x, axis=7)


@pytest.mark.parametrize("name", ["add", "sum of columns", "softmax"])
def test_python_threads_get_their_own_results(name):
    function = {**EXACT, **ROUNDED, **COMPOSITE}[name]
    inputs = [(make(30 + i), make(40 + i)) for i in range(4)]
    expected = [hot(function, x, y).numpy().copy() for x, y in inputs]
    wrong = []

    def work(i):
        found = (function(*inputs[i]).numpy() for _ in range(30))
        wrong.extend(i for array in found if not np.array_equal(array, expected[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")  # fork with threads, from Python 3.12 on
def test_forked_child_goes_on():
    x, y = make(50), make(51)
    expected = hot(lambda: x + y).numpy()
    make(52).exp(), make(52).exp()  # ordered, perhaps not ready
    child = os.fork()
    if child == 0:
        fine = np.array_equal((x + y).numpy(), expected)
        z = make(53)
        for _ in range(5):
            wf.softmax(z), z.exp()
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("uses", [1, 2, 5])
def test_process_may_end_while_kernels_are_compiled(uses, tmp_path):
    program = f"""
        import numpy as np, weft as wf
        x = wf.tensor(np.ones({SHAPE}, np.float32))
        for _ in range({uses}):
            x + x, x.exp(), x.sum(), wf.softmax(x), x * x, x.tanh(), x.max(axis=1)
    """
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", dedent(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_environment_switches_kernels_off():
    program = f"""
        import sys
        import numpy as np, weft as wf
        x = wf.tensor(np.ones({SHAPE}, np.float32))
        for _ in range({5}):
            x + x, wf.softmax(x)
        print(wf.config.eager_kernels, "llvmlite" in sys.modules, "weft.compiler" in sys.modules)
    """
    environment = {**os.environ, "WEFT_EAGER_KERNELS": "0"}
    command = [sys.executable, "-c", dedent(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.stdout.split() == ["False", "False", "False"], result.stderr


def test_choosers_stand_where_kernels_were():
    scope = {"kernel": np.exp}
    install_chooser(registry["exp"], scope)
    assert scope["kernel"] is not np.exp


def test_kernels_keep_the_memory_they_compute_in():
    x = np.random.default_rng(0).normal(size=(600, 1000)).astype(np.float32)
    kernel = compile_kernel("sum", [(x.shape, x.dtype)], ((0, 1), False, None))
    gc.collect()
    others = [np.full(300, np.nan, np.float32) for _ in range(1000)]  # where it was, if it is gone
    np.testing.assert_allclose(kernel(x), x.sum(dtype=np.float64), rtol=1e-4)
    assert all(np.isnan(other).all() for other in others)


def test_gradients_of_tables_are_added_up_by_code(monkeypatch):
    rng = np.random.default_rng(0)
    tokens = wf.tensor(rng.integers(-50, 50, (64, 32)))
    weights = wf.tensor(rng.normal(size=(64, 32, 48)).astype(np.float32))
    found = []
    for switched_on in (True, False):
        monkeypatch.setattr(wf.config, "eager_kernels", switched_on)
        table = wf.tensor(rng.normal(size=(50, 48)).astype(np.float32), requires_grad=True)
        (wf.take(table, tokens, axis=0) * weights).sum().backward()
        found.append(table.grad.numpy())
    np.testing.assert_array_equal(*found)  # each element in the order of its addends


def test_places_outside_of_a_table_are_refused_as_ever():
    g = wf.tensor(np.zeros((ROWS, COLUMNS), np.float32))
    places = np.zeros(ROWS, int)
    places[7] = 9
    with pytest.raises(IndexError, match=r"index\[7\] = 9 is out of range for size 9"):
        OPS.take_adjoint(g, wf.tensor(places), (9, COLUMNS), 0)


def test_programs_compute_in_one_workspace(monkeypatch):
    space = array_program.Workspace()
    monkeypatch.setattr(array_program, "_workspace", space)
    first = space.of(1 << 18)
    assert space.of(1 << 17) is first
    assert space.of(1 << 19) is space.of(1 << 18)
    monkeypatch.setattr(space, "most", 1 << 20)
    assert space.of(1 << 21) is not space.of(1 << 21)  # too much to be kept
    assert space.arena.nbytes == 1 << 19
