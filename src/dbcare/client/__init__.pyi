"""Public names of dbcare.client, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.client.client import Client as Client

__all__: list[str]
