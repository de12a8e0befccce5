"""Functions of the runtime that run a program: memory, arguments, the call, results, new states."""

from __future__ import annotations

from collections.abc import Callable

from ....lower.memory import ARENA, CONSTANTS, COUNTER, NUMBERS
from ..codegen.values import IRValue, constant
from ..runtime.arena import ALIGNMENT, HUGE_FROM, HUGE_PAGE
from .records import (
    ARGUMENT,
    ARGUMENT_BYTES,
    COPY,
    COPY_BYTES,
    FROM_INPUT,
    FROM_STATE,
    INSTANCE,
    KEPT,
    KEPT_BYTES,
    LOOP_BYTES,
    MODEL,
    MOVE,
    MOVE_BYTES,
    PROGRAM,
    TENSOR,
    TENSOR_BYTES,
    ErrorCode,
)
from .routine import NULL, Routine, RuntimeModule

_ADVICE_HUGE_PAGES = 14


def write_running(module: RuntimeModule) -> None:
    """Add the functions to a module."""
    _write_run(module)
    _write_run_alone(module)
    _write_output_shapes(module)
    _write_new_memory(module)
    _write_bind(module)
    _write_fill_arguments(module)
    _write_place_of(module)
    _write_copy(module)
    _write_copy_out(module)
    _write_commit(module)


def _write_run(module: RuntimeModule) -> None:
    """i32 run(instance, inputs, count, outputs, count): one at a time for each instance."""
    f = module.exported("run", ["ptr", "ptr", "i64", "ptr", "i64"])
    instance = f.parameters[0]
    with f.leaving(f.is_null(instance)):
        f.ret(constant("i32", ErrorCode.NULL))
    code = guarded(f, instance, lambda: f.call("run_alone", "i32", *f.parameters))
    f.ret(code)


def guarded(f: Routine, instance: IRValue, work: Callable[[], IRValue]) -> IRValue:
    """Return what some work on an instance gives; leave if another thread is at it."""
    busy = f.gep(instance, INSTANCE["busy"])
    before = f.define("i32", f"atomicrmw xchg {busy.typed}, i32 1 acquire")
    with f.leaving(f.icmp("ne", before, 0)):
        f.ret(constant("i32", ErrorCode.BUSY))
    code = work()
    f.write(f"store atomic i32 0, {busy.typed} release, align 4")
    return code


def _write_run_alone(module: RuntimeModule) -> None:
    f = module.routine("run_alone", ["ptr", "ptr", "i64", "ptr", "i64"])
    instance, inputs, input_count, outputs, output_count = f.parameters
    program = _found_program(f, instance, inputs, input_count)
    f.pass_on(
        f.call(
            "check_tensors",
            "i32",
            instance,
            f.text_constant("output"),
            f.word(module.model, MODEL["outputs"], "ptr"),
            f.word(module.model, MODEL["output_count"]),
            outputs,
            output_count,
            f.word(program, PROGRAM["output_shapes"], "ptr"),
        )
    )
    with f.when(
        f.icmp(
            "ne",
            f.number_of(program),
            f.number_of(f.word(instance, INSTANCE["program"], "ptr")),
        )
    ):
        f.pass_on(f.call("bind", "i32", instance, program))
    f.call("fill_arguments", "void", instance, program, inputs, outputs)
    _write_call(f, instance, program)
    flag = f.word(instance, INSTANCE["flag"])
    with f.leaving(f.icmp("ne", flag, 0)):
        f.put(instance, INSTANCE["flag"], constant("i64", 0))
        f.say(instance, "an index is out of range; no state has changed")
        f.ret(constant("i32", ErrorCode.INDEX))
    f.call("copy_out", "void", instance, program, outputs)
    f.call("commit", "void", instance, program)
    f.ret(constant("i32", 0))


