"""Counter-based random bits: Philox4x64-10 and the generator that hands out its counters.

Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) is a keyed bijection
of 256-bit counters: random bits are a pure function of ``(key, counter)``, so the same program
draws the same numbers eagerly, in a graph, compiled, and at any thread count.

Conventions, which every implementation of these draws must follow:

* A *block* is four 64-bit words. Block ``i`` of a draw that starts at counter ``c`` is
  ``philox(key, c + i)``; a draw of ``n`` words consumes ``ceil(n / 4)`` blocks.
* Keys are 128-bit integers, counters 256-bit integers, both split into little-endian 64-bit words.
* Generators stay below counter ``2**64``. The higher counter words separate domains: word 1 counts
  the rounds of rejection samplers, word 3 marks the derivation of forked keys.

Integers enter this module, ``uint64`` arrays leave it.
"""

import operator
import os
import threading
from typing import Any, Final, Self, SupportsIndex, TypeAlias, final

import numpy as np

from .errors import ArgumentError, ArgumentTypeError
from .locks import fork_safe_lock
from .modes import refuse_recording

__all__ = [
    "Generator",
    "default_generator",
    "manual_seed",
    "multiply_high",
    "philox_bits",
    "philox_blocks",
]

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

WORDS_PER_BLOCK: Final = 4
_MASK32: Final = (1 << 32) - 1
_MASK64: Final = (1 << 64) - 1
_KEY_LIMIT: Final = 1 << 128
_COUNTER_LIMIT: Final = 1 << 256
_GENERATOR_LIMIT: Final = 1 << 64

# Multipliers and Weyl key increments of Philox4x64 (Salmon et al. 2011, section 3.3).
MULTIPLIERS: Final = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
KEY_STEPS: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
ROUNDS: Final = 10

_ALGORITHM: Final = "philox4x64-10"
_FORK_DOMAIN: Final = 1 << 192
_EXAMPLE_DOMAIN: Final = 2 << 192


STATE_SHAPE: Final = (3,)


def make_state(key: int, counter: int) -> Words:
    """Return a key and a counter as the words of a state, which random operators take."""
    return np.array((key & _MASK64, key >> 64, counter), np.uint64)


def philox_bits(key: int, counter: int, n: int) -> Words:
    """Return ``n`` random words: the blocks ``philox(key, counter + i)``, one after another.

    >>> [hex(word) for word in philox_bits(0, 0, 2).tolist()]
    ['0x16554d9eca36314c', '0xdb20fe9d672d0fdc']
    """
    if n < 0:
        raise ArgumentError(f"n must not be negative. Received: {n}")
    blocks = (n + 3) >> 2
    try:
        cursor = _cursors.free.pop()
    except IndexError:
        cursor = _Cursor()
    if counter != cursor.counter or key != cursor.key:
        cursor.move(key, counter)
    words = cursor.draw(blocks << 2)
    cursor.counter = counter + blocks
    _cursors.free.append(cursor)
    return words[:n]


