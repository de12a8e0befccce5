"""Functions of the runtime that users call first and last: versions, instances and their states."""

from __future__ import annotations

from ..codegen.values import IRValue, constant
from .files import file_bytes
from .records import (
    ABI_VERSION,
    INSTANCE,
    INSTANCE_BYTES,
    KEPT,
    KEPT_BYTES,
    MEANINGS,
    MESSAGE_BYTES,
    MODEL,
    OPTIONS,
    OPTIONS_BYTES,
    REPORT,
    REPORT_BYTES,
    TENSOR,
    TENSOR_INFO,
    TENSOR_INFO_BYTES,
    ErrorCode,
)
from .routine import NULL, Routine, RuntimeModule
from .running import guarded
from .threads import processors


def write_instances(module: RuntimeModule) -> None:
    """Add the functions to a module."""
    _write_versions(module)
    _write_open(module)
    _write_new_instance(module)
    _write_take_weights(module)
    _write_own_state(module)
    _write_close(module)
    _write_message(module)
    _write_find_state(module)
    _write_get_state(module)
    _write_set_state(module)


def _write_versions(module: RuntimeModule) -> None:
    f = module.exported("abi_version", [])
    f.ret(constant("i32", ABI_VERSION))
    f = module.exported("describe", [], "ptr")
    f.ret(module.model)
    f = module.exported("error_text", ["i32"], "ptr")
    (code,) = f.parameters
    for known, meaning in MEANINGS.items():
        with f.leaving(f.icmp("eq", code, int(known))):
            f.ret(f.text_constant(meaning))
    f.ret(f.text_constant("no code of this library"))


def _write_message(module: RuntimeModule) -> None:
    """Ptr message(instance): what was wrong when a call last returned an error."""
    f = module.exported("message", ["ptr"], "ptr")
    (instance,) = f.parameters
    with f.leaving(f.is_null(instance)):
        f.ret(f.text_constant(MEANINGS[ErrorCode.NULL]))
    f.ret(f.word(instance, REPORT["text"], "ptr"))


# -- opening and closing ---------------------------------------------------------------------------


