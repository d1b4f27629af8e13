"""Gradient boosting on the rigid body, joint by joint (scikit-learn).

Leaves (6 or 31) and rounds (at most 100) are chosen; none is a choice, too.
"""

import numpy as np
from cases import Data
from sklearn.ensemble import HistGradientBoostingRegressor

LEAVES, ROUNDS = (6, 31), 100


class Method:
    def fit(self, train: Data) -> None:
        known = train.moving[:, None] & np.isfinite(train.y)
        self.models = [self.best(train, j, known[:, j]) for j in range(train.y.shape[1])]

    def best(self, train, j, known):
        c, held, found = train.choosing, train.held_out(), []
        fit, check, X, t = known & ~held, known & held, c.inputs, c.residual[:, j]
        for leaves in LEAVES:
            stages = self.model(leaves, ROUNDS).fit(X[fit], t[fit]).staged_predict(X[check])
            errors = [np.mean(t[check] ** 2), *(np.mean((t[check] - s) ** 2) for s in stages)]
            found.append((min(errors), leaves, int(np.argmin(errors))))
        _, leaves, n = min(found)
        X, t = train.inputs[known], train.residual[known, j]
        return self.model(leaves, n).fit(X, t) if n else None

    def model(self, leaves, rounds):
        return HistGradientBoostingRegressor(
            max_iter=rounds, max_leaf_nodes=leaves, early_stopping=False, random_state=0
        )

    def predict(self, test: Data) -> np.ndarray:
        X, none = test.inputs, np.zeros(len(test))
        return test.base + np.column_stack([m.predict(X) if m else none for m in self.models])
