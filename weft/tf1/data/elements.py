"""Elements of datasets: made of what a generator yields, put into batches, taken in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...core.rng import Generator
from ...data import IterableDataset
from ...data.streams import Streams, using
from ..errors import InvalidArgumentError
from ..recording import constant_array, is_tensor
from ..shapes import TensorShape
from .nests import Component, flat, is_nest, mapped

Element: TypeAlias = tuple[np.ndarray[Any, Any], ...]


def generated(structure: Any, parts: Sequence[Component], item: Any) -> Element:
    """Return what a generator yielded as arrays, after checking them."""
    listed = tuple(item) if isinstance(item, list) and is_nest(structure) else item
    found = flat(listed) if is_nest(structure) else [item]
    if len(found) != len(parts):
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. The "
            f"expected structure was {len(parts)} components, but the element was {item!r:.80}"
        )
    return tuple(_as_component(value, part) for value, part in zip(found, parts, strict=True))


def _as_component(value: Any, part: Component) -> Any:
    try:
        array = (
            constant_array(value, part.dtype)
            if part.dtype.name == "string"
            else np.asarray(value, part.dtype.dtype)
        )
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`generator` yielded an element that could not be converted to the expected type. The "
            f"expected type was {part.dtype.name}, but the yielded element was {value!r:.80}."
        ) from error
    if not part.shape.is_compatible_with(array.shape):
        raise TypeError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape "
            f"{part.shape} was expected."
        )
    return array


def batched(structure: Any, size: Any, drop_remainder: Any) -> Any:
    """Return the structure of batches of elements."""
    number = int(size) if drop_remainder and not is_tensor(size) else None
    return mapped(
        lambda part: Component(part.dtype, TensorShape([number]).concatenate(part.shape)), structure
    )


def stacked(batch: list[Element]) -> Element:
    """Return elements of equal shapes as one."""
    columns = list(zip(*batch, strict=True))
    for column in columns:
        shapes = {np.shape(value) for value in column}
        if len(shapes) > 1:
            first, other = list(shapes)[:2]
            raise InvalidArgumentError(
                None,
                None,
                f"Cannot batch tensors with different shapes in component: {list(first)} and "
                f"{list(other)}; use padded_batch",
            )
    return tuple(np.stack([np.asarray(value) for value in column]) for column in columns)


def padded(column: Sequence[Any], part: Component, fill: Any) -> Any:
    """Return arrays of different sizes as one, filled up with a value."""
    arrays = [np.asarray(value) for value in column]
    largest = np.max([array.shape for array in arrays], axis=0) if arrays[0].ndim else ()
    sizes = part.shape.as_list() if part.shape.sizes is not None else [None] * len(largest)
    target = [int(n) if size is None else size for n, size in zip(largest, sizes, strict=True)]
    if any(n > m for array in arrays for n, m in zip(array.shape, target, strict=True)):
        raise InvalidArgumentError(
            None,
            None,
            f"Attempted to pad to a smaller size than the input element: {target} is too small",
        )
    default = b"" if part.dtype.name == "string" else 0
    if isinstance(fill, str):
        fill = fill.encode()
    made = np.full((len(arrays), *target), default if fill is None else fill, arrays[0].dtype)
    for i, array in enumerate(arrays):
        place: Any = (i, *(slice(0, n) for n in array.shape))
        made[place] = array
    return made


def in_turn(
    elements: Iterator[Any], opened: Callable[[Any], Iterator[Any]], cycle: int, block: int
) -> Iterator[Any]:
    """Yield blocks of several streams in turn; one that ends makes place for the next."""
    running: list[Iterator[Any]] = []
    place = 0
    while True:
        while len(running) < cycle and (element := next(elements, None)) is not None:
            running.append(opened(element))
        if not running:
            return
        place %= len(running)
        ended = False
        for _ in range(block):
            item = next(running[place], None)
            if item is None:
                ended = True
                break
            yield item
        if ended:
            following = next(elements, None)
            if following is None:
                running.pop(place)
            else:
                running[place] = opened(following)
        else:
            place += 1


class Seeded:
    """Iterations of a shuffled stream whose orders follow from a seed."""

    def __init__(self, stream: IterableDataset, seed: int, reshuffle: bool) -> None:
        self._stream, self._seed, self._reshuffle = stream, seed, reshuffle
        self._round = 0

    def __call__(self) -> Iterator[Any]:
        """Begin an iteration."""
        number = abs(hash((self._seed, self._round)))
        self._round += self._reshuffle
        generator = Generator(number)
        items = iter(self._stream)
        with using(Streams(generator, generator.fork(0))):  # a stage asks for its numbers at first
            first = next(items, None)
        if first is not None:
            yield first
            yield from items


class Remembered:
    """The items of a stream, kept once all were made."""

    def __init__(self, stream: IterableDataset) -> None:
        self._stream = stream
        self._kept: list[Any] | None = None

    def __call__(self) -> Iterator[Any]:
        """Begin an iteration."""
        if self._kept is not None:
            yield from self._kept
            return
        found = []
        for item in self._stream:
            found.append(item)
            yield item
        self._kept = found
