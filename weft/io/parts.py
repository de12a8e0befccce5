"""Checkpoints in parts: arrays that several processes hold, each a box or a range of every array.

    part-00000-of-00004.safetensors   what the first of four writers had of the arrays
    state.json                        the nest that the arrays stand in, and all other values
    manifest.json                     sizes and SHA-256 of the files, and of which array each part
                                      has what

Nothing here knows how writers agree (`wf.distributed` does); whoever reads needs no other process,
and may ask for any part of an array, however the writers had divided it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ..core.dtype import as_dtype
from ..core.errors import ArgumentError, ShapeError
from .disk import sync
from .encode import dump
from .errors import CheckpointError, FileFormatError
from .shards import MANIFEST
from .spans import ArraySpan, check_span, copy_common, overlap
from .tensorfile import Array, as_array, open_tensors, read_one, write_tensors

TREE: Final = "state.json"
FORMAT: Final = "weft-checkpoint"
VERSION: Final = 2
_PART: Final = re.compile(r"part-\d{5,}-of-\d{5,}\.safetensors")


class ArrayPlan(NamedTuple):
    """An array as a manifest has it: its type, and which file has which of its parts."""

    dtype: str
    shape: tuple[int, ...]
    parts: tuple[tuple[str, ArraySpan], ...]


# -- writing ---------------------------------------------------------------------------------------


def part_name(index: int, count: int) -> str:
    """Return the name of a writer's file."""
    return f"part-{index:05d}-of-{count:05d}.safetensors"


def is_part(name: str) -> bool:
    """Tell whether a file is one writer's."""
    return _PART.fullmatch(name) is not None


def write_part(folder: Path, name: str, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Write one writer's parts to the disk; return the size and checksum of the file."""
    path = folder / name
    write_tensors(path, {key: as_array(key, array) for key, array in arrays.items()}, {})
    sync(path)
    return describe(path)


def write_rest(
    folder: Path,
    tree: Any,
    files: Mapping[str, Any],
    arrays: Mapping[str, ArrayPlan],
    metadata: Any,
) -> None:
    """Write the nest and, as the last file, the manifest."""
    (folder / TREE).write_bytes(dump(tree))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "files": {**files, TREE: describe(folder / TREE)},
        "arrays": {name: _as_json(plan) for name, plan in arrays.items()},
        "metadata": metadata,
    }
    manifest["sha256"] = hashlib.sha256(dump(manifest)).hexdigest()
    (folder / MANIFEST).write_bytes(dump(manifest))


def describe(path: Path) -> dict[str, Any]:
    """Return the size and checksum of a file, as manifests have them."""
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _as_json(plan: ArrayPlan) -> dict[str, Any]:
    parts = [[file, list(span.start), list(span.shape)] for file, span in plan.parts]
    return {"dtype": plan.dtype, "shape": list(plan.shape), "parts": parts}


# -- reading ---------------------------------------------------------------------------------------


def array_plans(manifest: Mapping[str, Any], folder: Path) -> dict[str, ArrayPlan]:
    """Return the arrays of a manifest, each checked to be there once and whole."""
    arrays = manifest.get("arrays")
    if not isinstance(arrays, dict):
        raise CheckpointError(f"{folder / MANIFEST} lists no arrays")
    try:
        plans = {str(name): _as_plan(said) for name, said in arrays.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{folder / MANIFEST} describes its arrays wrongly: {error}"
        ) from None
    for name, plan in plans.items():
        _check_whole(name, plan, manifest["files"], folder)
    return plans


def _as_plan(said: Mapping[str, Any]) -> ArrayPlan:
    parts = tuple(
        (str(file), ArraySpan(tuple(map(int, start)), tuple(map(int, shape))))
        for file, start, shape in said["parts"]
    )
    return ArrayPlan(str(said["dtype"]), tuple(map(int, said["shape"])), parts)


def _check_whole(name: str, plan: ArrayPlan, files: Mapping[str, Any], folder: Path) -> None:
    """Refuse an array whose parts overlap, or leave something out."""
    for file, span in plan.parts:
        if file not in files or Path(file).name != file:
            raise CheckpointError(
                f"{folder}: a part of {name!r} is in {file!r}, which is not there"
            )
        try:
            check_span(span, plan.shape, f"{folder}: a part of {name!r}")
        except ShapeError as error:
            raise CheckpointError(str(error)) from None
    spans = [span for _, span in plan.parts if 0 not in span.shape]
    held = sum(math.prod(span.shape) for span in spans)
    if held != math.prod(plan.shape) or _any_overlap(spans, plan.shape):
        raise CheckpointError(
            f"{folder}: the parts of {name!r} have {held} elements of {math.prod(plan.shape)}, or "
            "some of them twice"
        )


def _any_overlap(spans: Sequence[ArraySpan], whole: Sequence[int]) -> bool:
    if len({span.is_line(whole) for span in spans}) > 1:
        return True  # boxes and ranges of one array: nobody writes that
    ordered = sorted(spans)
    return any(
        overlap(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :] if _near(a, b)
    )


