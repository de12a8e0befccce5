"""The native half of calls: a function that CPython calls and that reads ndarrays itself, as IR.

Every entry shares one function, in CPython's fast calling convention (METH_FASTCALL). Its `self` is
an ndarray of 64-bit words, the entry's record (see `RECORD`). The function walks its arguments,
each an ndarray or a tuple of ndarrays, compares every array with its row of the record (`ROW`),
collects the data pointers in a table on the stack, and calls the compiled
`void run(ptr table, ptr context)`, with the interpreter lock released where the record says so. The
handler of a signal may run meanwhile (see poll.py); what it raises is raised afterwards.

An exclusive entry is busy while its record holds the pool's generation: a number that differs in a
forked child, where the thread that was inside does not exist.

Tuples, not lists: the caller keeps a tuple's items alive while other threads run.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...codegen.target import Target
from .template import c_string, module_text, places

RECORD = ("run", "context", "arrays", "releases", "exclusive", "busy", "rows")
# dtype 0 admits anything; sizes is an address; references is how many an array may have at most.
ROW = ("dtype", "dimensions", "flags", "sizes", "references")
ROW_WORDS = len(ROW)
MAKER = ("maker_dtype", "maker_dimensions", "maker_sizes")  # of arrays of one type

# Of the word that holds kind, letter, byte order, flags and number of a dtype, the byte order and
# the number: they decide what the bytes of an array mean.
DTYPE_MASK = 0xFFFFFFFF00FF0000

PYTHON_FUNCTIONS = (
    *("PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Format", "PyErr_Occurred"),
    *("PyLong_FromSsize_t", "PyObject_CallNoArgs", "Py_IncRef", "Py_DecRef"),
)


@dataclass(frozen=True)
class ObjectLayout:
    """Where CPython and NumPy keep what the code reads, in bytes from an object's start."""

    references: int
    type: int
    tuple_size: int
    tuple_items: int
    array_data: int
    array_dimensions: int
    array_sizes: int
    array_dtype: int
    array_flags: int
    dtype_word: int


def entry_text(target: Target, layout: ObjectLayout) -> str:
    """Return the module of `weft_entry`; addresses of Python objects are symbols to be linked."""
    offsets = {
        **vars(layout),
        **places(RECORD, "record"),
        **places(ROW, "row"),
        **places(MAKER, "record"),
        "row": 8 * ROW_WORDS,
        "dtype_mask": DTYPE_MASK - 2**64,
    }
    said = [f"@{name} = private constant {c_string(text)}" for name, text in _SAID.items()]
    return module_text(target, "\n".join([*said, _BODY]), offsets)


_SAID = {
    "no_array": "compiled code takes NumPy arrays; argument %zd is none",
    "bad_count": "compiled code takes %zd arrays. Received: %zd",
}

