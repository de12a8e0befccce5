"""Functions read sizes that only a run knows from a table, and pass it to those they call."""

from __future__ import annotations

from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.codegen.text import ModuleText
from weft.core.dim import run_time_size

n, m = run_time_size("n"), run_time_size("m")


def test_a_size_is_read_once_where_a_function_begins():
    module = ModuleText(host())
    f = module.function("scale", ["i64"])
    (x,) = f.parameters
    f.add(f.mul(x, n * 4), f.mul(x, n * 4))
    f.ret()
    text = module.text()
    assert "define void @scale(i64 %p0, ptr noalias readonly %sizes)" in text
    assert text.count("load i64") == 1
    assert module.sizes.words == (n * 4,)


def test_words_are_numbered_for_all_functions_of_a_module():
    module = ModuleText(host())
    for name in "fg":
        f = module.function(name, ["i64"])
        f.add(f.mul(f.parameters[0], m), n)
        f.ret()
    assert module.sizes.words == (m, n)


def test_who_calls_a_function_with_sizes_takes_the_table_too():
    module = ModuleText(host())
    inner = module.function("inner", [])
    inner.add(inner.size(n), 1)
    inner.ret()
    plain = module.function("plain", [])
    plain.ret()
    outer = module.function("outer", [])
    outer.call("inner", "void")
    outer.call("plain", "void")
    outer.ret()
    text = module.text()
    assert "call void @inner(ptr %sizes)" in text
    assert "call void @plain()" in text
    assert "@outer(, " not in text


def test_kernels_that_differ_in_names_of_sizes_are_one_text():
    def text(size):
        module = ModuleText(host())
        f = module.function("f", ["i64"])
        f.mul(f.parameters[0], size + 3)
        f.ret()
        return module.text()

    assert text(n) == text(m)


def test_a_size_is_put_in_every_lane():
    module = ModuleText(host())
    f = module.function("f", ["<4 x i64>"])
    f.add(f.parameters[0], n)
    f.ret()
    assert "insertelement <4 x i64> poison, i64 %size0" in module.text()
