"""Lowering: from a graph with known sizes to a program of kernels over buffers.

A graph enters `lower`; a `KernelProgram` leaves, and beside it a table of what its numbers stand
for. Each kernel is a loop nest with an expression per element, a matrix product, control flow
around others, or a call of an operator by the host. Nothing here knows a machine. Imports core,
ops, graph, autodiff and passes.
"""
