"""Lowering: from a graph with known sizes to kernels over buffers.

A graph enters; a list of kernels leaves, each a loop nest with an expression per element, a matrix
product, or a call of an operator's reference kernel. Imports core, ops, graph, autodiff and passes.
"""
