"""Planning: from a kernel program to one that a device can run, step by step.

Each step is a pure function that takes a program, and a description of the device where it matters,
and returns a new program. Imports core, graph and lower.
"""
