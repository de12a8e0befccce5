"""In which order put-off operations run, and where their operands lie: the loops of it, as IR.

    void weft_batch_order(ptr table, ptr context)
    void weft_batch_places(ptr table, ptr context)
    void weft_batch_depths(ptr table, ptr context)

The tables hold the addresses of columns of words, in the order of `ORDER`, `PLACES` and `DEPTHS`,
of the sizes that batch_order.py says. What the columns say is looked at (batch_checks.py): where it
would lead outside of them no more is done, and `left` is -1.
"""

from __future__ import annotations

from ...codegen.target import Target
from .batch_checks import CHECKS
from .batch_depths import DEPTH_LOOPS
from .batch_places import PLACING
from .shorthand import spelled_out
from .template import module_text, places

SIZES = (
    *("rows", "reads", "depth", "kinds", "numbers", "first", "batches", "left"),
    # how many types of results there are, how many are listed, and operands
    *("types", "listed", "operands"),
)
ORDER = (
    # what is given: columns of operations
    *("sizes", "signature", "level", "refs", "arity", "outs", "firsts"),
    # what is found: the rows in their order, the sizes of batches
    *("order", "found"),
    # of rows, numbered values and reads
    *("sorted", "bucket", "reads_of", "maker", "made", "reader"),
    # of buckets
    *("starts", "signature_of", "before", "stamp", "behind", "after", "then"),
    # of signatures
    *("count", "mean", "waiting", "head", "tail", "heap"),
)
PLACES = (
    *("sizes", "signature", "refs", "arity", "firsts", "order", "found"),
    *("kinds", "kinds_of", "ragged", "ends", "rows"),
    *("reads_of", "value", "last_read"),
    *("lie", "starts", "apart", "distinct", "last"),
)
DEPTHS = ("sizes", "refs", "arity", "outs", "firsts", "level", "deep")
EXPORTS = ("weft_batch_order", "weft_batch_places", "weft_batch_depths")


def batch_order_text(target: Target) -> str:
    """Return the module of all."""
    names = {
        **places(SIZES, "n"),
        **places(ORDER, "o"),
        **places(PLACES, "p"),
        **places(DEPTHS, "d"),
    }
    text = CHECKS + _ORDER + _TURNS + _HEAP + PLACING + DEPTH_LOOPS
    return module_text(target, spelled_out(text), names)


