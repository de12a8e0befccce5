"""Settings: of this program, with global ones behind them."""

from __future__ import annotations

import io

import numpy as np
import pytest

from weft import chainer
from weft.chainer import functions as F


def test_train_mode_decides_dropout() -> None:
    x = np.ones(1000, "f")
    assert 0 in F.dropout(x).array
    with chainer.using_config("train", False):
        assert F.dropout(x).array.tolist() == x.tolist()
    assert chainer.config.train
    with pytest.raises(ValueError, match="dropout ratio"):
        F.dropout(x, 1.0)


def test_operations_are_recorded_unless_told_otherwise() -> None:
    x = chainer.Variable(np.ones(1, "f"))
    with chainer.no_backprop_mode():
        assert not chainer.config.enable_backprop
        assert (x * 2).creator is None
        with chainer.force_backprop_mode():
            assert (x * 2).creator is not None
    assert chainer.config.enable_backprop


def test_settings_of_their_own() -> None:
    chainer.config.mine = 3
    assert chainer.config.is_local("mine")
    del chainer.config.mine
    assert not hasattr(chainer.config, "mine")
    with pytest.raises(AttributeError, match="no setting 'mine'"):
        del chainer.config.mine
    out = io.StringIO()
    chainer.config.show(out)
    assert "enable_backprop" in out.getvalue()


def test_dtypes() -> None:
    with chainer.using_config("dtype", np.float64):
        assert chainer.links.Linear(2, 2).W.dtype == np.float64
    assert chainer.get_dtype() == np.float32
