"""Nested states: exact round trips, checksums, and what is refused."""

import json
import math
import os
from collections import OrderedDict
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft.io as wio
from weft.core.errors import ArgumentError, ArgumentTypeError, DTypeError
from weft.core.rng import Generator
from weft.core.tensor import Tensor, wrap
from weft.io.encode import decode_state, dump, encode_state, parse

FILES = ["manifest.json", "state.json", "state.safetensors"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def round_trip(state: Any) -> Any:
    data, arrays = encode_state(state)
    return decode_state(parse(dump(data), "test"), arrays)


# -- round trips -----------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.text() | st.integers() | st.just("$")
STATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner) | st.dictionaries(KEYS, inner) | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Compare exactly: types, order of keys, and the sign of zero."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


@given(state=STATES)
def test_any_nest_comes_back_exactly(state: Any) -> None:
    assert same(round_trip(state), state)


def test_nan_and_infinities() -> None:
    loaded = round_trip({"best": math.inf, "worst": -math.inf, "nan": math.nan, "zero": -0.0})
    assert loaded["best"] == math.inf
    assert loaded["worst"] == -math.inf
    assert math.isnan(loaded["nan"])
    assert math.copysign(1, loaded["zero"]) == -1


def test_tensors_and_arrays_stay_apart(folder: Path) -> None:
    state = {
        "model": {"w": wrap(np.ones((2, 3), np.float32)), "empty": wrap(np.zeros((0, 2)))},
        "order": np.arange(5)[::-1],
        "slots": [{"m": wrap(np.zeros(())), "t": 3}],
    }
    wio.save_state(folder, state)
    loaded = wio.load_state(folder)
    assert isinstance(loaded["model"]["w"], Tensor)
    assert loaded["model"]["empty"].shape == (0, 2)
    assert isinstance(loaded["order"], np.ndarray)
    assert loaded["order"].tolist() == [4, 3, 2, 1, 0]
    assert loaded["order"].flags.writeable
    assert loaded["slots"][0]["m"].shape == ()
    assert loaded["slots"][0]["t"] == 3
    assert sorted(entry.name for entry in folder.iterdir()) == FILES
    assert [entry.name for entry in folder.parent.iterdir()] == ["checkpoint"]


def test_equal_paths_get_different_names() -> None:
    state = {"a.b": np.zeros(1), "a": {"b": np.ones(1)}, "a.b~2": np.full(1, 2)}
    loaded = round_trip(state)
    assert [loaded["a.b"], loaded["a"]["b"], loaded["a.b~2"]] == [0, 1, 2]
    assert round_trip({"__metadata__": np.ones(1)})["__metadata__"] == 1


def test_tensors_of_one_buffer_are_stored_once() -> None:
    tied = wrap(np.zeros(3))
    data, arrays = encode_state({"a": tied, "b": tied.detach(), "c": [tied]})
    assert list(arrays) == ["a"]
    loaded = decode_state(data, arrays)
    loaded["a"].copy_([1.0, 2.0, 3.0])
    assert loaded["b"].tolist() == [0, 0, 0]


def test_arrays_of_one_buffer_do_not_alias_after_loading() -> None:
    array = np.zeros(3)
    loaded = round_trip({"a": array, "b": array})
    loaded["a"][0] = 1
    assert loaded["b"][0] == 0


def test_subclasses_become_builtins() -> None:
    class Phase(IntEnum):
        TRAIN = 1

    class Pair(NamedTuple):
        x: int
        y: int

    state = {
        "phase": Phase.TRAIN,
        "pair": Pair(1, 2),
        "ordered": OrderedDict(a=1),
        "scalars": [np.int64(3), np.float32(0.5), np.bool_(True), np.float64(0.1), np.str_("s")],
    }
    expected = {"phase": 1, "pair": (1, 2), "ordered": {"a": 1}}
    assert same(round_trip(state), expected | {"scalars": [3, 0.5, True, 0.1, "s"]})


def test_random_generator_state(folder: Path) -> None:
    generator = Generator(7)
    generator.reserve(5)
    wio.save_state(folder, {"rng": generator.get_state()})
    again = Generator().set_state(wio.load_state(folder)["rng"])
    assert again.reserve(1) == generator.reserve(1)


@pytest.mark.parametrize("state", [{}, None, 3, [], (), "text"])
def test_states_without_tensors(folder: Path, state: Any) -> None:
    wio.save_state(folder, state)
    assert same(wio.load_state(folder), state)


def test_metadata(folder: Path) -> None:
    wio.save_state(folder, {}, {"epoch": 2, "loss": math.inf})
    assert wio.load_state_metadata(folder) == {"epoch": 2, "loss": math.inf}
    wio.save_state(folder, {})
    assert wio.load_state_metadata(folder) == {}


def test_parents_are_made(tmp_path: Path) -> None:
    wio.save_state(tmp_path / "a" / "b" / "c", {"x": 1})
    assert wio.load_state(tmp_path / "a" / "b" / "c") == {"x": 1}


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wio.save_state("here", {"x": 1})
    assert wio.load_state("here") == {"x": 1}


