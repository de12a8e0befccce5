"""Entries: native code as a Python callable, with checked arrays."""

import ctypes
import gc
import os
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

import weft as wf
from tests.backends.cpu.runtime.kernels import MARKS, load
from weft.backends.cpu.codegen.target import host, neon
from weft.backends.cpu.runtime import calls
from weft.backends.cpu.runtime.calls import (
    BUSY,
    ArraySpec,
    ctypes_entry,
    empty_maker,
    layout,
    make_entry,
    native_calls_work,
    sees_references,
)
from weft.backends.cpu.runtime.linking import compile_module, link
from weft.backends.cpu.runtime.native.call import entry_text
from weft.backends.cpu.runtime.threads import pool
from weft.core.errors import ArgumentError

F4 = np.dtype(np.float32)

# Adds one to the first number of each array; copies the table to the context, if there is one.
CODE = """
declare void @callback()

define void @increment(ptr %table, ptr %context) nounwind {
  %first = load ptr, ptr %table
  %x = load float, ptr %first
  %y = fadd float %x, 1.0
  store float %y, ptr %first
  ret void
}

define void @copy(ptr %table, ptr %context) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr %context, ptr %table, i64 24, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @nothing(ptr %table, ptr %context) nounwind {
  ret void
}

define void @call_back(ptr %table, ptr %context) nounwind {
  call void @callback()
  ret void
}
"""
NAMES = ("increment", "copy", "nothing", "call_back")
HOOK = []


@ctypes.CFUNCTYPE(None)
def callback():
    HOOK[-1]()


@pytest.fixture(scope="module")
def library():
    symbols = {"callback": ctypes.cast(callback, ctypes.c_void_p).value}
    return link([compile_module(CODE, host())], NAMES, symbols)


@pytest.fixture(params=["native", "ctypes"])
def make(request, library, monkeypatch):
    """Make entries by name of their code, natively and by ctypes: they behave alike."""
    if request.param == "ctypes":
        monkeypatch.setattr(calls, "native_calls_work", lambda: False)

    def make(name, arrays, **options):
        return make_entry(library.address(name), arrays, keep=library, **options)

    return make


def floats(*shape):
    return np.zeros(shape, np.float32)


def test_objects_look_as_expected_here():
    assert native_calls_work()


def test_code_runs_on_the_arrays(make):
    entry = make("increment", [ArraySpec(F4, (3,))])
    x = floats(3)
    assert entry(x) is None
    assert entry((x,)) is None
    assert x.tolist() == [2, 0, 0]


def test_table_holds_the_data_in_order(make):
    found = np.zeros(3, np.uint64)
    entry = make("copy", 3, context=found.ctypes.data)
    x, y, z = floats(2, 2), np.zeros(0), np.zeros((), complex)
    expected = [a.ctypes.data for a in (x, y, z)]
    for arguments in [(x, y, z), ((x, y, z),), ((x,), y, (), (z,)), ((x, y), z)]:
        found[:] = 0
        assert entry(*arguments) is None
        assert found.tolist() == expected


def test_without_specs_any_array_passes(make):
    entry = make("increment", 1)
    x = floats(4, 4)
    assert entry(x[1:, ::2].T) is None
    assert x[1, 0] == 1


def test_no_arrays(make):
    entry = make("nothing", 0)
    assert entry() is None
    assert entry(()) is None


