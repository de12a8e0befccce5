"""A process that ends with an exception while the other waits for it."""

import os

import weft as wf
from weft import distributed as dist

if os.environ.get("WEFT_TEST_FAILS") == "1" and dist.rank() == 1:
    raise ValueError("one fails")


def check_the_rest_goes_on():
    dist.all_reduce(wf.tensor(1.0))
