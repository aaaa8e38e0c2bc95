"""t_threads.py - models in threads and copies, forks, and the exit of an interpreter that trains."""
import copy
import ctypes
import os
import pickle
import threading
import time

import common
import numpy as np
from common import AIR, QUICK, Case, air, e2e, stretto

from stretto import _lib, arrow_c, columns


class Models(Case):
    @classmethod
    def setUpClass(cls):
        cls.model = stretto.train(air(), **QUICK)
        cls.want = cls.model.predict(air())["mean"]

    def test_copies_forecast_the_same(self):
        for other in (pickle.loads(pickle.dumps(self.model)), copy.deepcopy(self.model), copy.copy(self.model),
                      stretto.from_bytes(self.model.to_bytes())):
            np.testing.assert_array_equal(other.predict(air())["mean"], self.want)
        self.assertEqual(copy.deepcopy(self.model).scores, self.model.scores)
        forecast = pickle.loads(pickle.dumps(self.model.predict(air())))
        np.testing.assert_array_equal(forecast["mean"], self.want)
        self.assertIsNone(forecast._repr_svg_())

    def test_eight_threads_share_a_model(self):
        frame, bad = air(), []

        def work():
            for _ in range(10):
                got = self.model.predict(frame, threads=1)["mean"]
                if not np.array_equal(got, self.want):
                    bad.append(got)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])
        self.assertLessEqual(len(self.model._idle), 16)

    def test_a_call_costs_less_than_a_millisecond_beside_the_library(self):
        """What Python adds to a forecast: the calls of the library alone are measured in turn with whole ones."""
        frame, inside, whole = air(), [], []
        for _ in range(60):
            with self.model._handle({"threads": 1}) as handle:
                stream = arrow_c.stream_of(*columns.columns_of(frame))
                array, schema = arrow_c.ArrayC(), arrow_c.Schema()
                began = time.perf_counter()
                table = _lib.new("frame_new", ctypes.addressof(stream), b"data frame")
                rows = _lib.new("model_open", handle, _lib.string("frame_path", table).encode())
                _lib.call("predict_arrow", handle, rows, 0, 1, ctypes.addressof(array), ctypes.addressof(schema))
                _lib.library().stretto_data_free(rows)
                _lib.library().stretto_frame_free(table)
                inside.append(time.perf_counter() - began)
                for struct in (array, schema):
                    struct.release(ctypes.pointer(struct))
            began = time.perf_counter()
            self.model.predict(frame, threads=1)
            whole.append(time.perf_counter() - began)
        self.assertLess(sorted(whole)[10] - sorted(inside)[10], 1e-3 * e2e.SLOW)

    def test_two_trainings_at_the_same_time_give_the_bits_of_one(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(stretto.train(air(), **QUICK))) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for model in found:
            np.testing.assert_array_equal(model.weights["head.weight"], self.model.weights["head.weight"])

    def test_a_fork_forecasts_and_trains(self):
        self.model.predict(air())
        plan = stretto.plan(air(), target="Passengers", horizon=12)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                same = np.array_equal(self.model.predict(air())["mean"], self.want)
                same = same and np.array_equal(stretto.train(air(), **QUICK).predict(air())["mean"], self.want)
                try:
                    plan.summary()
                except stretto.UsageError as e:
                    same = same and "fork" in str(e)
                    status = 0 if same else 2
                os.write(write, str(same).encode())
            finally:
                os._exit(status)
        os.close(write)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(os.read(read, 10), b"True")
        os.close(read)

    def test_processes_of_multiprocessing(self):
        code = ("import multiprocessing as mp, stretto\n"
                "def f(m): return float(m.predict(%r)['mean'][0])\n"
                "if __name__ == '__main__':\n"
                "    m = stretto.load(%r)\n"
                "    for how in ('fork', 'spawn'):\n"
                "        with mp.get_context(how).Pool(2) as pool: print(set(pool.map(f, [m] * 4)))\n")
        self.model.save(self.path("m.model"))
        with open(self.path("p.py"), "w", encoding="utf-8") as f:
            f.write(code % (AIR, self.path("m.model")))
        status, out, err = common.python("import runpy; runpy.run_path(%r, run_name='__main__')" % self.path("p.py"))
        self.assertEqual((status, out), (0, "{%r}\n" % float(self.want[0]) * 2), err)


class Exits(Case):
    def leave(self, ending):
        """A daemon thread trains for minutes when the interpreter leaves."""
        code = ("import threading, stretto, time, sys, os\n"
                "begun = threading.Event()\n"
                "def work():\n"
                "    stretto.train(%r, target='Passengers', horizon=12, members=1, steps=10**7, max_steps=0, validate_every=100,\n"
                "                  callback=lambda e: begun.set() if e.kind == 'validation' else None)\n"
                "threading.Thread(target=work, daemon=True).start()\n"
                "begun.wait(60)\n%s\n")
        began = time.monotonic()
        status, out, err = common.python(code % (AIR, ending))
        self.assertLess(time.monotonic() - began, 60 * e2e.SLOW)
        return status, out, err

    def test_the_end_of_the_program(self):
        self.assertEqual(self.leave("print('end')"), (0, "end\n", ""))

    def test_sys_exit_and_an_exception(self):
        self.assertEqual(self.leave("sys.exit(3)")[0], 3)
        status, _, err = self.leave("raise ValueError('mine')")
        self.assertEqual((status, err.rstrip().rsplit("\n", 1)[-1]), (1, "ValueError: mine"))

    def test_an_interrupt_of_the_program(self):
        import signal
        import subprocess
        import sys
        code = ("import stretto, os\n"
                "def beat(e):\n"
                "    if e.kind == 'validation': print('go', flush=True)\n"
                "stretto.train(%r, target='Passengers', horizon=12, members=1, steps=10**7, max_steps=0, validate_every=100, callback=beat)\n")
        child = subprocess.Popen([sys.executable, "-c", code % AIR], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "go\n")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertIn("KeyboardInterrupt: nothing was kept; with run_dir=..", err.splitlines()[-1])


if __name__ == "__main__":
    e2e.main()
