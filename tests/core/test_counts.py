"""x.size is a number, as in NumPy, that can be called, as in PyTorch."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import weft as wf

X = np.array([[1.0, 5.0, 2.0, 5.0], [7.0, 2.0, 0.0, 2.0]], np.float32)


def test_size_is_a_number_that_can_be_called():
    x = wf.tensor(X)
    assert x.size == 8
    assert isinstance(x.size, int)
    assert x.size() == x.shape == (2, 4)
    assert (x.size(0), x.size(-1), x.size(dim=1)) == (2, 4, 4)
    assert (repr(x.size), str(x.size), json.dumps(x.size)) == ("8", "8", "8")
    assert type(pickle.loads(pickle.dumps(x.size))) is int
    assert type(copy.deepcopy(x.size)) is int
    assert type(x.size + 1) is int
    assert wf.zeros(x.size).shape == np.zeros(x.size).shape == (8,)
    assert (x * x.size).tolist() == (X * 8).tolist()
    with pytest.raises(IndexError, match="size: dim 2 is out of range for 2"):
        x.size(2)


def test_sizes_in_graphs_and_transforms():
    x = wf.tensor(X)
    with wf.Graph() as graph:
        p = wf.placeholder((None, 4), wf.float32, name="p")
        assert p.size() == p.shape
        assert p.size(1) == 4
        mean = p.reshape(p.size(0) * 2, 2).sum() / p.size
        with pytest.raises(TypeError, match="cannot be called"):
            p.shape[0]()
    with wf.Session(graph) as session:
        assert session.run(mean, {p: X}) == X.mean()
    assert wf.vmap(lambda row: row.sum() * row.size(0) / row.size)(x).tolist() == X.sum(1).tolist()
    out, _ = wf.jvp(lambda t: t * t.size(1) / t.size, (x,), (x,))
    assert out.tolist() == (X / 2).tolist()
    assert wf.compile(lambda t: t.sum() / t.size, x)(x).item() == X.mean()
