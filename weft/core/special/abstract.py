"""What kernels take in the place of a block, to be written down and not computed."""

from typing import Any


class AbstractBlock:
    """A block of which only the dtype is known: kernels write down what they would compute of it.

    It takes NumPy's functions by NumPy's own protocols; see ops/_traced.py.
    """

    def looked_up(self, table: Any) -> Any:
        """Return the elements of a table of one axis that these elements, integers, name."""
        raise NotImplementedError