# %at.x is an address, %x what lies there.
_BODY = """
@python_none = external global i8
@python_tuple = external global i8
@python_ndarray = external global i8
@python_type_error = external global i8
@weft_start_workers = external global i8
@weft_workers_wanted = external global i8
@weft_pool_generation = external global i8

declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyErr_Occurred()
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @numpy_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

; A builtin function whose `self` is an array that holds a record (MAKER): it returns a new array.
define ptr @weft_empty(ptr %self, ptr %arguments, i64 %given) nounwind {
  %record = field ptr, %self + <array_data>, align 8
  %dtype = field ptr, %record + <record_maker_dtype>, align 8
  call void @Py_IncRef(ptr %dtype)  ; a reference is taken from us
  %dimensions = field i32, %record + <record_maker_dimensions>, align 8
  %sizes = getelementptr i8, ptr %record, i64 <record_maker_sizes>
  %array = call ptr @numpy_new_from_descr(ptr @python_ndarray, ptr %dtype, i32 %dimensions,
      ptr %sizes, ptr null, ptr null, i32 0, ptr null)
  ret ptr %array
}

define ptr @weft_entry(ptr %self, ptr %arguments, i64 %given) nounwind {
  %record = field ptr, %self + <array_data>, align 8
  %count = field i64, %record + <record_arrays>, align 8
  %rows = getelementptr i8, ptr %record, i64 <record_rows>
  %table = alloca ptr, i64 %count, align 16
  br label %arguments.loop

arguments.loop:
  %a = phi i64 [ 0, %0 ], [ %a.next, %span.end ]
  %before = phi i64 [ 0, %0 ], [ %k, %span.end ]
  %more = icmp slt i64 %a, %given
  br i1 %more, label %argument, label %collected

argument:                          ; an array is a span of one array, a tuple a span of its items
  %at.argument = getelementptr ptr, ptr %arguments, i64 %a
  %argument.object = load ptr, ptr %at.argument, align 8
  %argument.type = field ptr, %argument.object + <type>, align 8
  %is.tuple = icmp eq ptr %argument.type, @python_tuple
  br i1 %is.tuple, label %tuple, label %span

tuple:
  %at.size = getelementptr i8, ptr %argument.object, i64 <tuple_size>
  %tuple.size = load i64, ptr %at.size, align 8
  %at.items = getelementptr i8, ptr %argument.object, i64 <tuple_items>
  br label %span

span:
  %items = phi ptr [ %at.argument, %argument ], [ %at.items, %tuple ]
  %size = phi i64 [ 1, %argument ], [ %tuple.size, %tuple ]
  br label %items.loop

items.loop:
  %i = phi i64 [ 0, %span ], [ %i.next, %advance ]
  %k = phi i64 [ %before, %span ], [ %k.next, %advance ]
  %inside = icmp slt i64 %i, %size
  br i1 %inside, label %item, label %span.end

item:
  %expected = icmp slt i64 %k, %count
  br i1 %expected, label %check.type, label %advance

check.type:
  %at.item = getelementptr ptr, ptr %items, i64 %i
  %array = load ptr, ptr %at.item, align 8
  %type = field ptr, %array + <type>, align 8
  %is.array = icmp eq ptr %type, @python_ndarray
  br i1 %is.array, label %check.row, label %no.array

check.row:
  %row.offset = mul i64 %k, <row>
  %row = getelementptr i8, ptr %rows, i64 %row.offset
  %row.dtype = field i64, %row + <row_dtype>, align 8
  %anything = icmp eq i64 %row.dtype, 0
  br i1 %anything, label %accept, label %check.dtype

check.dtype:
  %dtype = field ptr, %array + <array_dtype>, align 8
  %word = field i64, %dtype + <dtype_word>, align 8
  %masked = and i64 %word, <dtype_mask>
  %same.dtype = icmp eq i64 %masked, %row.dtype
  %at.flags = getelementptr i8, ptr %array, i64 <array_flags>
  %flags.32 = load i32, ptr %at.flags, align 4
  %flags = zext i32 %flags.32 to i64
  %row.flags = field i64, %row + <row_flags>, align 8
  %flags.kept = and i64 %flags, %row.flags
  %same.flags = icmp eq i64 %flags.kept, %row.flags
  %at.rank = getelementptr i8, ptr %array, i64 <array_dimensions>
  %rank.32 = load i32, ptr %at.rank, align 4
  %rank = zext i32 %rank.32 to i64
  %row.rank = field i64, %row + <row_dimensions>, align 8
  %same.rank = icmp eq i64 %rank, %row.rank
  ; 32 bits of references: since Python 3.14 the others of that word have another meaning
  %at.references = getelementptr i8, ptr %array, i64 <references>
  %references.32 = load i32, ptr %at.references, align 4
  %references = zext i32 %references.32 to i64
  %row.references = field i64, %row + <row_references>, align 8
  %few.enough = icmp ule i64 %references, %row.references
  %same.both = and i1 %same.dtype, %same.flags
  %same.three = and i1 %same.both, %same.rank
  %same = and i1 %same.three, %few.enough
  br i1 %same, label %check.sizes, label %mismatch

check.sizes:
  %sizes = field ptr, %array + <array_sizes>, align 8
  %row.sizes = field ptr, %row + <row_sizes>, align 8
  br label %sizes.loop

sizes.loop:
  %d = phi i64 [ 0, %check.sizes ], [ %d.next, %size.check ]
  %unchecked = icmp slt i64 %d, %rank
  br i1 %unchecked, label %size.check, label %accept

size.check:
  %at.extent = getelementptr i64, ptr %sizes, i64 %d
  %extent = load i64, ptr %at.extent, align 8
  %at.row.extent = getelementptr i64, ptr %row.sizes, i64 %d
  %row.extent = load i64, ptr %at.row.extent, align 8
  %d.next = add i64 %d, 1
  %same.extent = icmp eq i64 %extent, %row.extent
  br i1 %same.extent, label %sizes.loop, label %mismatch

accept:
  %data = field ptr, %array + <array_data>, align 8
  %at.slot = getelementptr ptr, ptr %table, i64 %k
  store ptr %data, ptr %at.slot, align 8
  br label %advance

advance:
  %i.next = add i64 %i, 1
  %k.next = add i64 %k, 1
  br label %items.loop

span.end:
  %a.next = add i64 %a, 1
  br label %arguments.loop

collected:
  %complete = icmp eq i64 %before, %count
  br i1 %complete, label %enter, label %bad.count

enter:
  %run = field ptr, %record + <record_run>, align 8
  %context = field ptr, %record + <record_context>, align 8
  %at.busy = getelementptr i8, ptr %record, i64 <record_busy>
  %exclusive = field i64, %record + <record_exclusive>, align 8
  %generation.32 = load i32, ptr @weft_pool_generation, align 4
  %generation = zext i32 %generation.32 to i64
  %claim = mul i64 %exclusive, %generation
  %taken = atomicrmw xchg ptr %at.busy, i64 %claim acquire
  %refused = icmp eq i64 %taken, %generation
  br i1 %refused, label %occupied, label %choose

choose:
  %releases = field i64, %record + <record_releases>, align 8
  call void @weft_run(ptr %run, ptr %table, ptr %context, i64 %releases)
  store atomic i64 0, ptr %at.busy release, align 8
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %fail, label %finish

finish:
  %wanted = load atomic i32, ptr @weft_workers_wanted monotonic, align 4
  %help = icmp ne i32 %wanted, 0
  br i1 %help, label %start, label %succeed

start:
  %started = call ptr @PyObject_CallNoArgs(ptr @weft_start_workers)
  %interrupted = icmp eq ptr %started, null
  br i1 %interrupted, label %fail, label %discard

discard:
  call void @Py_DecRef(ptr %started)
  br label %succeed

succeed:
  call void @Py_IncRef(ptr @python_none)
  ret ptr @python_none

occupied:
  %minus.one = call ptr @PyLong_FromSsize_t(i64 -1)
  ret ptr %minus.one

mismatch:
  %number = call ptr @PyLong_FromSsize_t(i64 %k)
  ret ptr %number

no.array:
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr @python_type_error, ptr @no_array, i64 %k)
  ret ptr null

bad.count:
  call ptr (ptr, ptr, ...) @PyErr_Format(
      ptr @python_type_error, ptr @bad_count, i64 %count, i64 %before)
  ret ptr null

fail:
  ret ptr null
}

define void @weft_run(ptr %run, ptr %table, ptr %context, i64 %releases) nounwind {
  %holds = icmp eq i64 %releases, 0
  br i1 %holds, label %holding, label %released

holding:
  call void %run(ptr %table, ptr %context) nounwind
  ret void

released:
  %state = call ptr @PyEval_SaveThread()
  call void %run(ptr %table, ptr %context) nounwind
  call void @PyEval_RestoreThread(ptr %state)
  ret void
}
"""
