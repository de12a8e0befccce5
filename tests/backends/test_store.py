"""The files of the object cache, on disks in every bad state."""

import errno
import hashlib
import hmac
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from textwrap import dedent

import pytest

from weft.backends import private_file
from weft.backends import store as store_module
from weft.backends.store import (
    DEFAULT_LIMIT,
    FORMAT,
    SUFFIX,
    CacheWarning,
    ObjectStore,
    cache_directory,
    cache_info,
    cache_limit,
)
from weft.cli import main

KEY, OTHER = bytes(range(32)), bytes(32)
CODE = b"machine code" * 100

posix = pytest.mark.skipif(os.name != "posix", reason="about users and modes")


@pytest.fixture
def store(tmp_path):
    return ObjectStore(tmp_path / "cache")


def only_file(store: ObjectStore) -> Path:
    (path,) = store.path.iterdir()
    return path


def test_what_is_put_is_found(store):
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE
    assert ObjectStore(store.path).get(KEY) == CODE
    assert store.get(OTHER) is None
    info = store.info()
    assert (info.files, info.hits, info.misses) == (1, 1, 2)
    assert len(CODE) < info.bytes < len(CODE) + 100


def test_empty_code_can_be_kept(store):
    store.put(KEY, b"")
    assert store.get(KEY) == b""


def test_asking_about_a_cache_makes_no_directory(store):
    assert store.info().files == 0
    assert not store.path.exists()


@posix
def test_directory_and_files_are_private(store):
    store.put(KEY, CODE)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(store).stat().st_mode) == 0o600


@pytest.mark.parametrize("length", [0, 1, 8, 40, 71, 72, 73, 500])
def test_truncated_file_is_absent_and_removed(store, length):
    store.put(KEY, CODE)
    path = only_file(store)
    path.write_bytes(path.read_bytes()[:length])
    assert store.get(KEY) is None
    assert not path.exists()
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE


def test_file_with_a_changed_bit_anywhere_is_absent(store):
    store.put(KEY, CODE[:20])
    path = only_file(store)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        write_private(path, changed)
        assert store.get(KEY) is None
        assert not path.exists()
    write_private(path, content)
    assert store.get(KEY) == CODE[:20]


