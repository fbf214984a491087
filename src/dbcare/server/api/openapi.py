"""Build the OpenAPI schema, correcting FastAPI's output."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from dbcare.server.problems import MEDIA_TYPE

OPEN_PATHS = ("/healthz",)
KEY_HELP = "An API key, created with `dbcare keys create`."


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the schema with the key that each route requires, errors under their content type, and pairs as lists."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": KEY_HELP}}
        for path, methods in schema["paths"].items():
            for operation in methods.values():
                operation["security"] = [] if path in OPEN_PATHS else [{"key": []}]
                for code, response in operation["responses"].items():
                    content = response.get("content")
                    if int(code) >= HTTPStatus.BAD_REQUEST and content:
                        response["content"] = {MEDIA_TYPE: next(iter(content.values()))}
        for component in schema["components"]["schemas"].values():
            # Docstrings of the library go on with parameters and examples for Python.
            component["description"] = component.get("description", "").partition("\n\nParameters\n")[0]
        app.openapi_schema = _replace_tuples(schema)
    return app.openapi_schema


def _replace_tuples(node: Any) -> Any:
    """Replace tuples, whose items are all of one type here, by lists: few client generators know `prefixItems`."""
    if isinstance(node, list):
        return [_replace_tuples(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _replace_tuples(item) for name, item in node.items() if name != "prefixItems"}
    if "prefixItems" in node:
        plain["items"] = node["prefixItems"][0]
    return plain