def _write_open(module: RuntimeModule) -> None:
    """i32 open(options, place): `options` may be NULL."""
    f = module.exported("open", ["ptr", "ptr"])
    options, place = f.parameters
    report = f.alloca("ptr", REPORT_BYTES // 8)
    f.put(report, REPORT["text"], NULL)
    f.put(report, REPORT["text_bytes"], constant("i64", 0))
    with f.leaving(f.is_null(place)):
        f.ret(constant("i32", ErrorCode.NULL))
    f.store(NULL, place)
    given = f.alloca("i64", OPTIONS_BYTES // 8)
    f.c("memset", given, constant("i32", 0), constant("i64", OPTIONS_BYTES))
    with f.when(f.icmp("ne", f.number_of(options), 0)):
        _write_version_check(f, options)
        f.c("memcpy", given, options, constant("i64", OPTIONS_BYTES))
        f.put(report, REPORT["text"], f.word(given, OPTIONS["message"], "ptr"))
        f.put(report, REPORT["text_bytes"], f.word(given, OPTIONS["message_bytes"]))
    f.pass_on(f.call("check_processor", "i32", report))
    instance = f.call("new_instance", "ptr", given)
    f.fail_if(f.is_null(instance), report, ErrorCode.MEMORY, "an instance cannot be allocated")
    weights = f.word(given, OPTIONS["weights"], "ptr")
    code = f.call("take_weights", "i32", instance, report, weights)
    with f.leaving(f.icmp("ne", code, 0)):
        f.call(f"{module.prefix}_close", "void", instance)
        f.ret(code)
    with f.when(f.is_null(f.word(given, OPTIONS["parallel_for"], "ptr"))):
        f.call("start_threads", "void", f.word(instance, INSTANCE["threads"]))
    f.store(instance, place)
    f.ret(constant("i32", 0))


def _write_version_check(f: Routine, options: IRValue) -> None:
    """Refuse options of another version: not even their message is where it should be."""
    size, version = (
        f.low(options, OPTIONS["size|version"]),
        f.high(options, OPTIONS["size|version"]),
    )
    wrong = f.or_(f.icmp("ne", size, OPTIONS_BYTES), f.icmp("ne", version, ABI_VERSION))
    with f.leaving(wrong):
        f.ret(constant("i32", ErrorCode.VERSION))


def _write_new_instance(module: RuntimeModule) -> None:
    """Ptr new_instance(options): one block with all its tables; NULL if there is no memory."""
    f = module.routine("new_instance", ["ptr"], "ptr")
    (options,) = f.parameters
    counts = {
        "values": f.word(module.model, MODEL["state_count"]),
        "owned": f.word(module.model, MODEL["state_count"]),
        "numbers": f.add(f.word(module.model, MODEL["most_numbers"]), 1),
        "arguments": f.add(f.word(module.model, MODEL["most_arguments"]), 1),
        "table": f.add(f.word(module.model, MODEL["most_entries"]), 1),
    }
    words = f.constant("i64", (INSTANCE_BYTES + MESSAGE_BYTES) // 8)
    for count in counts.values():
        words = f.add(words, count)
    stage = f.word(module.model, MODEL["stage_bytes"])
    instance = f.c("calloc", constant("i64", 1), f.add(f.mul(words, 8), stage))
    with f.leaving(f.is_null(instance)):
        f.ret(NULL)
    text = f.gep(instance, INSTANCE_BYTES)
    f.put(instance, REPORT["text"], text)
    f.put(instance, REPORT["text_bytes"], constant("i64", MESSAGE_BYTES))
    at = f.gep(text, MESSAGE_BYTES)
    for name, count in counts.items():
        begin = f.gep(at, 8) if name == "table" else at
        f.put(instance, INSTANCE[name], begin)
        if name == "table":
            f.store(instance, at)
        at = f.gep(at, count, "ptr")
    f.put(instance, INSTANCE["stage"], at)
    for name in ("parallel_for", "user"):
        f.put(instance, INSTANCE[name], f.word(options, OPTIONS[name], "ptr"))
    wanted = f.word(options, OPTIONS["threads"])
    asked = f.icmp("sgt", wanted, 0)
    f.put(instance, INSTANCE["threads"], f.select(asked, wanted, processors(f)))
    f.ret(instance)


def _write_take_weights(module: RuntimeModule) -> None:
    """i32 take_weights(instance, report, path): find the values of all states."""
    f = module.routine("take_weights", ["ptr"] * 3)
    instance, report, path = f.parameters
    place = f.gep(instance, INSTANCE["mapped"])
    with f.either(f.is_null(path)) as otherwise:
        with f.when(f.icmp("ne", f.number_of(f.word(module.model, MODEL["beside"], "ptr")), 0)):
            f.pass_on(f.call("map_beside", "i32", report, place))
        next(otherwise)
        f.pass_on(f.call("map_weights", "i32", report, path, place))
    mapped = f.load("ptr", place)
    inside = f.word(module.model, MODEL["weights"], "ptr")
    behind = f.gep(mapped, f.word(module.model, MODEL["header_bytes"]))
    is_inside = f.is_null(mapped)
    data = f.define("ptr", f"select i1 {is_inside}, {inside.typed}, {behind.typed}")
    kept = f.word(module.model, MODEL["kept"], "ptr")
    values = f.word(instance, INSTANCE["values"], "ptr")
    with f.loop(0, f.word(module.model, MODEL["state_count"]), 1) as i:
        about = f.item(kept, i, KEPT_BYTES)
        f.store(f.gep(data, f.word(about, KEPT["offset"])), f.gep(values, i, "ptr"))
        with f.when(f.icmp("ne", f.word(about, KEPT["changes"]), 0)):
            f.pass_on(f.call("own_state", "i32", instance, f.add(i, 0)))
    f.ret(constant("i32", 0))


def _write_own_state(module: RuntimeModule) -> None:
    """i32 own_state(instance, state): let a state have memory of this instance's own."""
    f = module.routine("own_state", ["ptr", "i64"])
    instance, state = f.parameters
    owned = f.gep(f.word(instance, INSTANCE["owned"], "ptr"), state, "ptr")
    with f.leaving(f.icmp("ne", f.number_of(f.load("ptr", owned)), 0)):
        f.ret(constant("i32", 0))
    kept = f.word(module.model, MODEL["kept"], "ptr")
    nbytes = f.word(f.item(kept, state, KEPT_BYTES), KEPT["nbytes"])
    made = f.call("new_memory", "ptr", f.add(nbytes, 8))
    message = "%lld bytes cannot be allocated"
    f.fail_if(f.is_null(made), instance, ErrorCode.MEMORY, message, nbytes)
    value = f.gep(f.word(instance, INSTANCE["values"], "ptr"), state, "ptr")
    f.c("memcpy", made, f.load("ptr", value), nbytes)
    f.store(made, value)
    f.store(made, owned)
    f.ret(constant("i32", 0))


def _write_close(module: RuntimeModule) -> None:
    """Void close(instance): free all that it has; NULL is fine."""
    f = module.exported("close", ["ptr"], "void")
    (instance,) = f.parameters
    with f.leaving(f.is_null(instance)):
        f.ret()
    owned = f.word(instance, INSTANCE["owned"], "ptr")
    with f.loop(0, f.word(module.model, MODEL["state_count"]), 1) as i:
        f.c("free", f.load("ptr", f.gep(owned, i, "ptr")))
    mapped = f.word(instance, INSTANCE["mapped"], "ptr")
    with f.when(f.icmp("ne", f.number_of(mapped), 0)):
        f.c("munmap", mapped, file_bytes(f))
    f.c("free", f.word(instance, INSTANCE["arena"], "ptr"))
    f.c("free", instance)
    f.ret()


# -- states ----------------------------------------------------------------------------------------


def _write_find_state(module: RuntimeModule) -> None:
    """i64 find_state(instance, name): the number of a state; -1 if there is none."""
    f = module.routine("find_state", ["ptr", "ptr"], "i64")
    instance, name = f.parameters
    states = f.word(module.model, MODEL["states"], "ptr")
    with f.loop(0, f.word(module.model, MODEL["state_count"]), 1) as i:
        known = f.word(f.item(states, i, TENSOR_INFO_BYTES), TENSOR_INFO["name"], "ptr")
        with f.leaving(f.icmp("eq", f.c("strcmp", known, name), 0)):
            f.ret(f.add(i, 0))
    f.say(instance, "there is no state %s", name)
    f.ret(constant("i64", -1))


def _checked_state(f: Routine, instance: IRValue, name: IRValue, tensor: IRValue) -> IRValue:
    """Write the search for a state, and the look at a tensor that must be like it."""
    state = f.call("find_state", "i64", instance, name)
    with f.leaving(f.icmp("slt", state, 0)):
        f.ret(constant("i32", ErrorCode.NAME))
    info = f.item(f.word(f.module.model, MODEL["states"], "ptr"), state, TENSOR_INFO_BYTES)
    shape = f.word(info, TENSOR_INFO["shape"], "ptr")
    kind = f.text_constant("state")
    f.pass_on(f.call("check_tensor", "i32", instance, kind, info, tensor, shape))
    return state


def _value_of(f: Routine, instance: IRValue, state: IRValue) -> tuple[IRValue, IRValue]:
    """Return the memory of a state, and how many bytes it has."""
    values = f.word(instance, INSTANCE["values"], "ptr")
    kept = f.word(f.module.model, MODEL["kept"], "ptr")
    nbytes = f.word(f.item(kept, state, KEPT_BYTES), KEPT["nbytes"])
    return f.load("ptr", f.gep(values, state, "ptr")), nbytes


def _write_entry(module: RuntimeModule, name: str) -> Routine:
    """Write what users call, and start the function that does the work, alone."""
    f = module.exported(name, ["ptr"] * 3)
    missing = f.is_null(f.parameters[0])
    for parameter in f.parameters[1:]:
        missing = f.or_(missing, f.is_null(parameter))
    with f.leaving(missing):
        f.ret(constant("i32", ErrorCode.NULL))
    inner = f"{name}_alone"
    f.ret(guarded(f, f.parameters[0], lambda: f.call(inner, "i32", *f.parameters)))
    return module.routine(inner, ["ptr"] * 3)


def _write_get_state(module: RuntimeModule) -> None:
    """i32 get_state(instance, name, tensor): copy a state to where a tensor's data lies."""
    f = _write_entry(module, "get_state")
    instance, name, tensor = f.parameters
    state = _checked_state(f, instance, name, tensor)
    f.c("memcpy", f.word(tensor, TENSOR["data"], "ptr"), *_value_of(f, instance, state))
    f.ret(constant("i32", 0))


def _write_set_state(module: RuntimeModule) -> None:
    """i32 set_state(instance, name, tensor): give a state the value of a tensor."""
    f = _write_entry(module, "set_state")
    instance, name, tensor = f.parameters
    state = _checked_state(f, instance, name, tensor)
    f.pass_on(f.call("own_state", "i32", instance, state))
    value, nbytes = _value_of(f, instance, state)
    f.c("memcpy", value, f.word(tensor, TENSOR["data"], "ptr"), nbytes)
    f.ret(constant("i32", 0))
