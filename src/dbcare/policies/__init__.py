"""Which arm should be pulled next, when should a run stop, and which arm should be chosen then?"""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
