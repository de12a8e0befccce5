"""Buckets of gradients: from the last parameter to the first, of limited size and one dtype."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.distributed.buckets import plan_buckets


def parameters(*sizes, dtype=wf.float32):
    return [(f"p{i}", wf.zeros(size, dtype=dtype)) for i, size in enumerate(sizes)]


def names(buckets):
    return [bucket.names for bucket in buckets]


def test_the_first_one_is_small():
    mib = 1 << 18  # elements of float32
    named = parameters(mib * 30, mib, mib, mib // 2, mib // 2)
    assert names(plan_buckets(named)) == [("p4", "p3"), ("p2", "p1"), ("p0",)]
    assert names(plan_buckets(named, limit=100, first=100)) == [("p4", "p3", "p2", "p1", "p0")]


def test_dtypes_are_kept_apart():
    named = [*parameters(3), ("half", wf.zeros(3, dtype=wf.float16)), ("last", wf.zeros(3))]
    assert names(plan_buckets(named)) == [("last",), ("half",), ("p0",)]


def test_what_is_packed_is_unpacked():
    named = parameters((2, 3), (), (4,))
    (bucket,) = plan_buckets(named)
    rng = np.random.default_rng(0)
    grads = {id(p): rng.random(p.shape, np.float32) for _, p in named}
    parts = bucket.unpacked(bucket.packed(grads))
    for p, part in zip(bucket.parameters, parts, strict=True):
        np.testing.assert_array_equal(part.numpy(), grads[id(p)])
    tensors = {p: wf.tensor(grads[id(p)]) for p in bucket.parameters}
    divided = bucket.divided(bucket.joined(tensors))
    assert all(np.array_equal(divided[p].numpy(), tensors[p].numpy()) for p in tensors)


def test_a_bucket_says_what_it_holds():
    (bucket,) = plan_buckets(parameters(2, 3))
    some = bucket.among([bucket.parameters[0]])
    assert bucket.note.startswith("gradients of 2 parameters, p1 ... p0, ")
    assert some.note.startswith("gradients of 1 parameters, p1, ")
    assert bucket.note != some.note
