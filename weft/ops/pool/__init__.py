"""Pooling in one to three dimensions: maxima, averages, adaptive and global forms, unpooling."""

from . import average, average_functions, maximum, maximum_functions, places

__all__ = ["average", "average_functions", "maximum", "maximum_functions", "places"]
