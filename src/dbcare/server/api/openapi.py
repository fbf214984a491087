"""Build the OpenAPI schema, correcting FastAPI's output."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from dbcare.server.problems import MEDIA_TYPE

PARAMETER = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?: {4}.*(?:\n|\Z))+)", re.MULTILINE)  # in a docstring
NONE = re.compile(r"\bNone\b")


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the schema with the role that each route requires, errors under their content type, and pairs as lists."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        for methods in schema["paths"].values():
            for operation in methods.values():
                operation.setdefault("security", [])  # open to everyone
                for code, response in operation["responses"].items():
                    content = response.get("content")
                    if int(code) >= HTTPStatus.BAD_REQUEST and content:
                        response["content"] = {MEDIA_TYPE: next(iter(content.values()))}
        for component in schema["components"]["schemas"].values():
            _move_descriptions(component)
        app.openapi_schema = _replace_tuples(schema)
    return app.openapi_schema


def _move_descriptions(component: dict[str, Any]) -> None:
    """Give fields what a docstring of the library says about them; of the docstring, only the beginning stays."""
    component["description"], _, rest = component.get("description", "").partition("\n\nParameters\n")
    parameters = rest.partition("\n\n")[0]
    properties = component.get("properties", {})
    for names, text in PARAMETER.findall(parameters):
        for name in names.split(", "):
            if name in properties:
                properties[name].setdefault("description", NONE.sub("null", " ".join(text.split())))


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
