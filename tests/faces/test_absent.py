"""What faces say of names that they do not have."""

from __future__ import annotations

import pytest

from weft import chainer
from weft.faces.report import forget_missing, missing_names


def test_a_missing_name_says_what_to_use() -> None:
    with pytest.raises(AttributeError, match="'fft': complex numbers are not served"):
        _ = chainer.functions.fft


def test_a_misspelt_name_is_corrected() -> None:
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        _ = chainer.functions.sofmax


def test_missing_names_are_noted() -> None:
    forget_missing()
    for _ in range(2):
        assert not hasattr(chainer.links, "VGG16Layers")
    assert missing_names() == ("weft.chainer.links.VGG16Layers",)
    forget_missing()
