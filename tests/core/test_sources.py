"""The digest of the package's sources tells one state of the sources from every other."""

import os

import pytest

from weft.core import sources
from weft.core.sources import sources_digest

digest = sources_digest.__wrapped__  # what is asked for once a process


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package of one module and one subpackage, then take it for loaded."""
    monkeypatch.setattr(sources, "_PACKAGE", str(tmp_path))
    (tmp_path / "top.py").write_text("x = 1\n")
    (tmp_path / "part" / "inner").mkdir(parents=True)
    for name in ("__init__.py", "a.py", "inner/b.py"):
        (tmp_path / "part" / name).write_text(f"name = {name!r}\n")
    written = os.stat(tmp_path / "part" / "inner" / "b.py").st_mtime
    monkeypatch.setattr(sources, "_LOADED", written + 1)
    return tmp_path


def test_same_sources_have_one_digest(package):
    assert digest(("part", "top.py")) == digest(("top.py", "part")) is not None


def test_real_package_has_one():
    assert isinstance(digest(("core", "compiler/stages.py")), bytes)


@pytest.mark.parametrize("name", ["top.py", "part/a.py", "part/inner/b.py"])
def test_changes_with_every_file(package, name):
    before = digest(("part", "top.py"))
    (package / name).write_text("x = 2\n")
    assert digest(("part", "top.py")) not in (before, None)


def test_changes_with_the_place_of_text(package):
    before = digest(("part", "top.py"))
    (package / "part" / "a.py").rename(package / "part" / "c.py")
    assert digest(("part", "top.py")) not in (before, None)


def test_other_files_do_not_matter(package):
    before = digest(("part",))
    (package / "part" / "notes.txt").write_text("...")
    (package / "top.py").write_text("x = 2\n")
    assert digest(("part",)) == before


def test_unknown_once_a_file_was_changed_after_loading(package):
    path = package / "part" / "a.py"
    os.utime(path, (sources._LOADED + 5, sources._LOADED + 5))
    assert digest(("part",)) is None


def test_unknown_where_there_are_no_files(package):
    assert digest(("absent", "top.py")) is None
    assert digest(("absent.py",)) is None
