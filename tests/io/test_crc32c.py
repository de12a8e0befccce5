"""CRC-32C: against published values, and one byte at a time."""

import random

import numpy as np
import pytest

from weft.io import crc32c
from weft.io.crc32c import mask, masked_crc32c, unmask

POLYNOMIAL = 0x82F63B78


def by_bits(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),  # of RFC 3720, appendix B.4
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_published_values(data, expected):
    assert crc32c.crc32c(data) == expected


@pytest.mark.parametrize("size", [1, 3, 4, 31, 33, 100, 1023, 1024, 1025, 3000, 300_000])
def test_every_size_and_in_two_parts(size):
    data = random.Random(size).randbytes(size)
    expected = (
        by_bits(data) if size < 5000 else crc32c.crc32c(data[777:], crc32c.crc32c(data[:777]))
    )
    assert crc32c.crc32c(data) == expected
    assert crc32c.crc32c(data[size // 3 :], crc32c.crc32c(data[: size // 3])) == expected
    assert crc32c.crc32c(np.frombuffer(data, np.uint8)) == expected
    assert crc32c.crc32c(memoryview(data)) == expected


def test_masks():
    for value in (0, 1, 0xFFFFFFFF, 0x8A9136AA):
        assert unmask(mask(value)) == value
    assert masked_crc32c(bytes(32)) == mask(0x8A9136AA) != 0x8A9136AA
