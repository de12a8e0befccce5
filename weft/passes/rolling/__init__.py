"""The parts of `roll`: from recorded trips to a scan.

alphabet    nodes as letters: what a node does, apart from where its operands come from
repeats     where a sequence of letters repeats itself
phases      where trips begin
trips       which trips of a repeat are steps of one loop, and what a step takes
sources     what no trip computes: states, literals, fillings
row_index   entries of an index that advances
stacks      values that are rows of something larger
builder     the scan that a loop becomes
"""
