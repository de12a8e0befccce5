"""Linear algebra: products, systems of equations, factorisations.

Every operator takes stacks of matrices, (..., m, n), and works over the leading dimensions. 16-bit
floats are computed in float32. The products are declared with Weft, the rest when first used (see
`weft.ops`). Imports core only.
"""

NAMESPACE = "linalg"
