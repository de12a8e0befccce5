"""Code is run only if this user's processes wrote it: other files and keys are as if absent."""

import errno
import os
import re
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from weft.backends import store as store_module
from weft.backends.private_file import user_key
from weft.backends.store import SUFFIX, CacheWarning, ObjectStore, secret_file

from .test_store import CODE, KEY, OTHER, only_file, posix, store, write_private

__all__ = ["store"]  # a fixture


# -- what is no file of this user's ----------------------------------------------------------------


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def socket_file(path):
    os.mknod(path, stat.S_IFSOCK | 0o600)


def link_to_itself(path):
    path.symlink_to(path)


def link_to_nothing(path):
    path.symlink_to(path.with_name("nothing"))


def link_to_the_file(path):
    real = path.with_name("real")
    os.replace(path.with_name(OTHER.hex() + SUFFIX), real)
    path.symlink_to(real)


def immense(path):
    path.touch(mode=0o600)
    os.truncate(path, 2**40)


@posix
@pytest.mark.parametrize(
    "place",
    [
        pipe,
        endless,
        socket_file,
        link_to_itself,
        link_to_nothing,
        link_to_the_file,
        immense,
    ],
)
def test_what_is_no_file_is_absent_at_once_and_removed(store, place):
    store.put(OTHER, CODE)
    path = store.path / (KEY.hex() + SUFFIX)
    place(path)
    assert store.get(KEY) is None
    assert not os.path.lexists(path)
    place(path) if place is not link_to_the_file else None
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE
    assert stat.S_ISREG(path.lstat().st_mode)


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_file_that_others_may_write_to_is_absent(store, mode):
    store.put(KEY, CODE)
    only_file(store).chmod(mode)
    assert store.get(KEY) is None


@posix
def test_file_of_somebody_else_is_absent(store, monkeypatch):
    store.put(KEY, CODE)
    owner = only_file(store).stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert store.get(KEY) is None


def test_file_that_cannot_be_opened_now_is_not_removed(store, monkeypatch):
    store.put(KEY, CODE)

    def refuse(*args):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert store.get(KEY) is None
    assert store.get(KEY) == CODE


def test_more_than_the_largest_file_is_not_kept(store, monkeypatch):
    monkeypatch.setattr(store_module, "LARGEST_FILE", 1000)
    store.put(KEY, bytes(1000))
    assert store.get(KEY) is None
    store.put(KEY, bytes(900))
    assert store.get(KEY) == bytes(900)


# -- the key ---------------------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path):
    return tmp_path / "keys" / "secret"


@posix
def test_key_is_private_and_not_in_the_cache(tmp_path, secret):
    store = ObjectStore(tmp_path / "cache", secret=secret)
    store.put(KEY, CODE)
    assert len(secret.read_bytes()) == 32
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]
    assert secret.read_bytes() not in only_file(store).read_bytes()


def test_code_under_another_key_is_absent(tmp_path, secret):
    ObjectStore(tmp_path / "cache", secret=secret).put(KEY, CODE)
    secret.unlink()
    store = ObjectStore(tmp_path / "cache", secret=secret)
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert ObjectStore(tmp_path / "cache", secret=secret).get(KEY) == CODE


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_damaged_key_is_made_anew(tmp_path, secret, content):
    secret.parent.mkdir(mode=0o700)
    write_private(secret, content)
    ObjectStore(tmp_path / "cache", secret=secret).put(KEY, CODE)
    assert ObjectStore(tmp_path / "cache", secret=secret).get(KEY) == CODE
    assert len(secret.read_bytes()) == 32


def readable(path):
    path.write_bytes(bytes(32))
    path.chmod(0o644)


def linked(path):
    write_private(path.with_name("real"), bytes(32))
    path.symlink_to(path.with_name("real"))


@posix
@pytest.mark.parametrize("place", [pipe, endless, readable, linked, immense, Path.mkdir])
def test_key_that_is_not_private_turns_the_cache_off(tmp_path, secret, place):
    secret.parent.mkdir(mode=0o700)
    place(secret)
    store = ObjectStore(tmp_path / "cache", secret=secret)
    with pytest.warns(CacheWarning, match=f"its key {re.escape(str(secret))} cannot be used"):
        store.put(KEY, CODE)
    store.put(KEY, CODE)
    assert store.get(KEY) is None
    assert not list((tmp_path / "cache").iterdir())


@posix
def test_directory_of_the_key_that_others_may_write_to_turns_the_cache_off(tmp_path, secret):
    secret.parent.mkdir()
    secret.parent.chmod(0o770)
    with pytest.warns(CacheWarning, match="other users may write"):
        ObjectStore(tmp_path / "cache", secret=secret).put(KEY, CODE)


def test_no_place_for_a_key_turns_the_cache_off(tmp_path, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("WEFT_CACHE_KEY", raising=False)
    monkeypatch.setattr(store_module, "_platform_caches", homeless)
    with pytest.warns(CacheWarning, match="set WEFT_CACHE_KEY to a file"):
        ObjectStore(tmp_path / "cache").put(KEY, CODE)


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="about XDG")
def test_key_lies_in_the_users_own_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("WEFT_CACHE_KEY", raising=False)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert secret_file() == tmp_path / "own" / "weft" / "keys" / "objects"
    monkeypatch.setenv("WEFT_CACHE_KEY", str(tmp_path / "key"))
    assert secret_file() == tmp_path / "key"


@pytest.mark.parametrize("links", [True, False])
def test_many_make_the_first_key_at_once(secret, monkeypatch, links):
    if not links:  # as on disks that have none

        def refuse(*args):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refuse)
    count = 8
    barrier = threading.Barrier(count)

    def found(_):
        barrier.wait()
        return user_key(str(secret))

    with ThreadPoolExecutor(count) as threads:
        keys = list(threads.map(found, range(count)))
    assert user_key(str(secret)) in keys
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]
    if links:
        assert len(set(keys)) == 1


KEY_MAKER = """
    import sys
    from weft.backends.private_file import user_key

    print("ready", flush=True)
    sys.stdin.readline()
    print(user_key(sys.argv[1]).hex())
"""


def test_processes_that_start_together_share_the_first_key(secret):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", dedent(KEY_MAKER), str(secret)]
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    keys = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert keys == {secret.read_bytes().hex()}
