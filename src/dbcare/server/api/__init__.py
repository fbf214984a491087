"""The JSON API under /v1.

schemas          requests and responses; `option_models`, requests built from option definitions
studies          routes for studies; `planning`, the route for plans
fast_route       a shorter way to the two busiest routes
openapi          the API's description
"""
