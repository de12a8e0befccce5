"""Examples and starting weights from seeds, in NumPy alone: each framework's process makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

CLASSES, WORDS = 5, 1000
TAGS = 12


@dataclass(eq=False)
class Node:
    """A binary tree: a leaf has a word, another node two children."""

    word: int
    label: int
    left: Any = None
    right: Any = None

    def height(self) -> int:
        """Return how many levels lie below."""
        return 0 if self.left is None else 1 + max(self.left.height(), self.right.height())

    def count(self) -> int:
        """Return how many nodes there are."""
        return 1 if self.left is None else 1 + self.left.count() + self.right.count()


def random_tree(rng: np.random.Generator, leaves: int) -> Node:
    """Return a tree of so many leaves, split anywhere."""
    label = int(rng.integers(CLASSES))
    if leaves == 1:
        return Node(int(rng.integers(WORDS)), label)
    cut = int(rng.integers(1, leaves))
    return Node(-1, label, random_tree(rng, cut), random_tree(rng, leaves - cut))


def random_trees(count: int, low: int = 5, high: int = 39, seed: int = 0) -> list[Node]:
    """Return trees of low to high leaves."""
    rng = np.random.default_rng(seed)
    return [random_tree(rng, int(rng.integers(low, high + 1))) for _ in range(count)]


def balanced_tree(rng: np.random.Generator, leaves: int) -> Node:
    """Return a complete tree."""
    label = int(rng.integers(CLASSES))
    if leaves == 1:
        return Node(int(rng.integers(WORDS)), label)
    return Node(-1, label, *(balanced_tree(rng, leaves // 2) for _ in range(2)))


def balanced_trees(count: int, leaves: int = 128, seed: int = 0) -> list[Node]:
    """Return complete trees."""
    rng = np.random.default_rng(seed)
    return [balanced_tree(rng, leaves) for _ in range(count)]


@dataclass(eq=False)
class Sentence:
    """Words as numbers, the characters of those that are rare, tags and a parser's steps."""

    words: list[int]
    letters: list[list[int] | None]
    tags: list[int]
    steps: list[int]


def sentences(count: int, low: int = 5, high: int = 40, seed: int = 0) -> list[Sentence]:
    """Return sentences; one word in five is rare, and spelled out."""
    rng = np.random.default_rng(seed)
    return [_sentence(rng, int(rng.integers(low, high + 1))) for _ in range(count)]


def _sentence(rng: np.random.Generator, length: int) -> Sentence:
    letters = [
        rng.integers(0, 26, int(rng.integers(3, 11))).tolist() if rng.random() < 0.2 else None
        for _ in range(length)
    ]
    words, tags = (rng.integers(0, n, length).tolist() for n in (WORDS, TAGS))
    return Sentence(words, letters, tags, _steps(rng, length))


def _steps(rng: np.random.Generator, length: int) -> list[int]:
    """Return steps that a parser can take: 0 shifts, 1 and 2 join the two topmost words."""
    steps, height, rest = [], 0, length
    while rest or height > 1:
        if rest and (height < 2 or rng.random() < 0.5):
            steps.append(0)
            height, rest = height + 1, rest - 1
        else:
            steps.append(int(rng.integers(1, 3)))
            height -= 1
    return steps


def weights(shapes: dict[str, tuple[int, ...]], seed: int = 1) -> dict[str, Any]:
    """Return float32 arrays of such shapes, scaled by the number of their inputs."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        for name, shape in shapes.items()
    }


def tree_shapes(width: int) -> dict[str, tuple[int, ...]]:
    """Return the weights of a binary tree-LSTM."""
    return {
        "table": (WORDS, 2 * width),
        "weight": (2 * width, 5 * width),
        "bias": (5 * width,),
        "out": (width, CLASSES),
    }


def tagger_shapes(word: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """Return the weights of a tagger: words, characters, two directions, tags."""
    return {
        "words": (WORDS, word),
        "letters": (26, word),
        **{f"spell_{k}": v for k, v in _lstm(word, word).items()},
        **{f"forward_{k}": v for k, v in _lstm(word, hidden).items()},
        **{f"backward_{k}": v for k, v in _lstm(word, hidden).items()},
        "out": (2 * hidden, TAGS),
    }


def _lstm(inputs: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the weights of an LSTM: of inputs beside the state, and biases."""
    return {"weight": (inputs + width, 4 * width), "bias": (4 * width,)}


def parser_shapes(width: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """Return the weights of a parser that looks at two words of its stack and the next one."""
    return {
        "words": (WORDS, width),
        "nothing": (width,),
        "hidden": (3 * width, hidden),
        "b_hidden": (hidden,),
        "out": (hidden, 3),
        "join": (2 * width, width),
        "b_join": (width,),
    }


def view(stack: list[Any], rest: list[Any], nothing: Any) -> tuple[Any, Any, Any]:
    """Return what a parser looks at: the top of the stack, what lies below, the next word."""
    top = stack[-1] if stack else nothing
    return top, stack[-2] if len(stack) > 1 else nothing, rest[-1] if rest else nothing


def best(scores: list[float], stack: list[Any], rest: list[Any]) -> int:
    """Return the best step that can be taken."""
    allowed = ([0] if rest else []) + ([1, 2] if len(stack) > 1 else [])
    return max(allowed, key=lambda step: scores[step])


def act(stack: list[Any], rest: list[Any], step: int, join: Callable[[Any, Any], Any]) -> None:
    """Take a step."""
    if step == 0:
        stack.append(rest.pop())
        return
    top, below = stack.pop(), stack.pop()
    stack.append(join(top, below) if step == 1 else join(below, top))
