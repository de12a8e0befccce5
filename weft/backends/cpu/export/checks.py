"""Functions of the runtime that look at what a library is given: the processor, tensors, shapes."""

from __future__ import annotations

from ..codegen.values import IRValue, constant
from .records import (
    DTYPES,
    FEATURE,
    FEATURE_BYTES,
    MODEL,
    PROGRAM,
    PROGRAM_BYTES,
    TENSOR,
    TENSOR_BYTES,
    TENSOR_INFO,
    TENSOR_INFO_BYTES,
    ErrorCode,
)
from .routine import Routine, RuntimeModule

SHAPE_TEXT_BYTES = 200
_EXTENDED_STATE = -1  # in the place of a leaf: what the system saves of registers


def write_checks(module: RuntimeModule) -> None:
    """Add the functions to a module."""
    _write_processor(module)
    _write_same_shape(module)
    _write_shape_text(module)
    _write_tensor(module)
    _write_tensors(module)
    _write_find_program(module)
    _write_explain_shapes(module)


# -- the processor ---------------------------------------------------------------------------------


def _write_processor(module: RuntimeModule) -> None:
    """i32 check_processor(report): whether the processor has all that the code uses."""
    f = module.routine("check_processor", ["ptr"])
    (report,) = f.parameters
    features = f.word(module.model, MODEL["features"], "ptr")
    with f.loop(0, f.word(module.model, MODEL["feature_count"]), 1) as i:
        feature = f.item(features, i, FEATURE_BYTES)
        found = f.call("processor_word", "i32", feature)
        mask = f.word(feature, FEATURE["mask"], "i32")
        f.fail_if(
            f.icmp("ne", f.and_(found, mask), mask),
            report,
            ErrorCode.PROCESSOR,
            "the code is for processors of the kind %s; this one lacks %s",
            f.word(module.model, MODEL["target"], "ptr"),
            f.word(feature, FEATURE["name"], "ptr"),
        )
    f.ret(constant("i32", 0))
    _write_processor_word(module)


def _write_processor_word(module: RuntimeModule) -> None:
    """i32 processor_word(feature): what the processor says of itself in some register."""
    f = module.routine("processor_word", ["ptr"])
    (feature,) = f.parameters
    leaf = f.word(feature, FEATURE["leaf"], "i32")
    with f.leaving(f.icmp("eq", leaf, _EXTENDED_STATE)):
        pair = f.define("{ i32, i32 }", 'call { i32, i32 } asm "xgetbv", "={ax},={dx},{cx}"(i32 0)')
        f.ret(f.define("i32", f"extractvalue {pair.typed}, 0"))
    most = _cpuid(f, f.and_(leaf, -(2**31)))
    with f.leaving(f.icmp("ult", _part(f, most, 0), leaf)):
        f.ret(constant("i32", 0))
    words = f.alloca("i32", 4)
    found = _cpuid(f, leaf)
    for i in range(4):
        f.put(words, 4 * i, _part(f, found, i))
    register = f.word(feature, FEATURE["register"])
    f.ret(f.load("i32", f.gep(words, register, "i32")))


def _cpuid(f: Routine, leaf: IRValue) -> IRValue:
    outputs = "={ax},={bx},={cx},={dx},{ax},{cx}"
    type = "{ i32, i32, i32, i32 }"
    return f.define(type, f'call {type} asm "cpuid", "{outputs}"({leaf.typed}, i32 0)')


def _part(f: Routine, value: IRValue, i: int) -> IRValue:
    return f.define("i32", f"extractvalue {value.typed}, {i}")


# -- shapes ----------------------------------------------------------------------------------------


def _write_same_shape(module: RuntimeModule) -> None:
    """i32 same_shape(shape, other, ndim)."""
    f = module.routine("same_shape", ["ptr", "ptr", "i64"])
    shape, other, ndim = f.parameters
    with f.loop(0, ndim, 1) as i:
        one, two = (f.load("i64", f.gep(x, i, "i64")) for x in (shape, other))
        with f.leaving(f.icmp("ne", one, two)):
            f.ret(constant("i32", 0))
    f.ret(constant("i32", 1))


