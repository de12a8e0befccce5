"""Plans as plain data: what they hold comes back, and nothing but plans is made of any bytes."""

import ast
import json
import os
import pickle
import random
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.runtime.analysis import analyse
from weft.backends.cpu.runtime.executable import _specs
from weft.compiler.cache import packing as plan_module
from weft.compiler.cache.columns import MAGIC, NotPlainError, Reader, Writer
from weft.compiler.cache.packing import pack, unpack
from weft.compiler.stages import plan_program
from weft.core.dtype import bfloat16
from weft.core.shape import TensorType
from weft.graph.identity.fingerprint import Fingerprint, fingerprint
from weft.graph.run import Program
from weft.lower.kernels import BranchKernel, CallKernel, LoopKernel
from weft.lower.memory import MemoryPlan, Place
from weft.lower.program import Sources
from weft.lower.schedule import BranchCalls, LoopCalls
from weft.lower.storage import Buffer, View, Window
from weft.plan.run_plan import RunPlan

NOTHING = Fingerprint(b"", [], [])


def program(build):
    with wf.Graph() as graph:
        x = wf.placeholder((5, 3), wf.float32)
        y = build(x)
    made = Program(graph, [y.value], [x.value], [])
    return made, {x.value: (5, 3)}


def chosen_scan(x):
    """Write control flow that Python drives, with calls of reference kernels inside."""
    rows = wf.scan(lambda carry, row: (carry + wf.sort(row), carry * 2.0), x[0], x)[1]
    return wf.cond(rows.sum() > 0, lambda: wf.sort(rows), lambda: wf.exp(rows))


@pytest.fixture(scope="module")
def made():
    built, shapes = program(chosen_scan)
    return analyse(plan_program(built, shapes)).plan, fingerprint(built, shapes)


def test_same_plan_comes_back(made):
    plan, known = made
    content = pack(plan, known)
    again = unpack(content, known)
    assert pack(again, known) == content
    assert again.entries == plan.entries
    assert again.objects == plan.objects
    assert _specs(again.memory, alone=True) == _specs(plan.memory, alone=True)
    assert [type(step) for step in again.steps] == [type(step) for step in plan.steps]
    assert {LoopCalls, BranchCalls} <= {type(step) for step in again.steps}


def test_every_field_is_kept():
    tables = (
        (MemoryPlan, plan_module._MEMORY_FIELDS),
        (View, plan_module._VIEW_FIELDS),
        (Place, plan_module._PLACE_FIELDS),
        (Buffer, [*plan_module._BUFFER_FIELDS, "window"]),
        (Window, plan_module._WINDOW_FIELDS),
        (Sources, [*plan_module._SOURCES_FIELDS, "nodes"]),
        (CallKernel, plan_module._CALL_FIELDS),
        (LoopCalls, plan_module._LOOP_CALLS),
        (BranchCalls, plan_module._BRANCH_CALLS),
        (RunPlan, plan_module._PLAN_FIELDS),
    )
    for made_class, table in tables:
        # Of programs with run-time sizes, which alone have it, no plan is kept.
        kept = [field.name for field in fields(made_class) if field.name != "addressed"]
        assert kept == list(table)
    # Those of control flow that are kernels and results: its steps stand for them.
    left = {f.name for f in fields(LoopKernel)} - set(plan_module._LOOP_FIELDS)
    assert left == {"body", "test", "room", "origins"}
    left = {f.name for f in fields(BranchKernel)} - set(plan_module._BRANCH_FIELDS)
    assert left == {"yes", "no", "results", "origins"}


def through_json(attrs):
    data = json.loads(json.dumps(plan_module.ATTRS.write(Writer(NOTHING), [attrs])))
    (found,) = plan_module.ATTRS.read(Reader(NOTHING), data)
    return found


def test_attributes_come_back_with_their_types():
    attrs = (
        (True, False, 1, 1.0, -0.0, 2**70, float("inf"), "wörd\ud800", None, ...),
        ((), ((),), (1, (2.5, ("x", None)))),
        (np.dtype("float32"), np.dtype(bool), bfloat16(), TensorType((2, 3), np.dtype("int8"))),
        (np.float32(0.1), np.int8(-3), np.bool_(True), np.float64(1 / 3), np.uint64(2**64 - 1)),
    )
    found = through_json(attrs)
    assert repr(found) == repr(attrs)
    assert np.isnan(through_json((float("nan"),))[0])


@pytest.mark.parametrize("item", [object(), [1], {1: 2}, {1}, b"x", 1j, slice(1), print, int])
def test_other_attributes_are_not_plain(item):
    with pytest.raises(NotPlainError):
        plan_module.ATTRS.write(Writer(NOTHING), [(item,)])


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_hostile_pickles_are_bytes_like_others(tmp_path):
    contents = [
        pickle.dumps(Evil(tmp_path / "pwned")),
        b"\x80\x04\x8c\x16weft.graph.drawing.dot\x94\x8c\x10subprocess.Popen\x94\x93\x94.",
        b"cweft.graph.drawing.dot\nsubprocess.Popen\n.",
        b"cos\nsystem\n(S'true'\ntR.",
    ]
    for content in contents:
        assert unpack(content, NOTHING) is None
        assert unpack(MAGIC + len(content).to_bytes(8, "little") + content, NOTHING) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("depth", [10, 100_000])
def test_deep_nesting_is_no_plan(depth):
    text = b"[" * depth + b"]" * depth
    assert unpack(MAGIC + len(text).to_bytes(8, "little") + text, NOTHING) is None


def replaced(data, chance, other):
    """Return data with one part, anywhere, replaced by another."""
    if not isinstance(data, list | dict) or not data or chance.random() < 0.1:
        return other
    if isinstance(data, dict):
        key = chance.choice(list(data))
        return {**data, key: replaced(data[key], chance, other)}
    at = chance.randrange(len(data))
    return [*data[:at], replaced(data[at], chance, other), *data[at + 1 :]]


def test_damaged_plans_raise_nothing(made):
    plan, known = made
    content = pack(plan, known)
    length = int.from_bytes(content[8:16], "little")
    data, rest = json.loads(content[16 : 16 + length]), content[16 + length :]
    chance = random.Random(0)
    others = [None, -1, 10**9, 2**70, 0.5, "x", "os.system", [], [[]], {}, [1, 2, 3, 4], True]
    refused = 0
    for _ in range(300):
        text = json.dumps(replaced(data, chance, chance.choice(others))).encode()
        found = unpack(MAGIC + len(text).to_bytes(8, "little") + text + rest, known)
        assert found is None or isinstance(found, RunPlan)
        refused += found is None
    assert refused > 150


def test_cut_plans_raise_nothing(made):
    plan, known = made
    content = pack(plan, known)
    for length in (0, 7, 8, 15, 16, 17, 100, len(content) // 2, len(content) - 1):
        assert unpack(content[:length], known) is None


def test_only_messages_between_own_processes_are_pickles():
    """Besides them, PyTorch's files are: their reader resolves no name that is not in its table."""
    root = Path(wf.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {"pickle", "marshal", "shelve"}.intersection(names):
                found.add(path.relative_to(root).as_posix())
    messages = {"data/channel.py", "data/pool.py", "data/worker.py"}
    assert found == {*messages, "torch/serialization.py"}
