"""Heads that are plain, and those that are left to the full parser."""

import pytest

from weft.serve.heads import MOST_PLAIN_BYTES, Remembered, read_head

LINE = b"POST /v1/predict HTTP/1.1"


def head(*fields, line=LINE):
    return b"\r\n".join([line, *fields])


def test_fields_the_query_and_the_length():
    plain = read_head(
        head(
            b"Host: x",
            b"X-Weft-Shape:  1, 4 ",
            b"Content-Length: 16",
            line=LINE[:16] + b"?top=3" + LINE[16:],
        )
    )
    assert plain is not None
    assert dict(plain.fields) == {"host": "x", "x-weft-shape": "1, 4", "content-length": "16"}
    assert (plain.query, plain.length, plain.keep_alive) == ("top=3", 16, True)
    closing = read_head(head(b"Content-Length: 0", b"Connection: Close"))
    assert closing is not None
    assert not closing.keep_alive


@pytest.mark.parametrize(
    "odd",
    [
        head(b"Content-Length: 1", line=b"GET /v1/predict HTTP/1.1"),
        head(b"Content-Length: 1", line=b"POST /v1/predict HTTP/1.0"),
        head(b"Content-Length: 1", line=b"POST /v1/predicts HTTP/1.1"),
        head(b"Content-Length: 1", line=b"POST /v1/predict#a HTTP/1.1"),
        head(b"Host: x"),  # no length
        head(b"Content-Length: +1"),
        head(b"Content-Length: 1e3"),
        head(b"Content-Length: " + b"1" * 10),
        head(b"Content-Length: 1", b"content-length: 2"),
        head(b"Content-Length: 1", b"Transfer-Encoding: chunked"),
        head(b"Content-Length: 1", b"Expect: 100-continue"),
        head(b"Content-Length: 1", b"Connection: upgrade", b"Upgrade: websocket"),
        head(b"Content-Length: 1", b"Connection: keep-alive, te"),
        head(b"Content-Length: 1", b" folded"),
        head(b"Content-Length: 1", b"no colon"),
        head(b"Content-Length : 1"),
        head(b"Content-Length: 1", b"X: \xff"),
        head(b"Content-Length: 1", b"X: a\nb: c"),
        head(b"Content-Length: 1", b"X: " + b"a" * MOST_PLAIN_BYTES),
        b"",
    ],
)
def test_what_is_left_to_the_full_parser(odd):
    assert read_head(odd) is None


def test_heads_are_read_once_and_not_kept_without_end():
    made = []
    remembered = Remembered(lambda plain: made.append(plain) or plain.length)
    first = head(b"Content-Length: 7")
    assert [remembered[first], remembered[first], len(made)] == [7, 7, 1]
    for i in range(1000):
        remembered[head(b"X: %d" % i, b"Content-Length: 8")]
        remembered[head(b"X: %d" % i)]
    assert len(remembered) <= 256
    long = head(b"X: " + b"a" * MOST_PLAIN_BYTES)
    assert remembered[long] is None
    assert long not in remembered