def _write_shape_text(module: RuntimeModule) -> None:
    """Void shape_text(text, shape, ndim): write a shape as Python does, cut off if it is long."""
    f = module.routine("shape_text", ["ptr", "ptr", "i64"], "void")
    text, shape, ndim = f.parameters
    length = f.alloca("i64")
    f.store(f.constant("i64", 1), length)
    f.c("snprintf", text, f.constant("i64", SHAPE_TEXT_BYTES), f.text_constant("["))
    with f.loop(0, ndim, 1) as i:
        at = f.load("i64", length)
        with f.when(f.icmp("slt", at, SHAPE_TEXT_BYTES - 32)):
            last = f.icmp("eq", f.add(i, 1), ndim)
            comma = f.define(
                "ptr",
                f"select i1 {last}, {f.text_constant('').typed}, {f.text_constant(', ').typed}",
            )
            size = f.load("i64", f.gep(shape, i, "i64"))
            made = f.c(
                "snprintf",
                f.gep(text, at),
                f.constant("i64", 32),
                f.text_constant("%lld%s"),
                size,
                comma,
            )
            f.store(f.add(at, f.sext(made, "i64")), length)
    end = f.gep(text, f.load("i64", length))
    f.c("snprintf", end, f.constant("i64", 2), f.text_constant("]"))
    f.ret()


# -- tensors ---------------------------------------------------------------------------------------


def _write_tensor(module: RuntimeModule) -> None:
    """i32 check_tensor(report, kind, info, tensor, shape): `shape` may be NULL, for any."""
    f = module.routine("check_tensor", ["ptr"] * 5)
    report, kind, info, tensor, shape = f.parameters
    name = f.word(info, TENSOR_INFO["name"], "ptr")
    data = f.word(tensor, TENSOR["data"], "ptr")
    f.fail_if(f.is_null(data), report, ErrorCode.NULL, "%s %s: data is NULL", kind, name)
    _write_dtype_check(f, report, kind, info, tensor)
    _write_ndim_check(f, report, kind, info, tensor)
    with f.leaving(f.is_null(shape)):
        f.ret(constant("i32", 0))
    ndim, given = f.high(tensor, TENSOR["dtype|ndim"]), f.word(tensor, TENSOR["shape"], "ptr")
    with f.leaving(f.icmp("eq", f.call("same_shape", "i32", given, shape, ndim), 0)):
        f.call("say_shapes", "void", report, kind, name, shape, given, ndim)
        f.ret(constant("i32", ErrorCode.SHAPE))
    f.ret(constant("i32", 0))
    _write_say_shapes(module)


def _write_dtype_check(
    f: Routine, report: IRValue, kind: IRValue, info: IRValue, tensor: IRValue
) -> None:
    module, name = f.module, f.word(info, TENSOR_INFO["name"], "ptr")
    wanted, given = (f.low(x, TENSOR["dtype|ndim"]) for x in (info, tensor))
    names = f.word(module.model, MODEL["dtype_names"], "ptr")
    known = f.and_(f.icmp("sge", given, 0), f.icmp("slt", given, len(DTYPES)))
    shown = f.define("i64", f"select i1 {known}, {given.typed}, i64 {len(DTYPES)}")
    f.fail_if(
        f.icmp("ne", wanted, given),
        report,
        ErrorCode.DTYPE,
        "%s %s: expected %s. Received: %s",
        kind,
        name,
        f.load("ptr", f.gep(names, wanted, "ptr")),
        f.load("ptr", f.gep(names, shown, "ptr")),
    )
    sizes = f.word(module.model, MODEL["dtype_bytes"], "ptr")
    size = f.load("i64", f.gep(sizes, wanted, "i64"))
    at = f.number_of(f.word(tensor, TENSOR["data"], "ptr"))
    f.fail_if(
        f.icmp("ne", f.and_(at, f.sub(size, 1)), 0),
        report,
        ErrorCode.ALIGNMENT,
        "%s %s: data does not lie at a multiple of %lld bytes",
        kind,
        name,
        size,
    )


def _write_ndim_check(
    f: Routine, report: IRValue, kind: IRValue, info: IRValue, tensor: IRValue
) -> None:
    name = f.word(info, TENSOR_INFO["name"], "ptr")
    wanted, given = (f.high(x, TENSOR["dtype|ndim"]) for x in (info, tensor))
    f.fail_if(
        f.icmp("ne", wanted, given),
        report,
        ErrorCode.SHAPE,
        "%s %s: expected %lld dimensions. Received: %lld",
        kind,
        name,
        wanted,
        given,
    )
    missing = f.is_null(f.word(tensor, TENSOR["shape"], "ptr"))
    f.fail_if(
        f.and_(missing, f.icmp("sgt", given, 0)),
        report,
        ErrorCode.NULL,
        "%s %s: shape is NULL",
        kind,
        name,
    )


def _write_say_shapes(module: RuntimeModule) -> None:
    """Void say_shapes(report, kind, name, expected, received, ndim)."""
    f = module.routine("say_shapes", [*["ptr"] * 5, "i64"], "void")
    report, kind, name, expected, received, ndim = f.parameters
    texts = [f.alloca("i8", SHAPE_TEXT_BYTES, align=16) for _ in range(2)]
    for text, shape in zip(texts, (expected, received), strict=True):
        f.call("shape_text", "void", text, shape, ndim)
    f.say(report, "%s %s: expected shape %s. Received: %s", kind, name, *texts)
    f.ret()


