"""What there is to decide: arms and their rewards, how far these vary, what a pull costs and a wrong choice loses."""

from dbcare.base.public import load_names

__all__, __dir__, __getattr__ = load_names(__name__)  # from `__init__.pyi`
