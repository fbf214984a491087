"""What would a policy have done with rewards that are known already? Logs, and their replays."""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
