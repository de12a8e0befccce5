"""CoNLL-U: sentences with a head for each word (Universal Dependencies).

Ten columns separated by tabs, a word on each line, an empty line after each sentence. Beside words
there are comments, tokens of several words (`3-4`) and empty nodes (`8.1`); all are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import DataFileError, check_file
from .tree import Tree

_WORD: Final = re.compile(r"[1-9]\d*")
_RANGE: Final = re.compile(r"([1-9]\d*)-([1-9]\d*)")
_EMPTY: Final = re.compile(r"(0|[1-9]\d*)\.([1-9]\d*)")
_NAMES: Final = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]


@dataclass(frozen=True, slots=True)
class Token:
    """A word: its columns, with `_` as None; `head` is 0 for the root, None where not given."""

    id: int
    form: str
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    feats: dict[str, str] = field(default_factory=dict)
    head: int | None = None
    deprel: str | None = None
    deps: str | None = None
    misc: str | None = None


@dataclass(frozen=True, slots=True)
class MultiwordToken:
    """What is written as one token and stands for the words `first` to `last`."""

    first: int
    last: int
    form: str
    misc: str | None = None


@dataclass(frozen=True, slots=True)
class EmptyNode:
    """A word that is not written: the `index`-th behind the word `after`."""

    after: int
    index: int
    form: str
    lemma: str | None = None
    upos: str | None = None
    deps: str | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with their heads, and what else the file says of the sentence."""

    tokens: tuple[Token, ...]
    multiword: tuple[MultiwordToken, ...] = ()
    empty: tuple[EmptyNode, ...] = ()
    comments: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def words(self) -> list[str]:
        """Return the forms of the words."""
        return [token.form for token in self.tokens]

    @property
    def heads(self) -> list[int | None]:
        """Return the head of each word, counted from 1; 0 is the root."""
        return [token.head for token in self.tokens]

    @property
    def metadata(self) -> dict[str, str]:
        """Return the comments of the form `# key = value`."""
        pairs = (line.partition("=") for line in self.comments if "=" in line)
        return {key.strip(): value.strip() for key, _, value in pairs}

    def tree(self) -> Tree:
        """Return the dependency tree: labels are relations, and the word is its node's own leaf."""
        return _dependency_tree(self)


def read_conllu(path: Any, *, encoding: str = "utf-8-sig") -> list[Sentence]:
    """Read all sentences of a file. Heads must exist and form no cycle."""
    shown = check_file(path)
    try:
        with open(shown, encoding=encoding) as lines:
            return list(_sentences(shown, lines))
    except UnicodeDecodeError as error:
        raise DataFileError(
            path, f"byte {error.start}", f"expected text in {encoding}; give encoding="
        ) from None