def _write_tensors(module: RuntimeModule) -> None:
    """i32 check_tensors(report, kind, infos, count, tensors, given, shapes).

    `shapes` are those of all of them, one behind the other; NULL for any.
    """
    f = module.routine("check_tensors", ["ptr", "ptr", "ptr", "i64", "ptr", "i64", "ptr"])
    report, kind, infos, count, tensors, given, shapes = f.parameters
    f.fail_if(
        f.icmp("ne", count, given),
        report,
        ErrorCode.COUNT,
        "expected %lld %ss. Received: %lld",
        count,
        kind,
        given,
    )
    missing = f.and_(f.is_null(tensors), f.icmp("sgt", count, 0))
    f.fail_if(missing, report, ErrorCode.NULL, "the array of %ss is NULL", kind)
    at = f.alloca("ptr")
    f.store(shapes, at)
    any_shape = f.is_null(shapes)
    with f.loop(0, count, 1) as i:
        info = f.item(infos, i, TENSOR_INFO_BYTES)
        tensor = f.item(tensors, i, TENSOR_BYTES)
        shape = f.load("ptr", at)
        f.pass_on(f.call("check_tensor", "i32", report, kind, info, tensor, shape))
        behind = f.gep(shape, f.high(info, TENSOR_INFO["dtype|ndim"]), "i64")
        following = f.define("ptr", f"select i1 {any_shape}, ptr null, {behind.typed}")
        f.store(following, at)
    f.ret(constant("i32", 0))


def _write_find_program(module: RuntimeModule) -> None:
    """Ptr find_program(tensors): what is for inputs of these shapes; NULL if there is nothing."""
    f = module.routine("find_program", ["ptr"], "ptr")
    (tensors,) = f.parameters
    programs = f.word(module.model, MODEL["programs"], "ptr")
    with f.loop(0, f.word(module.model, MODEL["program_count"]), 1) as i:
        program = f.item(programs, i, PROGRAM_BYTES)
        differs = f.call("first_other", "i64", program, tensors)
        with f.leaving(f.icmp("slt", differs, 0)):
            f.ret(program)
    f.ret(IRValue("null", "ptr"))
    _write_first_other(module)


def _write_first_other(module: RuntimeModule) -> None:
    """i64 first_other(program, tensors): the first input of another shape; -1 if there is none."""
    f = module.routine("first_other", ["ptr", "ptr"], "i64")
    program, tensors = f.parameters
    at = f.alloca("ptr")
    f.store(f.word(program, PROGRAM["input_shapes"], "ptr"), at)
    with f.loop(0, f.word(module.model, MODEL["input_count"]), 1) as i:
        tensor = f.item(tensors, i, TENSOR_BYTES)
        ndim, shape = f.high(tensor, TENSOR["dtype|ndim"]), f.load("ptr", at)
        given = f.word(tensor, TENSOR["shape"], "ptr")
        with f.leaving(f.icmp("eq", f.call("same_shape", "i32", given, shape, ndim), 0)):
            f.ret(f.add(i, 0))
        f.store(f.gep(shape, ndim, "i64"), at)
    f.ret(constant("i64", -1))


def _write_explain_shapes(module: RuntimeModule) -> None:
    """i32 explain_shapes(report, tensors): say which input has a shape that nothing is for."""
    f = module.routine("explain_shapes", ["ptr", "ptr"])
    report, tensors = f.parameters
    program = f.word(module.model, MODEL["programs"], "ptr")
    count = f.word(module.model, MODEL["program_count"])
    number = f.call("first_other", "i64", program, tensors)
    inputs = f.word(module.model, MODEL["inputs"], "ptr")
    info, tensor = f.item(inputs, number, TENSOR_INFO_BYTES), f.item(tensors, number, TENSOR_BYTES)
    name, ndim = f.word(info, TENSOR_INFO["name"], "ptr"), f.high(info, TENSOR_INFO["dtype|ndim"])
    shape = f.word(info, TENSOR_INFO["shape"], "ptr")
    given = f.word(tensor, TENSOR["shape"], "ptr")
    kind = f.text_constant("input")
    with f.leaving(f.icmp("eq", count, 1)):
        f.call("say_shapes", "void", report, kind, name, shape, given, ndim)
        f.ret(constant("i32", ErrorCode.SHAPE))
    text = f.alloca("i8", SHAPE_TEXT_BYTES, align=16)
    f.call("shape_text", "void", text, given, ndim)
    f.say(
        report,
        "input %s: shape %s, with the shapes of the others, is none of the %lld that the library "
        "was exported for",
        name,
        text,
        count,
    )
    f.ret(constant("i32", ErrorCode.SHAPE))
