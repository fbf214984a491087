"""Which prompt or model is best on the same questions, for no more calls than the choice is worth?"""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
