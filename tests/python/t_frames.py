"""t_frames.py - tables in memory: every kind gives the forecast of the same file, or one error that names the column."""
import datetime
import decimal

import numpy as np
import pandas as pd
import polars
import pyarrow
from common import QUICK, Case, air, e2e, panel, stretto

from stretto import arrow_c, columns


def read_back(data):
    """The columns of a table as pyarrow reads the stream that the library would get."""
    made, rows = columns.columns_of(data)
    stream = arrow_c.stream_of(made, rows)
    import ctypes
    return pyarrow.RecordBatchReader._import_from_c(ctypes.addressof(stream)).read_all()


class Kinds(Case):
    @classmethod
    def setUpClass(cls):
        cls.model = stretto.train(air(), **QUICK)
        cls.want = cls.model.predict(air())["mean"]

    def same(self, data, what):
        got = self.model.predict(data)
        np.testing.assert_array_equal(got["mean"], self.want, what)
        return got

    def test_pandas(self):
        frame = air()
        self.same(frame.set_index("Month"), "times in the index")
        self.same(frame.convert_dtypes(), "nullable types")
        self.same(frame.convert_dtypes(dtype_backend="pyarrow"), "types of Arrow")
        self.same(frame.astype({"Passengers": "float64"}), "float64")
        self.same(frame.assign(Month=frame.Month.dt.strftime("%Y-%m")), "times as text")
        self.same(frame.assign(Month=frame.Month.dt.date), "datetime.date")
        self.same(frame.assign(Month=frame.Month.dt.to_period("M")), "periods")
        self.same(frame.assign(Month=frame.Month.dt.tz_localize("UTC")), "a time zone")
        self.same(frame.assign(Month=frame.Month.astype("datetime64[s]")), "seconds")
        self.same(frame.assign(Passengers=frame.Passengers.map(decimal.Decimal)), "decimals")
        self.same(frame.assign(Passengers=frame.Passengers.astype(object)), "objects")
        self.same(frame.iloc[::-1].iloc[::-1], "a view with a step")

    def test_polars_and_arrow(self):
        frame = air()
        self.same(polars.from_pandas(frame), "polars")
        self.same(polars.concat([polars.from_pandas(frame[:50]), polars.from_pandas(frame[50:])], rechunk=False), "chunks")
        self.same(pyarrow.Table.from_pandas(frame), "pyarrow.Table")
        self.same(pyarrow.Table.from_pandas(frame).to_batches()[0], "pyarrow.RecordBatch")

    def test_numpy_and_python(self):
        frame = air()
        times, values = frame.Month.to_numpy(), frame.Passengers.to_numpy()
        self.same({"Month": times, "Passengers": values}, "a dict of arrays")
        self.same({"Month": list(times.astype("datetime64[D]").astype(object)), "Passengers": values.tolist()}, "a dict of lists")
        self.same(frame.to_dict("records"), "a list of dicts")
        self.same(frame.to_records(index=False), "a structured array")
        self.same({"Month": times, "Passengers": values.astype(">f8")}, "the other byte order")
        self.same({"Month": times, "Passengers": np.repeat(values, 2)[::2]}, "a stride")

    def test_tensors(self):
        class Tensor:  # as torch.Tensor: DLPack without __array_interface__
            def __init__(self, values):
                self.values = values

            def __dlpack__(self, **more):
                return self.values.__dlpack__(**more)

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

        frame = air()
        values = frame.Passengers.to_numpy(dtype=float)
        self.same({"Month": frame.Month.to_numpy(), "Passengers": Tensor(values)}, "a tensor")
        column = columns.array_column("x", columns.as_array(Tensor(values)))
        self.assertTrue(np.shares_memory(column.buffers[1], values))
        wave = np.sin(np.arange(120.0))
        self.assertEqual(stretto.train(Tensor(wave), target="y", horizon=6, members=1, steps=5).targets, ["y"])

    def test_forecasts_go_to_every_kind(self):
        got = self.model.predict(air())
        frame = got.to_pandas()
        self.assertEqual(str(frame["time"].dtype)[:10], "datetime64")
        self.assertEqual(got.to_polars().columns, list(frame.columns))
        self.assertEqual(got.to_arrow().column_names, list(frame.columns))
        np.testing.assert_array_equal(got.to_polars()["mean"].to_numpy(), frame["mean"])
        self.assertEqual(got.to_arrow()["id"].to_pylist(), list(got["id"]))


    def test_times_of_a_zone_come_back_in_it(self):
        zone = "Europe/Berlin"
        times = pd.date_range("2024-03-01", periods=24 * 40, freq="h", tz=zone)
        frame = pd.DataFrame({"ds": times, "y": np.sin(np.arange(len(times)) / 24 * 2 * np.pi)})
        model = stretto.train(frame, target="y", horizon=24, steps=5, members=1)
        for data in (frame, polars.from_pandas(frame), frame.set_index("ds")):
            got = model.predict(data)
            self.assertEqual(got.to_pandas()["time"].tolist()[:2], [times[-1] + pd.Timedelta(hours=1), times[-1] + pd.Timedelta(hours=2)])
            self.assertEqual(str(got.to_pandas()["time"].dt.tz), zone)
            self.assertEqual(str(got.to_arrow().schema.field("time").type.tz), zone)
        self.assertEqual(got["step"].dtype, np.int64)

    def test_a_table_without_times_counts_rows(self):
        model = stretto.train({"y": np.sin(np.arange(200.0))}, target="y", horizon=6, steps=5, members=1)
        self.assertEqual(model.predict({"y": np.sin(np.arange(200.0))})["time"].tolist(), list(range(200, 206)))


