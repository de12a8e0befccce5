"""Exported libraries: every function of the interface, on good input and on bad."""

from __future__ import annotations

import ctypes
import os
import sys
import threading

import llvmlite.binding as llvm
import numpy as np
import pytest

import weft as wf
from tests.exported import Model, ModelError, caller
from tests.threads import num_threads
from weft import nn
from weft.backends.cpu.codegen.target import _NEEDED
from weft.backends.cpu.export import library
from weft.backends.cpu.export.elf import dynamic_symbols, needed_libraries
from weft.backends.cpu.export.processor import Feature, required
from weft.backends.cpu.export.records import ErrorCode
from weft.core.errors import ArgumentError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux")


def drawn(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    """Return a network as compiled code, its input, and the library that it was exported to."""
    wf.manual_seed(1)
    net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    x = drawn(5, 12)
    compiled = wf.compile(net, x)
    path = tmp_path_factory.mktemp("mlp") / "mlp.so"
    compiled.export(path)
    return compiled, x, path


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """Return a training step in the same way; its inputs are two."""
    wf.manual_seed(2)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    def train(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.minimize(loss)
        return {"loss": loss, "twice": [loss * 2]}

    inputs = drawn(7, 6), np.arange(7) % 3
    compiled = wf.compile(train, *inputs)
    path = tmp_path_factory.mktemp("step") / "step.so"
    compiled.export(path)
    return compiled, inputs, path


# -- right answers ---------------------------------------------------------------------------------


def test_outputs_are_pythons_to_the_last_bit(mlp):
    compiled, x, path = mlp
    (y,) = Model(str(path))(x)
    assert y.tobytes() == compiled(x).numpy().tobytes()


def test_branches_run_at_the_same_time_and_donated_inputs_stay(tmp_path):
    net = nn.LSTM(32, 32, bidirectional=True)
    x = drawn(24, 4, 32)
    with num_threads(2):
        compiled = wf.compile(lambda x: (net(x)[0], x * 2.0), x, donate=0)
        assert "together" in compiled.executable.stats()["kernels"]
        compiled.export(tmp_path / "net.so")
        wanted = [y.numpy() for y in compiled(x.copy())]
    model, given = Model(str(tmp_path / "net.so")), x.copy()
    for _ in range(3):
        for y, expected in zip(model(given), wanted, strict=True):
            assert y.tobytes() == expected.tobytes()
    assert given.tobytes() == x.tobytes()


def test_training_steps_change_the_states_of_their_instance_alone(step):
    compiled, inputs, path = step
    one, other = Model(str(path)), Model(str(path))
    before = other.states
    one.set_states(compiled.states())  # Python's may have moved on since: the generator is shared
    for _ in range(4):
        loss, twice = one(*inputs)
        expected = compiled(*inputs)
        assert loss.tobytes() == expected["loss"].numpy().tobytes()
        assert twice.tobytes() == expected["twice"][0].numpy().tobytes()
    after = one.states
    assert after.keys() == compiled.states().keys()
    for name, value in compiled.states().items():
        assert after[name].tobytes() == value.tobytes(), name
        assert other.states[name].tobytes() == before[name].tobytes()
    assert any(not np.array_equal(after[name], before[name]) for name in after)


def test_it_describes_itself(step):
    _, _, path = step
    info = Model(str(path)).info
    assert info.struct_size == ctypes.sizeof(caller._Info)
    assert (info.abi_version, info.name, info.program_count) == (1, b"train", 1)
    inputs = info.inputs[: info.input_count]
    assert [(t.name, t.shape[: t.ndim], t.nbytes) for t in inputs] == [
        (b"x", [7, 6], 168),
        (b"y", [7], 56),
    ]
    assert [t.name for t in info.outputs[: info.output_count]] == [b"loss", b"twice_0"]


def test_it_needs_nothing_but_c(mlp, step):
    for _, _, path in (mlp, step):
        content = path.read_bytes()
        assert set(needed_libraries(content)) <= {"libc.so.6", "libm.so.6"}
        offered = [s.name for s in dynamic_symbols(content) if s.is_defined]
        assert len(offered) == 12
        assert all(name.startswith("weft_") for name in offered)


def test_states_are_read_and_written_by_name(mlp):
    compiled, x, path = mlp
    model = Model(str(path))
    weights = model.states
    assert {n: w.shape for n, w in weights.items()} == {
        "sequential/0/weight": (16, 12),
        "sequential/0/bias": (16,),
        "sequential/2/weight": (3, 16),
        "sequential/2/bias": (3,),
    }
    bias = np.array([1, 2, 3], np.float32)
    zero = np.zeros((3, 16), np.float32)
    model.set_states({"sequential/2/bias": bias, "sequential/2/weight": zero})
    assert np.array_equal(model(x)[0], np.tile(bias, (5, 1)))
    assert Model(str(path))(x)[0].tobytes() == compiled(x).numpy().tobytes()


def test_states_are_saved_loaded_and_readable_elsewhere(step, tmp_path):
    _compiled, inputs, path = step
    model = Model(str(path))
    model(*inputs)
    model.save(tmp_path / "saved.safetensors")
    assert os.listdir(tmp_path) == ["saved.safetensors"]
    read = wf.io.load(tmp_path / "saved.safetensors")
    assert {n: np.asarray(v).tobytes() for n, v in read.items()} == {
        n: v.tobytes() for n, v in model.states.items()
    }
    other = Model(str(path), weights=str(tmp_path / "saved.safetensors"))
    third = Model(str(path))
    third.load(tmp_path / "saved.safetensors")
    expected = model(*inputs)[0]
    assert other(*inputs)[0].tobytes() == expected.tobytes() == third(*inputs)[0].tobytes()


def test_weights_beside_are_found_where_the_library_is(mlp, tmp_path):
    compiled, x, _ = mlp
    files = compiled.export(tmp_path / "m.so", weights="beside")
    assert [f.name for f in files] == ["m.so", "m.h", "m.safetensors"]
    model = Model(str(tmp_path / "m.so"))
    assert model.info.weights_file == b"m.safetensors"
    assert model(x)[0].tobytes() == compiled(x).numpy().tobytes()
    assert (tmp_path / "m.so").stat().st_size < 200_000


def test_instances_run_in_several_threads(step):
    _compiled, inputs, path = step
    models = [Model(str(path), threads=2) for _ in range(4)]
    found = [[] for _ in models]

    def run(model, results):
        for _ in range(50):
            results.append(model(*inputs)[0].tobytes())

    threads = [threading.Thread(target=run, args=pair) for pair in zip(models, found, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results == found[0] for results in found)
    assert len(set(found[0])) > 1


def wide(tmp_path, **options):
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).eval()
    x = drawn(128, 256)
    compiled = wf.compile(net, x)
    compiled.export(tmp_path / "wide.so", threads=2, **options)
    return x, compiled(x).numpy()


def test_threads_of_its_own_and_of_the_caller_give_the_same_bits(tmp_path):
    x, expected = wide(tmp_path)
    path, calls = str(tmp_path / "wide.so"), []

    def each(user, task, context, chunks):
        calls.append(chunks)
        for chunk in reversed(range(chunks)):
            task(context, chunk, 0)

    for options in ({"threads": 1}, {"threads": 2}, {"threads": 5}, {}):
        assert Model(path, **options)(x)[0].tobytes() == expected.tobytes()
    callback = caller.PARALLEL_FOR(each)
    assert Model(path, parallel_for=callback)(x)[0].tobytes() == expected.tobytes()
    assert calls
    assert min(calls) > 1


def test_batches_of_many_sizes_and_of_one(tmp_path):
    net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    compiled = wf.compile(net, drawn(4, 12))
    compiled.export(tmp_path / "b.so", batches=range(20))
    model = Model(str(tmp_path / "b.so"))
    assert model.info.inputs[0].shape[:2] == [-1, 12]
    assert model.info.outputs[0].nbytes == -1
    for n in (7, 0, 1, 19, 2, 7):
        x = drawn(n, 12)
        assert model(x)[0].tobytes() == wf.compile(net, x)(x).numpy().tobytes(), n
    with pytest.raises(ModelError, match=r"input x: shape \[20, 12\].*none of the 20") as caught:
        model(drawn(20, 12))
    assert caught.value.code == ErrorCode.SHAPE


def test_outputs_that_are_inputs_constants_views_and_the_same(tmp_path):
    table = np.arange(6, dtype=np.float32).reshape(2, 3)

    def several(x, y):
        z = x + y
        return x, z.T, z, z, wf.asarray(table).T, y[1]

    compiled = wf.compile(several, drawn(2, 3), drawn(2, 3))
    compiled.export(tmp_path / "s.so")
    inputs = drawn(2, 3), drawn(3, 2).T.copy()
    found = Model(str(tmp_path / "s.so"))(*inputs)
    for a, b in zip(found, compiled(*inputs), strict=True):
        assert np.array_equal(a, b.numpy())


def test_states_that_trade_places(tmp_path):
    a, b = wf.asarray(drawn(3)), wf.asarray(drawn(3) + 1)

    def trade(x):
        old = a * 1
        a.assign(b)
        b.assign(old)
        return x + a

    compiled = wf.compile(trade, drawn(3))
    compiled.export(tmp_path / "t.so")
    model = Model(str(tmp_path / "t.so"))
    for _ in range(3):
        assert model(drawn(3))[0].tobytes() == compiled(drawn(3)).numpy().tobytes()
    kept, expected = model.states, compiled.states()
    assert all(np.array_equal(kept[name], expected[name]) for name in expected)


def test_control_flow(tmp_path):
    def newton(x):
        def step(state):
            i, y = state
            return i + 1, y - (y * y - x) / (2 * y)

        def more(state):
            i, y = state
            return (i < 50) & ((y * y - x).abs().max() > 1e-6)

        _, y = wf.while_loop(more, step, (wf.asarray(0), x * 0 + 1))
        return wf.cond(y.sum() > 2, lambda: y * 2, lambda: y)

    x = np.abs(drawn(4)) + 0.5
    compiled = wf.compile(newton, x)
    compiled.export(tmp_path / "c.so")
    model = Model(str(tmp_path / "c.so"))
    for scale in (0.01, 1, 100):
        given = (x * scale).astype(np.float32)
        assert model(given)[0].tobytes() == compiled(given).numpy().tobytes()


@pytest.mark.parametrize("target", ["sse2", "avx2", "avx512"])
def test_named_targets(target, mlp, tmp_path):
    compiled, x, _ = mlp
    compiled.export(tmp_path / "n.so", target=target)
    if not all(llvm.get_host_cpu_features().get(name) for name in _NEEDED[target]):
        with pytest.raises(ModelError, match=f"of the kind {target}; this one lacks") as caught:
            Model(str(tmp_path / "n.so"))
        assert caught.value.code == ErrorCode.PROCESSOR
        return
    model = Model(str(tmp_path / "n.so"))
    assert model.info.target == target.encode()
    np.testing.assert_allclose(model(x)[0], compiled(x).numpy(), rtol=1e-5)


def test_a_processor_that_lacks_something_is_an_error(mlp, tmp_path, monkeypatch):
    wish = Feature(0x7FFFFFFF, 0, 1, "wishes")
    monkeypatch.setattr(library, "required", lambda target: [*required(target), wish])
    mlp[0].export(tmp_path / "p.so")
    with pytest.raises(ModelError, match=r"for processors of the kind .*; this one lacks wishes"):
        Model(str(tmp_path / "p.so"))
    code = ctypes.CDLL(str(tmp_path / "p.so")).weft_open(None, ctypes.byref(ctypes.c_void_p()))
    assert code == ErrorCode.PROCESSOR


@pytest.mark.parametrize(("name", "value"), [("sys.platform", "win32"), ("machine", "aarch64")])
def test_other_systems_are_told_so(mlp, tmp_path, monkeypatch, name, value):
    if name == "machine":
        monkeypatch.setattr(library.platform, "machine", lambda: value)
    else:
        monkeypatch.setattr(library.sys, "platform", value)
    with pytest.raises(ArgumentError, match="export writes libraries for Linux on x86-64"):
        mlp[0].export(tmp_path / "m.so")


def test_a_forked_child_goes_on(tmp_path):
    x, expected = wide(tmp_path)
    model = Model(str(tmp_path / "wide.so"), threads=2)
    model(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if model(x)[0].tobytes() == expected.tobytes() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert model(x)[0].tobytes() == expected.tobytes()


def test_two_models_with_prefixes_in_one_program(tmp_path):
    for name, factor in (("one", 2.0), ("two", 3.0)):
        compiled = wf.compile(lambda x, factor=factor: x * factor, drawn(3))
        compiled.export(tmp_path / f"{name}.so", prefix=name)
    models = [Model(str(tmp_path / f"{name}.so"), prefix=name) for name in ("one", "two")]
    one, two = (model(drawn(3))[0] for model in models)
    assert np.array_equal(one, drawn(3) * 2)
    assert np.array_equal(two, drawn(3) * 3)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            lambda x: [x[:3]],
            ErrorCode.SHAPE,
            r"input x: expected shape \[5, 12\]. Received: \[3, 12\]",
        ),
        (lambda x: [x[0]], ErrorCode.SHAPE, "input x: expected 2 dimensions. Received: 1"),
        (lambda x: [x.astype(np.float64)], ErrorCode.DTYPE, "expected float32. Received: float64"),
        (lambda x: [x, x], ErrorCode.COUNT, "expected 1 inputs. Received: 2"),
        (lambda x: [], ErrorCode.COUNT, "expected 1 inputs. Received: 0"),
    ],
)
def test_inputs_that_do_not_fit(mlp, change, code, message):
    _, x, path = mlp
    with pytest.raises(ModelError, match=message) as caught:
        Model(str(path))(*change(x))
    assert caught.value.code == code


