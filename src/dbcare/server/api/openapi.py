"""The API's description: what FastAPI makes of the routes, put right where it is not quite so."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from dbcare.server.problems import MEDIA_TYPE

OPEN = ("/healthz",)
KEY = "An API key, made with `dbcare keys create`."


def described(app: FastAPI) -> dict[str, Any]:
    """With the keys that routes need, errors in the type of content that they are sent with, and pairs as lists."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": KEY}}
        for path, methods in schema["paths"].items():
            for operation in methods.values():
                operation["security"] = [] if path in OPEN else [{"key": []}]
                for code, answer in operation["responses"].items():
                    content = answer.get("content")
                    if int(code) >= HTTPStatus.BAD_REQUEST and content:
                        answer["content"] = {MEDIA_TYPE: next(iter(content.values()))}
        app.openapi_schema = _without_tuples(schema)
    return app.openapi_schema


def _without_tuples(node: Any) -> Any:
    """Generators of clients know lists, and few of them `prefixItems`; ours are all of one type."""
    if isinstance(node, list):
        return [_without_tuples(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _without_tuples(each) for name, each in node.items() if name != "prefixItems"}
    if "prefixItems" in node:
        plain["items"] = node["prefixItems"][0]
    return plain
