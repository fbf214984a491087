"""The service: an HTTP API and a dashboard over live studies; extra `server`.

access         who may do what: keys, browser sessions, and the gate in front of every route
api            the JSON API under /v1; `problems`, errors in the format of RFC 9457
pages          the dashboard: templates, a style sheet, a few scripts; `stream` keeps pages up to date
open_studies   the studies that are open in this process; `shared_lookups`, so that each is looked up once
connections    limits from the socket on, with `connection_pool`, `addresses` and `open_files`
limits         size and rate of requests; `service_limits`, all numbers; `headers`, security headers
metrics        for Prometheus, with `study_figures`; `readiness`, whether a write would succeed
request_log    one line per request; `request_trace`, its id and why it was refused; `watched_response`, its status
webhook        tells a URL when a study stops, with `stopped_studies`, `deliveries` and `post`
app            puts it all together; `serve` runs it
"""
