"""t_train.py - trainings from Python: the bits of the command line, callbacks, interrupts, resume, scores, errors."""
import csv
import io
import json
import logging
import os
import pickle
import signal
import sys
import threading

import common
import numpy as np
from common import AIR, FLAGS, LONG, QUICK, Case, air, e2e, panel, stretto


class Bits(Case):
    """The same data, options and seed give the same bits as the program."""

    def equal_forecasts(self, forecast, text):
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(list(rows[0]), list(forecast))
        for name in rows[0]:
            if name not in ("id", "time", "origin"):
                printed = np.array([np.float32(r[name]) for r in rows])
                np.testing.assert_array_equal(forecast[name].astype(np.float32), printed, name)

    def test_weights_and_forecasts_of_one_series(self):
        self.stretto("train", AIR, *FLAGS, "--quiet", "-o", "cli.model")
        model = stretto.train(air(), **QUICK)
        model.save(self.path("py.model"))
        self.same_model("cli.model", "py.model", "Python and the command line")
        self.equal_forecasts(model.predict(air()), self.stretto("predict", "cli.model", AIR).out)

    def test_weights_and_forecasts_of_a_panel(self):
        frame = panel()
        frame.to_csv(self.path("panel.csv"), index=False)
        options = {"time": "ds", "id": "unique_id", "target": "y", "horizon": 7, "past": ["price"], "cat": ["kind"], "steps": 60,
                   "head": "quantile", "quantiles": [0.05, 0.5, 0.95], "members": 1}
        flags = ["--time", "ds", "--id", "unique_id", "--target", "y", "--horizon", 7, "--past", "price", "--cat", "kind", "--steps", 60,
                 "--head", "quantile", "--quantiles", "0.05,0.5,0.95", "--members", 1]
        self.stretto("train", "panel.csv", *flags, "--quiet", "-o", "cli.model")
        model = stretto.train(frame, **options)
        model.save(self.path("py.model"))
        self.same_model("cli.model", "py.model", "a panel")
        self.equal_forecasts(model.predict(frame), self.stretto("predict", "cli.model", "panel.csv").out)
        samples = model.predict(frame, samples=5, seed=3)
        self.equal_forecasts(samples, self.stretto("predict", "cli.model", "panel.csv", "--samples", 5, "--seed", 3).out)

    def test_scores_are_those_of_the_program(self):
        self.stretto("train", AIR, *FLAGS, "--quiet", "-o", "cli.model")
        shown = self.stretto("eval", "cli.model", AIR).out
        model = stretto.load(self.path("cli.model"))
        self.assertEqual(model.evaluate(AIR).text, shown)
        self.assertEqual(model.evaluate(air())["rows"], model.evaluate(AIR)["rows"])

    def test_weights_are_views_of_the_file(self):
        model = stretto.train(air(), **QUICK)
        weights = model.weights
        self.assertEqual(weights["lstm.weight_hh_l0"].shape, (128, 32))
        self.assertTrue(np.shares_memory(weights["head.weight"], np.frombuffer(model.to_bytes(), np.uint8)))
        self.assertFalse(weights["head.weight"].flags.writeable)


class Callbacks(Case):
    def test_events_come_in_order_on_the_calling_thread(self):
        seen = []
        stretto.train(air(), callback=lambda e: seen.append((e, threading.current_thread())) and None, **QUICK)
        kinds = [e.kind for e, _ in seen]
        self.assertLess(kinds.index("begin"), kinds.index("validation"))
        self.assertIn("end", kinds)
        self.assertEqual({t for _, t in seen}, {threading.current_thread()})
        valid = [e for e, _ in seen if e.kind == "validation"]
        self.assertTrue(all(isinstance(e.valid, float) and e.steps == 40 for e in valid))

    def test_true_ends_the_training_with_a_model(self):
        steps = []

        def stop(event):
            if event.kind == "validation":
                steps.append(event.step)
                return len(steps) == 2
            return None

        model = stretto.train(air(), callback=stop, **LONG)
        self.assertEqual(len(steps), 2)
        self.assertEqual(model.predict(air()).rows, 12)
        self.assertIn("rows", model.scores)

    def test_stop_training_ends_it_too(self):
        def stop(event):
            if event.kind == "validation":
                raise stretto.StopTraining
        self.assertEqual(stretto.train(air(), callback=[stop], **LONG).horizon, 12)

    def test_an_exception_of_a_callback_is_that_of_train(self):
        def fail(event):
            if event.kind == "step":
                raise KeyError("mine")
        with self.assertRaises(KeyError) as raised:
            stretto.train(air(), callback=fail, **LONG)
        self.assertEqual(raised.exception.args, ("mine",))
        self.assertEqual(stretto.train(air(), **QUICK).horizon, 12)  # the process lives on

    def test_notes_go_to_the_logger_and_nothing_is_printed(self):
        with self.assertLogs("stretto", logging.INFO) as logs:
            stretto.train(air(), **QUICK)
        self.assertTrue(any("preset short" in line for line in logs.output), logs.output)
        status, out, err = common.python("import stretto; m = stretto.train(%r, target='Passengers', horizon=12, steps=20, members=1);"
                                         " m.predict(%r)" % (AIR, AIR))
        self.assertEqual((status, out, err), (0, "", ""))

    def test_progress_is_drawn_with_and_without_tqdm(self):
        code = ("import sys; sys.modules['tqdm.auto'] = None if %r else sys.modules.get('tqdm.auto')\n"
                "if sys.modules['tqdm.auto'] is None and not %r: del sys.modules['tqdm.auto']\n"
                "import stretto; stretto.train(%r, target='Passengers', horizon=12, steps=20, members=1, progress=True)")
        self.assertIn("step 20 of 20", common.python(code % (True, True, AIR))[2])
        self.assertIn("training", common.python(code % (False, False, AIR))[2])


