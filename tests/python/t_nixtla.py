"""t_nixtla.py - fit, predict and cross_validation on long tables: the numbers of the program, frames of pandas and polars."""
import numpy as np
import polars as pl
from common import Case, e2e, panel, pd, stretto

from stretto.nixtla import StrettoForecast

FEW = {"members": 1, "steps": 30}
FLAGS = ["--id", "unique_id", "--time", "ds", "--target", "y", "--horizon", 7, "--members", 1, "--steps", 30, "--test", 0]


class Numbers(Case):
    def program(self, table, *flags):
        """What the program forecasts behind the rows of a table."""
        table.to_csv(self.path("t.csv"), index=False, float_format="%.17g")
        past = table.dropna(subset=["y"])
        past.to_csv(self.path("past.csv"), index=False, float_format="%.17g")
        self.stretto("train", "past.csv", *FLAGS, *flags, "-o", "cli.model", "--quiet")
        return stretto.load(self.path("cli.model")).predict(self.path("t.csv"))

    def test_forecasts_are_those_of_the_program(self):
        table = panel()
        there = self.program(table, "--quantiles", "0.05,0.1,0.5,0.9,0.95", "--ignore", "price,kind")
        made = StrettoForecast(h=7, freq="D", level=[90, 80], **FEW).fit(table)
        for found in (made.predict(), made.predict(df=table)):
            self.assertEqual(list(found.columns), ["unique_id", "ds", "Stretto", "Stretto-lo-90", "Stretto-lo-80", "Stretto-hi-80", "Stretto-hi-90"])
            for name, theirs in zip(found.columns[2:], ("mean", "q0.05", "q0.1", "q0.9", "q0.95")):
                np.testing.assert_array_equal(found[name], there[theirs], name)
            np.testing.assert_array_equal(found["unique_id"].to_numpy(object), there["id"])
            np.testing.assert_array_equal(found["ds"], there["time"])
            self.assertEqual(found["ds"].dtype, table["ds"].dtype)

    def test_covariates(self):
        table = panel()
        table["y"] += 4 * table["price"]
        static = pd.DataFrame({"unique_id": ["s2", "s0", "s1"], "size": [3.0, 1.0, 2.0]})
        past = table.groupby("unique_id").head(113)
        future = table.drop(past.index)
        whole = table.assign(size=table["unique_id"].str[1:].astype(float) + 1)
        whole.loc[future.index, "y"] = np.nan
        there = self.program(whole, "--known", "price", "--static", "size", "--ignore", "kind", "--quantiles", "0.1,0.5,0.9")
        made = StrettoForecast(h=7, freq="D", futr_exog_list=["price"], **FEW).fit(past, static_df=static)
        found = made.predict(futr_df=future[["unique_id", "ds", "price"]])
        np.testing.assert_array_equal(found["Stretto"], there["mean"])
        with self.assertRaisesRegex(stretto.UsageError, "futr_df"):
            made.predict()
        folds = made.cross_validation(table, static_df=static, n_windows=1)
        np.testing.assert_array_equal(folds["Stretto"], found["Stretto"])
        np.testing.assert_array_equal(folds["y"], future["y"])

    def test_windows_of_cross_validation(self):
        table = panel()
        made = StrettoForecast(h=7, freq="D", **FEW)
        found = made.cross_validation(table, n_windows=3, step_size=4)
        self.assertEqual(list(found.columns), ["unique_id", "ds", "cutoff", "Stretto", "Stretto-lo-80", "Stretto-hi-80", "y"])
        self.assertEqual(len(found), 3 * 3 * 7)
        joined = found.merge(table, on=["unique_id", "ds"])
        np.testing.assert_array_equal(joined["y_x"], joined["y_y"])
        again = made.cross_validation(table, n_windows=3, step_size=4, refit=True)
        first = {str(c.date()): g for c, g in again.groupby("cutoff")}
        self.assertEqual(sorted(first), ["2024-04-14", "2024-04-18", "2024-04-22"])
        for cutoff, group in first.items():
            seen = table[table["ds"] <= cutoff]
            alone = StrettoForecast(h=7, freq="D", **FEW).fit(seen).predict()
            np.testing.assert_array_equal(group["Stretto"], alone["Stretto"])
        once = found[found["cutoff"] == "2024-04-22"]
        held = StrettoForecast(h=7, freq="D", **FEW).fit(table[table["ds"] <= "2024-04-14"]).predict(table[table["ds"] <= "2024-04-22"])
        np.testing.assert_array_equal(once["Stretto"], held["Stretto"])
        pd.testing.assert_frame_equal(made.cross_validation(table, n_windows=None, test_size=15, step_size=4), found)


