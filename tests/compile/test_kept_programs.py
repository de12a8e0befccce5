"""Programs found on disk run as those that were compiled: same bits, same states, same errors."""

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu import device
from weft.backends.cpu.codegen.target import neon
from weft.backends.cpu.device import cpu_device
from weft.backends.cpu.runtime import objects
from weft.backends.cpu.runtime.objects import ObjectCache
from weft.backends.store import ObjectStore
from weft.compiler import stages as compiler
from weft.compiler.budget import optimize
from weft.compiler.cache import packing as plan
from weft.compiler.cache import programs as plans
from weft.compiler.cache.columns import MAGIC
from weft.core.errors import IndexOutOfRange

from ..architecture.layers import CHAIN

F = wf.nn.functional


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Let a new process begin, as often as it is called, with what the disk holds."""

    def new_process():
        store = ObjectStore(tmp_path / "cache")
        monkeypatch.setattr(plans, "user_store", lambda: store)
        monkeypatch.setattr(objects._Process, "cache", ObjectCache(store))
        return store

    new_process()
    return new_process


@pytest.fixture
def analysed(monkeypatch):
    """Count the programs that are really compiled."""
    found = []
    real = compiler.plan_program

    def counted(*args):
        found.append(args)
        return real(*args)

    monkeypatch.setattr(compiler, "plan_program", counted)
    return found


def feed(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def training(x):
    """Take a step that writes generators, numbers and arrays."""
    net = wf.nn.Sequential(wf.nn.Linear(3, 8), wf.nn.LayerNorm(8), wf.nn.Dropout(0.5))
    wf.manual_seed(1)
    loss = F.gelu(net(x)).square().mean()
    train = wf.optim.Adam(net.parameters(), lr=0.1).minimize(loss)
    return [loss, train], list(net.parameters())


def calling(x):
    """Go from native code to reference kernels and back."""
    return [wf.sort(wf.exp(x), axis=1) * 2.0, wf.linalg.svd(x * 1.0)[1]], []


def scanning(x):
    total, rows = wf.scan(lambda carry, row: (carry * 0.5 + row, carry.sum()), x[0], x)
    return [total, rows], []


def scanning_calls(x):
    return [wf.scan(lambda carry, row: (carry + wf.sort(row), carry), x[0], x)[1] * 2.0], []


def choosing(x):
    return [wf.cond(x.sum() > 0, lambda: wf.sort(x), lambda: wf.exp(x))], []


def with_constants(x):
    table = wf.tensor(np.arange(300_000, dtype=np.float32).reshape(-1, 3))
    with wf.no_grad():
        return [x + np.float32([1, 2, 3]), wf.pad(x, ((1, 1), (0, 0))) + table.sum()], []


def with_a_large_constant(x):
    return [x.sum() * np.ones((1200, 1000), np.float32)], []


def handing_on(x):
    return [x, x.T, x[1:], (x * 2.0)[:, 1]], []


def without_code(x):
    return [x.reshape(-1)], []


PROGRAMS = (
    training,
    calling,
    scanning,
    scanning_calls,
    choosing,
    with_constants,
    with_a_large_constant,
    handing_on,
    without_code,
)


def run(build, array, times=2):
    """Return all that running a program some times gives and leaves behind."""
    wf.manual_seed(0)
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32)
        fetches, states = build(x)
    session = wf.Session(graph, compiled=True)
    found = [session.run(fetches, {x: array}) for _ in range(times)]
    arrays = [a for results in found for a in results if a is not None]
    return [*arrays, *(state.numpy() for state in states)]


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("build", PROGRAMS)
def test_found_program_computes_the_same(disk, analysed, build):
    expected = run(build, feed(5, 3))
    assert len(analysed) == 1
    store = disk()
    same(run(build, feed(5, 3)), expected)
    assert len(analysed) == 1
    assert store.misses == 0
    assert store.info().bytes < plan.MOST_BYTES


@pytest.mark.parametrize("budget", [None, 20_000])
def test_optimised_graph(disk, analysed, budget):
    def results():
        wf.manual_seed(0)
        net = wf.nn.Sequential(*[wf.nn.Linear(16, 16) for _ in range(6)])
        with wf.Graph() as graph:
            x = wf.placeholder((32, 16), wf.float32)
            loss = F.gelu(net(F.gelu(x))).square().mean()
            found = [loss, *wf.gradients(loss, list(net.parameters()))]
        graph = optimize(graph, found, memory_budget=budget)
        return wf.Session(graph, compiled=True).run(found, {x: feed(32, 16)})

    expected = results()
    assert len(analysed) == 1
    disk()
    same(results(), expected)
    assert len(analysed) == 1


def test_other_shapes_are_other_programs(disk, analysed):
    run(scanning, feed(5, 3))
    disk()
    expected = run(scanning, feed(4, 3))
    assert len(analysed) == 2
    disk()
    same(run(scanning, feed(4, 3)), expected)
    assert len(analysed) == 2


def test_values_that_only_a_run_can_size_are_compiled_anew(disk, analysed):
    def masked(x):
        return [x[x > 0].sum(), x * 2.0], []

    expected = run(masked, feed(5, 3))
    disk()
    same(run(masked, feed(5, 3)), expected)
    assert len(analysed) == 2


def test_large_tables_of_the_compiler_are_not_kept(disk, analysed, monkeypatch):
    monkeypatch.setattr(plan, "MOST_BYTES", 100)
    expected = run(training, feed(5, 3))
    disk()
    same(run(training, feed(5, 3)), expected)
    assert len(analysed) == 2


def test_bad_index_is_named_by_the_found_program_too(disk, analysed):
    table = wf.tensor(feed(4, 2))

    def looked_up(indices):
        with wf.Graph() as graph:
            i = wf.placeholder((None,), wf.int64)
            y = wf.nn.functional.embedding(i, table) * 2.0
        session = wf.Session(graph, compiled=True)
        with pytest.raises(IndexOutOfRange, match="7"):
            session.run(y, {i: np.array([1, 7])})
        return session.run(y, {i: np.array(indices)})

    expected = looked_up([3, 0])
    disk()
    same(looked_up([3, 0]), expected)
    assert len(analysed) == 1


def test_found_program_can_be_looked_into(disk, analysed):
    def executable():
        wf.manual_seed(0)
        with wf.Graph() as graph:
            x = wf.placeholder((None, 3), wf.float32)
            fetches, states = training(x)
            other = wf.sort(x)
        made = wf.Session(graph, compiled=True).executable([*fetches, other], {x: feed(5, 3)})
        return made, states

    first, _ = executable()
    disk()
    found, states = executable()
    assert len(analysed) == 1
    assert found.plan is not first.plan
    before = [state.numpy().copy() for state in states]
    assert str(found.kernels) == str(first.kernels)
    assert found.llvm_ir() == first.llvm_ir()
    assert found.stats() == first.stats()
    assert len(found.profile([feed(5, 3)], runs=2).kernels) == len(first.kernels)
    same([state.numpy() for state in states], before)
    assert len(analysed) == 2
    results = []
    for made in (found, first):
        wf.manual_seed(0)
        results.append(made.run([feed(5, 3)]))
    same(*results)


def test_program_whose_code_is_lost_is_compiled_again(disk, analysed, tmp_path):
    expected = run(training, feed(5, 3))
    largest = max((tmp_path / "cache").iterdir(), key=lambda path: path.stat().st_size)
    largest.unlink()
    disk()
    same(run(training, feed(5, 3)), expected)
    assert len(analysed) == 2
    disk()
    same(run(training, feed(5, 3)), expected)
    assert len(analysed) == 2


@pytest.mark.parametrize(
    "content", [b"", b"garbage", MAGIC + bytes(8), MAGIC + b"\4" + bytes(7) + b"null"]
)
def test_foreign_content_under_the_name_of_a_plan(disk, analysed, monkeypatch, content):
    expected = run(training, feed(5, 3))
    store = disk()
    real = store.get

    def get(key):
        found = real(key)
        return content if found is not None and found[: len(MAGIC)] == MAGIC else found

    monkeypatch.setattr(store, "get", get)
    same(run(training, feed(5, 3)), expected)
    assert len(analysed) == 2


def test_key_holds_all_that_decides_about_a_plan(monkeypatch):
    def key(program=b"p", sources=b"s"):
        return plans.plan_key(program, sources, cpu_device())

    found = {key(), key(program=b"q"), key(sources=b"t")}
    changes = (
        (device, "host", neon),
        (device, "get_num_threads", lambda: 77),
        (plans.config, "default_float", "float64"),
        (plans.llvmlite, "__version__", "other"),
        (plans.np, "__version__", "other"),
        (plans.sys, "version", "other"),
        (plans.sys, "platform", "other"),
    )
    for owner, name, other in changes:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, other)
            found.add(key())
    assert len(found) == 3 + len(changes)
    assert key() in found


def test_layers_are_all_that_a_program_goes_through():
    named = {layer.removesuffix(".py") for layer in plans.LAYERS}
    assert named == set(CHAIN[: CHAIN.index("compiler") + 1])