def raw(path):
    """Return a model, and its input and output as the library takes them."""
    model = Model(str(path))
    x, y = drawn(5, 12), np.zeros((5, 3), np.float32)
    return model, caller.tensors([x]), caller.tensors([y])


@pytest.mark.parametrize(
    ("which", "field", "value", "code", "message"),
    [
        (0, "data", None, ErrorCode.NULL, "input x: data is NULL"),
        (1, "data", None, ErrorCode.NULL, "output output: data is NULL"),
        (0, "shape", None, ErrorCode.NULL, "input x: shape is NULL"),
        (0, "dtype", 99, ErrorCode.DTYPE, "expected float32. Received: a number of none"),
        (0, "dtype", -1, ErrorCode.DTYPE, "expected float32. Received: a number of none"),
        (1, "dtype", 4, ErrorCode.DTYPE, "output output: expected float32. Received: int64"),
        (0, "ndim", 7, ErrorCode.SHAPE, "expected 2 dimensions. Received: 7"),
        (1, "ndim", 1, ErrorCode.SHAPE, "output output: expected 2 dimensions. Received: 1"),
        (0, "ndim", -1, ErrorCode.SHAPE, "expected 2 dimensions. Received: -1"),
    ],
)
def test_tensors_that_do_not_fit(mlp, which, field, value, code, message):
    model, *sides = raw(mlp[2])
    shape = ctypes.POINTER(ctypes.c_int64)()
    setattr(sides[which][0], field, shape if field == "shape" else value)
    with pytest.raises(ModelError, match=message) as caught:
        model.run(*sides)
    assert caught.value.code == code