class Frames(Case):
    def test_polars_as_pandas(self):
        table = panel().sample(frac=1, random_state=1)
        made = StrettoForecast(h=3, freq="D", **FEW).fit(table).predict()
        other = StrettoForecast(h=3, freq="1d", **FEW).fit(pl.from_pandas(table)).predict()
        self.assertIsInstance(other, pl.DataFrame)
        self.assertEqual(other.columns, list(made.columns))
        np.testing.assert_array_equal(other["Stretto-hi-80"].to_numpy(), made["Stretto-hi-80"])

    def test_models_side_by_side_and_ids_of_numbers(self):
        table = panel().replace({"unique_id": {"s0": "10", "s1": "9", "s2": "8"}}).astype({"unique_id": int})
        models = {"Net": {}, "Ridge": {"base": "ridge", "correction": False}}
        found = StrettoForecast(h=3, freq="D", models=models, **FEW).fit(table).predict(quantiles=[0.1, 0.5])
        self.assertEqual(list(found.columns), ["unique_id", "ds", "Net", "Net-lo-80.0", "Net-median", "Ridge", "Ridge-lo-80.0", "Ridge-median"])
        self.assertEqual(list(found["unique_id"].unique()), [10, 8, 9])
        self.assertLess(abs(found.loc[found["unique_id"] == 10, "Net"].mean() - 10), abs(found.loc[found["unique_id"] == 8, "Net"].mean() - 10))

    def test_integers_and_days_of_business(self):
        table = panel()
        numbers = table.assign(ds=np.tile(np.arange(5, 365, 3), 3))
        found = StrettoForecast(h=2, freq=3, **FEW).fit(numbers).predict()
        self.assertEqual(list(found["ds"]), [365, 368] * 3)
        business = table.assign(ds=np.tile(pd.bdate_range("2024-01-01", periods=120), 3))
        other = StrettoForecast(h=2, freq="B", **FEW).fit(business).predict()
        self.assertEqual([str(t.date()) for t in other["ds"][:2]], ["2024-06-17", "2024-06-18"])
        np.testing.assert_array_equal(other["Stretto"], found["Stretto"])
        with self.assertRaisesRegex(stretto.UsageError, "freq=1"):
            StrettoForecast(h=2).fit(numbers)

    def test_what_is_refused(self):
        table = panel()
        made = StrettoForecast(h=2, freq="D", **FEW)
        with self.assertRaisesRegex(stretto.UsageError, "call fit"):
            made.predict()
        with self.assertRaisesRegex(stretto.DataError, "no column \"unique_id\""):
            made.fit(table.drop(columns="unique_id"))
        with self.assertRaisesRegex(stretto.DataError, "series s2"):
            made.fit(table, static_df=pd.DataFrame({"unique_id": ["s0", "s1"], "size": [1, 2]}))
        with self.assertRaisesRegex(stretto.UsageError, "step_size"):
            made.cross_validation(table, n_windows=None, test_size=7, step_size=3)
        with self.assertRaisesRegex(stretto.DataError, "no row before the cutoff"):
            made.cross_validation(pd.concat([table, table.head(2).assign(unique_id="short")]), n_windows=1)


if __name__ == "__main__":
    e2e.main()
