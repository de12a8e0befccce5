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


def test_a_large_parameter_at_the_end_travels_in_rows():
    mib = 1 << 18
    named = parameters((16, mib), (3,))
    buckets = plan_buckets(named)
    assert names(buckets) == [("p1",), *[("p0",)] * 4]
    assert [b.rows for b in buckets[1:]] == [(0, 4), (4, 8), (8, 12), (12, 16)]
    assert len({b.note for b in buckets}) == 5
    assert all(b.among([named[0][1]]).rows == b.rows for b in buckets)
    grad = np.arange(16.0 * mib, dtype=np.float32).reshape(16, mib)
    flat = [b.packed({id(named[0][1]): grad}) for b in buckets[1:]]
    found = [b.unpacked(x)[0].numpy() for b, x in zip(buckets[1:], flat, strict=True)]
    np.testing.assert_array_equal(np.concatenate(found), grad)
    # A vector has no rows, and what is small, or not the last one, goes as a whole.
    assert names(plan_buckets(parameters(mib * 16))) == [("p0",)]
    assert names(plan_buckets(parameters((4, mib)))) == [("p0",)]
    assert names(plan_buckets(parameters((3,), (16, mib)))) == [("p1",), ("p0",)]