def philox_blocks(key: int, counters: Words, *, domain: int = 0) -> Words:
    """Return the blocks at scattered counters ``counters + (domain << 64)``, shape ``(m, 4)``."""
    key_words = [key & _MASK64, key >> 64]
    c0, c2 = counters, np.zeros_like(counters)
    c1, c3 = np.full_like(counters, domain), np.zeros_like(counters)
    for _ in range(ROUNDS):
        high0, low0 = multiply_high(c0, MULTIPLIERS[0]), c0 * np.uint64(MULTIPLIERS[0])
        high1, low1 = multiply_high(c2, MULTIPLIERS[1]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1 = high1 ^ c1 ^ np.uint64(key_words[0]), low1
        c2, c3 = high0 ^ c3 ^ np.uint64(key_words[1]), low0
        key_words = [(w + s) & _MASK64 for w, s in zip(key_words, KEY_STEPS, strict=True)]
    return np.stack([c0, c1, c2, c3], axis=-1)


def multiply_high(x: Words, factor: int) -> Words:
    """Return the upper 64 bits of the 128-bit products ``x * factor``, ``0 <= factor < 2**64``."""
    x_low, x_high = x & np.uint64(_MASK32), x >> np.uint64(32)
    low, high = np.uint64(factor & _MASK32), np.uint64(factor >> 32)
    carry: Words = (x_low * low) >> np.uint64(32)
    if not high:  # the same number with half the work; no term can overflow either way
        carry += x_high * low
        carry >>= np.uint64(32)
        return carry
    middle: Words = x_low * high + carry
    outer: Words = x_high * low + (middle & np.uint64(_MASK32))
    upper: Words = x_high * high + (middle >> np.uint64(32)) + (outer >> np.uint64(32))
    return upper


@final
class Generator:
    """A key and the next unused counter; the only mutable thing in random number generation.

    ``Generator()`` takes its key from the operating system at first use; ``Generator(seed)`` is
    reproducible. All methods may be called from several threads. After ``os.fork`` parent and child
    hold the same key and counter, hence draw the same numbers: give each child its own ``fork``.
    """

    __slots__ = ("_counter", "_key")

    _key: int | None
    _counter: int

    def __init__(self, seed: SupportsIndex | None = None) -> None:
        self._key = None if seed is None else _checked_seed(seed)
        self._counter = 0

    def seed(self, seed: SupportsIndex) -> Self:
        """Restart from ``seed`` (0 to 2**64 - 1), which becomes the Philox key, at counter 0."""
        key = _checked_seed(seed)
        refuse_recording("a generator is seeded")
        with _state_lock:
            self._key, self._counter = key, 0
        return self

    def manual_seed(self, seed: SupportsIndex) -> Self:
        """Begin anew from a seed, under PyTorch's name."""
        return self.seed(seed)

    def reserve(self, n_blocks: int) -> tuple[int, int]:
        """Advance by ``n_blocks`` and return the ``(key, counter)`` at which they start."""
        with _state_lock:
            key, start = self._seeded_key(), self._counter
            end = start + n_blocks
            if end < start or end > _GENERATOR_LIMIT:
                raise _reserve_error(start, n_blocks)
            self._counter = end
        return key, start

    def position(self) -> tuple[int, int]:
        """Return the key and the counter at which the next draw starts."""
        with _state_lock:
            return self._seeded_key(), self._counter

    def move_to(self, counter: int, key: int | None = None) -> None:
        """Let the next draw start at a counter, of the same key if no other is given."""
        counter = _checked_index("counter", counter, _GENERATOR_LIMIT + 1)
        key = None if key is None else _checked_index("key", key, _KEY_LIMIT)
        with _state_lock:
            self._key, self._counter = self._key if key is None else key, counter

    def fork(self, stream: SupportsIndex) -> "Generator":
        """Return an independent generator for ``stream`` (0 to 2**64 - 1), at counter 0.

        The child's 128-bit key is words 0 and 1 of ``philox(key, stream + 2**192)``: Philox itself
        is the hash, at counters no draw ever reaches. It depends on the key and the stream alone,
        not on how much was drawn before; equal streams give equal children.
        """
        refuse_recording("a generator is forked")
        stream = _checked_index("stream", stream, _GENERATOR_LIMIT)
        with _state_lock:
            key = self._seeded_key()
        low, high = philox_bits(key, _FORK_DOMAIN + stream, 2).tolist()
        child = Generator()
        child._key = low | high << 64
        return child

    @classmethod
    def of_example(cls, key: int, counter: int, example: int) -> "Generator":
        """Return the generator of one example of many, for a call made at a key and a counter.

        Like a forked one's, its key comes from a counter that no draw reaches.
        """
        words = philox_bits(key, _EXAMPLE_DOMAIN + (example << 64) + counter, 2).tolist()
        child = cls()
        child._key = words[0] | words[1] << 64
        return child

    def get_state(self) -> dict[str, str]:
        """Return the state as a dictionary of strings, ready for JSON or file metadata."""
        refuse_recording("the state of a generator is read")
        with _state_lock:
            key, counter = self._seeded_key(), self._counter
        return {"algorithm": _ALGORITHM, "key": f"{key:#x}", "counter": f"{counter:#x}"}

    def set_state(self, state: dict[str, str]) -> Self:
        """Continue exactly where ``get_state`` was taken."""
        refuse_recording("the state of a generator is set")
        key, counter = _parsed_state(state)
        with _state_lock:
            self._key, self._counter = key, counter
        return self

    def __repr__(self) -> str:
        with _state_lock:
            key, counter = self._key, self._counter
        shown = "unseeded" if key is None else f"key={key:#x}, counter={counter}"
        return f"Generator({shown})"

    def __getstate__(self) -> dict[str, str]:
        return self.get_state()

    def __setstate__(self, state: dict[str, str]) -> None:
        self.set_state(state)

    def _seeded_key(self) -> int:
        if self._key is None:
            self._key = int.from_bytes(os.urandom(8), "little")
        return self._key


def manual_seed(seed: SupportsIndex) -> Generator:
    """Seed the process-wide generator and return it.

    >>> manual_seed(7)
    Generator(key=0x7, counter=0)
    """
    return default_generator.seed(seed)


class _Cursor:
    """A NumPy Philox bit generator and the (key, counter) at which its next block stands.

    NumPy increments its counter before it makes a block, so it is set to one less than ours.
    Building a bit generator costs ten times a small draw and moving one costs as much as a draw;
    consecutive draws need neither.
    """

    __slots__ = ("_counter_words", "_generator", "_key_words", "_state", "counter", "draw", "key")

    def __init__(self) -> None:
        self.key = self.counter = -1
        self._generator = np.random.Philox(key=0)
        self._key_words = np.zeros(2, np.uint64)
        self._counter_words = np.zeros(4, np.uint64)
        self._state: Any = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter_words, "key": self._key_words},
            "buffer": np.zeros(4, np.uint64),
            "buffer_pos": WORDS_PER_BLOCK,  # nothing buffered: the next word begins a block
            "has_uint32": 0,
            "uinteger": 0,
        }
        self.draw = self._generator.random_raw

    def move(self, key: int, counter: int) -> None:
        """Stand at the block ``(key, counter)``."""
        key = _checked_index("key", key, _KEY_LIMIT)
        before = (_checked_index("counter", counter, _COUNTER_LIMIT) - 1) % _COUNTER_LIMIT
        self._key_words[:] = [key & _MASK64, key >> 64]
        self._counter_words[:] = [(before >> shift) & _MASK64 for shift in (0, 64, 128, 192)]
        self._generator.state = self._state
        self.key = key