def _found_program(f: Routine, instance: IRValue, inputs: IRValue, count: IRValue) -> IRValue:
    """Write the search for what is to be run on inputs, after a look at them."""
    model = f.module.model
    f.pass_on(
        f.call(
            "check_tensors",
            "i32",
            instance,
            f.text_constant("input"),
            f.word(model, MODEL["inputs"], "ptr"),
            f.word(model, MODEL["input_count"]),
            inputs,
            count,
            NULL,
        )
    )
    program = f.call("find_program", "ptr", inputs)
    with f.leaving(f.is_null(program)):
        f.ret(f.call("explain_shapes", "i32", instance, inputs))
    return program


def _write_call(f: Routine, instance: IRValue, program: IRValue) -> None:
    run = f.word(program, PROGRAM["run"], "ptr")
    with f.when(f.icmp("ne", f.number_of(run), 0)):
        arguments = f.word(instance, INSTANCE["arguments"], "ptr")
        table = f.word(instance, INSTANCE["table"], "ptr")
        f.write(f"call void {run}({arguments.typed}, {table.typed})")


def _write_output_shapes(module: RuntimeModule) -> None:
    """i32 output_shapes(instance, inputs, count, outputs, count): fill in dtypes and shapes."""
    f = module.exported("output_shapes", ["ptr", "ptr", "i64", "ptr", "i64"])
    instance, inputs, input_count, outputs, output_count = f.parameters
    with f.leaving(f.is_null(instance)):
        f.ret(constant("i32", ErrorCode.NULL))
    program = _found_program(f, instance, inputs, input_count)
    count = f.word(module.model, MODEL["output_count"])
    f.fail_if(
        f.icmp("ne", count, output_count),
        instance,
        ErrorCode.COUNT,
        "expected %lld outputs. Received: %lld",
        count,
        output_count,
    )
    f.fail_if(f.is_null(outputs), instance, ErrorCode.NULL, "the array of outputs is NULL")
    infos, at = f.word(module.model, MODEL["outputs"], "ptr"), f.alloca("ptr")
    f.store(f.word(program, PROGRAM["output_shapes"], "ptr"), at)
    with f.loop(0, count, 1) as i:
        tensor, shape = f.item(outputs, i, TENSOR_BYTES), f.load("ptr", at)
        facts = f.load("i64", f.gep(infos, f.add(f.mul(i, 32), 16)))
        f.put(tensor, TENSOR["dtype|ndim"], facts)
        f.put(tensor, TENSOR["shape"], shape)
        f.store(f.gep(shape, f.lshr(facts, 32), "i64"), at)
    f.ret(constant("i32", 0))


# -- memory ----------------------------------------------------------------------------------------


def _write_new_memory(module: RuntimeModule) -> None:
    """Ptr new_memory(bytes): aligned, in huge pages where it is large; NULL if there is none."""
    f = module.routine("new_memory", ["i64"], "ptr")
    (nbytes,) = f.parameters
    place = f.alloca("ptr")
    f.store(NULL, place)
    large = f.icmp("sge", nbytes, HUGE_FROM)
    alignment = f.define("i64", f"select i1 {large}, i64 {HUGE_PAGE}, i64 {ALIGNMENT}")
    failed = f.c("posix_memalign", place, alignment, nbytes)
    with f.leaving(f.icmp("ne", failed, 0)):
        f.ret(NULL)
    made = f.load("ptr", place)
    with f.when(large):
        f.c("madvise", made, nbytes, constant("i32", _ADVICE_HUGE_PAGES))
    f.ret(made)


def _write_bind(module: RuntimeModule) -> None:
    """i32 bind(instance, program): have the memory of a program, and its table of addresses."""
    f = module.routine("bind", ["ptr", "ptr"])
    instance, program = f.parameters
    f.put(instance, INSTANCE["program"], NULL)
    needed = f.word(program, PROGRAM["arena_bytes"])
    with f.when(f.icmp("sgt", needed, f.word(instance, INSTANCE["arena_bytes"]))):
        f.c("free", f.word(instance, INSTANCE["arena"], "ptr"))
        f.put(instance, INSTANCE["arena_bytes"], constant("i64", 0))
        made = f.call("new_memory", "ptr", needed)
        f.put(instance, INSTANCE["arena"], made)
        f.fail_if(
            f.is_null(made), instance, ErrorCode.MEMORY, "%lld bytes cannot be allocated", needed
        )
        f.put(instance, INSTANCE["arena_bytes"], needed)
    _write_table(f, instance, program)
    f.put(instance, INSTANCE["program"], program)
    f.ret(constant("i32", 0))