def test_data_between_elements(mlp):
    model, inputs, outputs = raw(mlp[2])
    inputs[0].data += 2
    with pytest.raises(ModelError, match="does not lie at a multiple of 4 bytes") as caught:
        model.run(inputs, outputs)
    assert caught.value.code == ErrorCode.ALIGNMENT


def test_null_pointers(mlp):
    model, inputs, outputs = raw(mlp[2])
    one, none = ctypes.c_int64(1), None
    loaded = model._library
    assert loaded.weft_run(none, inputs, one, outputs, one) == ErrorCode.NULL
    assert loaded.weft_run(model._instance, none, one, outputs, one) == ErrorCode.NULL
    assert loaded.weft_run(model._instance, inputs, one, none, one) == ErrorCode.NULL
    assert loaded.weft_output_shapes(model._instance, inputs, one, none, one) == ErrorCode.NULL
    assert loaded.weft_open(none, none) == ErrorCode.NULL
    assert loaded.weft_get_state(model._instance, none, none) == ErrorCode.NULL
    assert loaded.weft_save(model._instance, none) == ErrorCode.NULL
    assert loaded.weft_load(none, b"x") == ErrorCode.NULL
    loaded.weft_close(none)


def test_another_version_of_the_interface(mlp):
    model = Model(str(mlp[2]))
    instance = ctypes.c_void_p(1)
    for size, version in ((ctypes.sizeof(caller._Options), 2), (8, 1), (0, 0)):
        options = caller._Options(size, version)
        code = model._library.weft_open(ctypes.byref(options), ctypes.byref(instance))
        assert code == ErrorCode.VERSION
        assert not instance.value
    assert model.error_text(ErrorCode.VERSION) == (
        "the caller was compiled for another version of the interface"
    )
    assert model.error_text(1234) == "no code of this library"


