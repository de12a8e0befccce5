"""Named tensors in one file: what goes in comes out, and what cannot is refused."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import weft.io as wio
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    MissingDependencyError,
    ShapeError,
)
from weft.core.tensor import Tensor, wrap
from weft.nn import Module, Parameter

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", ml_dtypes.bfloat16),
]


def arrays() -> st.SearchStrategy[Any]:
    dtypes = st.sampled_from([np.dtype(d) for d in DTYPES[:-1]])
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    return dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes))


def assert_same_bits(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


# -- round trips -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 3), (2, 3, 4)], ids=str)
def test_every_dtype_and_shape(path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    wio.save(path, {"x": wrap(x)})
    loaded = wio.load(path)["x"]
    assert isinstance(loaded, Tensor)
    assert not loaded.requires_grad
    assert_same_bits(loaded.numpy(), x)


@given(tensors=st.dictionaries(st.text(max_size=20), arrays(), max_size=4))
def test_any_names_and_values(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, Any]
) -> None:
    tensors.pop("__metadata__", None)
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    wio.save(path, tensors)
    loaded = wio.load(path)
    assert loaded.keys() == tensors.keys()
    for name, array in tensors.items():
        assert_same_bits(loaded[name].numpy(), array)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.T,
        lambda x: x[::2, 1:],
        lambda x: x[::-1],
        np.asfortranarray,
        lambda x: x.astype(">f4"),
        lambda x: np.broadcast_to(x[:1], x.shape),
    ],
    ids=["transposed", "strided", "reversed", "fortran", "big-endian", "broadcast"],
)
def test_memory_layout_does_not_matter(path: Path, layout: Any) -> None:
    x = layout(np.arange(12, dtype=np.float32).reshape(4, 3))
    wio.save(path, {"x": x})
    np.testing.assert_array_equal(wio.load(path)["x"].numpy(), np.asarray(x, np.float32))


def test_special_values_keep_their_bits(path: Path) -> None:
    bits = np.array([0x7FC00001, 0xFFC00000, 0x7F800000, 0x80000000, 1], np.uint32)
    x = bits.view(np.float32)
    wio.save(path, {"x": x})
    assert_same_bits(wio.load(path)["x"].numpy(), x)


def test_loaded_tensors_can_be_written(path: Path) -> None:
    wio.save(path, {"x": np.zeros(3, np.float32)})
    first, second = wio.load(path)["x"], wio.load(path)["x"]
    first.copy_([1.0, 2.0, 3.0])
    assert second.tolist() == [0, 0, 0]


def test_bools_of_other_programs_are_cleaned(path: Path) -> None:
    save_file({"x": np.array([0, 1, 2, 255], np.uint8).view(np.bool_)}, path)
    assert wio.load(path)["x"].numpy().view(np.uint8).tolist() == [0, 1, 1, 1]


def test_parameters_and_results_are_saved_as_values(path: Path) -> None:
    parameter = Parameter(np.ones(2, np.float32))
    wio.save(path, {"p": parameter, "scalar": np.float32(3)})
    assert wio.load(path)["p"].tolist() == [1, 1]
    assert wio.load(path)["scalar"].shape == ()


def test_no_tensors_at_all(path: Path) -> None:
    wio.save(path, {})
    assert wio.load(path) == {}
    assert wio.load_metadata(path) == {}


def test_other_readers_read_it(path: Path) -> None:
    wio.save(path, {"x": np.arange(3)}, {"epoch": 1})
    assert load_file(path)["x"].tolist() == [0, 1, 2]
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt", "weft": '{"epoch":1}'}


# -- metadata --------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=10,
)


@given(metadata=st.dictionaries(st.text(), JSON, max_size=4))
def test_metadata_comes_back(
    tmp_path_factory: pytest.TempPathFactory, metadata: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("meta") / "x.safetensors"
    wio.save(path, {}, metadata)
    assert wio.load_metadata(path) == metadata


def test_metadata_of_other_programs_is_text(path: Path) -> None:
    save_file({"x": np.zeros(1)}, path, metadata={"format": "pt", "epoch": "3"})
    assert wio.load_metadata(path) == {"format": "pt", "epoch": "3"}


def test_damaged_metadata_is_refused(path: Path) -> None:
    save_file({}, path, metadata={"weft": "{"})
    with pytest.raises(wio.FileFormatError, match="valid JSON"):
        wio.load_metadata(path)
    save_file({}, path, metadata={"weft": "3"})
    with pytest.raises(wio.FileFormatError, match="no dictionary"):
        wio.load_metadata(path)


def test_metadata_of_a_checkpoint(tmp_path: Path) -> None:
    wio.save_state(tmp_path / "c", {}, {"note": "x"})
    assert wio.load_metadata(tmp_path / "c") == {"note": "x"}


# -- files -----------------------------------------------------------------------------------------


def test_overwriting_leaves_nothing_behind(path: Path) -> None:
    for value in (1, 2):
        wio.save(str(path), {"x": np.full(3, value)})
    assert wio.load(str(path))["x"].tolist() == [2, 2, 2]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_follow_the_umask(path: Path) -> None:
    old = os.umask(0o027)
    try:
        wio.save(path, {"x": np.zeros(1)})
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need rights")
def test_symbolic_link_is_followed(tmp_path: Path, path: Path) -> None:
    wio.save(path, {"x": np.zeros(1)})
    link = tmp_path / "link.safetensors"
    link.symlink_to(path)
    wio.save(link, {"x": np.ones(1)})
    assert link.is_symlink()
    assert wio.load(path)["x"].tolist() == [1]


def test_failed_save_keeps_the_old_file(path: Path) -> None:
    wio.save(path, {"x": np.ones(1)})
    with pytest.raises(DTypeError):
        wio.save(path, {"x": np.zeros(1), "y": np.array(["text"])})
    assert wio.load(path)["x"].tolist() == [1]


# -- bad arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ([1, 2], ArgumentTypeError, "a dictionary of tensors.*Received: list"),
        (Module(), ArgumentTypeError, r"model\.state_dict\(\)"),
        ({"x": [1.0]}, ArgumentTypeError, "'x' must be a tensor or a NumPy array.*list"),
        ({"x": None}, ArgumentTypeError, "'x' must be.*NoneType"),
        ({3: np.zeros(1)}, ArgumentTypeError, "names of tensors must be strings"),
        ({"__metadata__": np.zeros(1)}, ArgumentError, "reserves the name"),
        ({"\ud800": np.zeros(1)}, ArgumentError, "valid Unicode"),
        ({"x": np.zeros(1, complex)}, DTypeError, "'x' cannot be saved.*complex128"),
        ({"x": np.array(["a"])}, DTypeError, "'x' cannot be saved"),
        ({"x": np.array([object()])}, DTypeError, "'x' cannot be saved: dtype object"),
    ],
)
def test_what_cannot_be_saved(
    path: Path, tensors: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wio.save(path, tensors)
    assert not path.exists()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([1], "metadata must be a dictionary"),
        ({"x": np.zeros(2)}, "metadata may hold only numbers.*array at 'x'"),
        ({"x": {1, 2}}, "holds a set"),
        ({2.5: 1}, "keys of a state must be strings or integers"),
    ],
)
def test_metadata_that_cannot_be_saved(path: Path, metadata: Any, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        wio.save(path, {}, metadata)


def test_arguments_in_the_order_of_torch_save(path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="the path comes first"):
        wio.save({"x": np.zeros(1)}, path)


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(wio.SaveError, match="is a directory"):
        wio.save(tmp_path, {})
    with pytest.raises(wio.SaveError, match="does not exist: create it first"):
        wio.save(tmp_path / "no" / "x.safetensors", {})
    (tmp_path / "file").touch()
    with pytest.raises(wio.SaveError, match="a part of the path is a file"):
        wio.save(tmp_path / "file" / "x.safetensors", {})
    with pytest.raises(wio.UnsafeFileError, match="pickle"):
        wio.save(tmp_path / "model.pt", {})


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(wio.FileMissingError, match="there is no file"):
        wio.load(tmp_path / "none.safetensors")
    with pytest.raises(FileNotFoundError):
        wio.load(tmp_path / "none.safetensors" / "x")
    with pytest.raises(ArgumentTypeError, match="expected a path"):
        wio.load(3)
    with pytest.raises(wio.ReadError, match="cannot read"):
        wio.load("a\0b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(wio.FileFormatError, match="not a regular file"):
        wio.load(tmp_path / "pipe")


def test_missing_package_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "weft\[io\]"'):
        wio.save(path, {"x": np.zeros(1)})


# -- into modules ----------------------------------------------------------------------------------


class Linear(Module):
    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = Parameter(np.zeros((rows, columns), np.float32))
        self.bias = Parameter(np.zeros(rows, np.float32))


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = Linear(2, 3)
        self.out = Linear(2, 2)


class Tied(Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = Linear(4, 2)
        self.head = Linear(4, 2)
        self.head.weight = self.embed.weight


def filled(module: Module) -> dict[str, Any]:
    state = module.state_dict()
    return {n: np.full(t.shape, i + 1, np.float32) for i, (n, t) in enumerate(state.items())}


def test_load_into_a_module(path: Path) -> None:
    net = Net()
    wio.save(path, filled(net))
    report = wio.load_into(net, path)
    assert not report
    assert_same_bits(net.out.bias.numpy(), np.full(2, 4, np.float32))
    assert net.out.bias.requires_grad


def test_load_casts_to_the_module(path: Path) -> None:
    net = Net()
    wio.save(path, {n: a.astype(ml_dtypes.bfloat16) for n, a in filled(net).items()})
    wio.load_into(net, path)
    assert net.fc.weight.dtype == np.float32
    assert net.fc.weight.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_report_names_what_does_not_fit(path: Path) -> None:
    net = Net()
    state = filled(net)
    del state["fc.bias"]
    state["extra"] = np.zeros(1)
    wio.save(path, state)
    with pytest.raises(ArgumentError, match=r"Missing: fc\.bias\. Unexpected: extra"):
        wio.load_into(net, path)
    assert net.fc.weight.tolist() == [[0, 0, 0], [0, 0, 0]]
    report = wio.load_into(net, path, strict=False)
    assert (report.missing, report.unexpected, report.mismatched) == (["fc.bias"], ["extra"], [])
    assert net.fc.weight.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_mismatched_shapes_are_reported(path: Path) -> None:
    net = Net()
    wio.save(path, filled(net) | {"fc.bias": np.zeros(5)})
    with pytest.raises(ShapeError, match=r"fc\.bias: expected \(2,\), received \(5,\)"):
        wio.load_into(net, path)


def test_names_can_be_changed_or_dropped(path: Path) -> None:
    net = Net()
    wio.save(path, {f"model.{n}": a for n, a in filled(net).items()} | {"opt": np.zeros(1)})
    wio.load_into(net, path, rename=lambda n: n[6:] if n.startswith("model.") else None)
    assert net.out.weight.tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ArgumentError, match="gives the name 'x' to two tensors"):
        wio.load_into(net, path, rename=lambda _: "x")


@pytest.mark.parametrize("kept", ["embed.weight", "head.weight"])
def test_shared_tensor_may_be_stored_once(path: Path, kept: str) -> None:
    net = Tied()
    state = filled(net)
    dropped = {"embed.weight": "head.weight", "head.weight": "embed.weight"}[kept]
    del state[dropped]
    state[kept][:] = 7
    wio.save(path, state)
    assert not wio.load_into(net, path)
    assert net.head.weight is net.embed.weight
    assert net.head.weight.numpy().min() == 7


def test_load_into_checks_its_arguments(path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="expected a Module, then a path"):
        wio.load_into(str(path), Net())


@pytest.mark.peers
def test_weights_written_by_pytorch(path: Path) -> None:
    torch = pytest.importorskip("torch")
    save_torch = pytest.importorskip("safetensors.torch").save_file
    peer = torch.nn.ModuleDict({"fc": torch.nn.Linear(3, 2), "out": torch.nn.Linear(2, 2)})
    save_torch(peer.state_dict(), path)
    net = Net()
    assert not wio.load_into(net, path)
    for name, tensor in peer.state_dict().items():
        assert_same_bits(net.state_dict()[name].numpy(), tensor.numpy())
    save_torch({"fc.weight": peer["fc"].weight.detach().bfloat16()}, path)
    expected = peer["fc"].weight.detach().bfloat16().float().numpy()
    assert_same_bits(wio.load(path)["fc.weight"].numpy().astype(np.float32), expected)


SAVER = """
    import sys
    import numpy as np
    import weft as wf

    tensors = {"b": np.arange(3.0), "a": np.ones((2, 2), np.int8), "c": np.float32(2)}
    metadata = {"epoch": 3, "name": "x", "rates": (0.1, 0.2), "best": {"loss": 1.0}}
    wf.save(sys.argv[1], tensors, metadata)
    wf.io.save_state(sys.argv[2], {"model": tensors, "t": 3, "rng": wf.Generator(3).get_state()})