def _write_table(f: Routine, instance: IRValue, program: IRValue) -> None:
    """Write how the table is filled by which code finds memory."""
    table = f.word(instance, INSTANCE["table"], "ptr")
    arena = f.word(instance, INSTANCE["arena"], "ptr")
    f.put(table, 8 * ARENA, arena)
    f.put(table, 8 * COUNTER, f.gep(instance, INSTANCE["counter"]))
    f.put(table, 8 * NUMBERS, f.word(instance, INSTANCE["numbers"], "ptr"))
    constants, count = (
        f.word(program, PROGRAM["constants"], "ptr"),
        f.word(program, PROGRAM["constant_count"]),
    )
    first = f.gep(table, 8 * CONSTANTS)
    with f.loop(0, count, 1) as i:
        f.store(f.load("ptr", f.gep(constants, i, "ptr")), f.gep(first, i, "ptr"))
    flag = f.word(program, PROGRAM["flag"])
    with f.when(f.icmp("sge", flag, 0)):
        f.store(f.gep(instance, INSTANCE["flag"]), f.gep(first, flag, "ptr"))
    behind = f.gep(first, count, "ptr")
    f.store(f.word(program, PROGRAM["words"], "ptr"), behind)
    offsets = f.word(program, PROGRAM["offsets"], "ptr")
    with f.loop(0, f.word(program, PROGRAM["offset_count"]), 1) as i:
        place = f.gep(arena, f.load("i64", f.gep(offsets, i, "i64")))
        f.store(place, f.gep(behind, f.add(i, 1), "ptr"))


def _write_fill_arguments(module: RuntimeModule) -> None:
    """Void fill_arguments(instance, program, inputs, outputs)."""
    f = module.routine("fill_arguments", ["ptr"] * 4, "void")
    instance, program, inputs, outputs = f.parameters
    values = f.word(instance, INSTANCE["values"], "ptr")
    passed = f.word(instance, INSTANCE["arguments"], "ptr")
    wanted = f.word(program, PROGRAM["arguments"], "ptr")
    with f.loop(0, f.word(program, PROGRAM["argument_count"]), 1) as i:
        argument = f.item(wanted, i, ARGUMENT_BYTES)
        kind, index = (f.word(argument, ARGUMENT[name]) for name in ("kind", "index"))
        tensors = f.define(
            "ptr",
            f"select i1 {f.icmp('eq', kind, FROM_INPUT)}, {inputs.typed}, {outputs.typed}",
        )
        is_state = f.icmp("eq", kind, FROM_STATE)
        of_state = f.gep(values, index, "ptr")
        place = f.define(
            "ptr",
            f"select i1 {is_state}, {of_state.typed}, {f.item(tensors, index, TENSOR_BYTES).typed}",
        )
        f.store(f.load("ptr", place), f.gep(passed, i, "ptr"))
    numbers, words = (
        f.word(program, PROGRAM["numbers"], "ptr"),
        f.word(instance, INSTANCE["numbers"], "ptr"),
    )
    with f.loop(0, f.word(program, PROGRAM["number_count"]), 1) as i:
        state = f.load("i64", f.gep(numbers, i, "i64"))
        value = f.load("ptr", f.gep(values, state, "ptr"))
        f.c("memcpy", f.gep(words, i, "i64"), value, _bytes_of_state(f, state))
    f.ret()


def _bytes_of_state(f: Routine, state: IRValue) -> IRValue:
    kept = f.word(f.module.model, MODEL["kept"], "ptr")
    return f.word(f.item(kept, state, KEPT_BYTES), KEPT["nbytes"])


# -- results ---------------------------------------------------------------------------------------


