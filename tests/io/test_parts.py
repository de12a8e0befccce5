"""Checkpoints in parts: any division written, any division read, damage found."""

from __future__ import annotations

import hashlib
import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.io import ArrayPart, CheckpointError, load_state, load_state_metadata, save_state
from weft.io.encode import dump, encode_parts
from weft.io.parts import divided, part_name, plans_of, read_parts, write_part, write_rest
from weft.io.spans import ArraySpan, copy_common, cut
from weft.io.state import checked_manifest, read_arrays, replace_checkpoint


def write(folder, held, state=None):
    """Write a checkpoint whose parts are given for each writer: name -> (whole, span)."""
    tree = encode_parts(state)[0] if state is not None else _tree(held)

    def fill(target):
        written = []
        for i, own in enumerate(held):
            name = part_name(i, len(held))
            arrays = {key: cut(whole, span) for key, (whole, span) in own.items()}
            about = {k: (w.dtype.name, w.shape, span) for k, (w, span) in own.items()}
            written.append((name, write_part(target, name, arrays), about))
        plans = plans_of((name, about) for name, _, about in written)
        write_rest(target, tree, {name: file for name, file, _ in written}, plans, {"n": 1})

    replace_checkpoint(folder, fill)


def _tree(held):
    names = {name for own in held for name in own}
    return {name: {"$": "array", "name": name} for name in names}


@st.composite
def divisions(draw):
    """Draw a shape, and a division of it into boxes or ranges."""
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=0, max_size=3)))
    if draw(st.booleans()) or not shape:
        size = math.prod(shape)
        edges = sorted({0, size, *draw(st.lists(st.integers(0, size), max_size=3))})
        spans = [ArraySpan((a,), (b - a,)) for a, b in pairwise(edges)]
        return shape, spans or [ArraySpan((0,), (size,))]
    axis = draw(st.integers(0, len(shape) - 1))
    edges = sorted({0, shape[axis], *draw(st.lists(st.integers(0, shape[axis]), max_size=3))})
    spans = []
    for a, b in pairwise(edges):
        start = [0] * len(shape)
        sizes = list(shape)
        start[axis], sizes[axis] = a, b - a
        spans.append(ArraySpan(tuple(start), tuple(sizes)))
    return shape, spans or [ArraySpan((0,) * len(shape), shape)]


@given(divisions(), st.data())
def test_any_division_is_read_as_any_other(tmp_path_factory, division, data):
    shape, spans = division
    whole = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    folder = tmp_path_factory.mktemp("parts") / "c"
    write(folder, [{"w": (whole, span)} for span in spans])
    assert np.array_equal(load_state(folder)["w"], whole)
    wanted = data.draw(st.sampled_from(_spans(shape)))
    found = read_parts(folder, checked_manifest(folder), {"w": wanted})["w"]
    assert np.array_equal(found, cut(whole, wanted))
    assert load_state_metadata(folder) == {"n": 1}


