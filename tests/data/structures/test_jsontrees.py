"""Trees in JSON: one, a list, lines, and every way in which a file can be wrong."""

import json
from pathlib import Path

import pytest

from weft.data import DataFileError, read_json_trees

NODE = {"label": 1, "children": [{"label": 0, "word": "a"}, {"label": 2, "word": "b"}]}


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_one_a_list_and_lines(tmp_path: Path) -> None:
    deeper = {"label": 3, "children": [NODE, {"word": "c"}, NODE]}
    (one,) = read_json_trees(written(tmp_path / "one.json", deeper))
    assert str(one) == "(3 (1 (0 a) (2 b)) ( c) (1 (0 a) (2 b)))"
    listed = read_json_trees(written(tmp_path / "list.json", [NODE, deeper]))
    text = f"{json.dumps(NODE)}\n\n{json.dumps(deeper)}\n"
    assert read_json_trees(written(tmp_path / "lines.jsonl", text)) == listed == [listed[0], one]


def test_keys_of_other_names(tmp_path: Path) -> None:
    node = {"tag": "S", "kids": [{"tag": "N", "text": "a"}], "word": 5}
    path = written(tmp_path / "t.json", node)
    (tree,) = read_json_trees(path, label="tag", word="text", children="kids")
    assert str(tree) == "(S (N a))"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([NODE, 3], "tree 1: a node is an object. Received: 3"),
        ([{"label": 1}], "tree 0: a node has 'word' or 'children'. Received"),
        ([{"word": "a", "children": [NODE]}], "a node has 'word' or 'children'"),
        ([{"children": "abc"}], "'children' must be a list. Received: 'abc'"),
        ([{"children": [NODE, {"word": 4}]}], "tree 0, child 1: 'word' must be text. Received: 4"),
        ("[\n{]", "line 2, column 2: no JSON"),
        ({"children": [{"children": [NODE]}]}, "nested deeper than max_depth=3"),
    ],
)
def test_errors_name_file_and_place(tmp_path: Path, content: object, message: str) -> None:
    path = written(tmp_path / "bad.json", content)
    with pytest.raises(DataFileError, match=message) as caught:
        read_json_trees(path, max_depth=3)
    assert str(path) in str(caught.value)


def test_lines_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "bad.jsonl", f"{json.dumps(NODE)}\n{{")
    with pytest.raises(DataFileError, match="line 2, column 2: no JSON"):
        read_json_trees(path)


def test_nesting_beyond_the_stack_is_an_error(tmp_path: Path) -> None:
    text = '{"children":[' * 100_000
    with pytest.raises(DataFileError, match="deeper than Python's JSON reader"):
        read_json_trees(written(tmp_path / "deep.json", text))
