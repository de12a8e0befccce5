"""All generators of random programs, and the programs that several tests share.

calls         one call of an operator with drawn operands and attributes; `operands` draws those
strategies    Hypothesis: graphs of many operators, dtypes and shapes whose results are exact
mixed         graphs from a seed: exact values beside smooth ones, states, special values
smooth        graphs from a seed: smooth operations with gradients
loops         loops from a seed, with random smooth bodies
drawn         what the three above share: drawing, and functions that keep errors small
chains        Hypothesis: long chains of values that live long, for memory plans
control_flow  written by hand: differentiable programs with all kinds of control flow
graphs        written by hand: graphs that are printed, hashed, saved and shuffled
running       a function run compiled, at one and two threads, and by the interpreter
"""
