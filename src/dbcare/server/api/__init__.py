"""The JSON API under /v1: `bodies`, what requests and answers look like; `studies` and `planning`, its routes."""
