"""The native half of the buffer pool: an allocator in NumPy's form, and a maker of arrays, as IR.

NumPy lets an array carry the allocator of its memory (NEP 49), and gives the memory back to it when
the array dies. So a pooled array is an ordinary one that owns its data, and nothing has to watch
it. NumPy calls these functions until the very end of the process, where Python code could no longer
run.

A block is memory of the system; somewhere in its first page a header of 64 bytes, then the data.
Blocks are known by their headers:

    base     what the system gave, to be given back
    class    number of the size class; its bytes follow from it
    next     the next free block of the class, while it is free

Data starts at one of four places in a page, in turn. A store and a load that differ by a multiple
of 4096 bytes look the same to a processor that compares the low bits first, and one waits for the
other. Large arrays of the C library all start at byte 16, away from the four.

Size classes are eighths between powers of two, so that at most an eighth of a block is unused. The
free blocks of a class form a stack. When more than the limit would be kept, blocks of other classes
go first, in turn: those of the class at hand are in use.
"""

from __future__ import annotations

from ...codegen.target import Target
from .template import module_text, places

FIELDS = {name: 8 * i for i, name in enumerate(("lock", "held", "limit", "turn", "reused", "made"))}
CLASSES = 512
ALLOCATOR = ("weft_take", "weft_take_zeroed", "weft_resize", "weft_give_back")
EXPORTS = ("weft_buffers", "weft_new_array", *ALLOCATOR)
# What the maker of arrays of one type knows, in words; the sizes follow.
RECORD = ("dtype", "handler", "bytes", "dimensions", "sizes")
PYTHON_FUNCTIONS = ("PyErr_NoMemory", "Py_IncRef")
HEADER_BYTES = 64
FIRST_PLACE, PLACES, PLACES_APART = 320, 4, 1024  # of the data in a page
PAGE = 4096

# Of an ndarray: bits of its flags, and how far behind them its allocator is noted.
C_ORDER, OWNS_DATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400
HANDLER_BEHIND_FLAGS = 24
HUGE_PAGE = 2 * 1024 * 1024
HUGE_FROM = 4 * 1024 * 1024  # smaller blocks would waste much of a huge page


def buffers_text(target: Target, system: str, array_data: int, array_flags: int) -> str:
    """Return the module, over one of the systems' memory below.

    array_data, array_flags   where these fields of an ndarray lie
    """
    numbers = {
        **FIELDS,
        "heads": 8 * len(FIELDS),
        "words": len(FIELDS) + CLASSES,
        "classes": CLASSES,
        "header": HEADER_BYTES,
        "first": FIRST_PLACE - HEADER_BYTES,
        "places": PLACES,
        "apart": PLACES_APART,
        "page": PAGE,
        "class_back": HEADER_BYTES - 8,
        "huge_page": HUGE_PAGE,
        "huge_from": HUGE_FROM,
        "array_data": array_data,
        "array_flags": array_flags,
        "array_handler": array_flags + HANDLER_BEHIND_FLAGS,
        "owned": ALIGNED | C_ORDER | WRITEABLE | OWNS_DATA,
        "not_owned": ALIGNED | C_ORDER | WRITEABLE,
        **places(RECORD, "record"),
    }
    return module_text(target, _BODY + system, numbers)