_ORDER = """
define void @weft_batch_order(ptr %table, ptr %unused) nounwind {
  %order = field ptr, %table + <o_order>, align 8
  %level = field ptr, %table + <o_level>, align 8
  %signature = field ptr, %table + <o_signature>, align 8
  %sorted = field ptr, %table + <o_sorted>, align 8
  %starts = field ptr, %table + <o_starts>, align 8
  %count = field ptr, %table + <o_count>, align 8
  %sizes = field ptr, %table + <o_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %depth = field i64, %sizes + <n_depth>, align 8
  %kinds = field i64, %sizes + <n_kinds>, align 8
  %wrong = call i64 @wrong_operations(ptr %table)
  %is.wrong = icmp ne i64 %wrong, 0
  br i1 %is.wrong, label %refuse, label %go.on
refuse:
  %at.left = getelementptr i8, ptr %sizes, i64 <n_left>
  item %at.left[0] = -1
  ret void
go.on:
  for %i = 0 to %rows
    item %order[%i] = %i
  next %i
  call void @sort(ptr %level, i64 %rows, i64 %depth, ptr %order, ptr %sorted, ptr %starts)
  call void @sort(ptr %signature, i64 %rows, i64 %kinds, ptr %sorted, ptr %order, ptr %count)
  %buckets = call i64 @find_buckets(ptr %table)
  call void @find_means(ptr %table)
  call void @find_makers(ptr %table)
  %pairs = call i64 @find_pairs(ptr %table, i64 %buckets)
  call void @find_behind(ptr %table, i64 %buckets, i64 %pairs)
  call void @take_turns(ptr %table, i64 %buckets)
  ret void
}

; Put rows in the order of keys below an end, and leave them in theirs where these are the same.
define internal void @sort(
    ptr %keys, i64 %rows, i64 %end, ptr %old, ptr %new, ptr %places) nounwind {
  call void @fill(ptr %places, i64 %end, i64 0)
  for %i = 0 to %rows
    %key = item %keys[%i]
    %counted = more %places[%key]
  next %i
  %all = call i64 @begins(ptr %places, ptr %places, i64 %end)
  for %j = 0 to %rows
    %row = item %old[%j]
    %its.key = item %keys[%row]
    %to = more %places[%its.key]
    item %new[%to] = %row
  next %j
  ret void
}

define internal void @fill(ptr %column, i64 %count, i64 %value) nounwind {
  for %i = 0 to %count
    item %column[%i] = %value
  next %i
  ret void
}

; Put the sums of all numbers before each, and return the sum of all. Both columns may be one.
define internal i64 @begins(ptr %numbers, ptr %sums, i64 %count) nounwind {
  %sum = alloca i64, align 8
  item %sum[0] = 0
  for %i = 0 to %count
    %number = item %numbers[%i]
    %before = item %sum[0]
    %after = add i64 %before, %number
    item %sums[%i] = %before
    item %sum[0] = %after
  next %i
  %found = item %sum[0]
  ret i64 %found
}

; Find the buckets: rows of one signature and level, which lie side by side in their order.
define internal i64 @find_buckets(ptr %table) nounwind {
  %sizes = field ptr, %table + <o_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %order = field ptr, %table + <o_order>, align 8
  %signature = field ptr, %table + <o_signature>, align 8
  %level = field ptr, %table + <o_level>, align 8
  %starts = field ptr, %table + <o_starts>, align 8
  %bucket = field ptr, %table + <o_bucket>, align 8
  %signature_of = field ptr, %table + <o_signature_of>, align 8
  %last = alloca [3 x i64], align 8  ; the signature and the level of the last row; the buckets
  item %last[0] = -1
  item %last[2] = 0
  for %i = 0 to %rows
    %row = item %order[%i]
    %kind = item %signature[%row]
    %deep = item %level[%row]
    %last.kind = item %last[0]
    %last.deep = item %last[1]
    %other.kind = icmp ne i64 %kind, %last.kind
    %other.level = icmp ne i64 %deep, %last.deep
    %begins = or i1 %other.kind, %other.level
    when %begins
      %new = more %last[2]
      item %starts[%new] = %i
      item %signature_of[%new] = %kind
      item %last[0] = %kind
      item %last[1] = %deep
    end %begins
    %buckets = item %last[2]
    %its.bucket = sub i64 %buckets, 1
    item %bucket[%row] = %its.bucket
  next %i
  %count = item %last[2]
  item %starts[%count] = %rows
  ret i64 %count
}

; Find how deep the operations of each signature lie on average. Such numbers are not below zero:
; as words they are in the same order.
define internal void @find_means(ptr %table) nounwind {
  %sizes = field ptr, %table + <o_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %kinds = field i64, %sizes + <n_kinds>, align 8
  %signature = field ptr, %table + <o_signature>, align 8
  %level = field ptr, %table + <o_level>, align 8
  %count = field ptr, %table + <o_count>, align 8
  %mean = field ptr, %table + <o_mean>, align 8
  call void @fill(ptr %count, i64 %kinds, i64 0)
  call void @fill(ptr %mean, i64 %kinds, i64 0)
  for %i = 0 to %rows
    %kind = item %signature[%i]
    %deep = item %level[%i]
    %counted = more %count[%kind]
    %sum = item %mean[%kind]
    %more = add i64 %sum, %deep
    item %mean[%kind] = %more
  next %i
  for %j = 0 to %kinds
    %members = item %count[%j]
    %levels = item %mean[%j]
    %part = uitofp i64 %members to double
    %whole = uitofp i64 %levels to double
    %quotient = fdiv double %whole, %part  ; no number where there are no members
    %bits = bitcast double %quotient to i64
    item %mean[%j] = %bits
  next %j
  ret void
}

; Find the row that makes each numbered value, or -1; and where each row's reads begin.
define internal void @find_makers(ptr %table) nounwind {
  %sizes = field ptr, %table + <o_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %numbers = field i64, %sizes + <n_numbers>, align 8
  %first = field i64, %sizes + <n_first>, align 8
  %outs = field ptr, %table + <o_outs>, align 8
  %firsts = field ptr, %table + <o_firsts>, align 8
  %maker = field ptr, %table + <o_maker>, align 8
  %arity = field ptr, %table + <o_arity>, align 8
  %reads_of = field ptr, %table + <o_reads_of>, align 8
  call void @fill(ptr %maker, i64 %numbers, i64 -1)
  for %i = 0 to %rows
    %results = item %outs[%i]
    %own = item %firsts[%i]
    %begin = sub i64 %own, %first
    %end = add i64 %begin, %results
    for %j = %begin to %end
      item %maker[%j] = %i
    next %j
  next %i
  %all = call i64 @begins(ptr %arity, ptr %reads_of, i64 %rows)
  ret void
}

; Find which bucket reads what which one makes, each pair once: by readers, in order.
define internal i64 @find_pairs(ptr %table, i64 %buckets) nounwind {
  %sizes = field ptr, %table + <o_sizes>, align 8
  %first = field i64, %sizes + <n_first>, align 8
  %order = field ptr, %table + <o_order>, align 8
  %starts = field ptr, %table + <o_starts>, align 8
  %bucket = field ptr, %table + <o_bucket>, align 8
  %refs = field ptr, %table + <o_refs>, align 8
  %arity = field ptr, %table + <o_arity>, align 8
  %reads_of = field ptr, %table + <o_reads_of>, align 8
  %maker = field ptr, %table + <o_maker>, align 8
  %made = field ptr, %table + <o_made>, align 8
  %reader = field ptr, %table + <o_reader>, align 8
  %stamp = field ptr, %table + <o_stamp>, align 8  ; who has read from a bucket last
  %before = field ptr, %table + <o_before>, align 8
  %pairs = alloca i64, align 8
  item %pairs[0] = 0
  call void @fill(ptr %stamp, i64 %buckets, i64 -1)
  for %b = 0 to %buckets
    %begin = item %starts[%b]
    %behind = add i64 %b, 1
    %stop = item %starts[%behind]
    %pairs.before = item %pairs[0]
    for %i = %begin to %stop
      %row = item %order[%i]
      %read = item %reads_of[%row]
      %many = item %arity[%row]
      %read.end = add i64 %read, %many
      for %r = %read to %read.end
        %ref = item %refs[%r]
        %value = sub i64 %ref, %first
        %inside = icmp sge i64 %value, 0  ; others are there already
        when %inside
          %by = item %maker[%value]
          %known = icmp sge i64 %by, 0
          when %known
            %source = item %bucket[%by]
            %reader.last = item %stamp[%source]
            %is_new = icmp ne i64 %reader.last, %b
            when %is_new
              item %stamp[%source] = %b
              %pair = more %pairs[0]
              item %made[%pair] = %source
              item %reader[%pair] = %b
            end %is_new
          end %known
        end %inside
      next %r
    next %i
    %pairs.after = item %pairs[0]
    %number = sub i64 %pairs.after, %pairs.before
    item %before[%b] = %number
  next %b
  %found = item %pairs[0]
  ret i64 %found
}

; Put the buckets that read from each side by side.
define internal void @find_behind(ptr %table, i64 %buckets, i64 %pairs) nounwind {
  %made = field ptr, %table + <o_made>, align 8
  %reader = field ptr, %table + <o_reader>, align 8
  %behind = field ptr, %table + <o_behind>, align 8  ; where those of each bucket begin
  %after = field ptr, %table + <o_after>, align 8
  %next = field ptr, %table + <o_stamp>, align 8  ; where the next one of each comes to lie
  call void @fill(ptr %next, i64 %buckets, i64 0)
  for %i = 0 to %pairs
    %source = item %made[%i]
    %counted = more %next[%source]
  next %i
  %all = call i64 @begins(ptr %next, ptr %behind, i64 %buckets)
  item %behind[%buckets] = %all
  for %b = 0 to %buckets
    %begin = item %behind[%b]
    item %next[%b] = %begin
  next %b
  for %j = 0 to %pairs
    %from = item %made[%j]
    %to = item %reader[%j]
    %place = more %next[%from]
    item %after[%place] = %to
  next %j
  ret void
}
"""