def test_an_index_out_of_range_changes_nothing(tmp_path):
    net = nn.Embedding(5, 4)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    def train(x):
        loss = net(x).sum()
        optimizer.minimize(loss)
        return loss

    compiled = wf.compile(train, np.array([0, 1]))
    compiled.export(tmp_path / "e.so")
    model = Model(str(tmp_path / "e.so"))
    before = model.states
    with pytest.raises(ModelError, match="an index is out of range; no state has") as caught:
        model(np.array([0, 7]))
    assert caught.value.code == ErrorCode.INDEX
    assert all(np.array_equal(model.states[name], before[name]) for name in before)
    assert model(np.array([3, 4]))[0] == compiled(np.array([3, 4])).numpy()


def test_states_that_are_not_there_or_do_not_fit(mlp):
    model = Model(str(mlp[2]))
    with pytest.raises(ModelError, match="there is no state weight") as caught:
        model.set_states({"weight": np.zeros(3, np.float32)})
    assert caught.value.code == ErrorCode.NAME
    with pytest.raises(ModelError, match=r"expected shape \[3\]. Received: \[4\]"):
        model.set_states({"sequential/2/bias": np.zeros(4, np.float32)})
    with pytest.raises(ModelError, match=r"expected float32\. Received: int64"):
        model.set_states({"sequential/2/bias": np.zeros(3, np.int64)})