def _write_place_of(module: RuntimeModule) -> None:
    """Ptr place_of(instance, is_argument, entry, offset): an address by the tables of a run."""
    f = module.routine("place_of", ["ptr", "i64", "i64", "i64"], "ptr")
    instance, is_argument, entry, offset = f.parameters
    tables = [f.word(instance, INSTANCE[name], "ptr") for name in ("arguments", "table")]
    passed = f.icmp("ne", is_argument, 0)
    table = f.define("ptr", f"select i1 {passed}, {tables[0].typed}, {tables[1].typed}")
    f.ret(f.gep(f.load("ptr", f.gep(table, entry, "ptr")), offset))


def _write_copy(module: RuntimeModule) -> None:
    """Ptr copy(to, from, block, ndim, loops): copy blocks by strides; return where it ended."""
    f = module.routine("copy", ["ptr", "ptr", "i64", "i64", "ptr"], "ptr")
    to, source, block, ndim, loops = f.parameters
    with f.leaving(f.icmp("eq", ndim, 0)):
        f.c("memcpy", to, source, block)
        f.ret(f.gep(to, block))
    count, stride = f.word(loops, 0), f.word(loops, 8)
    inner, rest = f.gep(loops, LOOP_BYTES), f.sub(ndim, 1)
    with f.loop(0, count, 1, carry=[to]) as i:
        (at,) = i.carried
        i.next(f.call("copy", "ptr", at, f.gep(source, f.mul(i, stride)), block, rest, inner))
    f.ret(i.results[0])


def _write_copied(f: Routine, instance: IRValue, copy: IRValue, to: IRValue) -> IRValue:
    """Write how what a record names is copied; return where the copy ends."""
    place = [f.word(copy, COPY[name]) for name in ("is_argument", "entry", "offset")]
    moves, source = f.word(copy, COPY["moves"], "ptr"), f.call("place_of", "ptr", instance, *place)
    with f.loop(0, f.word(copy, COPY["move_count"]), 1, carry=[source]) as i:
        (at,) = i.carried
        move = f.item(moves, i, MOVE_BYTES)
        word = [f.word(move, MOVE[name]) for name in ("is_argument", "entry", "offset")]
        number = f.load("i64", f.call("place_of", "ptr", instance, *word))
        i.next(f.gep(at, f.mul(number, f.word(move, MOVE["step"]))))
    shape = [f.word(copy, COPY["block"]), f.word(copy, COPY["ndim"])]
    loops = f.word(copy, COPY["loops"], "ptr")
    return f.call("copy", "ptr", to, i.results[0], *shape, loops)


def _write_copy_out(module: RuntimeModule) -> None:
    """Void copy_out(instance, program, outputs): outputs that code did not write itself."""
    f = module.routine("copy_out", ["ptr"] * 3, "void")
    instance, program, outputs = f.parameters
    copies = f.word(program, PROGRAM["output_copies"], "ptr")
    with f.loop(0, f.word(program, PROGRAM["output_copy_count"]), 1) as i:
        copy = f.item(copies, i, COPY_BYTES)
        output = f.item(outputs, f.word(copy, COPY["to"]), TENSOR_BYTES)
        _write_copied(f, instance, copy, f.word(output, TENSOR["data"], "ptr"))
    f.ret()


def _write_commit(module: RuntimeModule) -> None:
    """Void commit(instance, program): new values of states, all taken before one is written."""
    f = module.routine("commit", ["ptr", "ptr"], "void")
    instance, program = f.parameters
    copies = f.word(program, PROGRAM["state_copies"], "ptr")
    count = f.word(program, PROGRAM["state_copy_count"])
    stage, values = (f.word(instance, INSTANCE[n], "ptr") for n in ("stage", "values"))
    with f.loop(0, count, 1) as i:
        copy = f.item(copies, i, COPY_BYTES)
        _write_copied(f, instance, copy, f.gep(stage, f.word(copy, COPY["stage"])))
    with f.loop(0, count, 1) as i:
        copy = f.item(copies, i, COPY_BYTES)
        state = f.word(copy, COPY["to"])
        value = f.load("ptr", f.gep(values, state, "ptr"))
        f.c("memcpy", value, f.gep(stage, f.word(copy, COPY["stage"])), _bytes_of_state(f, state))
    f.ret()