_TURNS = """
; Of the signatures that have buckets ready, let the first one run, until none is left.
define internal void @take_turns(ptr %table, i64 %buckets) nounwind {
  %sizes = field ptr, %table + <o_sizes>, align 8
  %kinds = field i64, %sizes + <n_kinds>, align 8
  %at.batches = getelementptr i8, ptr %sizes, i64 <n_batches>
  %at.left = getelementptr i8, ptr %sizes, i64 <n_left>
  %found = field ptr, %table + <o_found>, align 8
  %before = field ptr, %table + <o_before>, align 8
  %head = field ptr, %table + <o_head>, align 8
  %order = field ptr, %table + <o_order>, align 8
  %sorted = field ptr, %table + <o_sorted>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %ready = alloca i64, align 8  ; how many signatures are in the heap
  %done = alloca i64, align 8  ; rows
  item %ready[0] = 0
  item %done[0] = 0
  item %at.left[0] = %buckets
  call void @fill(ptr %head, i64 %kinds, i64 -1)
  for %i = 0 to %rows
    %row = item %order[%i]
    item %sorted[%i] = %row
  next %i
  for %b = 0 to %buckets
    %waits.for = item %before[%b]
    %is_ready = icmp eq i64 %waits.for, 0
    when %is_ready
      call void @add(ptr %table, ptr %ready, i64 %b)
    end %is_ready
  next %b
  br label %turn
turn:
  %left = item %ready[0]
  %is.left = icmp sgt i64 %left, 0
  br i1 %is.left, label %run, label %end
run:
  %kind = call i64 @pop(ptr %table, ptr %ready)
  %its.first = item %head[%kind]
  item %head[%kind] = -1
  %done.before = item %done[0]
  call void @run_buckets(ptr %table, ptr %ready, ptr %done, i64 %its.first)
  %done.after = item %done[0]
  %members = sub i64 %done.after, %done.before
  %batch = more %at.batches[0]
  item %found[%batch] = %members
  br label %turn
end:
  ret void
}

; Run a list of buckets; those are ready that waited for nothing else.
define internal void @run_buckets(ptr %table, ptr %ready, ptr %done, i64 %first) nounwind {
entry:
  %sizes = field ptr, %table + <o_sizes>, align 8
  %at.left = getelementptr i8, ptr %sizes, i64 <n_left>
  %order = field ptr, %table + <o_order>, align 8
  %sorted = field ptr, %table + <o_sorted>, align 8
  %starts = field ptr, %table + <o_starts>, align 8
  %before = field ptr, %table + <o_before>, align 8
  %behind = field ptr, %table + <o_behind>, align 8
  %after = field ptr, %table + <o_after>, align 8
  %then = field ptr, %table + <o_then>, align 8
  br label %list
list:
  %b = phi i64 [ %first, %entry ], [ %following, %k.end ]
  %is.one = icmp sge i64 %b, 0
  br i1 %is.one, label %run, label %end
run:
  %left = item %at.left[0]
  %left.after = sub i64 %left, 1
  item %at.left[0] = %left.after
  %following = item %then[%b]
  %b.after = add i64 %b, 1
  %begin = item %starts[%b]
  %stop = item %starts[%b.after]
  for %i = %begin to %stop
    %row = item %sorted[%i]
    %to = more %done[0]
    item %order[%to] = %row
  next %i
  %reader = item %behind[%b]
  %reader.end = item %behind[%b.after]
  for %k = %reader to %reader.end
    %other = item %after[%k]
    %waits.for = item %before[%other]
    %still = sub i64 %waits.for, 1
    item %before[%other] = %still
    %is_ready = icmp eq i64 %still, 0
    when %is_ready
      call void @add(ptr %table, ptr %ready, i64 %other)
    end %is_ready
  next %k
  br label %list
end:
  ret void
}

; Put a bucket behind others of its signature that are ready.
define internal void @add(ptr %table, ptr %ready, i64 %b) nounwind {
  %signature_of = field ptr, %table + <o_signature_of>, align 8
  %then = field ptr, %table + <o_then>, align 8
  %head = field ptr, %table + <o_head>, align 8
  %tail = field ptr, %table + <o_tail>, align 8
  %kind = item %signature_of[%b]
  item %then[%b] = -1
  %first = item %head[%kind]
  %is.first = icmp slt i64 %first, 0
  br i1 %is.first, label %alone, label %others
alone:
  item %head[%kind] = %b
  item %tail[%kind] = %b
  call void @count_waiting(ptr %table, i64 %b, i64 %kind)
  call void @push(ptr %table, ptr %ready, i64 %kind)
  ret void
others:
  %last = item %tail[%kind]
  item %then[%last] = %b
  item %tail[%kind] = %b
  ret void
}

; Count the operations in buckets that wait for the first one of a signature: less than zero.
define internal void @count_waiting(ptr %table, i64 %b, i64 %kind) nounwind {
  %starts = field ptr, %table + <o_starts>, align 8
  %behind = field ptr, %table + <o_behind>, align 8
  %after = field ptr, %table + <o_after>, align 8
  %waiting = field ptr, %table + <o_waiting>, align 8
  %b.after = add i64 %b, 1
  %begin = item %behind[%b]
  %stop = item %behind[%b.after]
  item %waiting[%kind] = 0
  for %i = %begin to %stop
    %other = item %after[%i]
    %other.after = add i64 %other, 1
    %its.begin = item %starts[%other]
    %its.end = item %starts[%other.after]
    %so.far = item %waiting[%kind]
    %less = sub i64 %its.begin, %its.end
    %all = add i64 %so.far, %less
    item %waiting[%kind] = %all
  next %i
  ret void
}
"""

