"""t_formats.py - one table in every format and in many ways of writing it: the parsed copies are the same, bit for bit.

Class PyArrow writes Parquet and Arrow with pyarrow, class Spark writes folders of Parquet, JSON lines and CSV with pyspark and Java.
tools/spark_venv.sh gets them; without them the tests say what they skip.
"""
import datetime
import decimal
import importlib.util
import itertools
import json
import math
import os
import random
import shutil
import sys
import unittest

import e2e
from e2e import Case

VENV = os.path.join(e2e.ROOT, "build", "spark-venv", "bin", "python")
START = datetime.datetime(2024, 1, 1)


def have(module):
    return importlib.util.find_spec(module) is not None


if not have("pyarrow") and os.access(VENV, os.X_OK) and os.path.abspath(sys.executable) != VENV:
    os.execv(VENV, [VENV] + sys.argv)
if have("pyarrow"):
    import pyarrow
    import pyarrow.parquet


class Copies(Case):
    def copy(self, path):
        """The header of the parsed copy of a file, without places in files, and its columns."""
        self.stretto("cache", path, "-o", "copy.bin", "--quiet")
        with open(self.path("copy.bin"), "rb") as f:
            data = f.read()
        n = int.from_bytes(data[8:16], "little")
        header = json.loads(data[16:16 + n])
        return header["columns"], data[16 + n:-8]


