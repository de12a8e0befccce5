"""Whether collections of Python hold what they held: the loops of it, as IR.

    void weft_same_dictionaries(ptr table, ptr context)
    void weft_same_lists(ptr table, ptr context)

The table holds two addresses: of the number of records and their addresses, and of the word that
takes the answer. A record has the words of `RECORD`: how many collections and items there are,
where the addresses of objects lie, and from the last one on the length of each collection. The
objects are

    owners, collections, keys, values

where an owner is the object whose attributes a dictionary holds, or the dictionary itself. Of lists
there are collections and values. What is equal by identity is the same. They run under the
interpreter's lock, and change nothing.
"""

from __future__ import annotations

from ...codegen.target import Target
from .template import module_text, places

CHANGED, SAME, UNKNOWN = range(3)
RECORD = ("count", "items", "objects", "lengths")
EXPORTS = ("weft_same_dictionaries", "weft_same_lists")
FAR, NEAR = 8, 4  # objects ahead of the one that is looked at, of which memory is asked for parts
PYTHON_FUNCTIONS = (
    *("PyDict_Size", "PyDict_Next", "PyList_Size", "PyList_GetItem"),
    *("PyObject_GenericGetDict", "PyErr_Clear", "Py_DecRef"),
)


def unchanged_text(target: Target) -> str:
    """Return the module of both."""
    names = {"changed": CHANGED, "same": SAME, "unknown": UNKNOWN, "far": FAR, "near": NEAR}
    names["last_word"] = dict.__basicsize__ - 8
    names |= places(RECORD, "r")
    return module_text(target, _BODY, names)


