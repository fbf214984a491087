"""The service: an HTTP API and a dashboard over live studies; extra `server`.

access         who may do what: keys, browser sessions, and the gate in front of every route
api            the JSON API under /v1; `problems`, errors in the format of RFC 9457
pages          the dashboard: templates, a style sheet, a few scripts; `stream` keeps pages up to date
open_studies   the studies that are open in this process
limits         size and rate of requests; `headers`, security headers; `metrics`, for Prometheus
app            puts it all together; `serve` runs it
"""