def parse_conllu(text: str) -> list[Sentence]:
    r"""Return the sentences of a text, see `read_conllu`.

    >>> from weft.data import parse_conllu
    >>> rows = [["1", "She", *"____", "2", *"___"], ["2", "sees", *"____", "0", *"___"]]
    >>> (sentence,) = parse_conllu("\n".join(map("\t".join, rows)))
    >>> sentence.words, sentence.heads
    (['She', 'sees'], [2, 0])
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_conllu: text must be a string. Received: {type(text).__name__}")
    return list(_sentences("<text>", text.splitlines()))


# -- lines ----------------------------------------------------------------------------------------


def _sentences(path: str, lines: Iterable[str]) -> Iterator[Sentence]:
    reading = _Reading(path)
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            yield from reading.finish()
        elif text.startswith("#"):
            reading.comments.append(text[1:].strip())
        else:
            reading.add(text, number)
    yield from reading.finish()


class _Reading:
    """A sentence, as far as it has been read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.begin()

    def begin(self) -> None:
        """Forget everything: the next sentence begins."""
        self.tokens: list[Token] = []
        self.lines: list[int] = []
        self.multiword: list[MultiwordToken] = []
        self.empty: list[EmptyNode] = []
        self.comments: list[str] = []

    def add(self, text: str, line: int) -> None:
        """Take a line with ten columns."""
        columns = text.split("\t")
        if len(columns) != len(_NAMES):
            raise self._problem(
                line, f"expected {len(_NAMES)} columns separated by tabs, found {len(columns)}"
            )
        for name, value in zip(_NAMES, columns, strict=True):
            if not value:
                raise self._problem(line, f"column {name} is empty; write _ for nothing")
        given = columns[0]
        if match := _RANGE.fullmatch(given):
            self._add_multiword(int(match[1]), int(match[2]), columns, line)
        elif match := _EMPTY.fullmatch(given):
            self._add_empty(int(match[1]), int(match[2]), columns, line)
        elif _WORD.fullmatch(given):
            self._add_word(int(given), columns, line)
        else:
            raise self._problem(line, f"ID must be 3, 3-4 or 3.1. Received: {given!r:.40}")

    def _add_word(self, number: int, columns: list[str], line: int) -> None:
        if number != len(self.tokens) + 1:
            raise self._problem(line, f"expected word {len(self.tokens) + 1}, found {number}")
        _, form, lemma, upos, xpos, feats, head, deprel, deps, misc = columns
        lemma_given = lemma if lemma == form else _given(lemma)  # the word may be an underscore
        self.tokens.append(
            Token(
                number,
                form,
                lemma_given,
                _given(upos),
                _given(xpos),
                self._features(feats, line),
                self._head(head, line),
                _given(deprel),
                _given(deps),
                _given(misc),
            )
        )
        self.lines.append(line)

    def _add_multiword(self, first: int, last: int, columns: list[str], line: int) -> None:
        if first != len(self.tokens) + 1 or last <= first:
            raise self._problem(
                line,
                f"a token of several words stands before the first of them, word "
                f"{len(self.tokens) + 1}, and ends behind it. Received: {first}-{last}",
            )
        self.multiword.append(MultiwordToken(first, last, columns[1], _given(columns[9])))

    def _add_empty(self, after: int, index: int, columns: list[str], line: int) -> None:
        earlier = sum(1 for node in self.empty if node.after == after)
        if after != len(self.tokens) or index != earlier + 1:
            raise self._problem(
                line, f"expected empty node {len(self.tokens)}.{earlier + 1}, found {after}.{index}"
            )
        lemma, upos, deps = (_given(columns[i]) for i in (2, 3, 8))
        self.empty.append(EmptyNode(after, index, columns[1], lemma, upos, deps))

    def _features(self, text: str, line: int) -> dict[str, str]:
        if text == "_":
            return {}
        pairs = [part.partition("=") for part in text.split("|")]
        if any(not sign for _, sign, _ in pairs):
            raise self._problem(line, f"FEATS must be Name=Value|... Received: {text!r:.60}")
        return {name: value for name, _, value in pairs}

    def _head(self, text: str, line: int) -> int | None:
        if text == "_":
            return None
        if not text.isascii() or not text.isdigit():
            raise self._problem(line, f"HEAD must be a number. Received: {text!r:.40}")
        return int(text)

    def finish(self) -> Iterator[Sentence]:
        """Yield the sentence that has been read, if there is one."""
        if self.tokens:
            self._check_heads()
            parts = (self.tokens, self.multiword, self.empty, self.comments)
            yield Sentence(*map(tuple, parts))  # type: ignore[arg-type]  # each in its own type
        elif self.multiword or self.empty:
            raise DataFileError(self.path, None, "a sentence has no words")
        self.begin()

    def _check_heads(self) -> None:
        last = self.multiword[-1].last if self.multiword else 0
        if last > len(self.tokens):
            raise self._problem(self.lines[-1], f"a token ends with word {last}, which is missing")
        for token, line in zip(self.tokens, self.lines, strict=True):
            if token.head is not None and token.head > len(self.tokens):
                raise self._problem(
                    line, f"HEAD {token.head} is none of the {len(self.tokens)} words"
                )
        if (start := _in_cycle([token.head for token in self.tokens])) is not None:
            raise self._problem(self.lines[start], "the heads of this word lead back to it")

    def _problem(self, line: int, text: str) -> DataFileError:
        return DataFileError(self.path, f"line {line}", text)


def _given(text: str) -> str | None:
    return None if text == "_" else text


def _in_cycle(heads: list[int | None]) -> int | None:
    """Return a word whose heads lead back to it, or None."""
    state = [0] * len(heads)  # the walk on which each word was last met
    done = [False] * len(heads)
    for start in range(len(heads)):
        word: int | None = start
        while word is not None and not done[word]:
            if state[word] == start + 1:
                return word
            state[word] = start + 1
            head = heads[word]
            word = head - 1 if head else None
        word = start
        while word is not None and not done[word]:
            done[word] = True
            head = heads[word]
            word = head - 1 if head else None
    return None


def _dependency_tree(sentence: Sentence) -> Tree:
    below: dict[int, list[int]] = {}
    for token in sentence.tokens:
        below.setdefault(-1 if token.head is None else token.head, []).append(token.id)
    roots = below.get(0, [])
    if len(roots) != 1 or -1 in below:
        raise ValueError(
            f"Sentence.tree: expected one root and a head for each word. Received: heads "
            f"{sentence.heads}"
        )
    built: dict[int, Tree] = {}
    order = [roots[0]]
    for word in order:
        order.extend(below.get(word, ()))
    for word in reversed(order):
        token = sentence.tokens[word - 1]
        leaf = Tree(token.upos, token.form)
        parts = [*(x for x in below.get(word, ()) if x < word), 0]
        parts += [x for x in below.get(word, ()) if x > word]
        children = [built[x] if x else leaf for x in parts]
        built[word] = Tree(token.deprel, None, children)
    return built[roots[0]]
