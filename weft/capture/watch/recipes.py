"""Recipes: how to make again what a program made, each as a call and most as text.

A call is given what finds the recorded values of this repetition, and what it has made so far: an
object that is shared is made once. The text is an expression, for results that share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.generated import ObjectNames

Resolve = Callable[[Any], Any]
Made = dict[int, Any]  # what this repetition has made
Recipe = Callable[[Resolve, Made], Any]


class UnwrittenError(Exception):
    """There is no text for a recipe: it is called."""


@dataclass
class RecipeWriter:
    """Writes a recipe as an expression.

    recorded   gives the text for a recorded value
    names      of objects that are themselves each time
    """

    recorded: Callable[[Any], str]
    names: ObjectNames
    _made: set[int] = field(default_factory=set)

    def text(self, recipe: Recipe) -> str:
        """Return the expression; raise UnwrittenError where there is none."""
        write: Callable[[RecipeWriter], str] | None = getattr(recipe, "text", None)
        if write is None:
            raise UnwrittenError
        return write(self)

    def texts(self, recipes: Sequence[Recipe]) -> str:
        """Return the expressions of several, each followed by a comma."""
        return "".join(f"{self.text(recipe)}, " for recipe in recipes)

    def once(self, key: int) -> None:
        """Note that an object is made here; raise UnwrittenError if it is made elsewhere too."""
        if key in self._made:
            raise UnwrittenError
        self._made.add(key)


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """A recorded value, as it is this time."""

    value: Any

    def __call__(self, resolve: Resolve, made: Made) -> Any:
        """Find it."""
        return resolve(self.value)

    def text(self, writer: RecipeWriter) -> str:
        """Return where it is found."""
        return writer.recorded(self.value)


@dataclass(frozen=True, slots=True)
class SamePart:
    """What was there before, or never changes."""

    value: Any

    def __call__(self, resolve: Resolve, made: Made) -> Any:
        """Return it."""
        return self.value

    def text(self, writer: RecipeWriter) -> str:
        """Return its name."""
        return "None" if self.value is None else writer.names.of(self.value, "thing")


@dataclass(frozen=True, slots=True)
class SharedPart:
    """What is made once in a repetition, wherever it is asked for."""

    key: int
    make: Recipe

    def __call__(self, resolve: Resolve, made: Made) -> Any:
        """Make it, or return what was made."""
        if self.key not in made:
            made[self.key] = self.make(resolve, made)
        return made[self.key]

    def text(self, writer: RecipeWriter) -> str:
        """Return what makes it, if it is asked for once."""
        writer.once(self.key)
        return writer.text(self.make)


@dataclass(frozen=True, slots=True)
class TupleRecipe:
    """A tuple, of a class of its own perhaps."""

    kind: type
    parts: Sequence[Recipe]

    def __call__(self, resolve: Resolve, made: Made) -> Any:
        """Make it."""
        return tuple.__new__(self.kind, [part(resolve, made) for part in self.parts])

    def text(self, writer: RecipeWriter) -> str:
        """Return what makes it; a class may have a constructor of its own, which is not called."""
        written = f"({writer.texts(self.parts)})"
        if self.kind is tuple:
            return written
        new = writer.names.of(tuple.__new__, "new_tuple")
        return f"{new}({writer.names.of(self.kind, 'kind')}, {written})"


@dataclass(frozen=True, slots=True)
class ListRecipe:
    """A list, which may hold itself."""

    key: int
    parts: Sequence[Recipe]

    def __call__(self, resolve: Resolve, made: Made) -> Any:
        """Make it; it is there before its items are."""
        new: list[Any] = []
        made[self.key] = new
        new.extend([part(resolve, made) for part in self.parts])
        return new

    def text(self, writer: RecipeWriter) -> str:
        """Return what makes it."""
        return f"[{writer.texts(self.parts)}]"


@dataclass(frozen=True, slots=True)
class DictRecipe:
    """A plain dictionary, which may hold itself."""

    key: int
    pairs: Sequence[tuple[Recipe, Recipe]]

    def __call__(self, resolve: Resolve, made: Made) -> Any:
        """Make it; it is there before its items are."""
        new: dict[Any, Any] = {}
        made[self.key] = new
        new.update((k(resolve, made), v(resolve, made)) for k, v in self.pairs)
        return new

    def text(self, writer: RecipeWriter) -> str:
        """Return what makes it."""
        pairs = (f"{writer.text(key)}: {writer.text(value)}, " for key, value in self.pairs)
        return f"{{{''.join(pairs)}}}"