def _near(a: ArraySpan, b: ArraySpan) -> bool:
    return not a.start or b.start[0] < a.start[0] + a.shape[0]


def read_parts(
    folder: Path, manifest: Mapping[str, Any], wanted: Mapping[str, ArraySpan]
) -> dict[str, Array]:
    """Return the arrays of a checkpoint: in part where a part is wanted, whole where not."""
    plans = array_plans(manifest, folder)
    absent = sorted(wanted.keys() - plans.keys())
    if absent:
        raise CheckpointError(f"{folder} has no array {absent[0]!r}")
    for name, span in wanted.items():
        check_span(span, plans[name].shape, f"the wanted part of {name!r}")
    spans = {name: wanted.get(name, _all_of(plan)) for name, plan in plans.items()}
    found = {
        name: np.empty(span.shape, dtype_of(plans[name], folder)) for name, span in spans.items()
    }
    for file, held in _by_file(plans).items():
        pairs = [(name, span) for name, span in held if _touches(span, spans[name], plans[name])]
        if not pairs:
            continue
        with open_tensors(folder / file) as opened:
            for name, span in pairs:
                values = _read_part(folder / file, opened, name, span)
                copy_common(values, span, found[name], spans[name], plans[name].shape)
    return {
        name: array if name in wanted else array.reshape(plans[name].shape)
        for name, array in found.items()
    }


def _all_of(plan: ArrayPlan) -> ArraySpan:
    """Return the whole of an array, in the way in which its parts are told."""
    if any(span.is_line(plan.shape) for _, span in plan.parts):
        return ArraySpan((0,), (math.prod(plan.shape),))
    return ArraySpan((0,) * len(plan.shape), plan.shape)


def dtype_of(plan: ArrayPlan, folder: Path) -> Any:
    """Return the dtype of an array of a manifest."""
    try:
        return as_dtype(plan.dtype)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{folder}: {error}") from None


def _by_file(plans: Mapping[str, ArrayPlan]) -> dict[str, list[tuple[str, ArraySpan]]]:
    files: dict[str, list[tuple[str, ArraySpan]]] = {}
    for name, plan in plans.items():
        for file, span in plan.parts:
            files.setdefault(file, []).append((name, span))
    return files


def _read_part(path: Path, opened: Any, name: str, span: ArraySpan) -> Array:
    try:
        values = read_one(path, opened, name)
    except KeyError:
        raise FileFormatError(f"{path} has no part of {name!r}") from None
    if values.shape != span.shape:
        raise FileFormatError(
            f"{path}: the part of {name!r} has the shape {values.shape}, not {span.shape}"
        )
    return values


def _touches(held: ArraySpan, wanted: ArraySpan, plan: ArrayPlan) -> bool:
    if held.is_line(plan.shape) == wanted.is_line(plan.shape):
        return 0 not in held.shape and (not held.start or overlap(held, wanted))
    return True  # a box and a range: most have something in common


# -- who writes what -------------------------------------------------------------------------------


def divided(arrays: Mapping[str, Array], count: int) -> list[list[tuple[str, ArraySpan]]]:
    """Share arrays that all writers have among them, about equally in bytes.

    Large arrays are cut into ranges, small ones go whole to whoever has least; the result depends
    on names and sizes alone, so that all writers come to the same.
    """
    if count < 1:
        raise ArgumentError(f"there must be at least one writer. Received: {count}")
    shares: list[list[tuple[str, ArraySpan]]] = [[] for _ in range(count)]
    loads = [0] * count
    total = sum(array.nbytes for array in arrays.values())
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].nbytes, item[0])):
        if count > 1 and array.nbytes > max(total // count, _SMALL):
            _cut_up(name, array, shares, loads)
        else:
            least = loads.index(min(loads))
            shares[least].append((name, ArraySpan((0,) * array.ndim, array.shape)))
            loads[least] += array.nbytes
    return shares


_SMALL: Final = 65536  # bytes: smaller arrays are not worth a cut


def _cut_up(
    name: str, array: Array, shares: list[list[tuple[str, ArraySpan]]], loads: list[int]
) -> None:
    edges = np.linspace(0, array.size, len(shares) + 1).astype(int).tolist()
    for i, (first, last) in enumerate(pairwise(edges)):
        shares[i].append((name, ArraySpan((first,), (last - first,))))
        loads[i] += (last - first) * array.itemsize


def plans_of(
    described: Iterable[tuple[str, Mapping[str, tuple[str, Sequence[int], ArraySpan]]]],
) -> dict[str, ArrayPlan]:
    """Return what a manifest says of arrays, from what each writer wrote to its file."""
    plans: dict[str, ArrayPlan] = {}
    for file, held in described:
        for name, (dtype, shape, span) in held.items():
            known = plans.get(name, ArrayPlan(dtype, tuple(shape), ()))
            if (known.dtype, known.shape) != (dtype, tuple(shape)):
                raise ShapeError(
                    f"writers disagree on {name!r}: {known.dtype}{list(known.shape)} and "
                    f"{dtype}{list(shape)}"
                )
            plans[name] = known._replace(parts=(*known.parts, (file, span)))
    return plans
