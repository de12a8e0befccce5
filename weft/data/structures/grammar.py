"""A small grammar of English-like sentences with their dependencies, for parsers to learn.

Parsers that shift and reduce (arc-standard; Nivre 2004) build a sentence's tree in 2n steps: SHIFT
takes the next word onto a stack, LEFT makes the topmost word the head of the one below it, RIGHT
the one below the head of the topmost. `arc_standard` gives the steps of a tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ...core.errors import ArgumentError
from ..checks import as_count, as_probability
from .choices import Choices

SHIFT, LEFT, RIGHT = 0, 1, 2
TRANSITIONS: Final = ("shift", "left", "right")

_WORDS: Final = {
    "DET": ("the", "a", "every", "some", "no"),
    "ADJ": ("old", "green", "small", "quiet", "bright", "strange"),
    "NOUN": ("weaver", "loom", "thread", "city", "river", "teacher", "garden", "letter", "clock"),
    "NAME": ("Ada", "Emmy", "Alan", "Grace", "Kurt"),
    "VERB": ("sees", "mends", "finds", "follows", "paints", "saw", "held"),
    "ADP": ("in", "near", "with", "behind", "under"),
    "ADV": ("slowly", "often", "gladly", "never"),
    "REL": ("that", "who"),
    "CONJ": ("and", "or"),
    "PUNCT": (".", "!"),
}


@dataclass(frozen=True, slots=True)
class Parse:
    """A sentence: words, their tags, their heads (from 1; 0 is the root) and a parser's steps."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    transitions: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.words)


def make_parses(
    n: int = 100, *, depth: int = 3, more: float = 0.35, seed: int | None = None
) -> list[Parse]:
    """Make sentences of a small grammar, with the gold transitions of an arc-standard parser.

    depth   how often phrases may be nested
    more    the probability of each adjective, phrase with a preposition and relative clause

    >>> from weft.data import make_parses
    >>> parse = make_parses(1, depth=0, more=0.0, seed=3)[0]
    >>> len(parse.words) == len(parse.heads), 2 * len(parse.words) == len(parse.transitions)
    (True, True)
    """
    depth = as_count("make_parses", "depth", depth, 0)
    writer = _Writer(Choices(seed), as_probability("make_parses", "more", more))
    return [writer.sentence(depth) for _ in range(as_count("make_parses", "n", n))]


class _Phrase(NamedTuple):
    """Words with tags and heads counted from the phrase's start, and which of them is its head."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]  # -1 at the phrase's own head
    head: int


def _joined(parts: list[_Phrase], main: int) -> _Phrase:
    """Return phrases one after another; the heads of others hang on that of the main one."""
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part.words))
    top = starts[main] + parts[main].head
    heads: list[int] = []
    for start, part in zip(starts, parts, strict=False):
        heads += [top if h == -1 else start + h for h in part.heads]
    heads[top] = -1
    return _Phrase(
        tuple(w for part in parts for w in part.words),
        tuple(t for part in parts for t in part.tags),
        tuple(heads),
        top,
    )


class _Writer:
    """Writes phrases of the grammar."""

    def __init__(self, draws: Choices, more: float) -> None:
        self.draws, self.more = draws, more

    def sentence(self, depth: int) -> Parse:
        """Return a whole sentence."""
        clause = self._clause(depth)
        whole = _joined([clause, self._word("PUNCT")], 0)
        heads = tuple(h + 1 for h in whole.heads)  # -1, the head of all, becomes 0
        return Parse(whole.words, whole.tags, heads, arc_standard(heads))

    def _word(self, tag: str) -> _Phrase:
        return _Phrase((self.draws.choice(_WORDS[tag]),), (tag,), (-1,), 0)

    def _clause(self, depth: int) -> _Phrase:
        predicate = self._predicate(depth)
        parts = [self._nominal(depth), predicate]
        return _joined(parts, 1)

    def _predicate(self, depth: int) -> _Phrase:
        parts = [self._word("ADV")] if self._again() else []
        verb = len(parts)
        parts += [self._word("VERB"), self._nominal(depth)]
        if depth and self._again():
            parts.append(self._prepositional(depth - 1))
        return _joined(parts, verb)

    def _nominal(self, depth: int) -> _Phrase:
        if self.draws.chance(0.25):
            return self._word("NAME")
        parts = [self._word("DET")]
        while len(parts) < 3 and self._again():
            parts.append(self._word("ADJ"))
        noun = len(parts)
        parts.append(self._word("NOUN"))
        if depth and self._again():
            parts.append(self._prepositional(depth - 1))
        if depth and self._again():
            parts.append(_joined([self._word("REL"), self._predicate(depth - 1)], 1))
        if depth and self._again():
            parts.append(_joined([self._word("CONJ"), self._nominal(depth - 1)], 1))
        return _joined(parts, noun)

    def _prepositional(self, depth: int) -> _Phrase:
        return _joined([self._word("ADP"), self._nominal(depth)], 1)

    def _again(self) -> bool:
        return self.draws.chance(self.more)


# -- transitions ----------------------------------------------------------------------------------


def arc_standard(heads: tuple[int, ...] | list[int]) -> tuple[int, ...]:
    """Return the steps by which an arc-standard parser builds a projective tree.

    heads   of words 1, ..., n; one of them is 0, the root. The steps are n times SHIFT, and LEFT or
    RIGHT for each head, the last of which gives the root its word.

    >>> from weft.data import arc_standard
    >>> arc_standard([2, 0])
    (0, 0, 1, 2)
    """
    _check_heads(heads)
    missing = [0] * (len(heads) + 1)  # children that a word still waits for
    for head in heads:
        missing[head] += 1
    stack, steps, word = [0], [], 0
    while word < len(heads) or len(stack) > 1:
        if len(stack) > 2 and heads[stack[-2] - 1] == stack[-1] and not missing[stack[-2]]:
            steps.append(LEFT)
            missing[stack[-1]] -= 1
            del stack[-2]
        elif len(stack) > 1 and heads[stack[-1] - 1] == stack[-2] and not missing[stack[-1]]:
            steps.append(RIGHT)
            missing[stack[-2]] -= 1
            stack.pop()
        elif word < len(heads):
            word += 1
            steps.append(SHIFT)
            stack.append(word)
        else:
            raise ArgumentError(
                f"arc_standard: heads must form a projective tree. Received: {list(heads)}"
            )
    return tuple(steps)


def replayed(words: int, steps: tuple[int, ...] | list[int]) -> list[int]:
    """Return the heads that an arc-standard parser's steps give to so many words.

    >>> from weft.data import replayed
    >>> replayed(2, (0, 0, 1, 2))
    [2, 0]
    """
    heads, stack, word = [0] * words, [0], 0
    for at, step in enumerate(steps):
        if step == SHIFT and word < words:
            word += 1
            stack.append(word)
        elif step == LEFT and len(stack) > 2:
            heads[stack.pop(-2) - 1] = stack[-1]
        elif step == RIGHT and len(stack) > 1:
            last = stack.pop()
            heads[last - 1] = stack[-1]
        else:
            raise ArgumentError(f"replayed: step {at} is not possible. Received: {step!r}")
    return heads


def _check_heads(heads: tuple[int, ...] | list[int]) -> None:
    for word, head in enumerate(heads, start=1):
        if not 0 <= head <= len(heads) or head == word:
            raise ArgumentError(
                f"arc_standard: the head of word {word} must be another of the {len(heads)} words, "
                f"or 0. Received: {head!r}"
            )
    if sum(head == 0 for head in heads) != 1 and heads:
        raise ArgumentError(f"arc_standard: one word has head 0. Received: {list(heads)}")
