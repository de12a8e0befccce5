"""The C header: what compilers say of it, and what stands in it."""

from __future__ import annotations

import subprocess

import pytest

from tests.exported import needs
from weft.backends.cpu.export import records
from weft.backends.cpu.export.header import header_text

TENSORS = {
    "input": [("x", "float32", (-1, 784)), ("x", "float32", (3,))],
    "output": [("output", "float32", (-1, 10))],
    "state": [("net/0/weight", "float32", (10, 784)), ("größe", "int64", ())],
}


def test_names_and_shapes_stand_in_it():
    text = header_text("weft", "model.so", {"model": "net"}, TENSORS)
    assert "#define WEFT_INPUT_X 0 /* x: float32[?, 784] */" in text
    assert "#define WEFT_STATE_NET_0_WEIGHT 0" in text
    assert text.count("#define WEFT_INPUT_X ") == 1
    assert "WEFT_ERROR_BUSY = 13" in text
    assert "WEFT_FLOAT32 = 11" in text
    assert "int32_t weft_run(" in text


def c_program() -> str:
    """Return a program that fails to compile if the header's records are other than ours."""
    sizes = {
        "weft_tensor": records.TENSOR_BYTES,
        "weft_tensor_info": records.TENSOR_INFO_BYTES,
        "weft_info": records.INFO_BYTES,
        "weft_options": records.OPTIONS_BYTES,
    }
    places = {
        ("weft_tensor", "dtype"): records.TENSOR["dtype|ndim"],
        ("weft_tensor_info", "nbytes"): records.TENSOR_INFO["nbytes"],
        ("weft_info", "weights_file"): records.MODEL["beside"],
        ("weft_info", "states"): records.MODEL["states"],
        ("weft_info", "program_count"): records.MODEL["program_count"],
        ("weft_options", "weights"): records.OPTIONS["weights"],
        ("weft_options", "message_bytes"): records.OPTIONS["message_bytes"],
    }
    checks = [f"char a{i}[sizeof({n}) == {s} ? 1 : -1];" for i, (n, s) in enumerate(sizes.items())]
    checks += [
        f"char b{i}[offsetof({n}, {f}) == {at} ? 1 : -1];"
        for i, ((n, f), at) in enumerate(places.items())
    ]
    includes = '#include "one.h"\n#include "two.h"\n'
    return includes + "weft_options options = WEFT_OPTIONS;\n" + "\n".join(checks) + "\n"


@needs("cc", "c++")
@pytest.mark.parametrize("compiler", [["cc", "-std=c99"], ["c++", "-std=c++11", "-x", "c++"]])
def test_compilers_take_it_twice_and_agree_about_records(compiler, tmp_path):
    for prefix in ("one", "two"):
        text = header_text(prefix, f"{prefix}.so", {"model": prefix}, TENSORS)
        (tmp_path / f"{prefix}.h").write_text(text)
    (tmp_path / "main.c").write_text(c_program())
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        [*compiler, *strict, "main.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
