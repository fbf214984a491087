"""The service: an HTTP API and a dashboard over studies; extra `server`."""
