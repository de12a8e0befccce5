"""Programs and copies of rows, one after another in one native call: as IR.

    void weft_launches(ptr table, ptr context)

The table holds the address of a list of commands, words of 64 bits. A command of a program is the
words of `CALL`, and behind them the addresses that it takes. All others have the words of `ROWS`:
addresses of a target, of a source and of the numbers of rows, how many rows there are, and the size
of each: in bytes, or in elements where rows are added.
"""

from __future__ import annotations

from ...codegen.target import Target
from .template import module_text, places

END, RUN, COPY, GATHER, SCATTER, FILL, *_ADDING = range(10)
ADD = dict(zip("fd", _ADDING[:2], strict=True))  # by NumPy's letters of dtypes
SCATTER_ADD = dict(zip("fd", _ADDING[2:], strict=True))

CALL = ("kind", "run", "context", "count", "arguments")
ROWS = ("kind", "target", "source", "rows", "count", "size")
EXPORT = "weft_launches"


def launches_text(target: Target) -> str:
    """Return the module of `weft_launches`."""
    loops = [
        _loop("gather", "%i", "%row", _COPIED, has_rows=True),
        _loop("scatter", "%row", "%i", _COPIED, has_rows=True),
        _loop("fill", "%i", "0", _COPIED, has_rows=False),
        *[
            _loop(f"scatter_add_{element}", "%row", "%i", _added(element, size), has_rows=True)
            for element, size in (("float", 4), ("double", 8))
        ],
    ]
    adding = [_ADD.replace("<element>", element) for element in ("float", "double")]
    names = {
        **places(CALL, "call"),
        **places(ROWS, "rows"),
        "words": len(ROWS),
        "run": RUN,
        "copy": COPY,
        "gather": GATHER,
        "scatter": SCATTER,
        "fill": FILL,
        **{f"add_{letter}": number for letter, number in ADD.items()},
        **{f"scatter_add_{letter}": number for letter, number in SCATTER_ADD.items()},
    }
    return module_text(target, "\n".join([_BODY, *adding, *loops]), names)


_BODY = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @weft_launches(ptr %table, ptr %unused) nounwind {
entry:
  %begin = load ptr, ptr %table, align 8
  br label %next
next:
  %at = phi ptr [ %begin, %entry ], [ %behind.call, %call ], [ %behind.rows, %rows ]
  %kind = load i64, ptr %at, align 8
  switch i64 %kind, label %end [
    i64 <run>, label %call
    i64 <copy>, label %copy
    i64 <gather>, label %gather
    i64 <scatter>, label %scatter
    i64 <fill>, label %fill
    i64 <add_f>, label %add.float
    i64 <add_d>, label %add.double
    i64 <scatter_add_f>, label %scatter.add.float
    i64 <scatter_add_d>, label %scatter.add.double
  ]
call:
  %run = field ptr, %at + <call_run>, align 8
  %context = field ptr, %at + <call_context>, align 8
  %count = field i64, %at + <call_count>, align 8
  %arguments = getelementptr i8, ptr %at, i64 <call_arguments>
  call void %run(ptr %arguments, ptr %context) nounwind
  %behind.call = getelementptr ptr, ptr %arguments, i64 %count
  br label %next
copy:
  %target = field ptr, %at + <rows_target>, align 8
  %source = field ptr, %at + <rows_source>, align 8
  %size = field i64, %at + <rows_size>, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  br label %rows
add.float:
  %sum.target = field ptr, %at + <rows_target>, align 8
  %sum.source = field ptr, %at + <rows_source>, align 8
  %sum.size = field i64, %at + <rows_size>, align 8
  call void @add_float(ptr %sum.target, ptr %sum.source, i64 %sum.size)
  br label %rows
add.double:
  %double.target = field ptr, %at + <rows_target>, align 8
  %double.source = field ptr, %at + <rows_source>, align 8
  %double.size = field i64, %at + <rows_size>, align 8
  call void @add_double(ptr %double.target, ptr %double.source, i64 %double.size)
  br label %rows
gather:
  call void @gather(ptr %at)
  br label %rows
scatter:
  call void @scatter(ptr %at)
  br label %rows
fill:
  call void @fill(ptr %at)
  br label %rows
scatter.add.float:
  call void @scatter_add_float(ptr %at)
  br label %rows
scatter.add.double:
  call void @scatter_add_double(ptr %at)
  br label %rows
rows:
  %behind.rows = getelementptr i64, ptr %at, i64 <words>
  br label %next
end:
  ret void
}
"""

_ADD = """
; Add so many numbers to others.
define internal void @add_<element>(ptr %target, ptr %source, i64 %count) nounwind {
entry:
  %whole = and i64 %count, -8
  br label %vectors
vectors:
  %i = phi i64 [ 0, %entry ], [ %i.after, %vector ]
  %more = icmp slt i64 %i, %whole
  br i1 %more, label %vector, label %rest
vector:
  %i.after = add i64 %i, 8
  %at.many = getelementptr <element>, ptr %target, i64 %i
  %at.more = getelementptr <element>, ptr %source, i64 %i
  %many = load <8 x <element>>, ptr %at.many, align 4
  %others = load <8 x <element>>, ptr %at.more, align 4
  %sums = fadd <8 x <element>> %many, %others
  store <8 x <element>> %sums, ptr %at.many, align 4
  br label %vectors
rest:
  %j = phi i64 [ %whole, %vectors ], [ %j.after, %one ]
  %left = icmp slt i64 %j, %count
  br i1 %left, label %one, label %end
one:
  %j.after = add i64 %j, 1
  %at.one = getelementptr <element>, ptr %target, i64 %j
  %at.other = getelementptr <element>, ptr %source, i64 %j
  %old = load <element>, ptr %at.one, align 4
  %other = load <element>, ptr %at.other, align 4
  %sum = fadd <element> %old, %other
  store <element> %sum, ptr %at.one, align 4
  br label %rest
end:
  ret void
}
"""

_COPIED = """
  %to.offset = mul i64 %to, %size
  %from.offset = mul i64 %from, %size
  %there = getelementptr i8, ptr %target, i64 %to.offset
  %here = getelementptr i8, ptr %source, i64 %from.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %there, ptr %here, i64 %size, i1 false)
"""


def _added(element: str, size: int) -> str:
    return f"""
  %bytes = mul i64 %size, {size}
  %to.offset = mul i64 %to, %bytes
  %from.offset = mul i64 %from, %bytes
  %there = getelementptr i8, ptr %target, i64 %to.offset
  %here = getelementptr i8, ptr %source, i64 %from.offset
  call void @add_{element}(ptr %there, ptr %here, i64 %size)
"""


def _loop(name: str, to: str, where: str, body: str, *, has_rows: bool) -> str:
    """Return a function that goes from row to row; %i is its number, %row what stands there."""
    row = "%at.row = getelementptr i64, ptr %rows, i64 %i\n  %row = load i64, ptr %at.row, align 8"
    return f"""
define internal void @{name}(ptr %at) nounwind {{
entry:
  %target = field ptr, %at + <rows_target>, align 8
  %source = field ptr, %at + <rows_source>, align 8
  %rows = field ptr, %at + <rows_rows>, align 8
  %count = field i64, %at + <rows_count>, align 8
  %size = field i64, %at + <rows_size>, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.after, %one ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %one, label %end
one:
  %i.after = add i64 %i, 1
  {row if has_rows else ""}
  %to = add i64 {to}, 0
  %from = add i64 {where}, 0
  {body.strip()}
  br label %next
end:
  ret void
}}
"""
