"""A server with a key of each role, and a check of its refusals, for tests of the API."""

from dataclasses import dataclass

import httpx2 as httpx

STUDY = {"name": "ads", "arms": ["A", "B"], "price": 0.4, "value": 20_000, "sigma": 0.5}


@dataclass
class ApiServer:
    """A running server, and a key of each role."""

    url: str
    storage: str
    keys: dict[str, str]

    def client(self, role: str | None = "admin") -> httpx.Client:
        """Return a client with the key of a role, or without a key."""
        headers = {} if role is None else {"Authorization": f"Bearer {self.keys[role]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60.0)


def assert_refused(response: httpx.Response, status: int, words: str) -> None:
    """Check that a response is a problem with that status, and has those words in its detail."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert {"type", "title", "detail"} <= set(problem)
    assert words in problem["detail"]
