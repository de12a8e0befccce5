"""All generators of random programs, and the programs that several tests share.

calls         one call of an operator with drawn operands and attributes; `operands` draws those
strategies    Hypothesis: graphs of many operators, dtypes and shapes whose results are exact
mixed         graphs from a seed: exact values beside smooth ones, states, special values
smooth        graphs from a seed: smooth operations with gradients
loops         loops from a seed, with random smooth bodies
recorded_loops  Python loops from a seed, recorded trip by trip
drawn         what the four above share: drawing, and functions that keep errors small
chains        Hypothesis: long chains of values that live long, for memory plans
python_text   text of Python programs that train, from a seed; `python_expressions` in it
control_flow  written by hand: differentiable programs with all kinds of control flow
graphs        written by hand: graphs that are printed, hashed, saved and shuffled
per_example   programs from a seed for one example each, whose ways examples decide
python_functions   functions from a seed that read and write Python objects, and their world
running       a function run compiled, at one and two threads, and by the interpreter
"""
