"""Caffe's face of Weft: nets and solvers as prototxt files declare them, over Weft's operators.

    import weft.caffe as caffe

or, for scripts as they are, `weft run script.py`. docs/faces/caffe.md says what runs.
"""

from __future__ import annotations

from .loading import load

__all__ = ["load"]
