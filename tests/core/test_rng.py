"""Hold Philox to its published answers and the generator to its contract."""

import copy
import json
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from multiprocessing.connection import Connection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core import rng
from weft.core.rng import Generator, manual_seed, multiply_high, philox_bits, philox_blocks

MASK = (1 << 64) - 1


def philox_block(key: int, counter: int) -> list[int]:
    """Return one Philox4x64-10 block, straight from the paper, in Python integers."""
    c = [(counter >> shift) & MASK for shift in (0, 64, 128, 192)]
    k0, k1 = key & MASK, key >> 64
    for _ in range(10):
        product0, product1 = c[0] * 0xD2E7470EE14C6C93, c[2] * 0xCA5A826395121157
        c = [
            (product1 >> 64) ^ c[1] ^ k0,
            product1 & MASK,
            (product0 >> 64) ^ c[3] ^ k1,
            product0 & MASK,
        ]
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return c


def join(*words: int) -> int:
    return sum(word << (64 * i) for i, word in enumerate(words))


# The known-answer vectors published with Random123 (key, counter, block).
KNOWN_ANSWERS = [
    (
        0,
        0,
        [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B],
    ),
    (
        (1 << 128) - 1,
        (1 << 256) - 1,
        [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0],
    ),
    (
        join(0x452821E638D01377, 0xBE5466CF34E90C6C),
        join(0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6],
    ),
]


@pytest.mark.parametrize(("key", "counter", "block"), KNOWN_ANSWERS)
def test_known_answers(key: int, counter: int, block: list[int]) -> None:
    assert philox_block(key, counter) == block
    assert philox_bits(key, counter, 4).tolist() == block


@given(key=st.integers(0, 2**128 - 1), counter=st.integers(0, 2**256 - 1), n=st.integers(0, 13))
def test_bits_are_the_blocks_from_counter_on(key: int, counter: int, n: int) -> None:
    blocks = [philox_block(key, (counter + i) % 2**256) for i in range(4)]
    bits = philox_bits(key, counter, n)
    assert bits.dtype == np.uint64
    assert bits.tolist() == list(chain(*blocks))[:n]


@given(
    key=st.integers(0, 2**128 - 1),
    counters=st.lists(st.integers(0, 2**64 - 1), max_size=5),
    domain=st.integers(0, 2**64 - 1),
)
def test_scattered_blocks(key: int, counters: list[int], domain: int) -> None:
    blocks = philox_blocks(key, np.array(counters, np.uint64), domain=domain)
    assert blocks.shape == (len(counters), 4)
    assert blocks.tolist() == [philox_block(key, c + (domain << 64)) for c in counters]


@given(x=st.integers(0, MASK), factor=st.integers(0, MASK) | st.integers(0, 2**32))
def test_multiply_high(x: int, factor: int) -> None:
    assert multiply_high(np.array([x], np.uint64), factor).tolist() == [x * factor >> 64]


def test_draws_do_not_depend_on_the_order_in_which_they_are_made() -> None:
    whole = philox_bits(9, 100, 400)
    pieces = {start: philox_bits(9, 100 + start // 4, 40) for start in (360, 0, 40, 80, 40, 200)}
    for start, piece in pieces.items():
        assert np.array_equal(piece, whole[start : start + 40])


def test_an_odd_draw_leaves_the_rest_of_its_last_block_unused() -> None:
    first, second = philox_bits(3, 0, 5), philox_bits(3, 2, 4)
    assert first.tolist() == (philox_block(3, 0) + philox_block(3, 1))[:5]
    assert second.tolist() == philox_block(3, 2)


def test_results_are_not_overwritten_by_later_draws() -> None:
    first = philox_bits(1, 0, 4)
    kept = first.copy()
    philox_bits(1, 1, 4)
    assert np.array_equal(first, kept)


def test_threads_that_mix_keys_and_counters_draw_what_one_thread_draws() -> None:
    jobs = [(key, counter) for counter in range(200) for key in range(5)]
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda job: philox_bits(*job, 7).tolist(), jobs))
    assert drawn == [(philox_block(k, c) + philox_block(k, c + 1))[:7] for k, c in jobs]


def test_a_failed_draw_leaves_later_draws_correct() -> None:
    philox_bits(4, 0, 4)
    with pytest.raises(ValueError, match=r"n must not be negative\. Received: -1"):
        philox_bits(4, 1, -1)
    assert philox_bits(4, 1, 4).tolist() == philox_block(4, 1)


