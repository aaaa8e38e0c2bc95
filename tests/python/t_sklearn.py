"""t_sklearn.py - the checks of scikit-learn on every estimator, sequences of several channels, the numbers of the program."""
import os
import pickle
import sys
import unittest

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported: scikit-learn skips a check without it
import numpy as np
from common import Case, e2e, pd, stretto

try:
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import check_estimator
except ImportError:
    print("skipped: no scikit-learn (tools/python_venv.sh)")
    sys.exit(77)

from stretto.sklearn import StrettoClassifier, StrettoForestClassifier, StrettoForestRegressor, StrettoKMeans, StrettoRegressor

RNG = np.random.default_rng(1)
X = RNG.random((300, 3))
ENSEMBLE = {"voting": "weighted"}


class Checks(unittest.TestCase):
    """All checks of scikit-learn; none is expected to fail, and none may be skipped."""

    def passes(self, *estimators):
        for estimator in estimators:
            found = check_estimator(estimator, on_fail=None, on_skip=None)
            bad = ["%s: %s %r" % (r["check_name"], r["status"], r["exception"]) for r in found if r["status"] != "passed"]
            self.assertEqual(bad, [], estimator)
            self.assertGreater(len(found), 45)

    def test_forests(self):
        self.passes(StrettoForestClassifier(), StrettoForestRegressor(), StrettoForestClassifier(n_estimators=30, options=ENSEMBLE))

    def test_kmeans(self):
        self.passes(StrettoKMeans(), StrettoKMeans(n_jobs=2, init="k-means||"))

    def test_classifier(self):
        self.passes(StrettoClassifier())

    def test_regressor(self):
        self.passes(StrettoRegressor())


class Records(Case):
    def test_forest_is_that_of_the_program(self):
        y = np.where(X[:, 0] > 0.5, "a", "b")
        frame = pd.DataFrame(X, columns=["p", "label", "q"])
        made = StrettoForestClassifier(20, random_state=3).fit(frame, y)
        frame.assign(kind=y).to_csv(self.path("t.csv"), index=False, float_format="%.17g")
        self.stretto("train", "t.csv", "--task", "forest", "--target", "kind", "--trees", 20, "--seed", 3, "-o", "cli.model", "--quiet")
        there = stretto.load(self.path("cli.model"))
        found = there.predict(frame)
        np.testing.assert_array_equal(made.predict_proba(frame), np.column_stack([found["p_a"], found["p_b"]]))
        self.assertGreater(made.feature_importances_[0], 0.8)
        self.assertGreater(made.oob_score_, 0.95)

    def test_classes_of_any_kind(self):
        for classes in ([0, 1], [-1.0, 2.0], [False, True], ["", "n/a"], ["a,b", "nan"]):
            y = np.array(classes)[(X[:, 0] > 0.5).astype(int)]
            made = StrettoForestClassifier(10, random_state=0).fit(X, y)
            self.assertEqual((made.predict(X).dtype, list(made.classes_)), (y.dtype, classes))
            self.assertGreater(made.score(X, y), 0.98)

    def test_missing_cells(self):
        holed = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
        self.assertGreater(StrettoForestRegressor(random_state=0).fit(holed, X[:, 0]).score(holed, X[:, 0]), 0.9)
        with self.assertRaisesRegex(ValueError, "NaN"):
            StrettoKMeans(2).fit(holed)

    def test_among_tools_of_scikit_learn(self):
        y = X[:, 0] + X[:, 1] > 1
        made = make_pipeline(StandardScaler(), StrettoForestClassifier(20, random_state=0))
        self.assertGreater(cross_val_score(made, X, y, cv=3, n_jobs=2).min(), 0.8)
        search = GridSearchCV(StrettoForestClassifier(20, random_state=0), {"max_features": [1, 0.5], "max_depth": [1, None]}, cv=2).fit(X, y)
        self.assertIsNone(search.best_params_["max_depth"])

    def test_clusters(self):
        points = np.concatenate([X * 0.1, X * 0.1 + 5]) * [1, 1000, 1] + [0, 1e6, 0]
        for options in ({}, {"standardize": True}):
            made = StrettoKMeans(4, n_init=2, random_state=0, options=options).fit(points)
            np.testing.assert_array_equal(made.transform(points).argmin(1), made.labels_)
            self.assertAlmostEqual(-made.score(points) / made.inertia_, 1, 9)
            if not options:
                means = np.array([points[made.labels_ == k].mean(0) for k in range(4)])
                np.testing.assert_allclose(made.cluster_centers_, means, rtol=1e-12)
        named = made.set_output(transform="pandas").transform(points)
        self.assertEqual(list(named.columns), ["strettokmeans%d" % k for k in range(4)])

    def test_options_that_are_wrong(self):
        for made in (StrettoForestClassifier(options={"tres": 3}), StrettoForestClassifier(-1)):
            with self.assertRaisesRegex(ValueError, "trees"):
                made.fit(X, X[:, 0] > 0.5)


class Sequences(Case):
    sequences = [RNG.random((10 + k % 4, 2)) + k % 2 for k in range(40)]
    classes = ["down", "up"] * 20

    def test_classes_of_lists(self):
        made = StrettoClassifier(random_state=1, steps=100).fit(self.sequences, self.classes)
        self.assertEqual((made.score(self.sequences, self.classes), made.n_channels_in_, list(made.classes_)), (1, 2, ["down", "up"]))
        again = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(again.predict_proba(self.sequences), made.predict_proba(self.sequences))
        np.testing.assert_array_equal(made.predict_proba(self.sequences[::-1])[::-1], made.predict_proba(self.sequences))
        with self.assertRaisesRegex(ValueError, "channels: 2, 3"):
            made.predict(np.zeros((2, 8, 3)))

    def test_numbers_of_arrays(self):
        cube = RNG.random((1200, 8, 2))
        y = cube[:, :, 0].mean(1)
        made = StrettoRegressor(random_state=1, steps=150).fit(cube, y)
        self.assertGreater(made.score(cube, y), 0.9)
        np.testing.assert_array_equal(made.predict(cube[700:]), made.predict(cube)[700:])
        other = StrettoRegressor(random_state=1, steps=150, n_jobs=2).fit(cube, y)
        np.testing.assert_array_equal(other.predict(cube), made.predict(cube))

    def test_one_channel_is_a_table(self):
        table = RNG.random((60, 6))
        y = table[:, 0] > 0.5
        made = StrettoClassifier(random_state=1, steps=20)
        np.testing.assert_array_equal(made.fit(table, y).predict_proba(table), made.fit(table[:, :, None], y).predict_proba(table[:, :, None]))


if __name__ == "__main__":
    e2e.main()