def write_private(path, content):
    """Write a file as the store would, whatever it holds."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def test_file_that_has_grown_is_absent(store):
    store.put(KEY, CODE)
    with open(only_file(store), "ab") as file:
        file.write(b"x")
    assert store.get(KEY) is None


def test_file_with_a_checksum_that_anybody_can_make_is_absent(store):
    store.put(OTHER, CODE)
    path = store.path / (KEY.hex() + SUFFIX)
    for format in (b"WEFTOBJ1", FORMAT):
        for digest in (
            hashlib.sha256(CODE).digest(),
            hashlib.sha256(format + KEY + CODE).digest(),
            hmac.digest(b"", format + KEY + CODE, "sha256"),
        ):
            write_private(path, format + KEY + digest + CODE)
            assert store.get(KEY) is None
    assert store.get(OTHER) == CODE


def test_file_under_another_name_is_absent(store):
    store.put(KEY, CODE)
    path = only_file(store)
    path.rename(path.with_name(OTHER.hex() + SUFFIX))
    assert store.get(OTHER) is None


def test_garbage_in_the_directory_is_no_hindrance(store):
    store.path.mkdir(mode=0o700)
    (store.path / "readme.txt").write_text("hello")
    (store.path / ("zz" + SUFFIX)).write_bytes(os.urandom(100))
    (store.path / ("sub" + SUFFIX)).mkdir()
    (store.path / "folder").mkdir()
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE


def test_directory_in_place_of_a_file_gives_up_writing(store):
    store.path.mkdir(mode=0o700)
    (store.path / (KEY.hex() + SUFFIX)).mkdir()
    assert store.get(KEY) is None
    with pytest.warns(CacheWarning, match="nothing more is written"):
        store.put(KEY, CODE)
    assert not [path for path in store.path.iterdir() if path.suffix == ".tmp"]


def test_removed_directory_is_made_again(store):
    store.put(KEY, CODE)
    only_file(store).unlink()
    store.path.rmdir()
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE


def test_file_in_place_of_the_directory_is_warned_of_once(tmp_path):
    (tmp_path / "file").write_text("")
    store = ObjectStore(tmp_path / "file")
    with pytest.warns(CacheWarning, match="is not used"):
        store.put(KEY, CODE)
    store.put(KEY, CODE)
    assert store.get(KEY) is None


@posix
def test_directory_that_others_may_write_to_is_refused(tmp_path):
    for mode in (0o777, 0o702, 0o720):
        tmp_path.chmod(mode)
        with pytest.warns(CacheWarning, match="other users may write"):
            ObjectStore(tmp_path).put(KEY, CODE)
    assert not list(tmp_path.iterdir())


@posix
def test_directory_of_somebody_else_is_refused(tmp_path, monkeypatch):
    store = ObjectStore(tmp_path)
    tmp_path.chmod(0o700)
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(CacheWarning, match="another user"):
        assert store.get(KEY) is None


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_disk_that_refuses_is_read_on_and_warned_of_once(store, monkeypatch, code):
    store.put(OTHER, CODE)

    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(private_file, "_private", refuse)
    with pytest.warns(CacheWarning, match="nothing more is written"):
        store.put(KEY, CODE)
    store.put(KEY, CODE)
    assert store.get(KEY) is None
    assert store.get(OTHER) == CODE


def test_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a small disk here")
    try:
        store = ObjectStore(disk)
        store.put(KEY, CODE)
        with pytest.warns(CacheWarning, match="No space left"):
            store.put(OTHER, os.urandom(100_000))
        assert store.get(OTHER) is None
        assert store.get(KEY) == CODE
        assert len(list(disk.iterdir())) == 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_warnings_that_are_errors_break_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ObjectStore(tmp_path / "file").put(KEY, CODE)


def test_store_without_a_path_keeps_nothing():
    store = ObjectStore(None)
    store.put(KEY, CODE)
    assert store.get(KEY) is None
    assert store.info().path is None


def test_limit_of_zero_keeps_nothing(tmp_path):
    store = ObjectStore(tmp_path / "cache", limit=0)
    store.put(KEY, CODE)
    assert store.get(KEY) is None


def keys(count):
    return [number.to_bytes(32, "big") for number in range(count)]


def test_least_recently_used_files_go_first(tmp_path):
    store = ObjectStore(tmp_path / "cache", limit=20_000)
    now = time.time()
    for age, key in enumerate(keys(15)):
        store.put(key, bytes(1000))
        os.utime(store.path / (key.hex() + SUFFIX), (now, now - 90_000 + age))
    assert store.get(keys(15)[0]) is not None  # the oldest, but used just now
    store.put(KEY, bytes(6000))
    assert store.info().bytes <= 20_000
    assert store.get(keys(15)[0]) is not None
    assert store.get(KEY) is not None
    assert store.get(keys(15)[1]) is None


def test_size_stays_bounded_while_others_write_too(tmp_path):
    stores = [ObjectStore(tmp_path / "cache", limit=50_000) for _ in range(3)]
    for key in keys(300):
        for store in stores:
            store.put(bytes([stores.index(store)]) + key[1:], bytes(1000))
    # Each may write an eighth of the limit before it looks again.
    assert stores[0].info().bytes < 50_000 * 11 / 8


def test_temporary_files_without_a_writer_are_cleared(store):
    store.path.mkdir(mode=0o700)
    old, new = store.path / ".1-a.tmp", store.path / ".1-b.tmp"
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 10_000,) * 2)
    store.put(KEY, CODE)
    assert not old.exists()
    assert new.exists()


# -- several processes, killed processes ---------------------------------------------------------

WRITER = """
    import hashlib, itertools, random, sys
    from pathlib import Path
    from weft.backends.store import ObjectStore

    store = ObjectStore(Path(sys.argv[1]), limit=300_000)
    rounds = int(sys.argv[2])
    print("ready", flush=True)
    for turn in itertools.islice(itertools.count(), rounds or None):
        key = random.randrange(40).to_bytes(32, "big")
        code = hashlib.sha256(key).digest() * 400
        found = store.get(key)
        if found is not None and found != code:
            sys.exit("wrong code")
        store.put(key, code)
"""


def writer(path: Path, rounds: int) -> subprocess.Popen:
    command = [sys.executable, "-c", dedent(WRITER), str(path), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_whole(path: Path) -> None:
    """Hold that every file that is found is right."""
    store = ObjectStore(path)
    for key in keys(40):
        code = store.get(key)
        assert code is None or code == hashlib.sha256(key).digest() * 400


def test_several_processes_share_a_directory(tmp_path):
    processes = [writer(tmp_path / "cache", 150) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    check_whole(tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.tmp"))


def kill_writers(path: Path, kills: int) -> None:
    chance = random.Random(0)
    for _ in range(kills):
        process = writer(path, 0)
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        process.communicate()
        check_whole(path)
    store = ObjectStore(path)
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE


def test_killed_writers_harm_nobody(tmp_path):
    kill_writers(tmp_path / "cache", 4)


@pytest.mark.long
def test_two_hundred_killed_writers_harm_nobody(tmp_path):
    kill_writers(tmp_path / "cache", 200)


# -- where it is ---------------------------------------------------------------------------------


def test_directory_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="about XDG")
def test_directory_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "weft" / "objects"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "weft" / "objects"


def test_no_home_directory(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    monkeypatch.setattr(store_module, "_platform_caches", homeless)
    assert cache_directory() is None


def test_limit_from_the_environment(monkeypatch):
    monkeypatch.delenv("WEFT_CACHE_MB", raising=False)
    assert cache_limit() == DEFAULT_LIMIT
    monkeypatch.setenv("WEFT_CACHE_MB", "3")
    assert cache_limit() == 3 * 2**20
    monkeypatch.setenv("WEFT_CACHE_MB", "much")
    with pytest.warns(CacheWarning, match="'much'"):
        assert cache_limit() == DEFAULT_LIMIT


def test_info_of_the_process():
    assert cache_info().limit == cache_limit()


def test_weft_info_shows_the_cache(capsys):
    assert main(["info"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cache")]
    assert str(cache_info().path) in line
    assert f"of {cache_limit() / 2**20:.0f} MB" in line
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["cache"]
    assert set(facts) == {"path", "files", "bytes", "limit", "hits", "misses"}