class Interrupts(Case):
    def interrupt(self, **more):
        """Trains, and sends SIGINT to this process at the first validation."""
        def send(event):
            if event.kind == "validation" and event.step >= 500:
                os.kill(os.getpid(), signal.SIGINT)
        return stretto.train(air(), callback=send, **{**LONG, **more})

    def test_an_interrupt_stops_and_the_run_resumes_to_the_same_bits(self):
        more = {"steps": 3000, "validate_every": 500}
        whole = stretto.train(air(), **{**LONG, **more})
        with self.assertRaises(KeyboardInterrupt):
            self.interrupt(run_dir=self.path("run"), **more)
        self.assertTrue(os.listdir(self.path("run/checkpoints")))
        with self.assertRaises(stretto.UsageError) as raised:
            stretto.resume(self.path("run"))
        self.assertIn("data=df", raised.exception.fix)
        resumed = stretto.resume(self.path("run"), air())
        for name, tensor in whole.weights.items():
            np.testing.assert_array_equal(tensor, resumed.weights[name], name)
        self.assertEqual(stretto.load(self.path("run/model.safetensors")).horizon, 12)

    def test_a_run_of_a_file_resumes_without_data(self):
        def send(event):
            if event.kind == "validation":
                os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            stretto.train(AIR, callback=send, run_dir=self.path("run"), **{**LONG, "steps": 3000})
        self.assertEqual(stretto.resume(self.path("run"), threads=1).horizon, 12)

    def test_an_interrupt_without_a_folder_leaves_a_process_that_lives_on(self):
        with self.assertRaises(KeyboardInterrupt):
            self.interrupt()
        self.assertEqual(stretto.train(air(), **QUICK).horizon, 12)


