"""Helpers of several tests: worker processes, servers, proxies that fail on purpose, a browser, hand-stepped runs."""
