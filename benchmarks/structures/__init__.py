"""Networks over structures, in Weft and in PyTorch, and the examples both are given."""