class Errors(Case):
    def raises(self, kind, code, call, *arguments, **options):
        with self.assertRaises(kind) as raised:
            call(*arguments, **options)
        error = raised.exception
        self.assertEqual(error.code, code, error)
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))
        return error

    def test_a_misspelt_keyword_has_its_nearest_name(self):
        error = self.raises(stretto.UsageError, "E101", stretto.train, air(), target="Passengers", horizn=3)
        self.assertIn("horizon", error.fix)
        self.assertIsInstance(error, ValueError)

    def test_a_wrong_column_has_its_nearest_name(self):
        self.assertIn('did you mean "Passengers"', str(self.raises(stretto.UsageError, "E102", stretto.train, air(), target="passenger")))

    def test_remedies_are_keywords(self):
        error = self.raises(stretto.DataError, "E210", stretto.train, air().drop(index=[20]), target="Passengers", horizon=12)
        self.assertIn('gaps="mask"', error.fix)
        error = self.raises(stretto.TooShortError, "E301", stretto.train, air(), target="Passengers", horizon=100, context=100)
        self.assertRegex(error.fix, r"horizon=\d+")

    def test_files_and_models(self):
        error = self.raises(stretto.FileError, "E701", stretto.train, self.path("none.csv"), target="y")
        self.assertIsInstance(error, OSError)
        self.raises(stretto.FileError, "E701", stretto.load, self.path("none.model"))
        self.raises(stretto.ModelError, "E901", stretto.load, AIR)
        self.raises(stretto.ModelError, "E901", stretto.from_bytes, b"not a model at all")
        model = stretto.train(air(), **QUICK)
        self.raises(stretto.ModelError, "E903", model.predict, {"a": np.arange(50.0)})
        content = model.to_bytes()
        head = content[8:8 + int.from_bytes(content[:8], "little")]
        newer = head.replace(b'"stretto.format":"', b'"stretto.format":"9')
        if newer != head:
            content = len(newer).to_bytes(8, "little") + newer + content[8 + len(head):]
            self.raises(stretto.ModelError, "E902", stretto.from_bytes, content)

    def test_an_error_of_one_thread_is_not_that_of_another(self):
        found = []

        def fail(target):
            try:
                stretto.train(air(), target=target)
            except stretto.StrettoError as e:
                found.append((target, str(e)))

        threads = [threading.Thread(target=fail, args=("Passenger%d" % k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(found), 8)
        for target, text in found:
            self.assertIn('"%s"' % target, text)


class Verbs(Case):
    def test_backtest_check_and_plan(self):
        made = stretto.backtest(air(), folds=2, **QUICK)
        self.assertEqual([s["title"][:9] for s in made], ["fold 1 of", "fold 2 of"])
        text = self.stretto("backtest", AIR, *FLAGS, "--folds", 2, "--json").out
        self.assertEqual([dict(s) for s in made], json.loads(text))
        self.assertEqual(made.to_pandas().shape[0], sum(len(s["rows"]) for s in made))
        found = stretto.check(air().drop(index=[20]), target="Passengers")
        self.assertEqual((found.code, found["findings"][0]["code"]), ("E210", "E210"))
        self.assertIn("gaps", found.yaml)
        self.assertEqual(stretto.train(air().drop(index=[20]), config=found, steps=5, members=1).horizon, 12)
        plan = stretto.plan(air(), target="Passengers", horizon=12, threads=2)
        self.assertEqual(plan.summary()["exact"], True)
        self.assertIn("data:2", plan.compare())
        self.assertIn("<svg", plan.svg())
        self.assertEqual(stretto.plan(columns=7, horizon=96, machine="host*2(cpu*4)").summary()["devices"] > 1, True)

    def test_a_backtest_is_stopped(self):
        with self.assertRaises(stretto.StrettoError) as raised:
            stretto.backtest(air(), callback=lambda e: e.kind == "validation", **LONG)
        self.assertIn(raised.exception.code, ("E802", "E806"))

        def send(event):
            if event.kind == "validation":
                os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            stretto.backtest(air(), callback=send, **LONG)
        self.assertEqual(len(stretto.backtest(air(), folds=2, **QUICK)), 2)

    def test_tune_is_that_of_the_program_and_gives_options(self):
        options = {"target": "Passengers", "horizon": 12, "trials": 3, "threads": 1, "members": 1}
        found = stretto.tune(air(), **options)
        done = self.stretto("tune", AIR, "--target", "Passengers", "--horizon", 12, "--trials", 3, "--threads", 1, "--members", 1, "--json",
                            "-o", "best.yaml")
        want = json.loads(done.out)
        self.assertEqual([(t["options"], t["errors"]) for t in found["trials"]], [(t["options"], t["errors"]) for t in want["trials"]])
        self.assertEqual(found["chosen"], want["chosen"])
        self.assertEqual(len(found.to_pandas()), 3)
        self.assertIn("trial", str(found))
        self.assertEqual(stretto.train(air(), config=found, steps=5).horizon, 12)
        found.save(self.path("py.yaml"))
        self.assertEqual(stretto.train(air(), config=self.path("py.yaml"), steps=5).horizon, 12)

    def test_a_search_is_interrupted_and_goes_on(self):
        def send(event):
            if event.kind == "work":
                os.kill(os.getpid(), signal.SIGINT)
        options = {"target": "Passengers", "horizon": 12, "trials": 4, "threads": 1, "members": 1, "run_dir": self.path("run")}
        with self.assertRaises(KeyboardInterrupt):
            stretto.tune(air(), callback=send, **options)
        self.assertEqual(len(stretto.tune(air(), **options)["trials"]), 4)

    def test_an_onnx_file_is_written(self):
        model = stretto.train(air(), **QUICK)
        model.export_onnx(self.path("m.onnx"))
        self.assertGreater(os.path.getsize(self.path("m.onnx")), 100)

    def test_options_and_build(self):
        self.assertEqual(stretto.options()["horizon"].default, "auto")
        self.assertEqual(stretto.build_info()["abi"], 1)
        self.assertTrue(stretto.sample("airline").startswith("Month,"))

    def test_pictures(self):
        model = stretto.train(air(), **QUICK)
        forecast = model.predict(air())
        self.assertIn("<svg", forecast._repr_svg_())
        import matplotlib
        matplotlib.use("Agg")
        axes = forecast.plot()
        self.assertEqual(len(axes.lines), 2)  # history and forecast
        code = ("import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.pyplot'] = None\nimport stretto\n"
                "print('<svg' in stretto.load(%r).predict(%r).plot()._repr_svg_())")
        model.save(self.path("m.model"))
        self.assertEqual(common.python(code % (self.path("m.model"), AIR))[1], "True\n")

    def test_the_program_runs_as_a_module(self):
        import subprocess
        done = subprocess.run([sys.executable, "-m", "stretto", "version"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, self.stretto("version").out)


if __name__ == "__main__":
    e2e.main()
