"""What is counted, and that the page is in Prometheus's format."""

import re

from weft.serve.metrics import Histogram, Metrics

LINE = re.compile(r'(weft|process)_[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+-]+')


def test_histogram_is_cumulative_and_bounds_belong_to_it():
    histogram = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 9):
        histogram.observe(value)
    assert list(histogram.lines("h")) == [
        'h_bucket{le="1"} 2',
        'h_bucket{le="2"} 3',
        'h_bucket{le="+Inf"} 4',
        "h_sum 12",
        "h_count 4",
    ]


def test_quantiles():
    metrics = Metrics()
    assert metrics.quantiles() == {}
    for i in range(100):
        metrics.observe_request(200, i / 100)
    assert metrics.quantiles() == {0.5: 0.5, 0.9: 0.9, 0.99: 0.99}


def test_page():
    metrics = Metrics()
    metrics.observe_request(200, 0.01)
    metrics.observe_request(400, 0.001)
    metrics.observe_batch(3, 0.005, [0.001, 0.002])
    text = metrics.text([("queue_items", "items that wait", 7)])
    assert text.endswith("\n")
    lines = text.splitlines()
    assert all(line.startswith("# ") or LINE.fullmatch(line) for line in lines)
    for expected in (
        'weft_requests_total{status="200"} 1',
        'weft_requests_total{status="400"} 1',
        "weft_items_total 3",
        "weft_batches_total 1",
        'weft_batch_size_bucket{le="2"} 0',
        'weft_batch_size_bucket{le="4"} 1',
        "weft_queue_items 7",
        "weft_latency_seconds_count 2",
    ):
        assert expected in lines
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(named) == len(set(named))