@pytest.mark.parametrize(
    ("key", "counter", "error", "message"),
    [
        (-1, 0, ValueError, r"key must be an integer from 0 to 2\*\*128 - 1. Received: -1"),
        (2**128, 0, ValueError, "key"),
        (0, -1, ValueError, r"counter must be an integer from 0 to 2\*\*256 - 1. Received: -1"),
        (0, 2**256, ValueError, "counter"),
        (0.5, 0, TypeError, "Received: 0.5 of type float"),
        (0, None, TypeError, "Received: None of type NoneType"),
    ],
)
def test_bad_key_or_counter(key: int, counter: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        philox_bits(key, counter, 4)


def test_reserve_hands_out_consecutive_ranges() -> None:
    generator = Generator(5)
    assert [generator.reserve(n) for n in (3, 0, 2, 1)] == [(5, 0), (5, 3), (5, 3), (5, 5)]
    assert repr(generator) == "Generator(key=0x5, counter=6)"


def test_reserve_from_many_threads_never_hands_out_a_block_twice() -> None:
    generator = Generator(0)
    with ThreadPoolExecutor(8) as pool:
        ranges = list(pool.map(lambda n: (generator.reserve(n)[1], n), [1, 2, 3] * 700))
    blocks = [start + i for start, n in ranges for i in range(n)]
    assert sorted(blocks) == list(range(6 * 700))


def test_reserve_refuses_negative_and_exhausting_ranges() -> None:
    generator = Generator(1)
    with pytest.raises(ValueError, match=r"n_blocks must not be negative\. Received: -1"):
        generator.reserve(-1)
    assert generator.reserve(2**64) == (1, 0)
    with pytest.raises(OverflowError, match="cannot give 1 more"):
        generator.reserve(1)
    assert generator.set_state(generator.get_state()).reserve(0) == (1, 2**64)


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1, np.uint64(2**64 - 1), np.int8(3)])
def test_seed_is_the_key(seed: int) -> None:
    generator = Generator(99)
    generator.reserve(10)
    assert generator.seed(seed) is generator
    assert generator.reserve(1) == (int(seed), 0)
    assert Generator(seed).reserve(1) == (int(seed), 0)


@pytest.mark.parametrize(
    ("seed", "error"),
    [
        (-1, ValueError),
        (2**64, ValueError),
        (1.0, TypeError),
        ("1", TypeError),
        (None, TypeError),
        (True, TypeError),
        (np.bool(True), TypeError),
        (np.array([1, 2]), TypeError),
    ],
)
def test_bad_seed_is_refused_and_changes_nothing(seed: int, error: type[Exception]) -> None:
    generator = Generator(8)
    generator.reserve(2)
    with pytest.raises(error):
        generator.seed(seed)
    assert generator.reserve(0) == (8, 2)


def test_bad_seed_message() -> None:
    with pytest.raises(
        ValueError, match=r"seed must be an integer from 0 to 2\*\*64 - 1. Received: -3"
    ):
        manual_seed(-3)


def test_unseeded_generators_seed_themselves_once_and_differ() -> None:
    first, second = Generator(), Generator()
    assert repr(first) == "Generator(unseeded)"
    key, counter = first.reserve(1)
    assert counter == 0
    assert first.reserve(1) == (key, 1)
    assert second.reserve(1)[0] != key


def test_state_survives_json() -> None:
    generator = Generator(2**64 - 1).fork(3)
    generator.reserve(12345)
    state = json.loads(json.dumps(generator.get_state()))
    expected = generator.reserve(7)
    restored = Generator()
    assert restored.set_state(state) is restored
    assert restored.reserve(7) == expected
    assert set(state) == {"algorithm", "key", "counter"}


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_continue_independently(clone: Callable[[Generator], Generator]) -> None:
    generator = Generator(6)
    generator.reserve(4)
    other = clone(generator)
    assert other.reserve(1) == generator.reserve(1) == (6, 4)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"algorithm": "philox4x64-10", "key": "0x1"},
        {"algorithm": "philox4x64-10", "key": "zebra", "counter": "0x0"},
        {"algorithm": "philox4x64-10", "key": 1, "counter": 2},
        {"algorithm": "mt19937", "key": "0x1", "counter": "0x0"},
        {"algorithm": "philox4x64-10", "key": "-0x1", "counter": "0x0"},
        {"algorithm": "philox4x64-10", "key": "0x1", "counter": "0x20000000000000000"},
        None,
    ],
)
def test_bad_state_is_refused_and_changes_nothing(state: dict[str, str]) -> None:
    generator = Generator(8)
    with pytest.raises(ValueError, match="Received"):
        generator.set_state(state)
    assert generator.reserve(0) == (8, 0)


def test_fork_depends_on_key_and_stream_only() -> None:
    parent = Generator(11)
    before = parent.fork(0).reserve(1)
    parent.reserve(1000)
    assert parent.fork(0).reserve(1) == before
    assert parent.reserve(0) == (11, 1000)
    low, high, *_ = philox_block(11, 2**192)
    assert before == (low | high << 64, 0)


def test_forks_differ_from_each_other_and_from_their_children() -> None:
    parent = Generator(0)
    children = [parent.fork(i) for i in range(50)]
    grandchildren = [child.fork(i) for child in children for i in range(3)]
    keys = {g.reserve(1)[0] for g in [parent, *children, *grandchildren]}
    assert len(keys) == 1 + 50 + 150


@pytest.mark.parametrize(
    ("stream", "error"), [(-1, ValueError), (2**64, ValueError), (0.0, TypeError)]
)
def test_bad_stream(stream: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="stream must be an integer from 0"):
        Generator(0).fork(stream)


def test_manual_seed_restarts_the_default_generator() -> None:
    state = rng.default_generator.get_state()
    try:
        assert manual_seed(123) is rng.default_generator
        assert rng.default_generator.reserve(2) == (123, 0)
    finally:
        rng.default_generator.set_state(state)


def _report_next(generator: Generator, sender: Connection) -> None:
    sender.send((generator.reserve(1), philox_bits(4, 0, 2).tolist()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # the case under test
def test_a_forked_process_keeps_the_stream_and_cannot_inherit_a_held_lock() -> None:
    generator = Generator(4)
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [repr(generator) for _ in iter(stop.is_set, True)])
    busy.start()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_report_next, args=(generator, sender))
    child.start()
    try:
        assert receiver.poll(60), "the child hangs"
        assert receiver.recv() == ((4, 0), philox_block(4, 0)[:2])
    finally:
        stop.set()
        busy.join()
        child.join()
