"""Object code is made once."""

from dataclasses import replace

import llvmlite
import pytest

import weft
from weft.backends.cpu.codegen.target import host, neon
from weft.backends.cpu.runtime import objects
from weft.backends.cpu.runtime.objects import ObjectCache, object_code, object_key
from weft.backends.store import SUFFIX, ObjectStore


def module(number: int) -> str:
    return f"define i64 @f() nounwind {{\n  ret i64 {number}\n}}\n"


@pytest.fixture
def compiled(monkeypatch):
    """List the texts that are really compiled."""
    texts = []
    real = objects.compile_module

    def counted(text, target):
        texts.append(text)
        return real(text, target)

    monkeypatch.setattr(objects, "compile_module", counted)
    return texts


def test_same_text_is_compiled_once(tmp_path, compiled):
    cache = ObjectCache(ObjectStore(tmp_path / "cache"))
    assert cache.get(module(1), host()) is cache.get(module(1), host())
    cache.get(module(2), host())
    cache.get(module(1), neon())
    assert compiled == [module(1), module(2), module(1)]
    assert cache.store.misses == 3


def test_other_process_finds_it_on_disk(tmp_path, compiled):
    first, second = (ObjectCache(ObjectStore(tmp_path / "cache")) for _ in range(2))
    assert first.get(module(1), host()) == second.get(module(1), host())
    assert len(compiled) == 1
    assert second.store.hits == 1


def test_corrupt_file_is_rebuilt(tmp_path, compiled):
    ObjectCache(ObjectStore(tmp_path / "cache")).get(module(1), host())
    (path,) = (tmp_path / "cache").iterdir()
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    ObjectCache(ObjectStore(tmp_path / "cache")).get(module(1), host())
    assert len(compiled) == 2
    assert path.read_bytes() == good
    assert path.name == object_key(module(1), host()).hex() + SUFFIX


def test_works_without_a_disk(compiled):
    cache = ObjectCache(ObjectStore(None))
    assert cache.get(module(1), host()) is cache.get(module(1), host())
    assert len(compiled) == 1


def test_memory_is_bounded(compiled):
    cache = ObjectCache(ObjectStore(None), memory_limit=3000)
    for number in range(10):
        cache.get(module(number), host())
    assert len(cache._memory) < 8
    cache.get(module(9), host())
    cache.get(module(0), host())
    assert len(compiled) == 11


def test_key_holds_all_that_decides_about_the_code(monkeypatch):
    base = host()
    found = {
        object_key(module(1), base),
        object_key(module(2), base),
        object_key(module(1), replace(base, cpu="other")),
        object_key(module(1), replace(base, features="+other")),
        object_key(module(1), replace(base, triple="other")),
    }
    with monkeypatch.context() as patch:
        patch.setattr(llvmlite, "__version__", "other")
        found.add(object_key(module(1), base))
    with monkeypatch.context() as patch:
        patch.setattr(weft, "__version__", "other")
        found.add(object_key(module(1), base))
    assert len(found) == 7
    assert object_key(module(1), base) in found


def test_parts_of_the_key_do_not_run_together():
    base = host()
    one, two = replace(base, cpu="ab", features="c"), replace(base, cpu="a", features="bc")
    assert object_key("", one) != object_key("", two)


def test_process_wide_cache():
    assert object_code(module(1), host()) is object_code(module(1), host())
