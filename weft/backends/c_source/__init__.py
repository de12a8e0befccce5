"""Kernels as text of a C-like language: one writer, with a dialect for each language.

Enters: kernels of a kernel program. Leaves: the text of functions, how many of them run beside one
another, and what each is given (`launch.Launch`). The text of a kernel is the same in all dialects;
what they spell differently are macros, which stand before it (`dialect.py`).
"""
