"""Brackets: SST's and the Penn Treebank's, and every way in which a file can be wrong."""

from pathlib import Path

import pytest

from weft.data import DataFileError, Tree, parse_brackets, read_brackets


def test_sst_with_labels_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("(3 (2 It) (4 (2 's) (4 good)))\n\n(1 (2 Not) (3 bad))\n")
    first, second = read_brackets(path, label=int)
    assert first.words() == ["It", "'s", "good"]
    assert [n.label for n in first.preorder()] == [3, 2, 4, 2, 4]
    assert second == Tree(1, None, [Tree(2, "Not"), Tree(3, "bad")])


def test_penn_treebank_over_several_lines() -> None:
    text = "( (S\n    (NP-SBJ (DT The) (NN loom) )\n    (VP (VBZ stands) )\n    (. .) ) )\n"
    (tree,) = parse_brackets(text)
    assert tree.label == "S"
    assert [child.label for child in tree.children] == ["NP-SBJ", "VP", "."]
    assert tree.words() == ["The", "loom", "stands", "."]


def test_unary_nary_and_words_beside_subtrees() -> None:
    (tree,) = parse_brackets("(NP (X (DT the)) quick brown (NN fox))")
    assert [len(c.children) for c in tree.children] == [1, 0, 0, 0]
    assert [c.label for c in tree.children] == ["X", None, None, "NN"]
    assert tree.words() == ["the", "quick", "brown", "fox"]


def test_escaped_brackets() -> None:
    text = "(2 (1 -LRB-) (1 -RRB-))"
    assert parse_brackets(text)[0].words() == ["-LRB-", "-RRB-"]
    assert parse_brackets(text, unescape=True)[0].words() == ["(", ")"]


def test_nothing_is_no_tree() -> None:
    assert parse_brackets(" \n\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(3 (2 It)\n(4 works)", "line 1: this bracket is not closed"),
        ("(3 (2 It))\n)", r"line 2: '\)' closes nothing"),
        ("\nword", r"line 2: expected '\(', found 'word'"),
        ("(3 (2 It)\n())", "line 2: expected a word or subtrees in brackets, found nothing"),
        ("(3 (2))", "found the label '2' alone"),
        ("(3 (x It))", "line 1: the label 'x' is refused"),
        ("(1 (1 (1 (1 a))))", "line 1: brackets are nested deeper than max_depth=3"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message) as caught:
        read_brackets(path, label=int, max_depth=3)
    assert str(path) in str(caught.value)


def test_other_encodings_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("(3 (2 é) (2 a))".encode("latin-1"))
    with pytest.raises(DataFileError, match="byte 6: expected text in utf-8-sig; give encoding="):
        read_brackets(path)
    assert read_brackets(path, encoding="latin-1")[0].words() == ["é", "a"]
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_brackets(tmp_path / "none.txt")
    with pytest.raises(TypeError, match=r"text must be a string\. Received: bytes"):
        parse_brackets(b"(a b)")  # type: ignore[arg-type]  # what is refused
