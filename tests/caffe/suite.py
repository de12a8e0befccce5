"""Where Caffe's own files are: WEFT_CAFFE_SUITE names a folder with `examples` and `models`."""

import os
from pathlib import Path

import pytest

SUITE = Path(os.environ.get("WEFT_CAFFE_SUITE", "/nowhere"))
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason="WEFT_CAFFE_SUITE is not set")