def test_files_of_weights_that_cannot_be_used(mlp, tmp_path):
    compiled, x, path = mlp
    model = Model(str(path))
    good = tmp_path / "good.safetensors"
    model.save(good)
    content = good.read_bytes()
    cases = {
        "missing": (None, ErrorCode.FILE, "cannot be opened: No such file"),
        "cut": (
            content[:-1],
            ErrorCode.WEIGHTS,
            f"has {len(content) - 1} bytes, and .* {len(content)}",
        ),
        "empty": (b"", ErrorCode.WEIGHTS, "has 0 bytes"),
        "other": (
            content.replace(b"bias", b"bios"),
            ErrorCode.WEIGHTS,
            "has other names, dtypes or",
        ),
    }
    for name, (wrong, code, message) in cases.items():
        file = tmp_path / name
        if wrong is not None:
            file.write_bytes(wrong)
        for use in (lambda f=file: Model(str(path), weights=str(f)), lambda f=file: model.load(f)):
            with pytest.raises(ModelError, match=message) as caught:
                use()
            assert caught.value.code == code, name
    assert model(x)[0].tobytes() == compiled(x).numpy().tobytes()
    with pytest.raises(ModelError, match=r"cannot be written: No such file or directory"):
        model.save(tmp_path / "no" / "where")
    with pytest.raises(ModelError) as caught:
        model.load(tmp_path)  # a folder
    assert caught.value.code in (ErrorCode.FILE, ErrorCode.WEIGHTS)


def test_weights_beside_that_are_gone(mlp, tmp_path):
    mlp[0].export(tmp_path / "m.so", weights="beside")
    (tmp_path / "m.safetensors").unlink()
    with pytest.raises(ModelError, match=r"m\.safetensors cannot be opened") as caught:
        Model(str(tmp_path / "m.so"))
    assert caught.value.code == ErrorCode.FILE
    mlp[0].export(tmp_path / "n.so")
    Model(str(tmp_path / "n.so")).save(tmp_path / "elsewhere")
    model = Model(str(tmp_path / "m.so"), weights=str(tmp_path / "elsewhere"))
    assert model(mlp[1])[0].tobytes() == mlp[0](mlp[1]).numpy().tobytes()


def test_an_instance_in_use_is_busy(tmp_path):
    x, _ = wide(tmp_path)
    model = Model(str(tmp_path / "wide.so"), parallel_for=(callback := _calls_back()))
    callback.model, callback.x = model, x
    model(x)
    assert set(callback.codes) == {ErrorCode.BUSY}


def _calls_back():
    """Return a callback that runs the model from inside its own run."""

    def each(user, task, context, chunks):
        made.codes.append(_code_of(lambda: made.model(made.x)))
        for chunk in range(chunks):
            task(context, chunk, 0)

    made = caller.PARALLEL_FOR(each)
    made.codes = []
    return made


def _code_of(run):
    try:
        run()
    except ModelError as error:
        return error.code
    return ErrorCode.OK