class Panels(Case):
    def test_categories_indexes_and_text_agree(self):
        frame = panel()
        options = {"id": "unique_id", "time": "ds", "target": "y", "horizon": 7, "cat": ["kind"], "past": ["price"], "steps": 20, "members": 1}
        model = stretto.train(frame, **options)
        want = model.predict(frame)
        for what, data in (("categories", frame.astype({"unique_id": "category", "kind": "category"})),
                           ("an index of two levels", frame.set_index(["unique_id", "ds"])), ("polars", polars.from_pandas(frame)),
                           ("strings of Arrow", frame.astype({"unique_id": "string[pyarrow]"}))):
            got = model.predict(data)
            np.testing.assert_array_equal(got["mean"], want["mean"], what)
            self.assertEqual(list(got["id"]), list(want["id"]), what)
            again = stretto.train(data, **options)
            for name, tensor in model.weights.items():
                np.testing.assert_array_equal(tensor, again.weights[name], what)

    def test_ids_that_are_numbers(self):
        frame = panel().assign(unique_id=lambda d: d.unique_id.str[1:].astype(int))
        model = stretto.train(frame, id="unique_id", time="ds", target="y", horizon=7, ignore=["kind", "price"], steps=10, members=1)
        self.assertEqual(sorted(set(map(str, model.predict(frame)["id"]))), ["0", "1", "2"])


class Layout(Case):
    def test_float64_columns_are_not_copied(self):
        values = np.arange(12.0)
        made, _ = columns.columns_of({"a": values})
        self.assertTrue(np.shares_memory(made[0].buffers[1], values))
        block = np.asfortranarray(np.random.default_rng(0).random((100, 3)))
        frame = pd.DataFrame(block, columns=["a", "b", "c"], copy=False)
        made, _ = columns.columns_of(frame)
        self.assertTrue(np.shares_memory(made[1].buffers[1], block))

    def test_cells_are_what_pyarrow_reads(self):
        zone = pd.Series(pd.date_range("2024-03-30", periods=4, freq="D", tz="Europe/Berlin"))
        frame = pd.DataFrame({"f": [1.5, np.nan, 3, 4], "i": pd.array([1, None, 3, 4], "Int32"), "b": pd.array([True, None, False, True], "boolean"),
                              "t": pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-04"]), "s": ["a", None, "b", "a"],
                              "c": pd.Categorical(["x", "y", None, "x"]), "z": zone, "u": np.arange(4, dtype=np.uint8), "h": np.ones(4, np.float16)})
        table = read_back(frame)
        self.assertEqual(table["i"].to_pylist(), [1, None, 3, 4])
        self.assertEqual(table["b"].to_pylist(), [True, None, False, True])
        self.assertEqual(table["t"].to_pylist()[1], None)
        self.assertEqual(table["s"].to_pylist(), ["a", None, "b", "a"])
        self.assertEqual(table["c"].to_pylist(), ["x", "y", None, "x"])
        self.assertEqual(table["z"].to_pylist(), [t.to_pydatetime() for t in zone])
        self.assertEqual(table["u"].to_pylist(), [0, 1, 2, 3])
        self.assertEqual(table["h"].to_pylist(), [1.0] * 4)
        self.assertEqual(table.schema.field("z").type.tz, "Europe/Berlin")
        self.assertFalse(arrow_c.held and any(isinstance(v, arrow_c._Source) for v in arrow_c.held.values()))

    def test_structs_are_released(self):
        before = len(arrow_c.held)
        for _ in range(3):
            stretto.check(panel(), id="unique_id", time="ds", target="y")
            read_back(panel())
        forecast = stretto.Forecast({"mean": np.arange(3.0), "id": np.array(["a", "b", "c"], object)})
        forecast.__arrow_c_stream__()  # not consumed
        forecast.to_polars()
        self.assertEqual(len(arrow_c.held), before)
        self.assertEqual(len(arrow_c._streams), 0)


