"""Reader of `/metrics` with the Prometheus parser."""

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.polling import until


def families(text: str) -> dict[str, Metric]:
    """Return the metrics by the name that code and documentation use."""
    return {
        metric.name + "_total" * (metric.type == "counter"): metric for metric in text_string_to_metric_families(text)
    }


def value(text: str, name: str, **labels: str) -> float:
    """Return the sum of the samples with this name and at least these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


class Scrape:
    """Metrics of a server, read with its owner's key."""

    def __init__(self, base_url: str, owner_key: str) -> None:
        self._url = f"{base_url}/metrics"
        self._headers = {"X-API-Key": owner_key}

    def text(self) -> str:
        answer = httpx.get(self._url, headers=self._headers, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.text

    def value(self, name: str, **labels: str) -> float:
        return value(self.text(), name, **labels)

    def wait_until(self, name: str, expected: float) -> None:
        """Poll until the value is as expected; it changes within seconds, or never."""
        until(lambda: self.value(name) == expected)