_HEAP = """
; Tell whether one signature comes before another: it lies less deep, or more waits for it.
define internal i1 @is_before(ptr %table, i64 %one, i64 %other) nounwind {
  %mean = field ptr, %table + <o_mean>, align 8
  %waiting = field ptr, %table + <o_waiting>, align 8
  %depth = item %mean[%one]
  %other.depth = item %mean[%other]
  %as.deep = icmp eq i64 %depth, %other.depth
  br i1 %as.deep, label %waits, label %depths
depths:
  %is.higher = icmp slt i64 %depth, %other.depth
  ret i1 %is.higher
waits:
  %more = item %waiting[%one]
  %other.more = item %waiting[%other]
  %as.many = icmp eq i64 %more, %other.more
  %less = icmp slt i64 %more, %other.more
  %numbered = icmp slt i64 %one, %other
  %found = select i1 %as.many, i1 %numbered, i1 %less
  ret i1 %found
}

define internal void @push(ptr %table, ptr %size, i64 %kind) nounwind {
entry:
  %heap = field ptr, %table + <o_heap>, align 8
  %begin = more %size[0]
  br label %rise
rise:
  %i = phi i64 [ %begin, %entry ], [ %up, %move ]
  %is.below = icmp sgt i64 %i, 0
  br i1 %is.below, label %above, label %end
above:
  %i.less = sub i64 %i, 1
  %up = lshr i64 %i.less, 1
  %there = item %heap[%up]
  %goes.up = call i1 @is_before(ptr %table, i64 %kind, i64 %there)
  br i1 %goes.up, label %move, label %end
move:
  item %heap[%i] = %there
  br label %rise
end:
  item %heap[%i] = %kind
  ret void
}

define internal i64 @pop(ptr %table, ptr %size) nounwind {
entry:
  %heap = field ptr, %table + <o_heap>, align 8
  %found = item %heap[0]
  %many = item %size[0]
  %count = sub i64 %many, 1
  item %size[0] = %count
  %last = item %heap[%count]
  br label %fall
fall:
  %i = phi i64 [ 0, %entry ], [ %down, %move ]
  %twice = shl i64 %i, 1
  %left = add i64 %twice, 1
  %right = add i64 %twice, 2
  %has.left = icmp slt i64 %left, %count
  br i1 %has.left, label %below, label %end
below:
  %has.right = icmp slt i64 %right, %count
  br i1 %has.right, label %both, label %compare
both:
  %left.one = item %heap[%left]
  %right.one = item %heap[%right]
  %is.right = call i1 @is_before(ptr %table, i64 %right.one, i64 %left.one)
  %first.of.both = select i1 %is.right, i64 %right, i64 %left
  br label %compare
compare:
  %down = phi i64 [ %left, %below ], [ %first.of.both, %both ]
  %there = item %heap[%down]
  %goes.down = call i1 @is_before(ptr %table, i64 %there, i64 %last)
  br i1 %goes.down, label %move, label %end
move:
  item %heap[%i] = %there
  br label %fall
end:
  item %heap[%i] = %last
  ret i64 %found
}
"""
