"""The C header of a library."""

from __future__ import annotations

import re

from .records import ABI_VERSION, DTYPES, MEANINGS, ErrorCode


def header_text(
    prefix: str,
    file: str,
    facts: dict[str, str],
    tensors: dict[str, list[tuple[str, str, tuple[int, ...]]]],
) -> str:
    """Return the header; `tensors` are names, dtypes and shapes by what they are.

    facts   what the model is, for people
    """
    about = "\n".join(f" * {key:<9} {value}" for key, value in facts.items())
    codes = ",\n".join(_code_line(code) for code in ErrorCode)
    dtypes = ",\n".join(f"    WEFT_{name.upper()} = {i}" for name, i in DTYPES.items())
    upper = _identifier(prefix).upper()
    guard = f"{upper}_{_identifier(file).upper()}_H"
    return _TEXT.format(
        file=file,
        about=about,
        guard=guard,
        version=ABI_VERSION,
        codes=codes,
        dtypes=dtypes,
        prefix=prefix,
        tensors=_tensor_text(upper, tensors),
    )


def _code_line(code: ErrorCode) -> str:
    name = "OK" if code is ErrorCode.OK else f"ERROR_{code.name}"
    return f"    WEFT_{name} = {code.value} /* {MEANINGS[code]} */"


def _tensor_text(upper: str, tensors: dict[str, list[tuple[str, str, tuple[int, ...]]]]) -> str:
    lines = []
    for kind, found in tensors.items():
        lines.append(f"#define {upper}_{kind.upper()}_COUNT {len(found)}")
        for i, (name, dtype, shape) in enumerate(found):
            sizes = ", ".join("?" if size < 0 else str(size) for size in shape)
            macro = f"{upper}_{kind.upper()}_{_identifier(name).upper()}"
            lines.append(f"#define {macro} {i} /* {name}: {dtype}[{sizes}] */")
        lines.append("")
    return "\n".join(_unique(lines))


def _unique(lines: list[str]) -> list[str]:
    """Return lines without a second definition of a macro, which C would refuse."""
    seen: set[str] = set()
    kept = []
    for line in lines:
        macro = " ".join(line.split()[:2])
        if line and macro in seen:
            continue
        seen.add(macro)
        kept.append(line)
    return kept


def _identifier(text: str) -> str:
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    return found or "x"


_TEXT = """\
/* {file}: a model as a shared library, written by Weft.
 *
{about}
 *
 * Link with the library, or load it by dlopen. It needs C's library alone.
 * Calls return 0 or an error; {prefix}_message tells more of what is wrong.
 */
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#ifndef WEFT_ABI
#define WEFT_ABI {version}

enum weft_code {{
{codes}
}};

enum weft_dtype {{
{dtypes}
}};

/* Data in C order, without gaps, at a multiple of the size of its elements. */
typedef struct weft_tensor {{
    void *data;
    const int64_t *shape;
    int32_t dtype;
    int32_t ndim;
}} weft_tensor;

/* A size of -1 is one that each run tells by the shapes of its inputs. */
typedef struct weft_tensor_info {{
    const char *name;
    const int64_t *shape;
    int32_t dtype;
    int32_t ndim;
    int64_t nbytes;
}} weft_tensor_info;

typedef struct weft_info {{
    uint32_t struct_size;
    uint32_t abi_version;
    const char *name;
    const char *target;       /* the kind of processor that the code is for */
    const char *weft_version;
    const char *weights_file; /* beside the library; NULL: the weights are inside */
    const weft_tensor_info *inputs;
    int64_t input_count;
    const weft_tensor_info *outputs;
    int64_t output_count;
    const weft_tensor_info *states;
    int64_t state_count;
    int64_t program_count;    /* combinations of shapes that there is code for */
}} weft_info;

/* Calls task(context, chunk, 0) once for each chunk from 0 on, on any threads; returns when all
 * of them have ended. */
typedef void (*weft_task)(void *context, int64_t chunk, int64_t thread);
typedef void (*weft_parallel_for)(void *user, weft_task task, void *context, int64_t chunks);

/* Begin with WEFT_OPTIONS: the rest is 0, which means as usual. */
typedef struct weft_options {{
    uint32_t struct_size;
    uint32_t abi_version;
    int64_t threads;                /* 0: as many as processors; 1: none of its own */
    const char *weights;            /* a file; NULL: those of the library */
    weft_parallel_for parallel_for; /* NULL: the library's own threads */
    void *user;                     /* passed to parallel_for */
    char *message;                  /* where to tell why opening failed; may be NULL */
    int64_t message_bytes;
}} weft_options;
#define WEFT_OPTIONS {{sizeof(weft_options), WEFT_ABI, 0, NULL, NULL, NULL, NULL, 0}}

/* A model with states and memory of its own. Instances are independent: each may be used by one
 * thread while another one uses the next. */
typedef struct weft_instance weft_instance;
#endif

uint32_t {prefix}_abi_version(void); /* must be WEFT_ABI */
const weft_info *{prefix}_describe(void);
const char *{prefix}_error_text(int32_t code);

int32_t {prefix}_open(const weft_options *options, weft_instance **instance);
void {prefix}_close(weft_instance *instance);
const char *{prefix}_message(const weft_instance *instance);

/* Outputs are written to the memory that they name, which must not overlap inputs. States change
 * only if the run succeeds. */
int32_t {prefix}_run(weft_instance *instance, const weft_tensor *inputs, int64_t input_count,
                 weft_tensor *outputs, int64_t output_count);

/* Fills in dtype, ndim and shape of the outputs for inputs of given shapes. */
int32_t {prefix}_output_shapes(weft_instance *instance, const weft_tensor *inputs,
                           int64_t input_count, weft_tensor *outputs, int64_t output_count);

/* States by name: weights, moments of optimizers, caches. Files are safetensors. */
int32_t {prefix}_get_state(weft_instance *instance, const char *name, weft_tensor *value);
int32_t {prefix}_set_state(weft_instance *instance, const char *name, const weft_tensor *value);
int32_t {prefix}_save(weft_instance *instance, const char *path);
int32_t {prefix}_load(weft_instance *instance, const char *path);

{tensors}
#ifdef __cplusplus
}}
#endif

#endif
"""
