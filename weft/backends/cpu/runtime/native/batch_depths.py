"""How deep put-off operations lie, as IR. Its columns are looked at by batch_order.py."""

from __future__ import annotations

DEPTH_LOOPS = """
; Find how deep operations lie that stand behind all that they read: one level below the deepest.
define void @weft_batch_depths(ptr %table, ptr %unused) nounwind {
  %sizes = field ptr, %table + <d_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %refs = field ptr, %table + <d_refs>, align 8
  %arity = field ptr, %table + <d_arity>, align 8
  %outs = field ptr, %table + <d_outs>, align 8
  %firsts = field ptr, %table + <d_firsts>, align 8
  %level = field ptr, %table + <d_level>, align 8
  %deep = field ptr, %table + <d_deep>, align 8  ; of each value
  %state = alloca [2 x i64], align 8  ; the next read, and the level so far
  item %state[0] = 0
  for %i = 0 to %rows
    item %state[1] = 0
    %begin = item %state[0]
    %reads = item %arity[%i]
    %end = add i64 %begin, %reads
    item %state[0] = %end
    for %r = %begin to %end
      %ref = item %refs[%r]
      %above = item %deep[%ref]
      %below = add i64 %above, 1
      %so.far = item %state[1]
      %is_deeper = icmp sgt i64 %below, %so.far
      when %is_deeper
        item %state[1] = %below
      end %is_deeper
    next %r
    %found = item %state[1]
    item %level[%i] = %found
    %own = item %firsts[%i]
    %results = item %outs[%i]
    %own.end = add i64 %own, %results
    for %j = %own to %own.end
      item %deep[%j] = %found
    next %j
  next %i
  ret void
}
"""
