"""Where the files of others are: those of Caffe's (`examples`, `models`), and MNIST's four."""

import os
from pathlib import Path

import pytest

SUITE = Path(os.environ.get("WEFT_CAFFE_SUITE", "/nowhere"))
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason="WEFT_CAFFE_SUITE is not set")
MNIST = Path(os.environ.get("WEFT_MNIST", "/nowhere"))
needs_mnist = pytest.mark.skipif(not MNIST.is_dir(), reason="WEFT_MNIST is not set")
