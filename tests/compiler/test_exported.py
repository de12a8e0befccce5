"""Programs of sessions as libraries, and what is refused before anything is written."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import weft as wf
from tests.exported import Model
from weft.backends.exporting import ExportedTensor
from weft.core.errors import ArgumentError, ArgumentTypeError, GraphError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux")


def doubled(tmp_path, **options):
    return wf.compile(lambda x: x * 2, wf.ones(3)).export(tmp_path / "m.so", **options)


def test_a_session_exports_what_it_runs(tmp_path):
    with wf.Graph("square") as graph:
        x = wf.placeholder((None, 4), wf.float32, name="x")
        y = wf.placeholder((None,), wf.float32, name="y")
        z = x.sum(1) * y
    session = wf.Session(graph)
    feeds = {x: np.ones((3, 4), np.float32), y: np.arange(3, dtype=np.float32)}
    session.export(tmp_path / "s.so", [z, x], feeds, batches=[2, 3, 9])
    model = Model(str(tmp_path / "s.so"))
    assert model.info.name == b"square"
    for n in (2, 9, 3):
        given = np.full((n, 4), 0.3, np.float32), np.arange(n, dtype=np.float32)
        expected = session.run([z, x], dict(zip((x, y), given, strict=True)))
        for a, b in zip(model(*given), expected, strict=True):
            assert a.tobytes() == b.tobytes()


def test_a_program_of_no_kernels(tmp_path):
    wf.compile(lambda x: x, wf.ones(3)).export(tmp_path / "m.so")
    assert Model(str(tmp_path / "m.so"))(np.arange(3, dtype=np.float32))[0].tolist() == [0, 1, 2]


def test_sizes_that_differ_are_open():
    tensor = ExportedTensor("x", np.dtype(np.float32), ((2, 4, 3), (5, 4, 3)))
    assert tensor.shape == (-1, 4, 3)
    assert ExportedTensor("x", np.dtype(np.float32), ((),)).shape == ()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "pentium"}, ArgumentError, "target must be one of native, sse2, avx2, avx512"),
        ({"weights": "outside"}, ArgumentError, 'weights must be "inside" or "beside"'),
        ({"prefix": "a-b"}, ArgumentTypeError, "prefix must be a name that C allows"),
        ({"threads": 0}, ArgumentError, "threads must be at least 1. Received: 0"),
        ({"threads": 1.5}, ArgumentTypeError, "threads"),
        ({"treads": 2}, ArgumentTypeError, "there is no option treads; there are batches, "),
        ({"batches": []}, ArgumentError, "batches must be sizes"),
        ({"batches": 8}, ArgumentTypeError, "batches must be several sizes.*Received: 8"),
        ({"batches": [-1]}, ArgumentError, "batches must be sizes"),
        ({"input_names": ["a", "b"]}, ArgumentError, "input_names must be 1 different names"),
        ({"output_names": "y"}, ArgumentTypeError, "output_names must be a list of names"),
    ],
)
def test_options_that_are_refused(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        doubled(tmp_path, **options)
    assert os.listdir(tmp_path) == []


def test_names_can_be_given(tmp_path):
    doubled(tmp_path, input_names=["image"], output_names=["scores"])
    info = Model(str(tmp_path / "m.so")).info
    assert (info.inputs[0].name, info.outputs[0].name) == (b"image", b"scores")
    assert "WEFT_INPUT_IMAGE 0" in (tmp_path / "m.h").read_text()


def test_paths_that_cannot_be_written(tmp_path):
    compiled = wf.compile(lambda x: x * 2, wf.ones(3))
    with pytest.raises(OSError, match=r"no/m\.so cannot be written: .*No such file"):
        compiled.export(tmp_path / "no" / "m.so")
    with pytest.raises(ArgumentError, match=r"must end in \.so"):
        compiled.export(tmp_path / "m.dll")
    with pytest.raises(ArgumentTypeError, match=r"path must be a path\. Received: 3"):
        compiled.export(3)
    (tmp_path / "folder.so").mkdir()
    with pytest.raises(OSError, match="cannot be written"):
        compiled.export(tmp_path / "folder.so")
    assert os.listdir(tmp_path) == ["folder.so"]


def test_operators_that_need_python_are_named_with_their_line(tmp_path):
    compiled = wf.compile(lambda x: wf.sort(x * 2) + 1, wf.ones(3))
    with pytest.raises(GraphError, match=r"export: sort, built at .*test_exported\.py:\d+"):
        compiled.export(tmp_path / "m.so")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("result", [None, "a text"])
def test_what_computes_nothing_is_refused(result, tmp_path):
    with pytest.raises(ArgumentError, match="computes nothing"):
        wf.export(lambda x: result, tmp_path / "model.so", wf.ones(2))
    assert not list(tmp_path.iterdir())


def test_shapes_that_depend_on_values_are_refused(tmp_path):
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32)
        kept = x[x > 0] * 2
    session = wf.Session(graph)
    with pytest.raises(GraphError, match="export: "):
        session.export(tmp_path / "m.so", kept, {x: np.ones(4, np.float32)})


def test_fixed_sizes_take_no_batches(tmp_path):
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32)
        y = x * 2
    with pytest.raises(ArgumentError, match="batches are for inputs whose first size is not known"):
        wf.Session(graph).export(tmp_path / "m.so", y, {x: np.ones(4, np.float32)}, batches=[2])
