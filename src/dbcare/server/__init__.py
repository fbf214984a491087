"""The service: an HTTP API and a dashboard over live studies; extra `server`.

access      who may do what: keys, browser sessions, and the gate in front of every route
api         the JSON API under /v1; `problems`, errors as RFC 9457 has them
pages       the dashboard: templates, a style sheet, a few scripts
limits      how much and how often; `headers`, what browsers are told; `metrics`, what Prometheus is told
app         all of it put together; `serve` runs it
"""