_BODY = """
declare i64 @PyDict_Size(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

define void @weft_same_dictionaries(ptr %table, ptr %context) nounwind {
  call void @each_record(ptr %table, ptr @same_dictionaries)
  ret void
}

define void @weft_same_lists(ptr %table, ptr %context) nounwind {
  call void @each_record(ptr %table, ptr @same_lists)
  ret void
}

; Ask of one record after the other, until one is not the same.
define internal void @each_record(ptr %table, ptr %ask) nounwind {
entry:
  %records = load ptr, ptr %table, align 8
  %at.answer = getelementptr ptr, ptr %table, i64 1
  %answer = load ptr, ptr %at.answer, align 8
  %count = load i64, ptr %records, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %record ]
  %before = phi i64 [ <same>, %entry ], [ %found, %record ]
  %same = icmp eq i64 %before, <same>
  %left = icmp slt i64 %i, %count
  %on = and i1 %same, %left
  br i1 %on, label %record, label %end
record:
  %after = add i64 %i, 1
  %at.record = getelementptr ptr, ptr %records, i64 %after
  %words = load ptr, ptr %at.record, align 8
  %found = call i64 %ask(ptr %words)
  br label %next
end:
  store i64 %before, ptr %answer, align 8
  ret void
}

define internal i64 @same_dictionaries(ptr %words) nounwind {
entry:
  %position = alloca i64, align 8
  %at.key = alloca ptr, align 8
  %at.value = alloca ptr, align 8
  %count = field i64, %words + <r_count>, align 8
  %items = field i64, %words + <r_items>, align 8
  %owners = field ptr, %words + <r_objects>, align 8
  %objects = getelementptr ptr, ptr %owners, i64 %count
  %keys = getelementptr ptr, ptr %objects, i64 %count
  %values = getelementptr ptr, ptr %keys, i64 %items
  %lengths = getelementptr i8, ptr %words, i64 <r_lengths>
  %last = sub i64 %count, 1
  br label %first
first:
  %k = phi i64 [ 0, %entry ], [ %k.after, %ask.first ]
  %k.after = add i64 %k, 1
  %few = icmp slt i64 %k, <far>
  %is.one = icmp slt i64 %k, %count
  %ask = and i1 %few, %is.one
  br i1 %ask, label %ask.first, label %next
ask.first:
  call void @ask_for(ptr %owners, ptr %objects, i64 %k)
  br label %first
next:
  %i = phi i64 [ 0, %first ], [ %i.after, %item ]
  %begin = phi i64 [ 0, %first ], [ %end, %item ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %visit, label %same
visit:
  %i.after = add i64 %i, 1
  %i.far = add i64 %i, <far>
  %far = call i64 @llvm.smin.i64(i64 %i.far, i64 %last)
  call void @ask_for(ptr %owners, ptr %objects, i64 %far)
  %i.near = add i64 %i, <near>
  %near = call i64 @llvm.smin.i64(i64 %i.near, i64 %last)
  call void @ask_for_items(ptr %objects, i64 %near)
  %at.owner = getelementptr ptr, ptr %owners, i64 %i
  %owner = load ptr, ptr %at.owner, align 8
  %at.object = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at.object, align 8
  %at.length = getelementptr i64, ptr %lengths, i64 %i
  %length = load i64, ptr %at.length, align 8
  %end = add i64 %begin, %length
  %is.owned = icmp ne ptr %owner, %object
  br i1 %is.owned, label %owned, label %size
owned:
  %held = call ptr @PyObject_GenericGetDict(ptr %owner, ptr null)
  %failed = icmp eq ptr %held, null
  br i1 %failed, label %error, label %compare
compare:
  call void @Py_DecRef(ptr %held)  ; its owner holds it as well
  %is.own = icmp eq ptr %held, %object
  br i1 %is.own, label %size, label %unknown
size:
  %now = call i64 @PyDict_Size(ptr %object)
  %as.long = icmp eq i64 %now, %length
  store i64 0, ptr %position, align 8
  br i1 %as.long, label %item, label %changed
item:
  %j = phi i64 [ %begin, %size ], [ %j.after, %alike ]
  %inside = icmp slt i64 %j, %end
  br i1 %inside, label %pair, label %next
pair:
  %there = call i32 @PyDict_Next(ptr %object, ptr %position, ptr %at.key, ptr %at.value)
  %is.there = icmp ne i32 %there, 0
  br i1 %is.there, label %key, label %changed
key:
  %key.now = load ptr, ptr %at.key, align 8
  %at.old.key = getelementptr ptr, ptr %keys, i64 %j
  %key.then = load ptr, ptr %at.old.key, align 8
  %same.key = icmp eq ptr %key.now, %key.then
  br i1 %same.key, label %value, label %unknown  ; another string may be equal
value:
  %value.now = load ptr, ptr %at.value, align 8
  %at.old.value = getelementptr ptr, ptr %values, i64 %j
  %value.then = load ptr, ptr %at.old.value, align 8
  %same.value = icmp eq ptr %value.now, %value.then
  br i1 %same.value, label %alike, label %changed
alike:
  %j.after = add i64 %j, 1
  br label %item
error:
  call void @PyErr_Clear()
  br label %unknown
unknown:
  ret i64 <unknown>
changed:
  ret i64 <changed>
same:
  ret i64 <same>
}

; Ask for an object and its dictionary, which memory has to bring: thousands lie anywhere.
define internal void @ask_for(ptr %owners, ptr %objects, i64 %i) nounwind alwaysinline {
  %at.owner = getelementptr ptr, ptr %owners, i64 %i
  %owner = load ptr, ptr %at.owner, align 8
  %head = getelementptr i8, ptr %owner, i64 -32  ; where CPython keeps the dictionary's address
  call void @llvm.prefetch.p0(ptr %head, i32 0, i32 3, i32 1)
  call void @llvm.prefetch.p0(ptr %owner, i32 0, i32 3, i32 1)
  %at.object = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at.object, align 8
  call void @llvm.prefetch.p0(ptr %object, i32 0, i32 3, i32 1)
  ret void
}

; Ask for what the last word of a dictionary points to: its values, where classes share the names.
define internal void @ask_for_items(ptr %objects, i64 %i) nounwind alwaysinline {
  %at.object = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at.object, align 8
  %items = field ptr, %object + <last_word>, align 8
  call void @llvm.prefetch.p0(ptr %items, i32 0, i32 3, i32 1)
  ret void
}

define internal i64 @same_lists(ptr %words) nounwind {
entry:
  %count = field i64, %words + <r_count>, align 8
  %objects = field ptr, %words + <r_objects>, align 8
  %values = getelementptr ptr, ptr %objects, i64 %count
  %lengths = getelementptr i8, ptr %words, i64 <r_lengths>
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.after, %item ]
  %begin = phi i64 [ 0, %entry ], [ %end, %item ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %visit, label %same
visit:
  %i.after = add i64 %i, 1
  %at.object = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at.object, align 8
  %at.length = getelementptr i64, ptr %lengths, i64 %i
  %length = load i64, ptr %at.length, align 8
  %end = add i64 %begin, %length
  %now = call i64 @PyList_Size(ptr %object)
  %as.long = icmp eq i64 %now, %length
  br i1 %as.long, label %item, label %changed
item:
  %j = phi i64 [ 0, %visit ], [ %j.after, %alike ]
  %inside = icmp slt i64 %j, %length
  br i1 %inside, label %one, label %next
one:
  %value.now = call ptr @PyList_GetItem(ptr %object, i64 %j)
  %place = add i64 %begin, %j
  %at.old = getelementptr ptr, ptr %values, i64 %place
  %value.then = load ptr, ptr %at.old, align 8
  %same.value = icmp eq ptr %value.now, %value.then
  br i1 %same.value, label %alike, label %changed
alike:
  %j.after = add i64 %j, 1
  br label %item
changed:
  ret i64 <changed>
same:
  ret i64 <same>
}
"""
