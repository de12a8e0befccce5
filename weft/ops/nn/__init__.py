"""Network functions, with PyTorch's names and signatures: composites written in operators.

They check their arguments first, so that a message names the function the user called. Imports core
and `ops.random`; reaches other operators through `F`.
"""

NAMESPACE = "nn.functional"
