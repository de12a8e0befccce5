"""Where results and operands of batches lie, in the order of batch_order.py: its loops, as IR.

A row or a value that leads outside of the columns ends them: a mistake of ours, if there is one.
"""

# What the loops over operands have in common: the columns, and what is written for one read.
_COLUMNS = """
  %start = field i64, %sizes + <n_first>, align 8
  %arity = field ptr, %table + <p_arity>, align 8
  %refs = field ptr, %table + <p_refs>, align 8
  %order = field ptr, %table + <p_order>, align 8
  %rows = field ptr, %table + <p_rows>, align 8
  %reads_of = field ptr, %table + <p_reads_of>, align 8
  %read = field ptr, %table + <p_value>, align 8
  %last_read = field ptr, %table + <p_last_read>, align 8
  %lie = field ptr, %table + <p_lie>, align 8
  %starts = field ptr, %table + <p_starts>, align 8
  %reads = field i64, %sizes + <n_reads>, align 8
  %numbers = field i64, %sizes + <n_numbers>, align 8
  %all.rows = field i64, %sizes + <n_rows>, align 8
"""

_READ = """
        %its.reads = item %reads_of[%row]
        %which = add i64 %its.reads, %k
        %to = more %counts[2]
        %no.read = icmp uge i64 %which, %reads
        %no.place = icmp uge i64 %to, %reads
        %nothing = or i1 %no.read, %no.place
        br i1 %nothing, label %outside, label %a.read
a.read:
        %ref = item %refs[%which]
        %value = sub i64 %ref, %start
        %no.value = icmp uge i64 %value, %numbers
        br i1 %no.value, label %outside, label %its.value
its.value:
        %at = item %rows[%value]
        item %lie[%to] = %at
        item %read[%to] = %value
        item %last_read[%value] = %to
"""

