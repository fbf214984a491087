"""The checks of `StudySuite`, by what they are about."""
