"""The learning library among scikit-learn's tools: pipelines, searches, pandas, copies and files.

python examples/sklearn_tools.py
"""

from __future__ import annotations

import pickle

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from semiparam_dynamics.learning import Gaussian, NystromFeatures, NystromKRLS


def main() -> None:
    """Each tool once, on rows of five motions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3)) * (1.0, 10.0, 0.1)
    y = 20.0 + np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1] + 0.05 * rng.standard_normal(600)
    motions = np.repeat(np.arange(5), 120)

    # A pipeline scales the inputs; the outputs' mean is taken off, as the kernel has none.
    learner = NystromKRLS(Gaussian(1.5), penalty=1e-4, n_centers=80, random_state=0)
    pipeline = make_pipeline(StandardScaler(), learner)
    model = TransformedTargetRegressor(pipeline, transformer=StandardScaler())

    # A search by held-out motions, not by rows, which would know their neighbours.
    grid = {
        "regressor__nystromkrls__penalty": [1e-2, 1e-4, 1e-6],
        "regressor__nystromkrls__kernel": [Gaussian(0.7), Gaussian(1.5)],
    }
    search = GridSearchCV(model, grid, cv=GroupKFold(5)).fit(X, y, groups=motions)
    print(f"chosen: {search.best_params_}, R^2 {search.best_score_:.3f}")
    scores = cross_val_score(search.best_estimator_, X, y, groups=motions, cv=GroupKFold(5))
    assert scores.min() > 0.9

    # clone copies what was set, not what was learned; pickle keeps both.
    fresh = clone(search.best_estimator_)
    assert not hasattr(fresh, "regressor_")
    stored = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(stored.predict(X), search.predict(X))

    # Features for a model of your own; as a table where pandas is installed.
    features = make_pipeline(StandardScaler(), NystromFeatures(Gaussian(1.5), 20, random_state=0))
    try:
        import pandas
    except ModuleNotFoundError:
        print("features:", features.fit_transform(X).shape)
    else:
        table = pandas.DataFrame(X, columns=["position", "velocity", "effort"])
        features.set_output(transform="pandas")
        print(features.fit_transform(table).iloc[:2, :3])
        assert list(features[-1].feature_names_in_)  # the names are known in the pipeline
        assert np.allclose(model.fit(table, y).predict(table), model.fit(X, y).predict(X))


if __name__ == "__main__":
    main()
