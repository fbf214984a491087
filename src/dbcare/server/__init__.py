"""The service: an HTTP API and a dashboard over live studies; extra `server`.

access         who may do what: keys, browser sessions, and the gate in front of every route
api            the JSON API under /v1; `problems`, errors as RFC 9457 has them
pages          the dashboard: templates, a style sheet, a few scripts; `stream` keeps pages up to date
open_studies   the studies that are open in this process
limits         how much and how often; `headers`, what browsers are told; `metrics`, for Prometheus
app            all of it put together; `serve` runs it
"""