# %at.x is an address, %x what lies there.
_BODY = """
@weft_buffers = global [<words> x i64] zeroinitializer, align 64

declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define private void @lock() {
start:
  br label %try
try:
  %old = atomicrmw xchg ptr @weft_buffers, i64 1 acquire
  %free = icmp eq i64 %old, 0
  br i1 %free, label %locked, label %try
locked:
  ret void
}

define private void @unlock() {
  store atomic i64 0, ptr @weft_buffers release, align 8
  ret void
}

; The class of a size: 8 for each power of two, counted from 512 bytes.
define private i64 @class_of(i64 %size) {
  %small = icmp ult i64 %size, 512
  %least = select i1 %small, i64 512, i64 %size
  %last = sub i64 %least, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %last, i1 true)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 3
  %eighths = lshr i64 %last, %shift
  %low = and i64 %eighths, 7
  %high = shl i64 %power, 3
  %both = add i64 %high, %low
  %class = sub i64 %both, 71
  ret i64 %class
}

define private i64 @bytes_of(i64 %class) {
  %raised = add i64 %class, 71
  %power = lshr i64 %raised, 3
  %low = and i64 %raised, 7
  %eighths = add i64 %low, 9
  %shift = sub i64 %power, 3
  %bytes = shl i64 %eighths, %shift
  ret i64 %bytes
}

define private ptr @head_of(i64 %class) {
  %heads = getelementptr i8, ptr @weft_buffers, i64 <heads>
  %head = getelementptr i64, ptr %heads, i64 %class
  ret ptr %head
}

define private void @count(i64 %field, i64 %amount) {
  %at = getelementptr i8, ptr @weft_buffers, i64 %field
  %old = load i64, ptr %at
  %new = add i64 %old, %amount
  store i64 %new, ptr %at
  ret void
}

; Take a free block of a class off its stack, or null. The lock is held.
define private ptr @pop(i64 %class) {
start:
  %at.head = call ptr @head_of(i64 %class)
  %block = load ptr, ptr %at.head
  %none = icmp eq ptr %block, null
  br i1 %none, label %end, label %take
take:
  %at.next = getelementptr i64, ptr %block, i64 2
  %next = load ptr, ptr %at.next
  store ptr %next, ptr %at.head
  %bytes = call i64 @bytes_of(i64 %class)
  %less = sub i64 0, %bytes
  call void @count(i64 <held>, i64 %less)
  br label %end
end:
  ret ptr %block
}

define private void @push(ptr %block, i64 %class) {
  %at.head = call ptr @head_of(i64 %class)
  %old = load ptr, ptr %at.head
  %at.next = getelementptr i64, ptr %block, i64 2
  store ptr %old, ptr %at.next
  store ptr %block, ptr %at.head
  %bytes = call i64 @bytes_of(i64 %class)
  call void @count(i64 <held>, i64 %bytes)
  ret void
}

; Give free blocks back to the system until no more than `most` bytes are kept. The lock is held.
define private void @trim(i64 %most) {
start:
  %at.held = getelementptr i8, ptr @weft_buffers, i64 <held>
  %at.turn = getelementptr i8, ptr @weft_buffers, i64 <turn>
  br label %look
look:
  %held = load i64, ptr %at.held
  %enough = icmp ule i64 %held, %most
  br i1 %enough, label %end, label %one
one:
  %turn = load i64, ptr %at.turn
  %block = call ptr @pop(i64 %turn)
  %none = icmp eq ptr %block, null
  br i1 %none, label %on, label %drop
drop:
  %dropped = load ptr, ptr %block
  call void @weft_unmap(ptr %dropped)
  br label %on
on:
  %later = add i64 %turn, 1
  %over = icmp uge i64 %later, <classes>
  %next = select i1 %over, i64 0, i64 %later
  store i64 %next, ptr %at.turn
  br label %look
end:
  ret void
}

define private ptr @new_block(i64 %class) {
start:
  %bytes = call i64 @bytes_of(i64 %class)
  %whole = add i64 %bytes, <page>
  %first = call ptr @weft_map(i64 %whole)
  %failed = icmp eq ptr %first, null
  br i1 %failed, label %again, label %made
again:
  call void @lock()
  call void @trim(i64 0)
  call void @unlock()
  %second = call ptr @weft_map(i64 %whole)
  %lost = icmp eq ptr %second, null
  br i1 %lost, label %end, label %made
made:
  %base = phi ptr [%first, %start], [%second, %again]
  %at.made = getelementptr i8, ptr @weft_buffers, i64 <made>
  %made.before = load i64, ptr %at.made
  %turn = urem i64 %made.before, <places>
  %shift = mul i64 %turn, <apart>
  %place = add i64 %shift, <first>
  %block = getelementptr i8, ptr %base, i64 %place
  store ptr %base, ptr %block
  %at.class = getelementptr i64, ptr %block, i64 1
  store i64 %class, ptr %at.class
  br label %end
end:
  %result = phi ptr [null, %again], [%block, %made]
  ret ptr %result
}

define ptr @weft_take(ptr %context, i64 %size) {
start:
  %absurd = icmp ugt i64 %size, 1152921504606846976
  br i1 %absurd, label %fail, label %look
look:
  %class = call i64 @class_of(i64 %size)
  call void @lock()
  %kept = call ptr @pop(i64 %class)
  %none = icmp eq ptr %kept, null
  %field = select i1 %none, i64 <made>, i64 <reused>
  call void @count(i64 %field, i64 1)
  call void @unlock()
  br i1 %none, label %make, label %end
make:
  %made = call ptr @new_block(i64 %class)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %fail, label %end
end:
  %block = phi ptr [%kept, %look], [%made, %make]
  %data = getelementptr i8, ptr %block, i64 <header>
  ret ptr %data
fail:
  ret ptr null
}

define ptr @weft_take_zeroed(ptr %context, i64 %count, i64 %each) {
start:
  %size = mul i64 %count, %each
  %data = call ptr @weft_take(ptr %context, i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %end, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  br label %end
end:
  ret ptr %data
}

define void @weft_give_back(ptr %context, ptr %data, i64 %size) {
start:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %end, label %look
look:
  %block = getelementptr i8, ptr %data, i64 -<header>
  %at.class = getelementptr i64, ptr %block, i64 1
  %class = load i64, ptr %at.class
  %bytes = call i64 @bytes_of(i64 %class)
  %at.limit = getelementptr i8, ptr @weft_buffers, i64 <limit>
  call void @lock()
  %limit = load i64, ptr %at.limit
  %large = icmp ugt i64 %bytes, %limit
  br i1 %large, label %drop, label %keep
drop:
  call void @unlock()
  %base = load ptr, ptr %block
  call void @weft_unmap(ptr %base)
  br label %end
keep:
  %most = sub i64 %limit, %bytes
  call void @trim(i64 %most)
  call void @push(ptr %block, i64 %class)
  call void @unlock()
  br label %end
end:
  ret void
}

define ptr @weft_resize(ptr %context, ptr %data, i64 %size) {
start:
  %new = call ptr @weft_take(ptr %context, i64 %size)
  %failed = icmp eq ptr %new, null
  %nothing = icmp eq ptr %data, null
  %alone = or i1 %failed, %nothing
  br i1 %alone, label %end, label %move
move:
  %at.class = getelementptr i8, ptr %data, i64 -<class_back>
  %class = load i64, ptr %at.class
  %bytes = call i64 @bytes_of(i64 %class)
  %common = call i64 @llvm.umin.i64(i64 %bytes, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %common, i1 false)
  call void @weft_give_back(ptr %context, ptr %data, i64 %bytes)
  br label %end
end:
  ret ptr %new
}

"""

