"""Functions of the runtime for files of weights: safetensors with exactly the header of the model.

The names, dtypes and shapes of all states are known when a library is made, and so is every byte of
the header of such a file. Saving writes it, and loading compares it.
"""

from __future__ import annotations

from ..codegen.values import IRValue, constant
from .records import INSTANCE, KEPT, KEPT_BYTES, MODEL, ErrorCode
from .routine import NULL, Routine, RuntimeModule
from .running import guarded

_READ_ONLY = 0x80000  # O_RDONLY | O_CLOEXEC
_END, _PROT_READ, _MAP_PRIVATE = 2, 1, 2
_PATH_BYTES = 4096


def write_files(module: RuntimeModule) -> None:
    """Add the functions to a module."""
    _write_map(module)
    _write_find_beside(module)
    _write_load(module)
    _write_save(module)


def file_bytes(f: Routine) -> IRValue:
    """Return how many bytes a file of weights has."""
    model = f.module.model
    return f.add(f.word(model, MODEL["header_bytes"]), f.word(model, MODEL["data_bytes"]))


def _write_map(module: RuntimeModule) -> None:
    """i32 map_weights(report, path, place): put the address of a checked file into a place."""
    f = module.routine("map_weights", ["ptr"] * 3)
    report, path, place = f.parameters
    file = f.c("open", path, constant("i32", _READ_ONLY))
    with f.leaving(f.icmp("slt", file, 0)):
        f.say(report, "%s cannot be opened: %s", path, f.system_error())
        f.ret(constant("i32", ErrorCode.FILE))
    size = f.c("lseek", file, constant("i64", 0), constant("i32", _END))
    wanted = file_bytes(f)
    with f.leaving(f.icmp("ne", size, wanted)):
        f.c("close", file)
        message = "%s has %lld bytes, and a file with the weights of this model %lld"
        f.say(report, message, path, size, wanted)
        f.ret(constant("i32", ErrorCode.WEIGHTS))
    protection, way = constant("i32", _PROT_READ), constant("i32", _MAP_PRIVATE)
    mapped = f.c("mmap", NULL, wanted, protection, way, file, constant("i64", 0))
    error = f.system_error()
    f.c("close", file)
    failed = f.icmp("eq", f.number_of(mapped), -1)
    f.fail_if(failed, report, ErrorCode.FILE, "%s cannot be read: %s", path, error)
    header = f.word(module.model, MODEL["header"], "ptr")
    differs = f.c("memcmp", mapped, header, f.word(module.model, MODEL["header_bytes"]))
    with f.leaving(f.icmp("ne", differs, 0)):
        f.c("munmap", mapped, wanted)
        f.say(report, "%s has other names, dtypes or shapes than this model", path)
        f.ret(constant("i32", ErrorCode.WEIGHTS))
    f.store(mapped, place)
    f.ret(constant("i32", 0))


def _write_find_beside(module: RuntimeModule) -> None:
    """i32 map_beside(report, place): the same for the file that lies where the library does."""
    f = module.routine("map_beside", ["ptr", "ptr"])
    report, place = f.parameters
    beside = f.word(module.model, MODEL["beside"], "ptr")
    advice = "say in the options where the weights are (%s)"
    f.fail_if(f.is_null(f.c_address("dladdr")), report, ErrorCode.FILE, advice, beside)
    found = f.alloca("ptr", 4)
    known = f.c("dladdr", module.model, found)
    f.fail_if(f.icmp("eq", known, 0), report, ErrorCode.FILE, advice, beside)
    library, path = f.load("ptr", found), f.alloca("i8", _PATH_BYTES)
    slash = f.c("strrchr", library, constant("i32", ord("/")))
    end = f.select(f.is_null(slash), f.sub(f.number_of(library), 1), f.number_of(slash))
    length = f.trunc(f.add(f.sub(end, f.number_of(library)), 1), "i32")
    f.c(
        "snprintf",
        path,
        constant("i64", _PATH_BYTES),
        f.text_constant("%.*s%s"),
        length,
        library,
        beside,
    )
    f.ret(f.call("map_weights", "i32", report, path, place))