class BadTables(Case):
    def refused(self, data, name, fix, **options):
        with self.assertRaises(stretto.StrettoError) as raised:
            stretto.train(data, **{"target": "Passengers", "horizon": 12, **options})
        self.assertIn(name, str(raised.exception))
        self.assertIn(fix, raised.exception.fix)

    def test_two_columns_of_one_name(self):
        frame = air()
        frame.columns = ["Passengers", "Passengers"]
        self.refused(frame, '"Passengers"', "duplicated")
        self.refused(pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 2, ["a", "a"]), '"a"', "rename")

    def test_mixed_objects(self):
        self.refused(air().assign(note=["x", 1.5] * 72), '"note" mixes numbers and text', "astype(str)")
        self.refused(air().assign(note=[{}] * 144), '"note" holds objects of the type dict', "drop(columns")
        self.refused(air().assign(note=[1 + 2j] * 144), '"note" has the type complex128', "drop(columns")

    def test_mixed_time_zones(self):
        zones = [datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=2))]
        times = [t.to_pydatetime().replace(tzinfo=zones[k % 2]) for k, t in enumerate(air().Month)]
        self.refused(air().assign(Month=pd.Series(times, dtype=object)), "mixes the time zones", "utc=True")

    def test_masks_units_and_byte_order(self):
        """NumPy's own kinds of missing cells and times give the series of plain ones."""
        t = np.arange("2020-01-01", "2020-07-19", dtype="datetime64[D]")
        y = np.where(np.arange(200) % 50 == 7, np.nan, 10 + np.arange(200) % 7)
        plain = stretto.train({"t": t, "y": y}, target="y", horizon=7, gaps="mask", members=1, steps=5)
        want = plain.predict({"t": t, "y": y}, gaps="mask")
        masked = np.ma.array(np.nan_to_num(y, nan=9999.0), mask=np.isnan(y))
        for other in ({"t": t.astype(">M8[ns]"), "y": y}, {"t": t.astype("M8[12h]"), "y": y.astype(">f8")}, {"t": t.astype(">M8[s]"), "y": masked}):
            got = plain.predict(other, gaps="mask")
            self.assertEqual(list(got["mean"]), list(want["mean"]))
            self.assertEqual(list(got["time"]), list(want["time"]))
        with self.assertRaises(stretto.UsageError):
            plain.predict({"t": t, "y": y}, samples=2**32 + 5)

    def test_cells_that_no_column_can_hold(self):
        t = pd.date_range("2020-01-01", periods=60)
        for cells, code in (([b"\xff"] * 60, "E2"), (["\ud800"] * 60, "E202"), ([10**400] * 60, "E208")):
            with self.assertRaises(stretto.DataError) as raised:
                stretto.train({"t": t, "y": np.arange(60.0), "w": np.array(cells, object)}, target="y", horizon=3, cat="w", steps=1)
            self.assertTrue(raised.exception.code.startswith(code), raised.exception)
        sparse = pd.DataFrame({"t": t, "y": pd.arrays.SparseArray(np.arange(60) % 7 * 1.0)})
        dense = sparse.assign(y=np.arange(60) % 7 * 1.0)
        means = [list(stretto.train(f, target="y", horizon=3, steps=2, members=1).predict(f)["mean"]) for f in (sparse, dense)]
        self.assertEqual(means[0], means[1])

    def test_missing_ids(self):
        frame = panel()
        frame.loc[7, "unique_id"] = None
        self.refused(frame, '"unique_id" names the series, and is missing in 1 rows, first in row 8 (from 1)', "dropna", id="unique_id", target="y", time="ds")

    def test_shapes(self):
        self.refused({"a": np.ones(3), "b": np.ones(4)}, "a 3, b 4", "one value")
        self.refused({"a": np.ones((3, 2))}, "(3, 2)", "one column")
        self.refused(np.ones((2, 2, 2)), "3 dimensions", "one row")
        self.refused(air()[:0], "", "")
        with self.assertRaises(TypeError):
            stretto.train(3, target="y")


if __name__ == "__main__":
    e2e.main()
