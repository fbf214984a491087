"""A server with a key of each role, for tests of its API."""

from dataclasses import dataclass

import httpx2 as httpx

STUDY = {"name": "ads", "arms": ["A", "B"], "price": 0.4, "value": 20_000, "sigma": 0.5}


@dataclass
class Running:
    """A server, and a key of each role."""

    url: str
    storage: str
    keys: dict[str, str]

    def client(self, role: str | None = "admin") -> httpx.Client:
        headers = {} if role is None else {"Authorization": f"Bearer {self.keys[role]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60.0)


def refused(answer: httpx.Response, status: int, words: str) -> None:
    """Problem details, in these words."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert {"type", "title", "detail"} <= set(body)
    assert words in body["detail"]
