"""Lines of keys, and writing of TOML."""

import math
import tomllib
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.config import dotted, read_source
from weft.cli.errors import ConfigError, UsageError
from weft.cli.toml_lines import key_lines
from weft.cli.toml_write import to_toml
from weft.train.registry import hint

DOCUMENT = dedent(
    '''\
    # a comment with [brackets] = and "quotes"
    title = "x # no comment"
    "quoted key" = 'literal \\'
    a.b.c = 1

    [table]
    list = [
        1,      # one
        [2, 3], # nested
        { x = 1, y = [ 4 ] },
    ]
    text = """
    [not.a.header]
    key = "value"
    """
    raw = \'\'\'
    [nor.this]\'\'\'
    after = true

    [[rows]]
    name = "first"
    [rows.sub]
    deep = 1
    [[rows]]
    name = "second"
    [[rows.items]]
    v = 1
    [[rows.items]]
    v = 2
    '''
)


def paths(value, at=()):
    """Yield the path of everything in nested data."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        yield (*at, key)
        if isinstance(child, dict | list):
            yield from paths(child, (*at, key))


def test_every_key_has_its_line():
    lines = key_lines(DOCUMENT)
    text = DOCUMENT.splitlines()
    assert set(paths(tomllib.loads(DOCUMENT))) <= set(lines)
    expected = {
        ("title",): "title =",
        ("quoted key",): '"quoted key"',
        ("a", "b", "c"): "a.b.c",
        ("table", "list", 1, 1): "[2, 3]",
        ("table", "list", 2, "y", 0): "{ x = 1",
        ("table", "text"): "text =",
        ("table", "after"): "after =",
        ("rows", 0, "sub", "deep"): "deep",
        ("rows", 1, "name"): 'name = "second"',
        ("rows", 1, "items", 1, "v"): "v = 2",
    }
    for path, start in expected.items():
        assert text[lines[path] - 1].strip().startswith(start), path


def test_windows_line_ends(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n[b]\r\nc = [\r\n 1,\r\n 2]\r\n")
    source = read_source(path)
    assert source.data == {"a": 1, "b": {"c": [1, 2]}}
    assert source.where(("b", "c", 1)) == "a.toml:5"


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), VALUES))
def test_what_is_written_reads_back_with_a_line_for_every_key(data):
    try:
        text = to_toml(data)
        read = tomllib.loads(text)
    except UnicodeEncodeError:
        return
    assert read == data
    lines = key_lines(text)
    assert set(paths(read)) <= set(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def test_numbers_that_are_not_finite():
    read = tomllib.loads(to_toml({"a": math.inf, "b": -math.inf, "c": math.nan, "d": None}))
    assert read["a"] == math.inf
    assert read["b"] == -math.inf
    assert math.isnan(read["c"])
    assert "d" not in read


def test_what_toml_cannot_hold_is_refused():
    with pytest.raises(UsageError, match="no place for"):
        to_toml({"a": object()})


# -- --set ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("a=2", ("a",), 2),
        ("a = [1, 2]", ("a",), [1, 2]),
        ("t.x=0.5", ("t", "x"), 0.5),
        ("t.new.deep=true", ("t", "new", "deep"), True),
        ("a=plain text", ("a",), "plain text"),
        ("a=x=y", ("a",), "x=y"),
        ("rows.1.v=3", ("rows", 1, "v"), 3),
        ("rows.second.v=3", ("rows", 1, "v"), 3),
        ('a="2"', ("a",), "2"),
        ("a=", ("a",), ""),
    ],
)
def test_set(tmp_path, setting, path, value):
    file = tmp_path / "c.toml"
    file.write_text('a = 1\nrows = [{name = "first"}, {name = "second"}]\n[t]\nx = 1\n')
    source = read_source(file, [setting])
    assert source.get(path) == value
    assert source.where(path).startswith("--set")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("a", "--set takes key=value"),
        ("=1", "--set takes key=value"),
        ("a..b=1", "--set takes key=value"),
        ("a.b=1", "a is 1, which has no 'b'"),
        ("rows.5.v=1", "rows has no '5'; it has first, second"),
    ],
)
def test_bad_set(tmp_path, setting, message):
    file = tmp_path / "c.toml"
    file.write_text('a = 1\nrows = [{name = "first"}, {name = "second"}]\n')
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        read_source(file, [setting])


def test_names_in_messages():
    assert dotted(("a", 0, "b")) == "a.0.b"
    assert hint("xyzzy", ["alpha", "beta"]) == "there are: alpha, beta"
    assert hint("x", []) == "there are none"
