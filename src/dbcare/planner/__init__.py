"""What would experimenting cost and bring before any data, depending on the gap between the arms?"""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
