"""From text to running code: compiling, linking, and what LLVM says of bad text."""

import ctypes
import gc

import numpy as np
import pytest

from tests.backends.cpu.runtime.kernels import AXPY, DOT, addresses, load
from weft.backends.cpu.codegen.target import avx2, avx512, host, neon
from weft.backends.cpu.runtime.linking import CodegenError, assembly, compile_module, link
from weft.backends.cpu.runtime.threads import pool_symbols

SQUARE = "define i64 @square(i64 %x) nounwind {\n  %y = mul i64 %x, %x\n  ret i64 %y\n}\n"


def integer_function(address: int):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)


def test_axpy_runs():
    library = load(AXPY, "axpy")
    pointer = ctypes.c_void_p
    axpy = ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int64, ctypes.c_float)(
        library.address("axpy")
    )
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    axpy(x.ctypes.data, y.ctypes.data, 64, 0.5)
    np.testing.assert_array_equal(y, 0.5 * x + 1)


def test_dot_runs_in_chunks():
    library = load(DOT, "dot")
    x, y = np.arange(8192.0), np.linspace(0, 1, 8192)
    sums = np.zeros(8)
    table = addresses([x, y, sums])
    dot = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("dot"))
    for _ in range(3):  # the first run has no workers yet
        sums[:] = 0
        dot(table.ctypes.data, 8)
        np.testing.assert_allclose(sums, (x * y).reshape(8, 1024).sum(axis=1))


def test_objects_use_one_another_and_given_symbols():
    caller = """
    declare i64 @square(i64)
    declare i64 @given(i64)
    define i64 @both(i64 %x) nounwind {
      %a = call i64 @square(i64 %x)
      %b = call i64 @given(i64 %a)
      ret i64 %b
    }
    """
    given = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 1)
    objects = [compile_module(text, host()) for text in (SQUARE, caller)]
    symbols = {"given": ctypes.cast(given, ctypes.c_void_p).value}
    library = link(objects, ["both"], symbols)
    assert integer_function(library.address("both"))(7) == 50


def test_symbols_of_the_process_are_found():
    text = """
    define double @remainder(double %x) nounwind {
      %y = frem double %x, 3.0
      ret double %y
    }
    """
    library = link([compile_module(text, host())], ["remainder"])
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("remainder"))
    assert function(7.5) == 1.5


def test_equal_names_in_different_libraries_do_not_meet():
    code = compile_module(SQUARE, host())
    other = compile_module(SQUARE.replace("mul", "add"), host())
    libraries = [link([c], ["square"]) for c in (code, other)]
    assert [integer_function(lib.address("square"))(5) for lib in libraries] == [25, 10]


def test_libraries_come_and_go():
    code = compile_module(SQUARE, host())
    kept = link([code], ["square"])
    for _ in range(200):
        link([code], ["square"])
    gc.collect()
    assert integer_function(kept.address("square"))(3) == 9


@pytest.mark.parametrize("target", [avx2(), avx512(), neon()], ids=["avx2", "avx512", "neon"])
def test_other_machines_code_is_made(target):
    assert compile_module(DOT, target)[:4] == b"\x7fELF"
    assert "dot_chunk" in assembly(DOT, target)


def test_assembly_is_readable():
    assert "square" in assembly(SQUARE, host())


def test_bad_text_is_shown_with_its_line():
    with pytest.raises(CodegenError) as raised:
        compile_module(SQUARE.replace("mul", "mool"), host())
    assert ">     2   %y = mool i64 %x, %x" in str(raised.value)
    assert "bug in Weft" in str(raised.value)
    assert "mool" in raised.value.ir


def test_text_that_parses_but_makes_no_sense_is_refused():
    text = "define i64 @f() {\na:\n  br label %b\nb:\n  %x = phi i64 [0, %b]\n  ret i64 %x\n}"
    with pytest.raises(CodegenError, match="PHI node"):
        compile_module(text, host())


def test_missing_symbols_are_an_error():
    with pytest.raises(CodegenError, match="linking failed"):
        link([compile_module(SQUARE, host())], ["cube"])


def test_what_kernels_are_linked_with():
    assert set(pool_symbols()) == {
        "weft_parallel_for",
        "weft_parallel_for_up_to",
        "weft_parallel_chains",
        "weft_chain_stopped",
    }