SPEC = ArraySpec(F4, (2, 3))
MISFITS = {
    "dtype": np.zeros((2, 3)),
    "integer": np.zeros((2, 3), np.int32),
    "byte order": np.zeros((2, 3), ">f4"),
    "shape": floats(3, 2),
    "rank": floats(6),
    "zero rank": floats(),
    "more rank": floats(1, 2, 3),
    "order": floats(3, 2).T,
    "strides": floats(2, 6)[:, ::2],
    "empty": floats(0, 3),
    "alignment": np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_array_that_does_not_fit_is_named_and_nothing_runs(make, misfit):
    entry = make("increment", [SPEC, SPEC, SPEC])
    x = floats(2, 3)
    assert entry(x, x, MISFITS[misfit]) == 2
    assert entry(MISFITS[misfit], x, x) == 0
    assert entry((x, MISFITS[misfit]), x) == 1
    assert x[0, 0] == 0


def test_outputs_must_be_writeable(make):
    frozen = floats(2, 3)
    frozen.flags.writeable = False
    assert make("nothing", [SPEC])(frozen) is None
    assert make("nothing", [ArraySpec(F4, (2, 3), writeable=True)])(frozen) == 0


def test_an_array_that_others_hold_is_refused_where_that_is_demanded(library):
    assert sees_references()
    spec = ArraySpec(F4, (2,), writeable=True, alone=True)
    entry = make_entry(library.address("increment"), [spec, ArraySpec(F4, (2,))], keep=library)
    keeper = [floats(2)]
    free = floats(2)
    assert entry((keeper[0], free)) is None
    assert entry((keeper[0],), free) is None
    held = keeper[0]
    assert entry((keeper[0], free)) == 0
    view = held[1:]
    del held
    assert entry((keeper[0], free)) == 0
    del view
    assert entry((keeper[0], keeper[0])) == 0
    assert entry((keeper[0], free)) is None
    assert keeper[0].tolist() == [3, 0]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(("shape", "dtype"), [((), "f4"), ((0, 3), "i8"), ((2, 3, 4), "?")])
def test_empty_arrays_are_like_those_of_numpy(monkeypatch, native, shape, dtype):
    if not native:
        monkeypatch.setattr(calls, "native_calls_work", lambda: False)
    made, expected = empty_maker(shape, np.dtype(dtype))(), np.empty(shape, dtype)
    assert (made.shape, made.dtype, made.strides) == (shape, np.dtype(dtype), expected.strides)
    assert made.flags.num == expected.flags.num
    assert type(made) is np.ndarray
    assert sys.getrefcount(made) == sys.getrefcount(expected)


def test_dtypes_are_not_used_up_by_new_arrays():
    dtype = np.dtype("f4", metadata={"a": 1})
    make = empty_maker((2,), dtype)
    before = sys.getrefcount(dtype)
    arrays = [make() for _ in range(100)]
    assert all(array.dtype is dtype for array in arrays)
    assert sys.getrefcount(dtype) == before + 100
    del arrays
    assert sys.getrefcount(dtype) == before


def test_equal_dtypes_that_are_different_objects_fit(make):
    entry = make("nothing", [SPEC])
    assert entry(pickle.loads(pickle.dumps(floats(2, 3)))) is None
    assert entry(np.zeros((2, 3), np.dtype("f4", metadata={"a": 1}))) is None


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c16"])
def test_every_dtype_can_be_demanded(make, dtype):
    entry = make("nothing", [ArraySpec(np.dtype(dtype), (2,))])
    assert entry(np.zeros(2, dtype)) is None
    assert entry(np.zeros(2, "i2")) == 0


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    "wrong", [1, None, "x", 1.5, [], object(), floats(1)[0], np.zeros(1).view(Sub), ([],), Sub]
)
def test_anything_but_an_array_is_a_type_error(make, wrong):
    entry = make("nothing", 2)
    with pytest.raises(TypeError, match="argument 1 is none"):
        entry(floats(1), wrong)


@pytest.mark.parametrize("given", [0, 1, 3, 20])
def test_wrong_number_of_arrays_is_a_type_error(make, given):
    entry = make("nothing", 2)
    arrays = (floats(1),) * given
    with pytest.raises(TypeError, match=f"takes 2 arrays. Received: {given}"):
        entry(arrays)
    with pytest.raises(TypeError, match=f"takes 2 arrays. Received: {given}"):
        entry(*arrays)


def test_keywords_are_refused(make):
    entry = make("nothing", 1)
    with pytest.raises(TypeError, match="keyword argument"):
        entry(x=floats(1))


def test_address_of_nothing_is_refused():
    with pytest.raises(ArgumentError, match="must not be 0"):
        make_entry(0, 1)


def test_other_threads_run_while_the_lock_is_released(make):
    entry = make("call_back", 1)
    inside, done = threading.Event(), threading.Event()
    HOOK.append(lambda: (inside.set(), done.wait(30)))
    caller = threading.Thread(target=entry, args=(floats(1),))
    caller.start()
    assert inside.wait(30)
    done.set()
    caller.join()
    HOOK.pop()


