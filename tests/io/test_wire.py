"""The wire format of protocol buffers: against its definition, and on damaged messages."""

import random
from functools import reduce

import numpy as np
import pytest

from weft.core.errors import WeftError
from weft.io import wire
from weft.io.wire import Message, MessageWriter, WireError, read_varint, unpack_varints, varint

NUMBERS = (0, 1, 127, 128, 300, 2**31 - 1, 2**32, 2**63 - 1, 2**64 - 1)


@pytest.mark.parametrize("value", NUMBERS)
def test_varints_there_and_back(value):
    assert read_varint(b"x" + varint(value) + b"x", 1) == (value, 1 + len(varint(value)))


def test_packed_varints_are_read_at_once():
    chance = random.Random(0)
    values = [chance.getrandbits(chance.randrange(65)) for _ in range(500)]
    found = unpack_varints(b"".join(map(varint, values)))
    assert found.tolist() == values
    assert unpack_varints(b"").tolist() == []
    for damaged in (b"\x80", b"\x01\xff", b"\x80" * 10 + b"\x01", b"\xff" * 9 + b"\x02"):
        assert unpack_varints(damaged) is None


def test_every_type_there_and_back():
    made = (
        MessageWriter()
        .varint(1, -5)
        .zigzag(2, -5)
        .fixed32(3, 7)
        .fixed64(4, 8)
        .float32(5, 0.5)
        .float64(6, 0.1)
        .raw(7, b"\0\1")
        .text(8, "äb")
        .message(9, MessageWriter().varint(1, 3))
        .varint(10, True)
        .packed_doubles(11, [0.1, 0.2])
        .packed_varints(12, [1, -1, 300])
    )
    message = Message(made.content())
    assert message.integer(1) == -5
    assert message.unsigned(1) == 2**64 - 5
    assert message.zigzag(2) == -5
    assert (message.fixed32(3), message.fixed64(4)) == (7, 8)
    assert (message.float32(5), message.float64(6)) == (0.5, 0.1)
    assert (message.raw(7), message.text(8)) == (b"\0\1", "äb")
    assert message.message(9).integer(1) == 3
    assert message.boolean(10)
    assert message.doubles(11).tolist() == [0.1, 0.2]
    assert message.integers(12).tolist() == [1, -1, 300]
    assert message.numbers() == list(range(1, 13))


def test_bytes_of_the_definition():
    """The examples of the format's own description."""
    assert Message(bytes.fromhex("089601")).integer(1) == 150
    assert Message(bytes.fromhex("120774657374696e67")).text(2) == "testing"
    assert Message(bytes.fromhex("1a03089601")).message(3).integer(1) == 150
    assert Message(bytes.fromhex("3206038e029ea705")).integers(6).tolist() == [3, 270, 86942]


def test_defaults_of_what_is_missing():
    message = Message(b"")
    assert message.integer(1, 4) == 4
    assert message.zigzag(1, -2) == -2
    assert message.float32(1, 2.5) == 2.5
    assert message.text(1, "x") == "x"
    assert message.raw(1, b"x") == b"x"
    assert message.boolean(1, True)
    assert message.message(1) is None
    assert message.floats(1).dtype == np.float32
    assert message.integers(1).tolist() == message.texts(1) == list(message.views(1)) == []
    assert 1 not in message
    assert message.count(1) == 0


def test_the_last_value_stands_and_lists_may_be_packed_or_not():
    made = MessageWriter().varint(1, 1).varint(1, 2).packed_varints(1, [3, 4]).varint(1, 5)
    message = Message(made.content())
    assert message.integer(1) == 5
    assert message.integers(1).tolist() == [1, 2, 3, 4, 5]
    assert message.count(1) == 4
    floats = Message(
        MessageWriter().float32(2, 1.5).packed_floats(2, [2, 3]).float32(2, 4).content()
    )
    assert floats.floats(2).tolist() == [1.5, 2, 3, 4]


def test_a_packed_list_of_numbers_is_a_view():
    data = MessageWriter().packed_floats(1, np.ones(1000)).content()
    assert not Message(data).floats(1).flags.owndata


