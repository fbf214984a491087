"""The JSON API under /v1.

schemas          requests and responses; `option_models`, requests built from option definitions
studies          routes for studies; `planning`, the route for plans
lean_path        a shorter way for asks and tells
trial_stream     the trials of a study as a response, sent while it is made
openapi          the API's description
"""
