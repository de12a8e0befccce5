"""Whether columns of put-off operations lead outside of one another: a mistake of ours, if they do.

Without this the loops behind it would write wherever a wrong number says. It is a pass over columns
side by side, which takes some two nanoseconds for an operation.
"""

CHECKS = """
; Return another number than 0 if one of some words is not from a first one on, below an end.
define internal i64 @outside(ptr %column, i64 %count, i64 %first, i64 %end) nounwind {
  %bits = alloca i64, align 8
  item %bits[0] = 0
  %size = sub i64 %end, %first
  for %i = 0 to %count
    %number = item %column[%i]
    %from.first = sub i64 %number, %first
    %is.out = icmp uge i64 %from.first, %size
    %bit = zext i1 %is.out to i64
    %before = item %bits[0]
    %after = or i64 %before, %bit
    item %bits[0] = %after
  next %i
  %found = item %bits[0]
  ret i64 %found
}

; The same if some words are not from 0 to a sum, or have another one.
define internal i64 @other_sum(ptr %column, i64 %count, i64 %sum) nounwind {
  %end = add i64 %sum, 1
  %out = call i64 @outside(ptr %column, i64 %count, i64 0, i64 %end)
  %total = alloca i64, align 8
  item %total[0] = 0
  for %i = 0 to %count
    %number = item %column[%i]
    %before = item %total[0]
    %after = add i64 %before, %number
    item %total[0] = %after
  next %i
  %all = item %total[0]
  %is.other = icmp ne i64 %all, %sum
  %bit = zext i1 %is.other to i64
  %wrong = or i64 %out, %bit
  ret i64 %wrong
}

define internal i64 @wrong_operations(ptr %table) nounwind {
  %sizes = field ptr, %table + <o_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %reads = field i64, %sizes + <n_reads>, align 8
  %depth = field i64, %sizes + <n_depth>, align 8
  %kinds = field i64, %sizes + <n_kinds>, align 8
  %numbers = field i64, %sizes + <n_numbers>, align 8
  %first = field i64, %sizes + <n_first>, align 8
  %signature = field ptr, %table + <o_signature>, align 8
  %level = field ptr, %table + <o_level>, align 8
  %refs = field ptr, %table + <o_refs>, align 8
  %arity = field ptr, %table + <o_arity>, align 8
  %outs = field ptr, %table + <o_outs>, align 8
  %firsts = field ptr, %table + <o_firsts>, align 8
  %end = add i64 %first, %numbers
  %least = sub i64 0, 4611686018427387904  ; what was there before has any lower number
  %end.behind = add i64 %end, 1
  %no.kind = call i64 @outside(ptr %signature, i64 %rows, i64 0, i64 %kinds)
  %no.level = call i64 @outside(ptr %level, i64 %rows, i64 0, i64 %depth)
  %no.value = call i64 @outside(ptr %refs, i64 %reads, i64 %least, i64 %end)
  %no.arity = call i64 @other_sum(ptr %arity, i64 %rows, i64 %reads)
  %no.number = call i64 @outside(ptr %firsts, i64 %rows, i64 %first, i64 %end.behind)
  %bits = alloca i64, align 8
  item %bits[0] = 0
  for %i = 0 to %rows
    %own = item %firsts[%i]
    %results = item %outs[%i]
    %room = sub i64 %end, %own
    %is.more = icmp ugt i64 %results, %room
    %bit = zext i1 %is.more to i64
    %before = item %bits[0]
    %after = or i64 %before, %bit
    item %bits[0] = %after
  next %i
  %no.room = item %bits[0]
  %a = or i64 %no.kind, %no.level
  %b = or i64 %no.value, %no.arity
  %c = or i64 %no.number, %no.room
  %a.b = or i64 %a, %b
  %wrong = or i64 %a.b, %c
  ret i64 %wrong
}

; Of what is placed the tables are looked at: batches hold all rows, signatures list types that
; there are. Rows and values are looked at where they are used.
define internal i64 @wrong_places(ptr %table) nounwind {
  %sizes = field ptr, %table + <p_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %reads = field i64, %sizes + <n_reads>, align 8
  %kinds = field i64, %sizes + <n_kinds>, align 8
  %batches = field i64, %sizes + <n_batches>, align 8
  %types = field i64, %sizes + <n_types>, align 8
  %listed = field i64, %sizes + <n_listed>, align 8
  %arity = field ptr, %table + <p_arity>, align 8
  %found = field ptr, %table + <p_found>, align 8
  %type = field ptr, %table + <p_kinds>, align 8
  %kinds_of = field ptr, %table + <p_kinds_of>, align 8
  %begins = add i64 %kinds, 1
  %listed.behind = add i64 %listed, 1
  %no.arity = call i64 @other_sum(ptr %arity, i64 %rows, i64 %reads)
  %no.batch = call i64 @other_sum(ptr %found, i64 %batches, i64 %rows)
  %no.type = call i64 @outside(ptr %type, i64 %listed, i64 0, i64 %types)
  %no.begin = call i64 @outside(ptr %kinds_of, i64 %begins, i64 0, i64 %listed.behind)
  %a = or i64 %no.arity, %no.batch
  %b = or i64 %no.type, %no.begin
  %wrong = or i64 %a, %b
  ret i64 %wrong
}
"""
