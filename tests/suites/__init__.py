"""Suites of checks that several test files run on objects of their own."""
