"""Which model for these data, without fitting them all to death: `python examples/model_choice.py`.

Cross-validation fits every model equally often, however hopeless. A study fits those that may be best, and stops once
another fit costs more than it can bring. Arms are models; a trial fits one on a random half of the data and scores it
on the other; prices are those of a fit, one for each model, in the computing time they take; `value` is what accuracy
is worth.

A trial's reward has the model's mean accuracy over all splits of *these data*, and splits are drawn independently: that
mean is what the study, like repeated cross-validation, finds out about. Neither knows of data that nobody has.
Needs `pip install scikit-learn`; the data come with it.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dbcare

MODELS: dict[str, tuple[ClassifierMixin, float]] = {  # and the price of a fit, in cents
    "support vectors": (SVC(gamma=0.001), 4.0),
    "nearest neighbours": (KNeighborsClassifier(3), 1.0),
    "forest": (RandomForestClassifier(30, random_state=1), 8.0),
    "tree": (DecisionTreeClassifier(random_state=1), 1.0),
    "naive Bayes": (GaussianNB(), 1.0),
}
VALUE = 100_000  # cents, of an accuracy that is higher by 1
SIGMA = 0.01  # of the accuracy from split to split, at most
FOLDS = 10


def main() -> None:
    inputs, labels = load_digits(return_X_y=True)
    splits = np.random.default_rng(1)
    prices = [price for _, price in MODELS.values()]
    study = dbcare.create_study("digits", list(MODELS), price=prices, value=VALUE, sigma=SIGMA, unit="cents")
    while (trial := study.ask()) is not None:
        model = clone(MODELS[trial.arm][0])
        train, test, train_labels, test_labels = train_test_split(
            inputs, labels, train_size=0.5, stratify=labels, random_state=int(splits.integers(2**32))
        )
        study.tell(trial, model.fit(train, train_labels).score(test, test_labels))
    for arm in study.status().arms:
        print(f"{arm.name:<18} {arm.trials:>3} fits, accuracy {arm.mean:.3f}")
    choice = study.recommendation()
    print(f"The study: {choice.arm} ({choice.verdict}), {study.status().counted} fits, {choice.spent:.0f} cents")

    means = {name: cross_val_score(model, inputs, labels, cv=FOLDS).mean() for name, (model, _) in MODELS.items()}
    print(
        f"{FOLDS}-fold cross-validation: {max(means, key=means.__getitem__)}, "
        f"{FOLDS * len(MODELS)} fits, {FOLDS * sum(prices):.0f} cents"
    )


if __name__ == "__main__":
    main()
