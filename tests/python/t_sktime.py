"""t_sktime.py - sktime's own checks of the forecaster, the numbers of the program, panels, covariates, calendars."""
import sys
import unittest
import warnings

import numpy as np
from common import AIR, Case, air, e2e, panel, pd, stretto

warnings.simplefilter("ignore", FutureWarning)  # of sktime: a default of its next release
try:
    import pytest  # noqa: F401
    from sktime.utils import check_estimator
except ImportError:
    print("skipped: no sktime or no pytest (tools/python_venv.sh)")
    sys.exit(77)

from stretto.sktime import StrettoForecaster

H = range(1, 13)


def passengers():
    frame = air()
    return pd.Series(frame["Passengers"].to_numpy(float), pd.PeriodIndex(frame["Month"], freq="M"), name="Passengers")


class Checks(unittest.TestCase):
    def test_all_of_sktime(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = check_estimator(StrettoForecaster, verbose=False)
        self.assertEqual({k: v for k, v in found.items() if v != "PASSED"}, {})
        self.assertGreater(len(found), 500)


class Numbers(Case):
    def test_forecasts_are_those_of_the_program(self):
        y = passengers()
        made = StrettoForecaster(steps=40, n_members=1, random_state=4).fit(y, fh=H)
        self.stretto("train", AIR, "--target", "Passengers", "--horizon", 12, "--members", 1, "--steps", 40, "--seed", 4, "--test", 0,
                     "--gaps", "mask", "-o", "cli.model", "--quiet")
        there = stretto.load(self.path("cli.model")).predict(AIR)
        np.testing.assert_array_equal(made.predict()["Passengers"] if made.predict().ndim == 2 else made.predict(), there["mean"])
        self.assertEqual(str(made.predict().index[0]), "1961-01")
        bands = made.predict_quantiles(alpha=[0.1, 0.9])
        np.testing.assert_array_equal(bands.to_numpy(), np.column_stack([there["q0.1"], there["q0.9"]]))

    def test_some_steps(self):
        y = passengers()
        whole = StrettoForecaster(steps=20, random_state=1).fit(y, fh=[1, 2, 3, 4, 5, 6])
        some = StrettoForecaster(steps=20, random_state=1).fit(y, fh=[2, 6])
        np.testing.assert_array_equal(some.predict(), whole.predict().iloc[[1, 5]])

    def test_intervals_between_levels(self):
        made = StrettoForecaster(steps=20, random_state=1, quantiles=[0.05, 0.5, 0.95]).fit(passengers(), fh=H)
        bands = made.predict_quantiles(alpha=[0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99]).to_numpy()
        self.assertTrue((np.diff(bands, axis=1) > 0).all())
        inner = made.predict_interval(coverage=0.9).to_numpy()
        np.testing.assert_array_equal(inner, bands[:, [1, 5]])


class Shapes(Case):
    def test_panels_with_covariates(self):
        table = panel(series=3, rows=90).sort_values(["unique_id", "ds"]).set_index(["unique_id", "ds"])
        table["y"] += 4 * table["price"]
        y, X = table[["y"]].groupby(level=0).head(80), table[["price"]]
        past, future = X.loc[y.index], X.drop(y.index)
        made = StrettoForecaster(steps=150, random_state=1).fit(y, X=past, fh=range(1, 11))
        found = made.predict(X=future)
        truth = table.loc[found.index, "y"].to_numpy()
        error = np.abs(found["y"].to_numpy() - truth).mean()
        blind = StrettoForecaster(steps=150, random_state=1).fit(y, fh=range(1, 11)).predict()["y"].to_numpy()
        self.assertLess(error, 0.7 * np.abs(blind - truth).mean())
        self.assertEqual(list(found.index.get_level_values(0).unique()), ["s0", "s1", "s2"])
        with self.assertRaisesRegex(ValueError, "needs X"):
            made.predict()

    def test_series_that_end_at_unlike_times(self):
        table = panel(series=2, rows=90).set_index(["unique_id", "ds"])[["y"]]
        short = table.drop(table.loc[["s1"]].index[-7:])
        found = StrettoForecaster(steps=20, random_state=1).fit(short, fh=[1, 2, 3]).predict()
        self.assertEqual([str(t.date()) for t in found.index.get_level_values(1)],
                         ["2024-03-31", "2024-04-01", "2024-04-02", "2024-03-24", "2024-03-25", "2024-03-26"])

    def test_days_of_business_and_numbers(self):
        values = 5 + np.sin(np.arange(100) * 2 * np.pi / 5)
        for index in (pd.bdate_range("2024-01-01", periods=100), pd.RangeIndex(100), pd.period_range("2024-01-01", periods=100, freq="h"),
                      pd.date_range("2000-01-01", periods=100, freq="MS"), pd.date_range("2000-01-01", periods=100, freq="W-WED")):
            made = StrettoForecaster(steps=20, random_state=1).fit(pd.Series(values, index), fh=[1, 2, 3])
            np.testing.assert_allclose(made.predict(), 5 + np.sin(np.arange(100, 103) * 2 * np.pi / 5), atol=0.1)

    def test_new_rows(self):
        y = passengers()
        made = StrettoForecaster(steps=20, random_state=1).fit(y.iloc[:-12], fh=[1, 2])
        weights = made.model_.to_bytes()
        made.update(y.iloc[-12:], update_params=False)
        self.assertEqual((str(made.predict().index[0]), made.model_.to_bytes() == weights), ("1961-01", True))
        made.update(y.iloc[-1:], update_params=True)
        self.assertNotEqual(made.model_.to_bytes(), weights)

    def test_missing_values(self):
        y = passengers()
        y.iloc[[0, 20, 21, -1]] = np.nan
        found = StrettoForecaster(steps=20, random_state=1).fit(y, fh=[1, 2]).predict()
        self.assertTrue(np.isfinite(found.to_numpy()).all())

    def test_a_short_panel(self):
        rng = np.random.default_rng(3)
        for seed in range(6):
            y = pd.DataFrame(rng.random((38, 2)) + 3)
            bands = StrettoForecaster(steps=5, random_state=seed).fit(y, fh=[1]).predict_interval(coverage=0.8).to_numpy()
            self.assertTrue((bands[:, 1::2] >= bands[:, ::2]).all())


if __name__ == "__main__":
    e2e.main()
