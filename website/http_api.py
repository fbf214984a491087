"""The page on the HTTP API, from the service's OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable

import jinja2

from dbcare.server.api.description import Field, TypePart, build_reference
from dbcare.server.app import make_app
from dbcare.studies.stores.memory import MemoryStore

PAGE = jinja2.Template(
    """# HTTP API

{{ reference.description }}

[The service](../service.md) says how to run it. A running service shows this page at `/docs`, to those who are signed
in, and its OpenAPI description at `/v1/openapi.json`.

| request | what it does | least role |
|---|---|---|
{% for operation in operations -%}
| [`{{ operation.method }} {{ operation.path }}`](#{{ operation.anchor }}) \
| {{ operation.description.split("\n")[0] }} | {{ operation.role }} |
{% endfor %}
{% for operation in operations %}
({{ operation.anchor }})=
## {{ operation.method }} {{ operation.path }}

{{ operation.description }}

Least role: {{ operation.role }}. {% if operation.body %}Body: [{{ operation.body }}](#schema-{{ operation.body }}). \
{% endif %}Response: {{ operation.status }}{% if operation.response %}, {{ kind(operation.response) }}\
{% else %}, no content{% endif %}.

{{ fields(operation.parameters) }}
{% endfor %}
# Objects of the HTTP API
{% for schema in reference.schemas %}
(schema-{{ schema.name }})=
## {{ schema.name }}

{{ schema.description }}
{% if schema.example %}
```json
{{ schema.example }}
```
{% endif %}
{{ fields(schema.fields) }}
{% endfor %}
""",
    autoescape=False,  # Markdown, from our own description
    undefined=jinja2.StrictUndefined,
)


def describe_type(parts: Iterable[TypePart]) -> str:
    """Return a type as Markdown, with links to the objects that it mentions."""
    return "".join(f"[{part.text}](#schema-{part.schema})" if part.schema else part.text for part in parts)


def describe_fields(fields: Iterable[Field]) -> str:
    """Return fields as a definition list."""
    entries = []
    for field in fields:
        marks = [field.place, "required" if field.is_required else "", describe_type(field.kind)]
        text = " ".join(filter(None, (field.description, f"Default: `{field.default}`." if field.default else "")))
        separator = ". " if text else ""
        entries.append(f"`{field.name}`\n: {', '.join(filter(None, marks))}{separator}{text}\n")
    return "\n".join(entries)


def write_page() -> str:
    """Return the page."""
    reference = build_reference(make_app(MemoryStore()).openapi())
    operations = [operation for each in reference.operations.values() for operation in each]
    page: str = PAGE.render(reference=reference, operations=operations, kind=describe_type, fields=describe_fields)
    return page
