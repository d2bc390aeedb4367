"""What the gateway says of itself: its figures in Prometheus's form, and its description."""

from farthing_gateway.metrics import Metrics
from farthing_gateway.openapi import description


def test_latencies_of_a_model_are_shown_by_quantile() -> None:
    metrics = Metrics()
    for seconds in (1.0, 2.0, 3.0):
        metrics.begin()
        metrics.end("large", 200, seconds)
    lines = [line for line in metrics.text().decode().splitlines() if 'quantile="0.5"' in line]
    assert [line.endswith(" 2.0") and 'model="large"' in line for line in lines] == [True]


def test_every_body_that_is_described_must_be_sent() -> None:
    paths = description()["paths"].values()
    bodies = [how["requestBody"] for ways in paths for how in ways.values() if "requestBody" in how]
    assert len(bodies) > 1
    assert all(body["required"] is True for body in bodies)