@unittest.skipUnless(have("pyarrow"), "there is no pyarrow here: tools/spark_venv.sh gets it")
class PyArrow(Copies):
    N = 1500

    def table(self):
        draw = random.Random(1)

        def some(value):
            return [value(i) if draw.random() > 0.2 else None for i in range(self.N)]
        a = pyarrow.array
        return pyarrow.table({
            "ds": a([START + datetime.timedelta(hours=i) for i in range(self.N)], pyarrow.timestamp("us")),
            "y": a(some(lambda i: draw.choice([1.5, math.pi * i, -3e-7]))), "f": a(some(lambda i: i / 4), pyarrow.float32()),
            "i8": a(some(lambda i: i % 200 - 100), pyarrow.int8()), "u32": a(some(lambda i: draw.getrandbits(32)), pyarrow.uint32()),
            "i32": a(some(lambda i: draw.getrandbits(32) - 2**31), pyarrow.int32()), "i64": a(some(lambda i: draw.getrandbits(50))),
            "b": a(some(lambda i: draw.random() < 0.5)), "w": a(some(lambda i: draw.choice(["a", "b\u00e9", "c,\"d\"", "long %d" % (i % 50)]))),
            "t": a(["prefix/%05d" % (i // 2) for i in range(self.N)], pyarrow.large_string()),
            "d9": a(some(lambda i: decimal.Decimal(i - 700).scaleb(-2)), pyarrow.decimal128(9, 2)),
            "d18": a(some(lambda i: decimal.Decimal(draw.getrandbits(40)).scaleb(-3)), pyarrow.decimal128(18, 3)),
            "d38": a(some(lambda i: decimal.Decimal(draw.getrandbits(60) - 2**59).scaleb(-5)), pyarrow.decimal128(38, 5)),
            "none": a([None] * self.N, pyarrow.null()), "c": a([7] * self.N)})

    def written(self, table, **how):
        pyarrow.parquet.write_table(table, self.path("x.parquet"), **how)
        return self.copy("x.parquet")

    def setUp(self):
        super().setUp()
        self.t = self.table()
        with pyarrow.ipc.new_stream(self.path("x.arrows"), self.t.schema) as w:
            w.write_table(self.t)
        self.want = self.copy("x.arrows")

    def test_codecs_versions_dictionaries_row_groups_and_pages(self):
        ways = list(itertools.product(["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"], ["1.0", "2.0"], [True, False], [self.N, 700], [2000, 1 << 20]))
        for codec, version, words, rows, page in ways[::e2e.times(3, 1)]:
            with self.subTest(codec=codec, version=version, words=words, rows=rows, page=page):
                self.assertEqual(self.written(self.t, compression=codec, data_page_version=version, use_dictionary=words,
                                              row_group_size=rows, data_page_size=page), self.want)

    def test_encodings(self):
        split = dict.fromkeys(["y", "f", "u32", "d38"], "BYTE_STREAM_SPLIT")
        delta = dict.fromkeys(["ds", "i32", "i64", "c", "i8"], "DELTA_BINARY_PACKED")
        for version, texts in itertools.product(["1.0", "2.0"], ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN"]):
            with self.subTest(version=version, texts=texts):
                self.assertEqual(self.written(self.t, data_page_version=version, use_dictionary=False, data_page_size=2000,
                                              column_encoding={**split, **delta, "w": texts, "t": texts, "b": "RLE"}), self.want)
            with self.subTest(version=version, texts="dictionaries that end"):
                self.assertEqual(self.written(self.t, data_page_version=version, dictionary_pagesize_limit=500), self.want)

    def test_zones_by_name(self):
        utc = datetime.timezone.utc
        for zone, first in (("Europe/Berlin", (2024, 3, 30)), ("America/New_York", (2024, 11, 2)), ("Europe/Berlin", (2051, 3, 25))):
            times = [datetime.datetime(*first, tzinfo=utc) + datetime.timedelta(hours=i) for i in range(60)]
            local = pyarrow.array(times, pyarrow.timestamp("s", tz=zone))
            self.write("x.csv", "ds,y\n" + "".join("%s,%d\n" % (t.as_py().isoformat(" "), i) for i, t in enumerate(local)))
            want = self.copy("x.csv")
            with self.subTest(zone=zone, first=first):
                self.assertEqual(self.written(pyarrow.table({"ds": local, "y": list(range(60))})), want)


@unittest.skipUnless(have("pyspark") and shutil.which("java"), "there is no pyspark or no Java here: tools/spark_venv.sh gets pyspark")
class Spark(Copies):
    @classmethod
    def setUpClass(cls):
        from pyspark.sql import SparkSession
        cls.spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                     .config("spark.sql.session.timeZone", "UTC").getOrCreate())
        cls.spark.sparkContext.setLogLevel("OFF")

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def frame(self):
        utc = datetime.timezone.utc
        rows = [((START + datetime.timedelta(hours=i)).replace(tzinfo=utc), i * i / 3 if i % 9 else None, i, "w%d" % (i % 7) if i % 5 else None,
                 i % 2 == 0) for i in range(300)]
        frame = self.spark.createDataFrame(rows, "ds timestamp, y double, k bigint, w string, b boolean")
        return frame.repartitionByRange(3, "ds").sortWithinPartitions("ds")

    def test_parquet_in_all_ways(self):
        frame, want = self.frame(), None
        ways = itertools.product(["none", "snappy", "gzip", "zstd", "lz4", "lz4_raw"], ["INT96", "TIMESTAMP_MICROS"], ["v1", "v2"])
        for k, (codec, times, version) in enumerate(ways):
            self.spark.conf.set("spark.sql.parquet.outputTimestampType", times)
            frame.write.option("compression", codec).option("parquet.writer.version", version).parquet(self.path("p%d" % k))
            got = self.copy("p%d" % k)
            want = want or got
            with self.subTest(codec=codec, times=times, version=version):
                self.assertEqual(got, want)
        self.assertEqual([c["name"] for c in want[0]], ["ds", "y", "k", "w", "b"])
        self.assertEqual([c.get("missing", 0) for c in want[0]], [0, 34, 0, 60, 0])

    def test_folders_of_json_lines_and_csv(self):
        frame = self.frame()
        frame.write.json(self.path("json"))
        frame.write.option("header", "true").csv(self.path("csv"))
        for folder in ("json", "csv"):
            done = self.stretto("check", folder, "--target", "y", "--gaps", "mask")
            self.assertIn("series: hourly, 2024-01-01 00:00Z..2024-01-13 11:00Z", done.out)
            self.assertIn("no problem found", done.out)


if __name__ == "__main__":
    e2e.main()
