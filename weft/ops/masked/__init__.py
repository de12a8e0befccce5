"""Reductions over those elements that a mask lets through, under PyTorch's names (torch.masked).

A mask is True where an element counts; it broadcasts to the tensor. Written in operators. Imports
core only.
"""

NAMESPACE = "masked"