"""


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    kept = set()
    for seed in (0, 1, 2, 3):
        file, state = tmp_path / f"{seed}.safetensors", tmp_path / f"state-{seed}"
        command = [sys.executable, "-c", dedent(SAVER), str(file), str(state)]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": str(seed)}, check=True)
        kept.add((file.read_bytes(), (state / "state.safetensors").read_bytes()))
    assert len(kept) == 1
    assert load_file(file)["b"].tolist() == [0.0, 1.0, 2.0]


def test_layout_is_that_of_the_format(path: Path) -> None:
    arrays = {
        "half": np.arange(3, dtype=np.float16),
        "byte": np.array([1, 2], np.uint8),
        "double": np.array(2.5),
        "empty": np.zeros((0, 3), np.int32),
        "ja \u2603": np.ones((2, 1), np.int64),
        "truth": np.array([True, False]),
    }
    wio.save(path, arrays)
    for name, found in load_file(path).items():
        np.testing.assert_array_equal(found, arrays[name], strict=True)
    assert wio.load(path)["double"].shape == ()
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    for about in json.loads(content[8 : 8 + length]).values():
        if "dtype" in about:
            size = {"F64": 8, "I64": 8, "I32": 4, "F16": 2}.get(about["dtype"], 1)
            assert about["data_offsets"][0] % size == 0
