"""CoNLL-U: all kinds of lines, and every way in which a file can be wrong."""

from pathlib import Path

import pytest

from weft.data import DataFileError, parse_conllu, read_conllu


def line(id: str, form: str, *, head: str = "_", **columns: str) -> str:
    names = ("lemma", "upos", "xpos", "feats")
    rest = [columns.get(name, "_") for name in names]
    end = [columns.get(name, "_") for name in ("deprel", "deps", "misc")]
    return "\t".join([id, form, *rest, head, *end])


SENTENCE = "\n".join(
    [
        "# sent_id = 7",
        "# text = vámonos al mar",
        line("1-2", "vámonos", misc="SpaceAfter=No"),
        line("1", "vamos", head="0", lemma="ir", upos="VERB", deprel="root"),
        line("2", "nos", head="1", upos="PRON", deprel="obj", feats="Case=Acc|Number=Plur"),
        line("3", "a", head="5", upos="ADP", deprel="case"),
        line("4", "el", head="5", upos="DET", deprel="det"),
        line("4.1", "gran", upos="ADJ", deps="5:amod"),
        line("5", "mar", head="1", upos="NOUN", deprel="obl"),
    ]
)


def test_words_ranges_empty_nodes_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "es.conllu"
    path.write_text(SENTENCE + "\n\n" + line("1", "Sí", head="0") + "\n", encoding="utf-8")
    first, second = read_conllu(path)
    assert first.words == ["vamos", "nos", "a", "el", "mar"]
    assert first.heads == [0, 1, 5, 5, 1]
    assert first.metadata == {"sent_id": "7", "text": "vámonos al mar"}
    assert first.tokens[1].feats == {"Case": "Acc", "Number": "Plur"}
    assert first.tokens[0].lemma == "ir"
    assert first.tokens[1].lemma is None
    (token,) = first.multiword
    assert (token.first, token.last, token.form, token.misc) == (1, 2, "vámonos", "SpaceAfter=No")
    (node,) = first.empty
    assert (node.after, node.index, node.form, node.deps) == (4, 1, "gran", "5:amod")
    assert len(second) == 1


def test_tree_of_dependencies() -> None:
    tree = parse_conllu(SENTENCE)[0].tree()
    assert tree.label == "root"
    assert tree.words() == ["vamos", "nos", "a", "el", "mar"]
    assert [child.label for child in tree.children] == ["VERB", "obj", "obl"]


def test_tree_needs_one_root() -> None:
    (sentence,) = parse_conllu(line("1", "a", head="0") + "\n" + line("2", "b", head="0"))
    with pytest.raises(ValueError, match=r"one root.*\[0, 0\]"):
        sentence.tree()


def test_an_underscore_is_a_word() -> None:
    (sentence,) = parse_conllu(line("1", "_", lemma="_", head="0"))
    assert sentence.tokens[0].form == sentence.tokens[0].lemma == "_"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\tword"], "line 1: expected 10 columns separated by tabs, found 2"),
        ([line("1", "")], "column FORM is empty; write _"),
        ([line("2", "a")], "expected word 1, found 2"),
        ([line("x", "a")], "ID must be 3, 3-4 or 3.1. Received: 'x'"),
        ([line("1", "a", head="two")], "HEAD must be a number. Received: 'two'"),
        ([line("1", "a", head="3")], "HEAD 3 is none of the 1 words"),
        ([line("1", "a", feats="Case")], "FEATS must be Name=Value"),
        (
            [line("1", "a", head="2"), line("2", "b", head="1")],
            "line 1: the heads of this word lead back",
        ),
        ([line("1", "a"), line("1-2", "ab"), line("2", "b")], "stands before the first.*word 2"),
        ([line("1-3", "abc"), line("1", "a")], "a token ends with word 3, which is missing"),
        ([line("1", "a"), line("1.2", "b")], "expected empty node 1.1, found 1.2"),
        ([line("1-2", "ab")], "a sentence has no words"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataFileError, match=message) as caught:
        read_conllu(path)
    assert str(path) in str(caught.value)


def test_a_long_chain_of_heads() -> None:
    lines = [line(str(i), "w", head=str(i - 1)) for i in range(1, 3001)]
    (sentence,) = parse_conllu("\n".join(lines))
    assert sentence.tree().depth() == 3001
