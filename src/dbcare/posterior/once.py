"""A property that is computed once, for objects that several threads share, in processes that may fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class ComputedOnce(Generic[Value]):
    """Like `functools.cached_property`, without the lock that in Python 3.11 all instances share.

    A child that is forked while another thread holds that lock would wait for it forever. Two threads may compute the
    same value here, which does no harm.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  # on the class, as descriptors do
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
