"""Convolution: one N-d operator, its two adjoints, and the functions built on them.

`geometry` and `windows` (sizes, padding, window views) also serve pooling and resizing.
"""

NAMESPACE = "nn.functional"
