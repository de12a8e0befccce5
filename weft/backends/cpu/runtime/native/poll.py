"""What native loops ask from time to time: whether a signal waits for its handler, as IR.

    i32 weft_poll()     ; not 0: the handler has raised, and the run must be given up

While native code runs, nobody else tells: Python's handlers run in the main thread alone, when that
is back in the interpreter. So after some time `weft_poll` goes there itself and lets them run. What
one raises (KeyboardInterrupt, say) is raised by the call of the native code, when the loop has
returned. On other threads it does nothing, as they have no handlers to run.

Between two visits it only reads a clock. If the interpreter is busy with other threads, a visit may
wait for some milliseconds; then the next one is further away.
"""

from __future__ import annotations

from .....core.errors import FROM_SIGNAL
from ...codegen.profile import CLOCK
from ...codegen.target import Target
from .template import c_string, module_text

SECONDS = 0.02  # between two visits to the interpreter
MOST_SECONDS = 0.1
SHARE = 20  # of the time between two visits is the most that one should take, in parts

PYTHON_FUNCTIONS = (
    *("PyGILState_Ensure", "PyGILState_Release", "PyThread_get_thread_ident"),
    *("PyErr_CheckSignals", "PyErr_Fetch", "PyErr_NormalizeException", "PyErr_Restore"),
    *("PyErr_Clear", "PyObject_SetAttrString"),
)
EXPORTS = ("weft_poll", "weft_main_thread")


def poll_text(target: Target, seconds_per_tick: float) -> str:
    """Return the module of `weft_poll` and of the word that says which is the main thread."""
    names = {
        "clock": CLOCK,
        "ident": "i32" if "windows" in target.triple else "i64",  # C's unsigned long
        "least": round(SECONDS / seconds_per_tick),
        "most": round(MOST_SECONDS / seconds_per_tick),
        "share": SHARE,
        "mark": c_string(FROM_SIGNAL),
    }
    return module_text(target, _BODY, names)


_BODY = """
@weft_main_thread = global i64 0
@next = internal global i64 0
@mark = private constant <mark>
@python_true = external global i8

declare i64 @<clock>()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare <ident> @PyThread_get_thread_ident()
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @PyErr_Clear()
declare i32 @PyObject_SetAttrString(ptr, ptr, ptr)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

define i32 @weft_poll() nounwind {
  %now = call i64 @<clock>()
  %next = load atomic i64, ptr @next monotonic, align 8
  %early = icmp slt i64 %now, %next
  br i1 %early, label %nothing, label %who

who:
  %mine = call <ident> @PyThread_get_thread_ident()
  %main = load <ident>, ptr @weft_main_thread, align 8
  %here = icmp eq <ident> %mine, %main
  br i1 %here, label %visit, label %nothing

visit:
  %held = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  %fine = icmp eq i32 %raised, 0
  br i1 %fine, label %leave, label %note

note:
  call void @mark_exception()
  br label %leave

leave:
  call void @PyGILState_Release(i32 %held)
  %then = call i64 @<clock>()
  %took = sub i64 %then, %now
  %wished = mul i64 %took, <share>
  %least = call i64 @llvm.smax.i64(i64 %wished, i64 <least>)
  %pause = call i64 @llvm.smin.i64(i64 %least, i64 <most>)
  %later = add i64 %then, %pause
  store atomic i64 %later, ptr @next monotonic, align 8
  ret i32 %raised

nothing:
  ret i32 0
}

; Mark what a handler raised: it is no failure of the code, whatever its type.
define internal void @mark_exception() nounwind {
  %type = alloca ptr, align 8
  %value = alloca ptr, align 8
  %traceback = alloca ptr, align 8
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %traceback)
  call void @PyErr_NormalizeException(ptr %type, ptr %value, ptr %traceback)
  %error = load ptr, ptr %value, align 8
  %failed = call i32 @PyObject_SetAttrString(ptr %error, ptr @mark, ptr @python_true)
  %marked = icmp eq i32 %failed, 0
  br i1 %marked, label %restore, label %forget
forget:                            ; an exception that takes no attributes
  call void @PyErr_Clear()
  br label %restore
restore:
  %type.kept = load ptr, ptr %type, align 8
  %value.kept = load ptr, ptr %value, align 8
  %traceback.kept = load ptr, ptr %traceback, align 8
  call void @PyErr_Restore(ptr %type.kept, ptr %value.kept, ptr %traceback.kept)
  ret void
}
"""
