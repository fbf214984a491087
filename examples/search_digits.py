"""Search for a classifier's parameters without fitting every fold: `python examples/search_digits.py`.

Which neighbors tell handwritten digits apart best? GridSearchCV fits 32 candidates on all 10 folds. The search gives up
those that are unlikely to be worth their fits. `value` says what a better score is worth: here, a hundredth of accuracy
is worth 300 fits. Both choose the candidate with the best mean on the same folds, so what the search loses by stopping
early can be read off GridSearchCV's table. Requires the extra `sklearn`, which comes with the data: in a
checkout, `pip install '.[sklearn]'`.
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from dbcare.sklearn import BreakevenSearchCV

GRID = {"n_neighbors": [1, 2, 3, 4, 6, 8, 12, 20], "weights": ["uniform", "distance"], "p": [1, 2]}
FOLDS = 10
VALUE = 30_000  # what an accuracy higher by 1 is worth, in fits


def main() -> None:
    inputs, labels = load_digits(return_X_y=True)
    search = BreakevenSearchCV(KNeighborsClassifier(), GRID, value=VALUE, cv=FOLDS, random_state=1)
    search.fit(inputs, labels)
    print(f"The search: {search.best_params_}, {search.n_fits_} fits")
    print(search.why_stopped_)

    everything = GridSearchCV(KNeighborsClassifier(), GRID, cv=FOLDS).fit(inputs, labels)
    means = everything.cv_results_["mean_test_score"]
    print(f"GridSearchCV: {everything.best_params_}, {len(means) * FOLDS} fits")
    loss = everything.best_score_ - means[search.best_index_]
    print(f"The search loses {loss:.4f} of the mean score and expected to lose {search.expected_loss_:.4f}.")


if __name__ == "__main__":
    main()