_BODY += """
@python_ndarray = external global i8
declare ptr @numpy_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyErr_NoMemory()
declare void @Py_IncRef(ptr)

; A builtin function whose `self` is an array that holds a record: it returns a new array.
define ptr @weft_new_array(ptr %self, ptr %arguments, i64 %count) {
start:
  %record = field ptr, %self + <array_data>
  %bytes = field i64, %record + <record_bytes>
  %data = call ptr @weft_take(ptr null, i64 %bytes)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %fail, label %wrap
wrap:
  %dtype = field ptr, %record + <record_dtype>
  call void @Py_IncRef(ptr %dtype)
  %dimensions = field i32, %record + <record_dimensions>
  %sizes = getelementptr i8, ptr %record, i64 <record_sizes>
  %array = call ptr @numpy_new_from_descr(ptr @python_ndarray, ptr %dtype, i32 %dimensions,
      ptr %sizes, ptr null, ptr %data, i32 <not_owned>, ptr null)
  %lost = icmp eq ptr %array, null
  br i1 %lost, label %undo, label %own
own:
  %handler = field ptr, %record + <record_handler>
  call void @Py_IncRef(ptr %handler)
  %at.allocator = getelementptr i8, ptr %array, i64 <array_handler>
  store ptr %handler, ptr %at.allocator
  %flags = field i32, %array + <array_flags>
  %owned = or i32 %flags, <owned>
  store i32 %owned, ptr %at.flags
  ret ptr %array
undo:
  call void @weft_give_back(ptr null, ptr %data, i64 %bytes)
  ret ptr null
fail:
  %raised = call ptr @PyErr_NoMemory()
  ret ptr null
}
"""

_POSIX = """
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)

define private ptr @weft_map(i64 %size) {
start:
  %place = alloca ptr
  %large = icmp uge i64 %size, <huge_from>
  %alignment = select i1 %large, i64 <huge_page>, i64 <page>
  %failed = call i32 @posix_memalign(ptr %place, i64 %alignment, i64 %size)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %advise, label %fail
advise:
  %block = load ptr, ptr %place
  <advice>
  ret ptr %block
fail:
  ret ptr null
}

define private void @weft_unmap(ptr %block) {
  call void @free(ptr %block)
  ret void
}
"""

# 14 is MADV_HUGEPAGE; advice that a kernel does not take costs nothing.
_ADVICE = """br i1 %large, label %huge, label %end
huge:
  %ignored = call i32 @madvise(ptr %block, i64 %size, i32 14)
  br label %end
end:"""

LINUX = _POSIX.replace("<advice>", _ADVICE) + "declare i32 @madvise(ptr, i64, i32)\n"
POSIX = _POSIX.replace("<advice>", "br label %end\nend:")
WINDOWS = """
declare ptr @_aligned_malloc(i64, i64)
declare void @_aligned_free(ptr)

define private ptr @weft_map(i64 %size) {
  %block = call ptr @_aligned_malloc(i64 %size, i64 <page>)
  ret ptr %block
}

define private void @weft_unmap(ptr %block) {
  call void @_aligned_free(ptr %block)
  ret void
}
"""
