"""The API's description: as OpenAPI, and as a reference to read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
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


OPEN_TO_ALL = "everyone"
PLURALS = {"string": "strings", "number": "numbers", "integer": "integers", "object": "objects"}


@dataclass(frozen=True)
class TypePart:
    """A piece of a type in words; `schema` is the name of the schema that it mentions, if any."""

    text: str
    schema: str = ""


@dataclass(frozen=True)
class Field:
    """A parameter of a request, or a field of an object."""

    name: str
    kind: tuple[TypePart, ...]
    description: str
    is_required: bool  # in a request
    default: str  # as JSON; empty without one
    place: str = ""  # of a parameter: path, query or header


@dataclass(frozen=True)
class Schema:
    """An object in a request or a response."""

    name: str
    description: str
    fields: tuple[Field, ...]
    example: str  # as JSON; empty without one


@dataclass(frozen=True)
class DescribedRoute:
    """A method of a path."""

    method: str
    path: str
    role: str  # least role that may call it
    description: str
    parameters: tuple[Field, ...]
    body: str  # name of a schema; empty without a body
    status: str
    response: tuple[TypePart, ...]  # empty without content

    @property
    def anchor(self) -> str:
        """Return a name for links, such as post-v1-studies-name-ask."""
        return "-".join([self.method.lower(), *self.path.replace("{", "").replace("}", "").strip("/").split("/")])


@dataclass(frozen=True)
class ApiReference:
    """Everything that the description says, in the order of paths."""

    version: str
    description: str
    operations: dict[str, tuple[DescribedRoute, ...]]  # by tag
    schemas: tuple[Schema, ...]


def build_reference(description: dict[str, Any]) -> ApiReference:
    """Return an OpenAPI description as people read it."""
    operations: dict[str, list[DescribedRoute]] = {}
    for path, methods in sorted(description["paths"].items()):
        for method, operation in methods.items():
            operations.setdefault(operation["tags"][0], []).append(_read_operation(method, path, operation))
    bodies = [
        each["requestBody"]
        for methods in description["paths"].values()
        for each in methods.values()
        if "requestBody" in each
    ]
    schemas = description["components"]["schemas"]
    sent = _find_schemas(bodies, schemas)
    return ApiReference(
        version=description["info"]["version"],
        description=description["info"]["description"].strip(),
        operations={tag: tuple(each) for tag, each in sorted(operations.items(), key=lambda item: -len(item[1]))},
        schemas=tuple(_read_schema(name, node, name in sent) for name, node in sorted(schemas.items())),
    )


def _find_schemas(node: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of all schemas that a node mentions, or that those mention."""
    if isinstance(node, list):
        return set().union(*(_find_schemas(each, schemas) for each in node))
    if not isinstance(node, dict):
        return set()
    found = set().union(*(_find_schemas(each, schemas) for each in node.values()))
    if "$ref" in node:
        name = _name_schema(node["$ref"])
        found |= {name} | _find_schemas(schemas[name], schemas)
    return found


def _read_operation(method: str, path: str, operation: dict[str, Any]) -> DescribedRoute:
    status, response = next(item for item in operation["responses"].items() if item[0].startswith("2"))
    roles = [role for scheme in operation["security"] for names in scheme.values() for role in names]
    body = _find_json(operation.get("requestBody", {}))
    parameters = [_read_field(each["name"], each["schema"], each) for each in operation.get("parameters", ())]
    return DescribedRoute(
        method=method.upper(),
        path=path,
        role=roles[0] if roles else OPEN_TO_ALL,
        description=operation["description"],
        parameters=tuple(parameters),
        body=_name_schema(body["$ref"]) if body else "",
        status=status,
        response=_describe_content(response.get("content", {})),
    )


def _find_json(content_holder: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content_holder.get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _describe_content(content: dict[str, Any]) -> tuple[TypePart, ...]:
    """Return what a response carries: the type of its JSON, and the names of other formats."""
    schema = content.get("application/json", {}).get("schema")
    others = [media_type for media_type in content if media_type != "application/json"]
    parts = [] if schema is None else _describe_type(schema)
    if others:
        parts.append(TypePart((" or " if parts else "") + " or ".join(others)))
    return tuple(parts)


def _read_schema(name: str, node: dict[str, Any], is_sent: bool) -> Schema:
    required = set(node.get("required", ())) if is_sent else set()
    fields = [
        _read_field(field, schema, {"required": field in required}) for field, schema in node["properties"].items()
    ]
    examples = node.get("examples", ())
    example = json.dumps(examples[0]) if examples else ""
    return Schema(name, node.get("description", ""), tuple(fields), example)


def _read_field(name: str, schema: dict[str, Any], around: dict[str, Any]) -> Field:
    """Read a field from its schema and what stands around it: whether it is required, and where a parameter goes."""
    default = schema.get("default")
    return Field(
        name=name,
        kind=tuple(_describe_type(schema)),
        description=around.get("description", schema.get("description", "")),
        is_required=around["required"],
        default="" if default in (None, "", []) or "Default:" in schema.get("description", "") else json.dumps(default),
        place=around.get("in", ""),
    )


def _describe_type(node: dict[str, Any]) -> list[TypePart]:
    """Return a type in words, such as "list of numbers, 2 to 1,000 items, or null"."""
    if "$ref" in node:
        name = _name_schema(node["$ref"])
        return [TypePart(name, name)]
    if "anyOf" in node:
        parts: list[TypePart] = []
        for each in node["anyOf"]:
            parts += [TypePart(" or ")] * bool(parts) + _describe_type(each)
        return parts
    if "enum" in node or "const" in node:
        return [TypePart(" or ".join(json.dumps(value) for value in node.get("enum", [node.get("const")])))]
    kind = node.get("type", "any value")
    if kind == "array":
        items = node.get("items", {})
        inner_parts = [TypePart(PLURALS[items["type"]])] if items.get("type") in PLURALS else _describe_type(items)
        return [TypePart("list of "), *inner_parts, TypePart(_describe_limits(node))]
    inner = node.get("additionalProperties")
    if kind == "object" and isinstance(inner, dict):
        values = PLURALS.get(inner.get("type", ""), "")
        return [TypePart("object of "), *([TypePart(values)] if values else _describe_type(inner))]
    return [TypePart(kind + _describe_limits(node))]


def _describe_limits(node: dict[str, Any]) -> str:
    """Return the limits of a type in parentheses, such as " (1 to 200 characters)"."""
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        least, most = node.get(low), node.get(high)
        if least is not None and most is not None:
            return f" ({least:,g}{unit})" if least == most else f" ({least:,g} to {most:,g}{unit})"
        if most is not None:
            return f" (at most {most:,g}{unit})"
        if least is not None:
            return f" (at least {least:,g}{unit})"
    return ""


def _name_schema(reference: str) -> str:
    return reference.rpartition("/")[2]
