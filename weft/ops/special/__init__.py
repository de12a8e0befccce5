"""Special functions beyond those that most programs use, with PyTorch's and SciPy's names.

Their kernels are those of `core.special`. Imports core only.
"""

NAMESPACE = "special"