def _spans(shape):
    size = math.prod(shape)
    found = [ArraySpan((0,) * len(shape), shape), ArraySpan((size // 3,), (size - size // 3,))]
    if shape and shape[0] > 1:
        found.append(ArraySpan((1,) + (0,) * (len(shape) - 1), (shape[0] - 1, *shape[1:])))
    return found


def test_arrays_that_all_have_are_shared_out_evenly():
    arrays = {"big": np.zeros(100_000, np.float32), "b": np.zeros(10), "a": np.zeros((3, 3))}
    shares = divided(arrays, 4)
    taken = dict.fromkeys(arrays, 0)
    for share in shares:
        for name, span in share:
            taken[name] += math.prod(span.shape)
    assert taken == {"big": 100_000, "b": 10, "a": 9}
    loads = [sum(math.prod(s.shape) for _, s in share) for share in shares]
    assert max(loads) < 1.01 * min(loads)
    with pytest.raises(ValueError, match="at least one writer"):
        divided(arrays, 0)


def test_a_range_meets_a_box():
    whole = np.arange(12.0).reshape(3, 4)
    target = np.zeros((3, 2))
    held = ArraySpan((3,), (6,))
    copy_common(cut(whole, held), held, target, ArraySpan((0, 1), (3, 2)), (3, 4))
    assert target.tolist() == [[0.0, 0.0], [5.0, 6.0], [0.0, 0.0]]


def test_parts_say_where_they_stand():
    with pytest.raises(ValueError, match=r"begins at \(3, 0\) does not lie in"):
        ArrayPart(np.zeros((2, 2)), (4, 2), (3, 0))
    with pytest.raises(ValueError, match="does not lie in"):
        ArrayPart(np.zeros((2, 2)), (4, 2), (0,))
    with pytest.raises(TypeError, match="must be a tensor or array"):
        ArrayPart([1.0], (1,), (0,))


def test_states_with_parts_are_for_all_writers(tmp_path):
    with pytest.raises(TypeError, match="holds a ArrayPart"):
        save_state(tmp_path / "c", {"w": ArrayPart(np.zeros(2), (4,), (0,))})


# -- damage ----------------------------------------------------------------------------------------

WHOLE = np.arange(40.0).reshape(8, 5)
HALVES = [{"w": (WHOLE, ArraySpan((0, 0), (4, 5)))}, {"w": (WHOLE, ArraySpan((4, 0), (4, 5)))}]


@pytest.mark.parametrize("at", range(0, 200, 7))
def test_a_changed_byte_is_found(tmp_path, at):
    write(tmp_path / "c", HALVES)
    for name in ("manifest.json", "state.json", part_name(1, 2)):
        path = tmp_path / "c" / name
        good = path.read_bytes()
        bad = bytearray(good)
        bad[at % len(bad)] ^= 0x41
        path.write_bytes(bytes(bad))
        with pytest.raises(
            ValueError, match=r"damaged|JSON|manifest|version|checksum|lists|describe"
        ):
            load_state(tmp_path / "c")
        path.write_bytes(good[:-1])
        with pytest.raises(ValueError, match=r".*"):
            load_state(tmp_path / "c")
        path.write_bytes(good)
    assert np.array_equal(load_state(tmp_path / "c")["w"], WHOLE)


def test_a_missing_part_is_named(tmp_path):
    write(tmp_path / "c", HALVES)
    (tmp_path / "c" / part_name(1, 2)).unlink()
    with pytest.raises(CheckpointError, match=r"part-00001-of-00002\.safetensors is missing"):
        load_state(tmp_path / "c")


def signed(folder, change):
    """Change a manifest as somebody who can compute checksums would."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest.pop("sha256")
    change(manifest)
    manifest["sha256"] = hashlib.sha256(dump(manifest)).hexdigest()
    path.write_bytes(dump(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["arrays"]["w"]["parts"].pop(), "20 elements of 40"),
        (lambda m: m["arrays"]["w"]["parts"][1].__setitem__(1, [3, 0]), "twice"),
        (lambda m: m["arrays"]["w"]["parts"][1].__setitem__(1, [9, 0]), "does not lie in"),
        (lambda m: m["arrays"]["w"]["parts"][1].__setitem__(0, "../x"), "not there"),
        (lambda m: m["arrays"]["w"].pop("shape"), "describes its arrays wrongly"),
        (lambda m: m.pop("arrays"), "lists no arrays"),
        (lambda m: m.__setitem__("version", 3), "versions up to 2"),
        (lambda m: m["arrays"]["w"].__setitem__("dtype", "object"), "dtype"),
    ],
)
def test_manifests_that_lie(tmp_path, change, message):
    write(tmp_path / "c", HALVES)
    signed(tmp_path / "c", change)
    with pytest.raises(ValueError, match=message):
        load_state(tmp_path / "c")


def test_a_part_that_was_never_written(tmp_path):
    write(tmp_path / "c", HALVES)
    with pytest.raises(CheckpointError, match="no array 'v'"):
        read_arrays(tmp_path / "c", {"v": ArraySpan((0,), (1,))})
