"""t_onnx.py - models that leave as ONNX and come in from it, and event files for TensorBoard.

ONNX Runtime is the other program here: `stretto export --check` runs the graph in its C library, and Python runs it once more from the
inputs of docs/onnx.md.  tools/onnx_venv.sh gets onnx, onnxruntime and tensorboard; without them the tests say what they skip.
"""
import csv
import glob
import io
import json
import math
import os
import re
import shutil
import struct
import subprocess
import unittest

import e2e
from e2e import AIR, SHARED, Case

VENV = os.path.join(e2e.ROOT, "build", "onnx-venv")
PYTHON = os.path.join(VENV, "bin", "python")
NODE = os.path.join(SHARED, "onnx_node_tests", "test_lstm_defaults")


def have(module):
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", "import " + module], capture_output=True).returncode == 0


def runtime():
    found = glob.glob(os.path.join(VENV, "lib", "python3*", "site-packages", "onnxruntime", "capi", "libonnxruntime.so*"))
    return found[-1] if found else None


NO_RUNTIME = "there is no ONNX Runtime here: tools/onnx_venv.sh gets it"
RULES = ["last", "season(12)", "growth(12)", "ratio(12)", "average(12)", "drift", "mean", "ses(0.3)", "theta(12,0.3)", "theta(7,0.2)",
         "theta(1,0.5)", "0.4*growth(12) + 0.6*ses(0.7)"]