class _ThreadCursors(threading.local):
    """Idle cursors of one thread.

    A draw takes its cursor out of the list and puts it back when done: an interrupt between the two
    loses the cursor instead of leaving it at an unknown place, and a signal handler that draws
    takes another one.
    """

    def __init__(self) -> None:
        self.free: list[_Cursor] = []


def _checked_seed(seed: SupportsIndex) -> int:
    return _checked_index("seed", seed, _GENERATOR_LIMIT)


def _checked_index(name: str, value: SupportsIndex, limit: int) -> int:
    """Return ``value`` as an int in [0, limit), or say what is wrong with it."""
    wanted = f"{name} must be an integer from 0 to 2**{limit.bit_length() - 1} - 1"
    if isinstance(value, bool | np.bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{wanted}. Received: {value!r} of type {type(value).__name__}")
    number = operator.index(value)
    if not 0 <= number < limit:
        raise ArgumentError(f"{wanted}. Received: {number}")
    return number


def _reserve_error(start: int, n_blocks: int) -> Exception:
    if n_blocks < 0:
        return ArgumentError(f"n_blocks must not be negative. Received: {n_blocks}")
    return OverflowError(
        f"the generator stands at block {start} and cannot give {n_blocks} more: it has 2**64 in "
        "all; seed it anew or use fork()"
    )


def _parsed_state(state: dict[str, str]) -> tuple[int, int]:
    try:
        algorithm = state["algorithm"]
        key, counter = int(state["key"], 16), int(state["counter"], 16)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            "state must be a dictionary from Generator.get_state() with 'algorithm' and the "
            f"hexadecimal strings 'key' and 'counter'. Received: {state!r}"
        ) from error
    if algorithm != _ALGORITHM:
        raise ArgumentError(f"state must be of algorithm {_ALGORITHM!r}. Received: {algorithm!r}")
    counter = _checked_index("counter", counter, _GENERATOR_LIMIT + 1)
    return _checked_index("key", key, _KEY_LIMIT), counter


_cursors = _ThreadCursors()

# One lock for all generators: it is held for well under a microsecond, and a single lock can be
# taken around os.fork, so that no child inherits it locked by a thread it does not have.
_state_lock = fork_safe_lock("random")

default_generator: Final = Generator()
