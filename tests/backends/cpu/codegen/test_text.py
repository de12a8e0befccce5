"""The writer's text, instruction by instruction and as whole functions."""

import numpy as np
import pytest

from tests.backends.cpu.codegen.jit import Native, evaluate, verify
from weft.backends.cpu.codegen import (
    IRValue,
    ModuleText,
    avx2,
    constant,
    element_of,
    host,
    lanes_of,
    values,
    vector_of,
)
from weft.backends.cpu.codegen.text import FunctionText
from weft.backends.cpu.codegen.values import bits_of

SUM = """\
target triple = "x86_64-unknown-linux-gnu"

define float @sum(ptr noalias %p0, i64 %p1) nounwind {
entry:
  %v0 = icmp slt i64 0, %p1
  br i1 %v0, label %loop.1, label %done.2
loop.1:
  %v1 = phi i64 [ 0, %entry ], [ %v6, %loop.1 ]
  %v2 = phi float [ 0x0000000000000000, %entry ], [ %v5, %loop.1 ]
  %v3 = getelementptr inbounds float, ptr %p0, i64 %v1
  %v4 = load float, ptr %v3, align 4
  %v5 = fadd float %v2, %v4
  %v6 = add nsw i64 %v1, 1
  %v7 = icmp slt i64 %v6, %p1
  br i1 %v7, label %loop.1, label %done.2
done.2:
  %v8 = phi float [ %v5, %loop.1 ], [ 0x0000000000000000, %entry ]
  ret float %v8
}
"""


def writer(*parameters: str) -> FunctionText:
    return FunctionText(avx2(), "f", parameters)


def last_line(f: FunctionText) -> str:
    return f.text().splitlines()[-2].strip()


def write_sum(module: ModuleText) -> None:
    f = module.function("sum", ["ptr noalias", "i64"], "float")
    x, n = f.parameters
    with f.loop(0, n, 1, carry=[f.constant("float", 0.0)]) as i:
        i.next(f.fadd(i.carried[0], f.load("float", f.gep(x, i, "float"))))
    f.ret(i.results[0])


def test_a_loop_with_a_carried_value() -> None:
    module = ModuleText(avx2())
    write_sum(module)
    assert module.text() == SUM
    verify(module.text())


def test_values_are_strings_that_know_their_type() -> None:
    (x,) = writer("<8 x float>").parameters
    assert x == "%p0"
    assert x.type == "<8 x float>"
    assert x.typed == "<8 x float> %p0"
    assert lanes_of(x.type) == 8


def test_parameters_may_have_attributes() -> None:
    f = writer("ptr noalias", "<4 x float> noundef", "i64", "<2 x i1>")
    assert [p.type for p in f.parameters] == ["ptr", "<4 x float>", "i64", "<2 x i1>"]


@pytest.mark.parametrize(
    ("write", "line"),
    [
        (lambda f, x: f.fadd(x, x), "%v0 = fadd float %p0, %p0"),
        (lambda f, x: f.fsub(1.0, x), "%v0 = fsub float 0x3FF0000000000000, %p0"),
        (lambda f, x: f.fmul(x, x, "reassoc nsz"), "%v0 = fmul reassoc nsz float %p0, %p0"),
        (lambda f, x: f.fneg(x), "%v0 = fneg float %p0"),
        (lambda f, x: f.sqrt(x), "%v0 = call float @llvm.sqrt.f32(float %p0)"),
        (lambda f, x: f.fcmp("une", x, x), "%v0 = fcmp une float %p0, %p0"),
        (lambda f, x: f.fpext(x, "double"), "%v0 = fpext float %p0 to double"),
        (lambda f, x: f.as_integer(x), "%v0 = bitcast float %p0 to i32"),
        (lambda f, x: f.fptosi(x, "i32", checked=False), "%v0 = fptosi float %p0 to i32"),
    ],
)
def test_instructions(write, line: str) -> None:
    f = writer("float")
    write(f, *f.parameters)
    assert last_line(f) == line


def test_constants_are_spelled_by_their_bits() -> None:
    assert constant("float", 0.1) == "0x3FB99999A0000000"
    assert constant("double", 0.1) == "0x3FB999999999999A"
    assert constant("float", float("inf")) == "0x7FF0000000000000"
    assert constant("i1", 1) == "true"


@pytest.mark.parametrize(
    ("has_splat", "text"), [(True, "splat (i32 -3)"), (False, "<i32 -3, i32 -3>")]
)
def test_constants_of_all_lanes(monkeypatch, has_splat: bool, text: str) -> None:
    monkeypatch.setattr(values, "HAS_SPLAT", has_splat)  # as newer and older LLVMs have it
    assert constant("<2 x i32>", -3) == text


def test_operands_of_different_types_are_refused() -> None:
    f = writer("float", "double")
    with pytest.raises(TypeError, match="one common type"):
        f.fadd(*f.parameters)


def test_a_phi_refuses_another_type() -> None:
    f = writer("float")
    phi = f.phi("i64")
    with pytest.raises(TypeError, match=r"phi of type i64 got float %p0"):
        phi.incoming(f.parameters[0], "entry")


def test_a_loop_refuses_to_carry_what_it_did_not_start_with() -> None:
    f = writer("i64")
    with pytest.raises(TypeError, match="the loop carries"), f.loop(0, f.parameters[0], 1) as i:
        i.next(f.constant("float", 1.0))


def test_names_are_used_once() -> None:
    module = ModuleText(avx2())
    f = module.function("f", [])
    with pytest.raises(ValueError, match="has a function f already"):
        module.function("f", [])
    with pytest.raises(ValueError, match="has a block entry already"):
        f.block("entry")