class Onnx(Case):
    def environment(self, **more):
        return super().environment(STRETTO_ONNXRUNTIME=runtime() or "off", **more)

    def python(self, script, *args):
        done = subprocess.run([PYTHON, "-W", "ignore", "-c", script, *map(str, args)], cwd=self.dir, capture_output=True, text=True,
                              env=self.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def train(self, *flags, data=AIR, name="m.model"):
        self.stretto("train", data, *flags, "-o", name, "--quiet")

    def difference(self, *flags, data=AIR, name="m.model"):
        """The largest difference in deviations, as export prints it; a graph of rounding alone stays below 1e-5."""
        r = self.stretto("export", name, "--onnx", "m.onnx", "--check", data, *flags)
        found = re.search(r"largest difference (\S+) deviations in (\d+) numbers of (\d+) windows", r.err)
        self.assertTrue(found, r.err)
        self.assertGreater(int(found[3]), 1)
        self.assertLess(float(found[1]), 1e-5, r.err)
        return r.err

    def rebase(self, name, base, out):
        """The same model with another text of its base."""
        raw = self.read(name)
        n = struct.unpack("<Q", raw[:8])[0]
        head = json.loads(raw[8:8 + n])
        meta = head["__metadata__"]
        facts = json.loads(meta["stretto.forecast"])
        facts["base"] = base
        meta["stretto.forecast"] = json.dumps(facts)
        del meta["stretto.sum"]
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        with open(self.path(out), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + raw[8 + n:])


def month_day(day):
    """Month and day of a day of 2023, from 1."""
    for month, days in enumerate((31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), 1):
        if day <= days:
            return month, day
        day -= days


SHORT = ["--target", "Passengers", "--horizon", "12", "--steps", "20", "--validation", "24", "--test", "12"]
PLAIN = [*SHORT, "--preset", "none", "--context", "24", "--hidden", "16", "--base", "none"]


@unittest.skipUnless(runtime(), NO_RUNTIME)
class Export(Onnx):
    def test_cells(self):
        for cell in ("lstm", "gru", "rnn", "paragru", "paralstm", "minlstm"):
            self.train(*PLAIN, "--cell", cell)
            self.difference()

    def test_layers(self):
        for flags in (["--bidirectional", "--layers", "2"], ["--bidirectional", "--layers", "2", "--cell", "gru"],
                      ["--layers", "3", "--norm", "--dropout", "0.1"], ["--projection", "6", "--layers", "2"], ["--members", "3"],
                      ["--loss-steps", "all", "--segment", "1"]):
            self.train(*PLAIN, *flags)
            self.difference()

    def test_decoders(self):
        for decoder, segment in (("parallel", 6), ("parallel", 5), ("autoregressive", 4), ("autoregressive", 5), ("direct", 7)):
            for cell in ("lstm", "gru", "paralstm"):
                self.train(*PLAIN, "--decoder", decoder, "--segment", segment, "--cell", cell)
                self.difference()

    def test_scales(self):
        for scale in ("series", "window", "last", "mean"):
            self.train(*PLAIN, "--scale", scale)
            self.difference()

    def test_heads(self):
        ridge = [*SHORT, "--preset", "none", "--context", "24", "--base", "ridge", "--quantiles", "0.1,0.5,0.9"]
        for flags in ([], ["--head", "quantile"], ["--head", "normal"], ["--combine", "average"], ["--no-correction"],
                      ["--decoder", "autoregressive", "--segment", "4"]):
            self.train(*ridge, *flags)
            self.difference()
        for head in ("student-t", "poisson", "negative-binomial"):
            self.train(*ridge, "--head", head)
            r = self.stretto("export", "m.model", "--onnx", "m.onnx", status=9)
            self.assertIn('E904', r.err)
            self.assertIn('quantiles of the head "%s"' % head, r.err)
            self.difference("--mean-only")

    def test_bases(self):
        self.train(*SHORT, "--preset", "none", "--context", "24", "--base", "season", "--season", "12")
        for rule in RULES:
            self.rebase("m.model", rule, "r.model")
            self.difference(name="r.model")
        self.train(*SHORT)  # the preset short: a mix, five members
        self.difference()

    def test_covariates_categories_and_calendar(self):
        rows = ["t,y,price,heat,word"]
        for i in range(900):
            y = "" if i % 97 == 5 else "%.3f" % (50 + 20 * (i % 24) + 3 * (i % 7) + (i * 7919 % 13))
            rows.append("2021-%02d-%02d %02d:00,%s,%.2f,%.2f,%s" % (1 + i // 24 // 28, 1 + i // 24 % 28, i % 24, y, 10 + i % 5, i * 31 % 17, "uvw"[i % 3]))
        # months of 28 days leave gaps of whole days, which --gaps mask keeps
        self.write("c.csv", "\n".join(rows[:1 + 24 * 28]) + "\n")
        flags = ["--target", "y", "--known", "price", "--past", "heat", "--cat", "word", "--gaps", "mask", "--horizon", "24", "--steps",
                 "10", "--preset", "none", "--context", "48", "--calendar", "yes", "--validation", "120", "--test", "60", "--quantiles", "0.1,0.9"]
        for more in (["--base", "none"], ["--base", "ridge", "--segment", "10"], ["--base", "ridge", "--decoder", "parallel", "--segment", "10"],
                     ["--base", "season", "--decoder", "autoregressive", "--segment", "10"], ["--base", "mix"],
                     ["--base", "ridge", "--loss-steps", "all", "--segment", "1"]):
            self.train(*flags, *more, data="c.csv")
            self.difference(data="c.csv")

    def test_panel(self):
        self.stretto("sample", "panel", "-o", "p.csv")
        panel = ["--id", "unique_id", "--time", "ds", "--target", "y", "--horizon", "24", "--steps", "10", "--quantiles", "0.1,0.9"]
        for more in ([], ["--preset", "none", "--decoder", "parallel", "--segment", "12", "--context", "48", "--base", "ridge"]):
            self.train(*panel, *more, data="p.csv")
            self.difference(data="p.csv")

    def test_panel_with_covariates(self):
        """Series of unlike lengths and sizes, with columns of each kind; static columns have one scale for all series."""
        rows = ["shop,ds,y,price,heat,size,kind"]
        for shop, size, n in (("a", 10, 700), ("b", 22.5, 500), ("c", 3, 300), ("d", 7, 100)):
            for i in range(700 - n, 700):
                y = "" if i % 41 == 7 else "%.3f" % (100 * size + 20 * size * math.sin(i / 24 * 6.283) + i * 7919 % 13)
                rows.append("%s,2023-%02d-%02d %02d:00,%s,%d,%d,%g,%s" % (shop, *month_day(1 + i // 24), i % 24, y, 5 + i % 7, i * 31 % 17, size, "pq"[i % 2]))
        self.write("p.csv", "\n".join(rows) + "\n")
        flags = ["--id", "shop", "--time", "ds", "--target", "y", "--known", "price", "--past", "heat", "--static", "size", "--cat", "kind", "--gaps", "mask",
                 "--horizon", "24", "--context", "48", "--preset", "none", "--steps", "5", "--quantiles", "0.1,0.9", "--test", "48", "--validation", "72"]
        for more in (["--base", "ridge"], ["--base", "trees"], ["--base", "mix", "--decoder", "parallel", "--segment", "8", "--calendar", "yes"]):
            self.train(*flags, *more, data="p.csv")
            self.difference(data="p.csv")

    def test_rows_out_of_line_are_refused(self):
        """Segments reach beyond the horizon, and so do the rows ahead; the rows that `predict` asks for are too few."""
        lines = ["t,y,price"] + ["2021-01-%02d %02d:00,%d,%d" % (1 + i // 24, i % 24, 50 + i % 24 + i % 5, i % 5) for i in range(700)]
        self.write("c.csv", "\n".join(lines) + "\n")
        self.train("--target", "y", "--known", "price", "--horizon", "28", "--context", "48", "--preset", "none", "--segment", "24", "--decoder", "parallel",
                   "--steps", "5", "--calendar", "yes", data="c.csv")
        self.stretto("export", "m.model", "--onnx", "m.onnx")
        script = r"""
import json, numpy as np, onnx, onnxruntime
about = json.loads({p.key: p.value for p in onnx.load("m.onnx").metadata_props}["stretto.inputs"])
assert about["ahead"] > about["horizon"], about
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
run = onnxruntime.InferenceSession("m.onnx", options)
rows = 100
def made(known, time):
    feed = {"target": np.ones((1, rows)), "known": np.ones((1, rows + known, 1)), "time": 3600 * np.arange(rows + time)[None]}
    return run.run(["mean"], feed)[0].shape
print(made(about["ahead"], about["ahead"]))
for wrong in ((about["horizon"], about["ahead"]), (about["ahead"], about["horizon"]), (about["horizon"], about["horizon"])):
    try:
        made(*wrong)
        print("accepted", wrong)
    except Exception as e:
        print("refused", "Concat" in str(e))
"""
        self.assertEqual(self.python(script).split("\n")[:4], ["(1, 28)"] + 3 * ["refused True"])

    def test_python_forecasts_as_predict_does(self):
        """The contract of docs/onnx.md: the last rows of the file in, the forecast of `stretto predict` out; also a short history."""
        self.train(*SHORT)
        self.stretto("export", "m.model", "--onnx", "m.onnx")
        script = r"""
import csv, json, sys, numpy as np, onnx, onnxruntime
model = onnx.load("m.onnx"); onnx.checker.check_model(model, full_check=True)
about = json.loads({p.key: p.value for p in model.metadata_props}["stretto.inputs"])
y = np.array([float(r["Passengers"]) for r in csv.DictReader(open(sys.argv[1]))])[:int(sys.argv[2])]
run = onnxruntime.InferenceSession("m.onnx")
mean, = run.run(["mean"], {"target": np.stack([y, y])})
assert mean.shape == (2, about["horizon"]) and np.array_equal(mean[0], mean[1])
print(*mean[0])
"""
        lines = open(AIR).read().splitlines(True)
        for rows in (144, 60, 40):
            self.write("part.csv", "".join(lines[:1 + rows]))
            got = [float(v) for v in self.python(script, AIR, rows).split()]
            want = [float(r["mean"]) for r in csv.DictReader(io.StringIO(self.stretto("predict", "m.model", "part.csv").out))]
            for a, b in zip(got, want):
                self.assertAlmostEqual(a, b, delta=1e-3)  # the program prints seven digits of f32

    def test_trees(self):
        """Trees take other branches where an input is off by a bit: seasons, lags, calendar, covariates and words must be exact."""
        rows = ["t,y,price,heat,word"]
        for i in range(2000):
            y = "" if i % 97 == 5 else "%.3f" % (50 + 20 * (i % 24) + 30 * (i % 168 > 120) + 4 * (i % 5) + (i * 7919 % 13))
            day = 1 + i // 24
            rows.append("2023-%02d-%02d %02d:00,%s,%.2f,%.2f,%s" % (*month_day(day), i % 24, y, 10 + i % 5, i * 31 % 17, "uvw"[i % 3]))
        self.write("t.csv", "\n".join(rows) + "\n")
        self.train("--target", "y", "--known", "price", "--past", "heat", "--cat", "word", "--gaps", "mask", "--horizon", "30", "--steps", "5",
                   "--preset", "none", "--context", "48", "--base", "trees", "--validation", "300", "--test", "200", data="t.csv")
        self.difference(data="t.csv")
        self.stretto("sample", "panel", "-o", "p.csv")
        self.train("--id", "unique_id", "--time", "ds", "--target", "y", "--horizon", "24", "--steps", "5", "--base", "trees", data="p.csv")
        self.difference(data="p.csv")

    def test_sequences(self):
        """Sequences of unlike lengths with missing values, whole and by step, of classes and of numbers."""
        rows, steps = ["id,t,a,b,y"], ["id,t,a,b,y"]
        for i in range(50):
            for t in range(5 + i * 7 % 36):
                a, b = math.sin(i * t / 40) + i * t * 31 % 7 / 20, "" if (i + t) % 19 == 3 else "%.3f" % (i * t * 17 % 11)
                rows.append("s%d,%d,%.4f,%s,%.3f" % (i, t, a, b, i / 50))
                steps.append("s%d,%d,%.4f,%s,%s" % (i, t, a, b, "up" if t % 5 < 2 else "down"))
        self.write("whole.csv", "\n".join(rows) + "\n")
        self.write("steps.csv", "\n".join(steps) + "\n")
        common = ["--id", "id", "--time", "t", "--target", "y", "--steps", "20"]
        for data, task, flags in (("whole.csv", "regress", []), ("whole.csv", "regress", ["--scale", "window", "--segment", "4"]),
                                  ("whole.csv", "regress", ["--cell", "paragru"]), ("steps.csv", "classify", ["--cell", "paralstm"]),
                                  ("steps.csv", "classify", []), ("steps.csv", "classify", ["--cell", "lstm", "--members", "2", "--layers", "2"])):
            self.train(*common, "--task", task, *flags, data=data)
            self.difference(data=data)

    def test_tables(self):
        """A forest of classes and of numbers, with words and missing cells; clusters."""
        rows = ["a,b,w,y,n"]
        for i in range(500):
            a, b, w = i * 7919 % 1000 / 1000, "" if i % 9 == 2 else i * 31 % 17, ("x", "y", "z", "", "q")[i * 13 % 5]
            rows.append("%.3f,%s,%s,%s,%.3f" % (a, b, w, "yes" if (a > 0.5) != (w in "xz") else "no", 1000 + 3 * a + (w == "y")))
        self.write("t.csv", "\n".join(rows) + "\n")
        for flags in (["--target", "y"], ["--target", "n", "--ignore", "y"]):
            self.train("--task", "forest", "--trees", "20", *flags, data="t.csv")
            self.difference(data="t.csv")
        self.write("k.csv", "a,b\n" + "".join("%d,%.3f\n" % (i % 50, 1000 * (i * 37 % 101)) for i in range(300)))
        self.train("--task", "kmeans", "--clusters", "5", "--standardize", data="k.csv")
        self.difference(data="k.csv")

    def test_without_a_runtime(self):
        self.train(*PLAIN)
        done = subprocess.run([e2e.PROGRAM, "export", "m.model", "--onnx", "m.onnx"], cwd=self.dir, capture_output=True, text=True,
                              env=dict(self.environment(), STRETTO_ONNXRUNTIME="off"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("no ONNX Runtime found: not checked", done.stderr)
        done = subprocess.run([e2e.PROGRAM, "export", "m.model", "--onnx", "m.onnx", "--check", AIR], cwd=self.dir, capture_output=True, text=True,
                              env=dict(self.environment(), STRETTO_ONNXRUNTIME="off"))
        self.assertEqual(done.returncode, 9)
        self.assertIn("error[E907] m.onnx: it is written, but there is no ONNX Runtime here", done.stderr)


# Graphs as exporters of PyTorch write them, with the output of ONNX Runtime.
GRAPH = r"""
import sys, numpy as np, onnx, onnxruntime
from onnx import helper as h, numpy_helper as nh, TensorProto as T
kind, layers, both, tail = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "both", sys.argv[4]
rng = np.random.default_rng(7); I, H, D = 3, 4, 2 if both else 1
G = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
init, nodes, x = [], [], "xt"
def const(name, a): init.append(nh.from_array(a, name)); return name
def w(*shape): return rng.normal(0, 0.4, shape).astype(np.float32)
nodes.append(h.make_node("Transpose", ["x"], ["xt"], perm=[1, 0, 2]))
nodes.append(h.make_node("Shape", ["x"], ["shape"])); const("one", np.array([1], np.int64)); const("dim", np.array([D], np.int64)); const("hid", np.array([H], np.int64))
nodes.append(h.make_node("Gather", ["shape", const("zero", np.array([0], np.int64))], ["batch"], axis=0))
nodes.append(h.make_node("Concat", ["dim", "batch", "hid"], ["state"], axis=0))
nodes.append(h.make_node("ConstantOfShape", ["state"], ["h0"]))
for k in range(layers):
    i = I if k == 0 else D * H
    ins = [x, const("W%d" % k, w(D, G * H, i)), const("R%d" % k, w(D, G * H, H)), const("B%d" % k, w(D, 2 * G * H)), "", "h0"] + (["h0"] if kind == "LSTM" else [])
    attr = dict(hidden_size=H, direction="bidirectional" if both else "forward")
    if kind == "GRU": attr["linear_before_reset"] = 1
    nodes.append(h.make_node(kind, ins, ["y%d" % k, "yh%d" % k], **attr))
    if both:
        nodes.append(h.make_node("Transpose", ["y%d" % k], ["t%d" % k], perm=[0, 2, 1, 3]))
        nodes.append(h.make_node("Reshape", ["t%d" % k, const("s%d" % k, np.array([0, 0, -1], np.int64))], ["x%d" % k]))
    else:
        nodes.append(h.make_node("Squeeze", ["y%d" % k, "one"], ["x%d" % k]))
    x = "x%d" % k
if tail == "steps":
    nodes.append(h.make_node("MatMul", [x, const("V", w(D * H, 5))], ["p"])); nodes.append(h.make_node("Add", [const("c", w(5)), "p"], ["q"]))
    nodes.append(h.make_node("Relu", ["q"], ["r"])); nodes.append(h.make_node("Transpose", ["r"], ["out"], perm=[1, 0, 2]))
if tail == "last":
    nodes.append(h.make_node("Gather", [x, const("end", np.array(-1, np.int64))], ["g"], axis=0))
    nodes.append(h.make_node("Gemm", ["g", const("V", w(5, D * H)), const("c", w(5))], ["p"], transB=1)); nodes.append(h.make_node("Tanh", ["p"], ["q"]))
    nodes.append(h.make_node("Gemm", ["q", const("U", w(2, 5)), const("e", w(2))], ["out"], transB=1))
if tail == "ends":
    nodes.append(h.make_node("Transpose", ["yh%d" % (layers - 1)], ["g"], perm=[1, 0, 2])); nodes.append(h.make_node("Flatten", ["g"], ["f"]))
    nodes.append(h.make_node("Gemm", ["f", const("V", w(5, D * H)), const("c", w(5))], ["out"], transB=1))
if tail == "bad":
    nodes.append(h.make_node("Softmax", [x], ["s"])); nodes.append(h.make_node("Exp", ["s"], ["out"]))
g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["b", "t", I])], [h.make_tensor_value_info("out", T.FLOAT, None)], init)
m = h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8); onnx.save(m, "g.onnx")
x = rng.normal(0, 1, (3, 6, I)).astype(np.float32)
out = onnxruntime.InferenceSession("g.onnx").run(None, {"x": x})[0]
import os; os.makedirs("data", exist_ok=True)
open("data/input_0.pb", "wb").write(nh.from_array(x).SerializeToString()); open("data/output_0.pb", "wb").write(nh.from_array(out).SerializeToString())
np.savetxt("x.csv", x[0], delimiter=",", header="a,b,c", comments=""); np.savetxt("y.csv", out[0].reshape(-1, out.shape[-1]), delimiter=",")
"""


class Import(Onnx):
    @unittest.skipUnless(os.path.isdir(NODE), "the shared node tests are not here")
    def test_node_of_the_standard(self):
        r = self.stretto("import", NODE + "/model.onnx", "--check", NODE + "/test_data_set_0", "-o", "n.model")
        self.assertRegex(r.err, r"test data: largest difference \S+ of the tolerance")
        info = json.loads(self.stretto("info", "n.model", "--json").out)
        self.assertEqual((info["inputs"], info["outputs"], info["reads"]), (2, 3, "ends"))
        r = self.stretto("import", NODE + "/model.onnx", "-o", "n.model", status=9)  # its weights are inputs
        self.assertIn("E906", r.err)
        # other numbers than the test data promise
        shutil.copytree(NODE + "/test_data_set_0", self.path("data"))
        raw = bytearray(self.read("data/output_0.pb"))
        raw[-2] ^= 0x20
        os.chmod(self.path("data"), 0o755)
        os.chmod(self.path("data/output_0.pb"), 0o644)
        with open(self.path("data/output_0.pb"), "wb") as f:
            f.write(raw)
        self.assertIn("E907", self.stretto("import", NODE + "/model.onnx", "--check", "data", status=9).err)

    @unittest.skipUnless(runtime() and have("onnx"), NO_RUNTIME)
    def test_graphs_of_pytorch(self):
        for kind in ("LSTM", "GRU", "RNN"):
            for layers, both, tail in ((1, "one", "last"), (2, "one", "steps"), (2, "both", "last"), (1, "both", "ends"), (2, "both", "steps")):
                self.python(GRAPH, kind, layers, both, tail)
                r = self.stretto("import", "g.onnx", "--check", "data", "-o", "g.model")
                self.assertRegex(r.err, "largest difference (0|[0-9.e-]+) of the tolerance", r.err)
                # the model file: rows of a table as the steps of one sequence, as the first sequence of the data
                got = [[float(v) for k, v in row.items() if k != "step"] for row in csv.DictReader(io.StringIO(self.stretto("predict", "g.model", "x.csv").out))]
                want = [[float(v) for v in line.split(",")] for line in self.read("y.csv").decode().split()]
                self.assertEqual(len(got), len(want))
                for a, b in zip(got, want):
                    for u, v in zip(a, b):
                        self.assertAlmostEqual(u, v, places=5)
                r = self.stretto("export", "g.model", "--onnx", "again.onnx", "--check", "x.csv")
                self.assertLess(float(re.search(r"largest difference (\S+)", r.err)[1]), 1e-5)

    @unittest.skipUnless(runtime() and have("onnx"), NO_RUNTIME)
    def test_all_that_is_not_supported_at_once(self):
        self.python(GRAPH, "GRU", 1, "one", "bad")
        r = self.stretto("import", "g.onnx", "-o", "g.model", status=9)
        self.assertIn("E906", r.err)
        self.assertIn("Softmax", r.err)
        self.assertIn("Exp", r.err)
        self.assertFalse(os.path.exists(self.path("g.model")))

    def test_bad_files(self):
        self.write("text.onnx", "this is no graph")
        self.write("empty.onnx", "")
        for name in ("text.onnx", "empty.onnx"):
            self.assertIn("E905", self.stretto("import", name, "-o", "g.model", status=9).err)
        self.assertIn("E701", self.stretto("import", "absent.onnx", "-o", "g.model", status=7).err)
        self.assertIn("E105", self.stretto("import", "text.onnx", status=2).err)
        self.assertIn("imported, not trained", self.stretto("train", AIR, "--task", "network", "-o", "m", status=2).err)


class Board(Onnx):
    def test_event_files(self):
        self.train(*SHORT, "--members", "1", "--tensorboard", "board/a")
        name, = os.listdir(self.path("board/a"))
        self.assertTrue(name.startswith("events.out.tfevents."))
        raw, at, n = self.read("board/a/" + name), 0, 0
        self.assertEqual((raw[:1], raw[8:12]), (b"\x18", b"\xa3\x7f\x4b\x22"))  # the record of brain.Event:2, and the checksum of its length
        while at < len(raw):
            at += 16 + struct.unpack_from("<Q", raw, at)[0]
            n += 1
        self.assertEqual(at, len(raw))
        self.assertGreater(n, 3)

    @unittest.skipUnless(have("tensorboard"), "there is no tensorboard here: tools/onnx_venv.sh gets it")
    def test_tensorboard_reads_the_losses(self):
        self.train(*SHORT, "--members", "1", "--tensorboard", "board", "--log", "log.csv")
        script = r"""
import json
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator("board"); a.Reload()
print(json.dumps({t: [[s.step, s.value] for s in a.Scalars(t)] for t in a.Tags()["scalars"]}))
"""
        got = json.loads(self.python(script))
        self.assertEqual(set(got), {"loss/train", "loss/valid", "lr", "grad_norm", "windows_per_s"})
        rows = list(csv.DictReader(io.StringIO(self.read("log.csv").decode())))
        want = [(int(r["step"]), float(r["valid"])) for r in rows if r["valid"]]
        self.assertEqual(len(want), len(got["loss/valid"]))
        for (step, value), (s, v) in zip(want, got["loss/valid"]):
            self.assertEqual(step, s)
            self.assertAlmostEqual(value, v, places=6)


if __name__ == "__main__":
    e2e.main()
