"""Imports of other frameworks, served by their faces."""

from __future__ import annotations

import importlib
import sys

import pytest

import weft.chainer
from weft.faces import serving
from weft.faces.serving import is_served

FACES = {"chainer": "weft.chainer"}


def test_a_framework_is_its_face() -> None:
    with serving(FACES):
        found = importlib.import_module("chainer")
        functions = importlib.import_module("chainer.functions")
        cuda = importlib.import_module("chainer.backends.cuda")
    assert found is weft.chainer
    assert functions.relu is weft.chainer.functions.relu
    assert not cuda.available


def test_faces_keep_their_own_names_and_specs() -> None:
    with serving(FACES):
        importlib.import_module("chainer.links")
    module = weft.chainer.links
    assert module.__name__ == "weft.chainer.links"
    assert module.__spec__ is not None
    assert module.__spec__.name == "weft.chainer.links"


def test_it_can_be_asked_what_is_served() -> None:
    assert not is_served("chainer")
    with serving(FACES):
        assert is_served("chainer")
        assert not is_served("numpy")


def test_nothing_is_left_behind() -> None:
    before = [name for name in sys.modules if name.partition(".")[0] == "chainer"]
    with serving(FACES):
        importlib.import_module("chainer.links")
    assert [name for name in sys.modules if name.partition(".")[0] == "chainer"] == before


def test_modules_that_a_face_lacks_are_named() -> None:
    with serving(FACES), pytest.raises(ModuleNotFoundError, match=r"chainer\.nothing.*face"):
        importlib.import_module("chainer.nothing")