# -- what is refused -------------------------------------------------------------------------------


def deep(levels: int) -> Any:
    state: Any = 0
    for _ in range(levels):
        state = [state]
    return state


def recursive() -> Any:
    state: dict[str, Any] = {}
    state["self"] = state
    return state


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"a": [1, {2}]}, ArgumentTypeError, r"holds a set at state\['a'\]\['1'\]"),
        ({"f": print}, ArgumentTypeError, r"holds a builtin_function_or_method at state\['f'\]"),
        ({"b": b"raw"}, ArgumentTypeError, "holds a bytes"),
        ({"c": 1j}, ArgumentTypeError, "holds a complex"),
        ({"c": np.complex64(1)}, ArgumentTypeError, "holds a complex64 scalar"),
        ({"o": np.array([None])}, DTypeError, "'o' cannot be saved"),
        ({(1, 2): 3}, ArgumentTypeError, r"keys of a state must be.*\(1, 2\)"),
        ({True: 3}, ArgumentTypeError, "keys of a state must be"),
        (deep(200), ArgumentError, "nested more than 100 levels"),
        (recursive(), ArgumentError, "does it contain itself"),
    ],
)
def test_states_that_cannot_be_saved(
    folder: Path, state: Any, error: type[Exception], message: str
) -> None:
    wio.save_state(folder, {"old": 1})
    with pytest.raises(error, match=message):
        wio.save_state(folder, state)
    assert wio.load_state(folder) == {"old": 1}


def test_directories_with_other_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ArgumentError, match=r"holds other things.*thesis\.tex"):
        wio.save_state(tmp_path, {})
    with pytest.raises(ArgumentError, match="is a file"):
        wio.save_state(tmp_path / "thesis.tex", {})
    with pytest.raises(ArgumentError, match="name a directory in it"):
        wio.save_state(os.path.abspath(os.sep), {})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    wio.save_state(tmp_path / "empty", {"x": 1})
    assert wio.load_state(tmp_path / "empty") == {"x": 1}


def test_missing_checkpoint(folder: Path) -> None:
    with pytest.raises(wio.FileMissingError, match="there is no checkpoint"):
        wio.load_state(folder)


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def saved(folder: Path) -> Path:
    wio.save_state(folder, {"w": wrap(np.arange(6.0)), "n": [1, 2.5]}, {"step": 3})
    return folder


@pytest.mark.parametrize("name", FILES)
def test_missing_files_are_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(wio.CheckpointError, match=f"no {name}|{name} is missing"):
        wio.load_state(saved)


@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_is_found(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    for position in range(0, len(content), 7):
        changed = bytearray(content)
        changed[position] ^= 0x04
        (saved / name).write_bytes(changed)
        with pytest.raises(wio.FileFormatError):
            wio.load_state(saved)


@pytest.mark.parametrize("name", FILES)
def test_cut_files_are_found(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    for length in (0, 1, len(content) - 1):
        (saved / name).write_bytes(content[:length])
        with pytest.raises(wio.FileFormatError, match=name):
            wio.load_state(saved)


def rewrite_manifest(folder: Path, **changes: Any) -> None:
    """Change a manifest and give it a right checksum."""
    manifest = json.loads((folder / "manifest.json").read_text()) | changes
    del manifest["sha256"]
    manifest["sha256"] = sha256(dump(manifest)).hexdigest()
    (folder / "manifest.json").write_bytes(dump(manifest))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "version 3; this Weft reads versions up to 2: upgrade"),
        ({"format": "other"}, "not the manifest of a Weft checkpoint"),
        ({"files": []}, "lists no files"),
        ({"files": {}}, "does not list state.safetensors"),
        ({"files": {"state.safetensors": 3}}, "does not list state.safetensors"),
    ],
)
def test_manifests_of_others(saved: Path, changes: dict[str, Any], message: str) -> None:
    rewrite_manifest(saved, **changes)
    with pytest.raises(wio.CheckpointError, match=message):
        wio.load_state(saved)


@pytest.mark.parametrize("text", ["[]", "3", "null", '{"format": NaN}', "[" * 100_000, "\xff"])
def test_manifests_that_are_none(saved: Path, text: str) -> None:
    (saved / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(wio.FileFormatError):
        wio.load_state(saved)


@pytest.mark.parametrize(
    "data",
    [
        {"$": "unknown"},
        {"$": ["list"]},
        {"$": "tuple"},
        {"$": "tuple", "items": 3},
        {"$": "dict", "items": [[[], 1]]},
        {"$": "dict", "items": [1]},
        {"$": "float", "value": "x"},
        {"$": "tensor", "name": "absent"},
        {"$": "array"},
        {"$": "tensor", "name": []},
    ],
)
def test_forged_entries(data: Any) -> None:
    with pytest.raises(wio.FileFormatError, match=r"unknown entry|not there"):
        decode_state(data, {})


def test_forged_depth() -> None:
    with pytest.raises(wio.FileFormatError, match="nested too deeply"):
        decode_state(deep(100_000), {})
