"""Searches for scikit-learn that stop when another fit is not worth its price."""

from dbcare.sklearn.search import BreakevenRandomizedSearchCV, BreakevenSearchCV

__all__ = ["BreakevenRandomizedSearchCV", "BreakevenSearchCV"]
