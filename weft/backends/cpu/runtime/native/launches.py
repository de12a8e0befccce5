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


_ELEMENTS = {"f": ("float", 4), "d": ("double", 8)}  # what letters are in IR, and how many bytes
_COMMANDS = {  # but of programs: the functions that do them, each given where its command lies
    "copy": COPY,
    "gather": GATHER,
    "scatter": SCATTER,
    "fill": FILL,
    **{f"add_{_ELEMENTS[letter][0]}": number for letter, number in ADD.items()},
    **{f"scatter_add_{_ELEMENTS[letter][0]}": number for letter, number in SCATTER_ADD.items()},
}


def launches_text(target: Target) -> str:
    """Return the module of `weft_launches`."""
    loops = [
        _loop("gather", "%i", "%row", _COPIED, has_rows=True),
        _loop("scatter", "%row", "%i", _COPIED, has_rows=True),
        _loop("fill", "%i", "0", _COPIED, has_rows=False),
        *[
            _loop(f"scatter_add_{element}", "%row", "%i", _added(element, size), has_rows=True)
            for element, size in _ELEMENTS.values()
        ],
    ]
    adding = [_ADD.replace("<element>", element) for element, _ in _ELEMENTS.values()]
    names = {
        **places(CALL, "call"),
        **places(ROWS, "rows"),
        "words": len(ROWS),
        "run": RUN,
        "cases": "\n    ".join(f"i64 {n}, label %{name}" for name, n in _COMMANDS.items()),
        "blocks": "\n".join(map(_block, _COMMANDS)),
    }
    return module_text(target, "\n".join([_BODY, *adding, *loops]), names)


def _block(name: str) -> str:
    return f"{name}:\n  call void @{name}(ptr %at)\n  br label %rows"


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
    <cases>
  ]
call:
  %run = field ptr, %at + <call_run>, align 8
  %context = field ptr, %at + <call_context>, align 8
  %count = field i64, %at + <call_count>, align 8
  %arguments = getelementptr i8, ptr %at, i64 <call_arguments>
  call void %run(ptr %arguments, ptr %context) nounwind
  %behind.call = getelementptr ptr, ptr %arguments, i64 %count
  br label %next
<blocks>
rows:
  %behind.rows = getelementptr i64, ptr %at, i64 <words>
  br label %next
end:
  ret void
}

define internal void @copy(ptr %at) nounwind {
  %target = field ptr, %at + <rows_target>, align 8
  %source = field ptr, %at + <rows_source>, align 8
  %size = field i64, %at + <rows_size>, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  ret void
}
"""

_ADD = """
define internal void @add_<element>(ptr %at) nounwind {
  %target = field ptr, %at + <rows_target>, align 8
  %source = field ptr, %at + <rows_source>, align 8
  %size = field i64, %at + <rows_size>, align 8
  call void @sum_<element>(ptr %target, ptr %source, i64 %size)
  ret void
}

; Add so many numbers to others.
define internal void @sum_<element>(ptr %target, ptr %source, i64 %count) nounwind {
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
  call void @sum_{element}(ptr %there, ptr %here, i64 %size)
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
