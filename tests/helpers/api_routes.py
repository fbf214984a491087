"""The routes of the API, and who may use them."""

from dbcare.server.access.roles import Role

# Every route of the description with the role that it requires; None if it is open to all.
ROUTES: dict[tuple[str, str], Role | None] = {
    ("get", "/healthz"): None,
    ("get", "/readyz"): None,
    ("get", "/metrics"): Role.VIEWER,
    ("post", "/v1/plan"): Role.VIEWER,
    ("get", "/v1/studies"): Role.VIEWER,
    ("post", "/v1/studies"): Role.ADMIN,
    ("get", "/v1/studies/{name}"): Role.VIEWER,
    ("delete", "/v1/studies/{name}"): Role.ADMIN,
    **{
        ("get", f"/v1/studies/{{name}}/{path}"): Role.VIEWER
        for path in ("status", "recommendation", "explain", "pending", "history", "check", "report", "export")
    },
    **{
        ("post", f"/v1/studies/{{name}}/{path}"): Role.WORKER
        for path in ("ask", "tell", "assign", "tell-unit", "give-back", "tell-many", "fail", "give-up", "add")
    },
    **{
        ("post", f"/v1/studies/{{name}}/{path}"): Role.ADMIN
        for path in ("pause", "resume", "stop", "retire", "describe", "max-ahead")
    },
}