def _write_load(module: RuntimeModule) -> None:
    """i32 load(instance, path): give all states the values of a file; none if it does not fit."""
    f = module.exported("load", ["ptr", "ptr"])
    instance, path = f.parameters
    missing = f.or_(f.is_null(instance), f.is_null(path))
    with f.leaving(missing):
        f.ret(constant("i32", ErrorCode.NULL))
    f.ret(guarded(f, instance, lambda: f.call("load_alone", "i32", instance, path)))
    f = module.routine("load_alone", ["ptr", "ptr"])
    instance, path = f.parameters
    place = f.alloca("ptr")
    f.pass_on(f.call("map_weights", "i32", instance, path, place))
    mapped = f.load("ptr", place)
    data = f.gep(mapped, f.word(module.model, MODEL["header_bytes"]))
    kept = f.word(module.model, MODEL["kept"], "ptr")
    values = f.word(instance, INSTANCE["values"], "ptr")
    count = f.word(module.model, MODEL["state_count"])
    with f.loop(0, count, 1) as i:
        code = f.call("own_state", "i32", instance, f.add(i, 0))
        with f.leaving(f.icmp("ne", code, 0)):
            f.c("munmap", mapped, file_bytes(f))
            f.ret(code)
    with f.loop(0, count, 1) as i:
        about = f.item(kept, i, KEPT_BYTES)
        source = f.gep(data, f.word(about, KEPT["offset"]))
        f.c("memcpy", f.load("ptr", f.gep(values, i, "ptr")), source, f.word(about, KEPT["nbytes"]))
    f.c("munmap", mapped, file_bytes(f))
    f.ret(constant("i32", 0))


def _write_save(module: RuntimeModule) -> None:
    """i32 save(instance, path): write all states to a file, whole or not at all."""
    f = module.exported("save", ["ptr", "ptr"])
    instance, path = f.parameters
    missing = f.or_(f.is_null(instance), f.is_null(path))
    with f.leaving(missing):
        f.ret(constant("i32", ErrorCode.NULL))
    f.ret(guarded(f, instance, lambda: f.call("save_alone", "i32", instance, path)))
    f = module.routine("save_alone", ["ptr", "ptr"])
    instance, path = f.parameters
    part = f.alloca("i8", _PATH_BYTES)
    size = constant("i64", _PATH_BYTES)
    length = f.c("snprintf", part, size, f.text_constant("%s.%d.part"), path, f.c("getpid"))
    too_long = f.icmp("sge", length, _PATH_BYTES)
    f.fail_if(too_long, instance, ErrorCode.FILE, "the path is too long")
    file = f.c("fopen", part, f.text_constant("wb"))
    with f.leaving(f.is_null(file)):
        f.say(instance, "%s cannot be written: %s", path, f.system_error())
        f.ret(constant("i32", ErrorCode.FILE))
    written = f.call("write_states", "i64", instance, file)
    flushed, closed = f.c("fflush", file), f.c("fclose", file)
    whole = f.and_(f.icmp("eq", written, file_bytes(f)), f.icmp("eq", f.or_(flushed, closed), 0))
    with f.when(whole), f.leaving(f.icmp("eq", f.c("rename", part, path), 0)):
        f.ret(constant("i32", 0))
    f.say(instance, "%s cannot be written: %s", path, f.system_error())
    f.c("remove", part)
    f.ret(constant("i32", ErrorCode.FILE))
    _write_states(module)


def _write_states(module: RuntimeModule) -> None:
    """i64 write_states(instance, file): return how many bytes were written."""
    f = module.routine("write_states", ["ptr", "ptr"], "i64")
    instance, file = f.parameters
    one = constant("i64", 1)
    header = f.word(module.model, MODEL["header"], "ptr")
    first = f.c("fwrite", header, one, f.word(module.model, MODEL["header_bytes"]), file)
    kept, order = (f.word(module.model, MODEL[name], "ptr") for name in ("kept", "order"))
    values = f.word(instance, INSTANCE["values"], "ptr")
    with f.loop(0, f.word(module.model, MODEL["state_count"]), 1, carry=[first]) as i:
        (total,) = i.carried
        state = f.load("i64", f.gep(order, i, "i64"))
        nbytes = f.word(f.item(kept, state, KEPT_BYTES), KEPT["nbytes"])
        value = f.load("ptr", f.gep(values, state, "ptr"))
        i.next(f.add(total, f.c("fwrite", value, one, nbytes, file)))
    f.ret(i.results[0])