def test_exclusive_entry_lets_one_thread_in(make):
    entry = make("call_back", 1, exclusive=True)
    inside, done = threading.Event(), threading.Event()
    HOOK.append(lambda: (inside.set(), done.wait(30)))
    caller = threading.Thread(target=entry, args=(floats(1),))
    caller.start()
    assert inside.wait(30)
    assert entry(floats(1)) == BUSY
    done.set()
    caller.join()
    assert entry(floats(1)) is None
    assert entry(floats(1)) is None
    HOOK.pop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_entry_that_was_busy_at_a_fork_is_free_in_the_child(make):
    entry = make("call_back", 1, exclusive=True)
    inside, done = threading.Event(), threading.Event()
    HOOK.append(lambda: (inside.set(), done.wait(30)))
    caller = threading.Thread(target=entry, args=(floats(1),))
    caller.start()
    assert inside.wait(30)
    child = os.fork()
    if child == 0:
        HOOK.append(lambda: None)
        os._exit(0 if [entry(floats(1)) for _ in range(3)] == [None] * 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert entry(floats(1)) == BUSY
    done.set()
    caller.join()
    HOOK.pop()


def test_threads_that_take_turns_never_meet_inside(make):
    entry = make("call_back", 1, exclusive=True)
    active, most = [0], [0]

    def enter():
        active[0] += 1
        most[0] = max(most[0], active[0])
        active[0] -= 1

    def call():
        for _ in range(300):
            entry(floats(1))

    HOOK.append(enter)
    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    HOOK.pop()
    assert most == [1]


def test_holding_entry_is_exclusive_too(library):
    entry = make_entry(library.address("increment"), 1, releases_gil=False, exclusive=True)
    x = floats(1)
    assert [entry(x) for _ in range(3)] == [None] * 3
    assert x[0] == 3


def test_calls_leave_no_references_behind(make):
    entry = make("nothing", [SPEC])
    x, misfit = floats(2, 3), floats(1)
    before = sys.getrefcount(x), sys.getrefcount(misfit)
    for _ in range(100):
        entry(x)
        entry((x,))
        entry(misfit)
        with pytest.raises(TypeError):
            entry(x, x)
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(misfit)) == before


def test_entry_keeps_its_code_alive(make):
    class Code:
        pass

    code = Code()
    gone = weakref.ref(code)
    entry = make_entry(load(MARKS, "mark").address("mark"), 0, keep=code)
    del code
    gc.collect()
    assert gone() is not None
    del entry
    gc.collect()
    assert gone() is None


def test_entries_come_and_go(make):
    x = floats(2, 3)
    for _ in range(2000):
        assert make("nothing", [SPEC])(x) is None


def test_first_parallel_call_starts_the_workers():
    text = """
    declare void @weft_parallel_for(ptr, ptr, i64)
    define internal void @chunk(ptr %table, i64 %chunk, i64 %thread) nounwind {
      %counts = load ptr, ptr %table
      %at = getelementptr i64, ptr %counts, i64 %chunk
      %old = load i64, ptr %at
      %new = add i64 %old, 1
      store i64 %new, ptr %at
      ret void
    }
    define void @run(ptr %table, ptr %context) nounwind {
      call void @weft_parallel_for(ptr @chunk, ptr %table, i64 100)
      ret void
    }
    """
    library = load(text, "run")
    entry = make_entry(library.address("run"), 1, keep=library)
    before = wf.get_num_threads()
    counts = np.zeros(100, np.int64)
    try:
        for count in (3, 1, 2):
            wf.set_num_threads(count)
            for _ in range(10):
                assert entry(counts) is None
            assert len(pool()._threads) == count - 1
    finally:
        wf.set_num_threads(before)
    assert (counts == 30).all()


def test_objects_that_look_otherwise_are_noticed(monkeypatch):
    real = layout()
    for name in vars(real):
        changed = type(real)(**(vars(real) | {name: getattr(real, name) + 8}))
        monkeypatch.setattr(calls, "layout", lambda changed=changed: changed)
        looks = sees_references if name == "references" else native_calls_work
        assert not looks.__wrapped__(), name


def test_fallback_is_chosen_where_objects_look_otherwise(monkeypatch, library):
    monkeypatch.setattr(calls, "native_calls_work", lambda: False)
    entry = make_entry(library.address("nothing"), 1)
    assert entry.__qualname__.startswith(ctypes_entry.__name__)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_entry_works_in_a_child(make):
    entry = make("increment", [SPEC])
    x = floats(2, 3)
    child = os.fork()
    if child == 0:
        os._exit(0 if entry(x) is None and x[0, 0] == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert x[0, 0] == 0


def test_entry_code_is_made_for_other_machines():
    assert compile_module(entry_text(neon(), layout()), neon())