_PLACING = """
define void @weft_batch_places(ptr %table, ptr %unused) nounwind {
  %sizes = field ptr, %table + <p_sizes>, align 8
  %rows = field i64, %sizes + <n_rows>, align 8
  %arity = field ptr, %table + <p_arity>, align 8
  %reads_of = field ptr, %table + <p_reads_of>, align 8
  %wrong = call i64 @wrong_places(ptr %table)
  %is.wrong = icmp ne i64 %wrong, 0
  br i1 %is.wrong, label %refuse, label %go.on
refuse:
  %at.left = getelementptr i8, ptr %sizes, i64 <n_left>
  item %at.left[0] = -1
  ret void
go.on:
  %all = call i64 @begins(ptr %arity, ptr %reads_of, i64 %rows)
  %placed = call i64 @place_results(ptr %table)
  %is.placed = icmp sge i64 %placed, 0
  br i1 %is.placed, label %results, label %refuse
results:
  %operands = call i64 @place_operands(ptr %table)
  %is.found = icmp sge i64 %operands, 0
  br i1 %is.found, label %look, label %refuse
look:
  call void @look_at_operands(ptr %table, i64 %operands)
  ret void
}

; Let the results of each batch lie behind those before, type by type; return -1 if there is no
; room.
define internal i64 @place_results(ptr %table) nounwind {
  %sizes = field ptr, %table + <p_sizes>, align 8
  %batches = field i64, %sizes + <n_batches>, align 8
  %start = field i64, %sizes + <n_first>, align 8
  %signature = field ptr, %table + <p_signature>, align 8
  %firsts = field ptr, %table + <p_firsts>, align 8
  %order = field ptr, %table + <p_order>, align 8
  %found = field ptr, %table + <p_found>, align 8
  %kinds = field ptr, %table + <p_kinds>, align 8
  %kinds_of = field ptr, %table + <p_kinds_of>, align 8
  %ends = field ptr, %table + <p_ends>, align 8
  %rows = field ptr, %table + <p_rows>, align 8
  %all.rows = field i64, %sizes + <n_rows>, align 8
  %all.kinds = field i64, %sizes + <n_kinds>, align 8
  %numbers = field i64, %sizes + <n_numbers>, align 8
  %done = alloca i64, align 8
  item %done[0] = 0
  for %b = 0 to %batches
    %members = item %found[%b]
    %begin = item %done[0]
    %stop = add i64 %begin, %members
    item %done[0] = %stop
    %is.none = icmp slt i64 %members, 1
    br i1 %is.none, label %outside, label %some
some:
    %one = item %order[%begin]
    %no.one = icmp uge i64 %one, %all.rows
    br i1 %no.one, label %outside, label %a.row
a.row:
    %number = item %signature[%one]
    %no.number = icmp uge i64 %number, %all.kinds
    br i1 %no.number, label %outside, label %a.kind
a.kind:
    %number.after = add i64 %number, 1
    %out.begin = item %kinds_of[%number]
    %out.end = item %kinds_of[%number.after]
    for %o = %out.begin to %out.end
      %kind = item %kinds[%o]
      %which = sub i64 %o, %out.begin
      %offset = sub i64 %which, %start
      for %i = %begin to %stop
        %row = item %order[%i]
        %no.row = icmp uge i64 %row, %all.rows
        br i1 %no.row, label %outside, label %its.row
its.row:
        %its.first = item %firsts[%row]
        %value = add i64 %its.first, %offset
        %no.value = icmp uge i64 %value, %numbers
        br i1 %no.value, label %outside, label %its.value
its.value:
        %to = more %ends[%kind]
        item %rows[%value] = %to
      next %i
    next %o
  next %b
  ret i64 0
outside:
  ret i64 -1
}

; Write where operands lie, batch by batch, operand by operand; return how many operands there are,
; or -1 if they lie nowhere.
define internal i64 @place_operands(ptr %table) nounwind {
  %sizes = field ptr, %table + <p_sizes>, align 8
  %batches = field i64, %sizes + <n_batches>, align 8
  %found = field ptr, %table + <p_found>, align 8
  %signature = field ptr, %table + <p_signature>, align 8
  %ragged = field ptr, %table + <p_ragged>, align 8
<columns>
  %all.operands = field i64, %sizes + <n_operands>, align 8
  %counts = alloca [3 x i64], align 8  ; rows that are done, operands, and reads
  item %counts[0] = 0
  item %counts[1] = 0
  item %counts[2] = 0
  for %b = 0 to %batches
    %members = item %found[%b]
    %begin = item %counts[0]
    %stop = add i64 %begin, %members
    item %counts[0] = %stop
    %one = item %order[%begin]
    %number = item %signature[%one]
    %its.kind = item %ragged[%number]
    %is_ragged = icmp ne i64 %its.kind, 0
    when %is_ragged
      %placed = call i64 @place_members(ptr %table, ptr %counts, i64 %begin, i64 %stop)
      %is.placed = icmp sge i64 %placed, 0
      br i1 %is.placed, label %members.placed, label %outside
members.placed:
    end %is_ragged
    %of.one = item %arity[%one]
    %many = select i1 %is_ragged, i64 0, i64 %of.one
    for %k = 0 to %many
      %operand = more %counts[1]
      %no.operand = icmp uge i64 %operand, %all.operands
      br i1 %no.operand, label %outside, label %an.operand
an.operand:
      %here = item %counts[2]
      item %starts[%operand] = %here
      for %i = %begin to %stop
        %row = item %order[%i]
        %no.row = icmp uge i64 %row, %all.rows
        br i1 %no.row, label %outside, label %its.row
its.row:
<read>
      next %i
    next %k
  next %b
  %operands = item %counts[1]
  %read.all = item %counts[2]
  %left.over = icmp ne i64 %operands, %all.operands
  br i1 %left.over, label %outside, label %all
all:
  item %starts[%operands] = %read.all
  ret i64 %operands
outside:
  ret i64 -1
}

; Write where the operands of a batch lie whose members have any number of them: as one operand,
; member by member; return -1 if they lie nowhere.
define internal i64 @place_members(ptr %table, ptr %counts, i64 %begin, i64 %stop) nounwind {
  %sizes = field ptr, %table + <p_sizes>, align 8
<columns>
  %all.operands = field i64, %sizes + <n_operands>, align 8
  %operand = more %counts[1]
  %no.operand = icmp uge i64 %operand, %all.operands
  br i1 %no.operand, label %outside, label %an.operand
an.operand:
  %here = item %counts[2]
  item %starts[%operand] = %here
  for %i = %begin to %stop
    %row = item %order[%i]
    %no.row = icmp uge i64 %row, %all.rows
    br i1 %no.row, label %outside, label %its.row
its.row:
    %many = item %arity[%row]
    for %k = 0 to %many
<read>
    next %k
  next %i
  ret i64 0
outside:
  ret i64 -1
}

; Tell of each operand whether its rows lie apart, whether it has no row twice as far as is known,
; and whether each of its values is read there for the last time, and once.
define internal void @look_at_operands(ptr %table, i64 %operands) nounwind {
  %read = field ptr, %table + <p_value>, align 8
  %last_read = field ptr, %table + <p_last_read>, align 8
  %lie = field ptr, %table + <p_lie>, align 8
  %starts = field ptr, %table + <p_starts>, align 8
  %apart = field ptr, %table + <p_apart>, align 8
  %distinct = field ptr, %table + <p_distinct>, align 8
  %last = field ptr, %table + <p_last>, align 8
  %bits = alloca [3 x i64], align 8  ; rows are apart, do not rise, and are read later
  for %o = 0 to %operands
    %o.behind = add i64 %o, 1
    %begin = item %starts[%o]
    %stop = item %starts[%o.behind]
      item %bits[0] = 0
    item %bits[1] = 0
    item %bits[2] = 0
    for %i = %begin to %stop
      %value = item %read[%i]
      %final = item %last_read[%value]
      %is.later = icmp ne i64 %final, %i
      %later = zext i1 %is.later to i64
      %later.before = item %bits[2]
      %later.after = or i64 %later.before, %later
      item %bits[2] = %later.after
      %is_second = icmp sgt i64 %i, %begin
      when %is_second
        %i.before = sub i64 %i, 1
        %row = item %lie[%i]
        %row.before = item %lie[%i.before]
        %step = sub i64 %row, %row.before
        %is.apart = icmp ne i64 %step, 1
        %is.no.rise = icmp slt i64 %step, 1
        %far = zext i1 %is.apart to i64
        %flat = zext i1 %is.no.rise to i64
        %far.before = item %bits[0]
        %flat.before = item %bits[1]
        %far.after = or i64 %far.before, %far
        %flat.after = or i64 %flat.before, %flat
        item %bits[0] = %far.after
        item %bits[1] = %flat.after
      end %is_second
    next %i
    %found.apart = item %bits[0]
    %found.flat = item %bits[1]
    %found.later = item %bits[2]
    %rises = xor i64 %found.flat, 1
    %is.last = xor i64 %found.later, 1
    %is.distinct = or i64 %rises, %is.last
    call void @tell(ptr %apart, i64 %o, i64 %found.apart)
    call void @tell(ptr %distinct, i64 %o, i64 %is.distinct)
    call void @tell(ptr %last, i64 %o, i64 %is.last)
  next %o
  ret void
}

define internal void @tell(ptr %flags, i64 %i, i64 %yes) nounwind {
  %flag = trunc i64 %yes to i8
  %at = getelementptr i8, ptr %flags, i64 %i
  store i8 %flag, ptr %at, align 1
  ret void
}
"""

PLACING = _PLACING.replace("<columns>", _COLUMNS.strip("\n")).replace("<read>", _READ.strip("\n"))
