"""The API's description: what FastAPI makes of the routes, put right where it is not quite so."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from dbcare.server.problems import MEDIA_TYPE


def described(app: FastAPI) -> dict[str, Any]:
    """Errors with the type of content that they are sent with, and pairs of numbers as lists of two."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        for methods in schema["paths"].values():
            for operation in methods.values():
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
