"""Choose a model without fitting every candidate to death: `python examples/model_choice.py`.

Cross-validation fits every model equally often, however hopeless. A study fits those that may be best, and stops at
break-even. Arms are models. A trial fits one of them on a random half of the data and
scores it on the other half. Each model has its own price per fit, the computing time it takes; `value` is what accuracy
is worth.

The mean of a trial's reward is the model's mean accuracy over all splits of *these data*, and splits are drawn
independently. That mean is what the study, like repeated cross-validation, estimates; neither knows about data that
nobody has. Requires `pip install scikit-learn`, which comes with the data.
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

MODELS: dict[str, tuple[ClassifierMixin, float]] = {  # with the price of a fit, in cents
    "support vectors": (SVC(gamma=0.001), 4.0),
    "nearest neighbors": (KNeighborsClassifier(3), 1.0),
    "forest": (RandomForestClassifier(30, random_state=1), 8.0),
    "tree": (DecisionTreeClassifier(random_state=1), 1.0),
    "naive Bayes": (GaussianNB(), 1.0),
}
VALUE = 100_000  # what an accuracy higher by 1 is worth, in cents
SIGMA = 0.01  # the most that the accuracy varies from split to split, as a standard deviation
FOLDS = 10


def main() -> None:
    inputs, labels = load_digits(return_X_y=True)
    splits = np.random.default_rng(1)
    prices = [price for _, price in MODELS.values()]
    study = dbcare.create_study("digits", list(MODELS), price=prices, value=VALUE, sigma=SIGMA, currency="cents")
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