def test_messages_that_come_in_parts_are_joined():
    made = (
        MessageWriter()
        .message(1, MessageWriter().varint(1, 3))
        .message(1, MessageWriter().varint(2, 4))
    )
    joined = Message(made.content()).message(1)
    assert (joined.integer(1), joined.integer(2)) == (3, 4)
    assert [m.numbers() for m in Message(made.content()).messages(1)] == [[1], [2]]


def test_maps():
    made = MessageWriter()
    for key, value in (("a", 1), ("b", 2), ("a", 3)):
        made.message(1, MessageWriter().text(1, key).message(2, MessageWriter().varint(1, value)))
    made.message(1, MessageWriter().text(1, "c"))
    found = Message(made.content()).map(1)
    assert {key: value.integer(1) for key, value in found.items()} == {"a": 3, "b": 2, "c": 0}


def test_groups_are_passed_over():
    group = bytes.fromhex("0b 10 05 1b 08 01 1c 0c")  # 1 { 2: 5, 3 { 1: 1 } }
    assert Message(group + MessageWriter().varint(5, 6).content()).integer(5) == 6


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ("80", "offset 0: a varint was cut off"),
        ("80" * 11, "longer than 10 bytes"),
        ("08" + "ff" * 9 + "7f", "offset 1: a varint is larger than 64 bits"),
        ("00", "offset 0: message: expected a field, found number 0 of wire type 0"),
        ("0e", "wire type 6"),
        ("0a05 00", r"offset 2: message: field 1 claims 5 bytes, and 1 are left"),
        ("0a ffffffffffffffffff01", "claims 18446744073709551615 bytes"),
        ("0d 0000", "claims 4 bytes, and 2"),
        ("09 0000", "claims 8 bytes, and 2"),
        ("0c", "a group of number 1 ends that never began"),
        ("0b", "the group of number 1 does not end"),
        ("0b14", "a group of number 2 ends"),
        ("0b" * 200, "groups are nested more than 100 deep"),
    ],
)
def test_damage_is_named_with_its_offset(data, match):
    with pytest.raises(WireError, match=match):
        Message(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("made", "read", "match"),
    [
        (
            MessageWriter().varint(1, 2),
            lambda m: m.text(1),
            "field 1 should be bytes .*found a varint",
        ),
        (MessageWriter().text(1, "x"), lambda m: m.integer(1), "should be a varint; found bytes"),
        (
            MessageWriter().float32(1, 2),
            lambda m: m.integers(1),
            "should be a varint; found four bytes",
        ),
        (
            MessageWriter().raw(1, b"12345"),
            lambda m: m.floats(1),
            "5 bytes, no whole number of values",
        ),
        (MessageWriter().raw(1, b"\x80"), lambda m: m.integers(1), "offset 2: .*list of varints"),
        (MessageWriter().raw(1, b"a\xff"), lambda m: m.text(1), "offset 3: .*UTF-8"),
        (MessageWriter().raw(1, b"\0"), lambda m: m.message(1), "offset 2: field 1 of message"),
    ],
)
def test_fields_of_other_types_are_named(made, read, match):
    with pytest.raises(WireError, match=match):
        read(Message(made.content()))


def test_deep_messages_end():
    data = b""
    for _ in range(300):
        data = MessageWriter().raw(1, data).content()
    with pytest.raises(WireError, match="nested more than 100 deep"):
        reduce(lambda message, _: message.message(1), range(300), Message(data))


def test_damage_gives_errors_of_our_own():
    made = MessageWriter().text(1, "name").packed_floats(2, [1, 2]).packed_varints(3, range(200))
    made.message(4, MessageWriter().varint(1, 2).text(2, "inner"))
    whole = made.content()
    chance = random.Random(0)
    reads = [lambda m, f=f, n=n: f(m, n) for f in GETTERS for n in (1, 2, 3, 4)]
    for _ in range(400):
        data = bytearray(whole)
        data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            message = Message(data[: chance.randrange(1, len(data) + 1)])
        except WeftError:
            continue
        for read in reads:
            try:
                read(message)
            except WeftError as error:
                assert "offset" in str(error)  # noqa: PT017  (any of them may raise)


GETTERS = (Message.integer, Message.text, Message.floats, Message.integers, Message.message)


def test_the_module_is_public():
    assert wire.Message is Message
