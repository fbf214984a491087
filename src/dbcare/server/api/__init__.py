"""The JSON API under /v1.

schemas          requests and responses; `option_models`, those made from options
studies          routes for studies; `planning`, for plans
fast_route       a shorter way to the routes that are used all the time
openapi          the API's description
"""