def test_dtypes_without_a_machine_type_are_named() -> None:
    with pytest.raises(TypeError, match="no machine type for dtype complex64"):
        element_of("complex64")


def test_a_loop_of_constant_bounds_needs_no_guard() -> None:
    f = writer()
    with f.loop(0, 4, 1):
        pass
    f.ret()
    assert "br label %loop.1" in f.text()


def test_the_text_is_the_same_every_time() -> None:
    texts = []
    for _ in range(2):
        module = ModuleText(avx2())
        write_sum(module)
        module.constant_array("table", "float", [1.0, 2.0])
        texts.append(module.text())
    assert texts[0] == texts[1]
    assert "[2 x float] [float 0x3FF0000000000000, float 0x4000000000000000]" in texts[0]


def run(write, *arrays: np.ndarray) -> None:
    """Run a function that is written on the addresses of arrays."""
    module = ModuleText(host())
    f = module.function("kernel", ["ptr"] * len(arrays))
    write(f, *f.parameters)
    f.ret()
    Native(module.text(), host())("kernel", *arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "bool", "float16"])
@pytest.mark.parametrize("count", [0, 1, 3, 7, 8, 9, 16, 31, 1000])
def test_tails_touch_nothing_beyond_the_end(dtype: str, count: int) -> None:
    x = np.arange(count).astype(dtype)
    y = np.ones(count + 64).astype(dtype)
    lanes = 8
    type = vector_of(element_of(dtype), lanes)
    element = element_of(dtype)

    def write(f: FunctionText, source: IRValue, sink: IRValue) -> None:
        def body(i: IRValue, rest: IRValue | None) -> None:
            value = f.load(type, f.gep(source, i, element), count=rest)
            f.store(value, f.gep(sink, i, element), count=rest)

        f.each_vector(count, lanes, body)

    run(write, x, y)
    np.testing.assert_array_equal(y[:count], x)
    np.testing.assert_array_equal(y[count:], np.ones(64).astype(dtype))


def test_reduce_adds_halves_to_halves() -> None:
    x = np.random.default_rng(0).normal(size=8).astype(np.float32)
    y = np.zeros(1, np.float32)
    run(lambda f, a, b: f.store(f.reduce(f.load("<8 x float>", a), f.fadd), b), x, y)
    fours = x[:4] + x[4:]
    twos = fours[:2] + fours[2:]
    assert y[0] == twos[0] + twos[1]


def test_reduce_leaves_as_many_lanes_as_wanted() -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(2, np.float32)
    run(lambda f, a, b: f.store(f.reduce(f.load("<8 x float>", a), f.fadd, 2), b), x, y)
    np.testing.assert_array_equal(y, [0 + 4 + 2 + 6, 1 + 5 + 3 + 7])


@pytest.mark.parametrize(("dtype", "element"), [("float32", "float"), ("float64", "double")])
@pytest.mark.parametrize("lanes", [1, 2, 8, 16, 32])
def test_any_lane_finds_each(dtype: str, element: str, lanes: int) -> None:
    def body(f: FunctionText, a: IRValue, b: IRValue) -> None:
        mask = f.fcmp("olt", f.load(vector_of(element, lanes), a), 0.0)
        f.store(f.zext(f.any_lane(mask, bits_of(element)), "i8"), b)

    found = np.zeros(1, np.int8)
    for lane in (None, *range(lanes)):
        x = np.ones(lanes, dtype)
        x[slice(0) if lane is None else lane] = -1
        run(body, x, found)
        assert found[0] == (lane is not None)


def test_reduce_refuses_lanes_that_do_not_halve() -> None:
    f = writer("<6 x float>")
    with pytest.raises(ValueError, match="power of two"):
        f.reduce(f.parameters[0], f.fadd)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extrema_propagate_nan(name: str) -> None:
    numbers = [np.nan, -np.inf, -1.0, 0.0, 2.0, np.inf]
    x, y = (g.ravel().astype(np.float32) for g in np.meshgrid(numbers, numbers))
    got = evaluate(lambda f, a, b: getattr(f, name)(a, b), x, y)
    np.testing.assert_array_equal(got, getattr(np, name)(x, y))


def test_clamp_keeps_nan() -> None:
    x = np.array([np.nan, -5, 0.5, 5, np.inf, -np.inf], np.float32)
    got = evaluate(lambda f, a: f.clamp(a, -1.0, 1.0), x)
    np.testing.assert_array_equal(got, np.clip(x, -1, 1))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_casts_to_integers_cut_towards_zero(source: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0.0, 0.9, 1.5, 99.99, float(info.max // 2), -0.0, -0.9], source)
    if info.min < 0:
        x = np.concatenate([x, np.array([-1.5, -100.7, float(info.min)], source)])
    element = element_of(dtype)
    signed = info.min < 0
    got = evaluate(lambda f, a: (f.fptosi if signed else f.fptoui)(a, element), x, output=dtype)
    np.testing.assert_array_equal(got, x.astype(dtype))


def test_casts_of_what_does_not_fit_give_the_least_integer() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9])
    got = evaluate(lambda f, a: f.fptosi(a, "i32"), x, output="int32")
    assert (got == np.iinfo(np.int32).min).all()


def test_branches_join_in_a_phi() -> None:
    def write(f: FunctionText, sink: IRValue) -> None:
        then, done = f.label("then"), f.label("done")
        before = f.current
        f.branch_if(f.icmp("sgt", f.load("i64", sink), 3), then, done)
        f.block(then)
        larger = f.constant("i64", 100)
        f.branch(done)
        f.block(done)
        f.store(f.phi("i64", (f.constant("i64", -1), before), (larger, then)), sink)

    for start, end in ((3, -1), (4, 100)):
        x = np.array([start])
        run(write, x)
        assert x[0] == end
