"""`weft caffe convert`: nets of Caffe in other forms."""

from __future__ import annotations

from argparse import Namespace

from ..caffe.converting import convert


def convert_caffe(options: Namespace) -> int:
    """Convert a net and say what was written."""
    done = convert(options.net, options.weights, options.out, options.phase)
    for name, shape in done.inputs.items():
        print(f"input  {name} {' x '.join(map(str, shape))}")
    for name in done.outputs:
        print(f"output {name}")
    print(f"written to {done.path}")
    return 0
