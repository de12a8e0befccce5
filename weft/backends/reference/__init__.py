"""The reference back end: NumPy straight from the kernel program, the meaning of every kernel.

It is written to be read, not to be fast: each kind of kernel in a few lines that say what the kind
computes. Other back ends are held against it.
"""
