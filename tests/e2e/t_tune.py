#!/usr/bin/env python3
"""t_tune.py - `stretto tune`: the same search for any number of threads and ranks, stopped, killed, resumed; its config trains."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from e2e import AIR, PROGRAM, SLOW, Case, main

FIT = ["--target", "Passengers", "--horizon", "12", "--test", "12", "--members", "1", "--max-steps", "0"]
QUIET = ["--progress", "none"]


def untimed(text):
    """A result as JSON without times."""
    result = json.loads(text)
    for trial in result["trials"]:
        del trial["seconds"]
    return result


class Tune(Case):
    def tune(self, *more, **how):
        return self.stretto("tune", AIR, *FIT, *QUIET, *more, timeout=240, **how)

    def lines(self, run):
        with open(self.path(run + "/trials.jsonl"), "rb") as f:
            return f.read().splitlines(True)

    def wait_for_lines(self, child, run, n):
        end = time.monotonic() + 120 * SLOW
        while time.monotonic() < end and child.poll() is None:
            if os.path.exists(self.path(run + "/trials.jsonl")) and len(self.lines(run)) >= n:
                return
            time.sleep(0.02)
        self.fail("the search has not written %d lines" % n)

    def test_result_is_a_config_that_trains(self):
        r = self.tune("--trials", "10", "-o", "best.yaml", "--plot", "why.svg")
        self.assertIn("10 trials", r.out)
        self.assertIn("the defaults", r.out)
        self.assertIn("chosen: ", r.out)
        self.assertIn("<svg", self.read("why.svg").decode())
        self.assertEqual(self.read("why.svg").count(b"<svg"), 3)
        for name in ("report.html", "best.yaml", "trials.jsonl"):
            self.assertTrue(os.path.exists(self.path("best.yaml.run/" + name)), name)
        self.assertEqual(self.read("best.yaml"), self.read("best.yaml.run/best.yaml"))
        trained = self.stretto("train", AIR, "-c", "best.yaml", "-o", "m")
        self.assertIn("model", trained.out)

    def test_threads_and_seed_decide_as_they_should(self):
        one = untimed(self.tune("--trials", "12", "--threads", "1", "--json", "-o", "a").out)
        two = untimed(self.tune("--trials", "12", "--threads", "2", "--json", "-o", "b").out)
        other = untimed(self.tune("--trials", "14", "--seed", "9", "--json", "-o", "c").out)
        self.assertEqual(one, two)
        self.assertNotEqual([t["options"] for t in one["trials"]], [t["options"] for t in other["trials"][:12]])

    def test_rows_of_the_test_part_change_nothing(self):
        with open(AIR, encoding="utf-8") as f:
            rows = f.read().splitlines()
        last = ["%s,%d" % (row.split(",")[0], 7 + 900 * (i % 2)) for i, row in enumerate(rows[-12:])]
        self.write("air.csv", "\n".join(rows) + "\n")
        self.write("other.csv", "\n".join(rows[:-12] + last) + "\n")
        results = [untimed(self.stretto("tune", name, *FIT, *QUIET, "--trials", "12", "--json", "-o", name + ".yaml", timeout=240).out)
                   for name in ("air.csv", "other.csv")]
        self.assertEqual(results[0], results[1])

    def test_same_command_goes_on_after_a_kill(self):
        whole = untimed(self.tune("--trials", "14", "--json", "-o", "whole").out)
        command = ["tune", AIR, *FIT, *QUIET, "--trials", "14", "--json", "-o", "cut"]
        for n in (3, 9, 20):
            child = self.start(*command)
            self.wait_for_lines(child, "cut.run", n)
            child.send_signal(signal.SIGKILL)
            child.wait()
        kept = len(self.lines("cut.run"))
        with open(self.path("cut.run/trials.jsonl"), "ab") as f:
            f.write(b'{"trial":13,"fi')  # the kill came in the middle of a line
        r = self.stretto(*command, timeout=240)
        self.assertIn("goes on with %d fits" % (kept - 1), r.err)
        self.assertEqual(untimed(r.out), whole)

    def test_finished_search_answers_from_its_record(self):
        first = self.tune("--trials", "8", "--json", "-o", "a")
        before = self.lines("a.run")
        again = self.tune("--trials", "8", "--json", "-o", "a")
        self.assertEqual(first.out, again.out)
        self.assertEqual(self.lines("a.run"), before)
        more = self.tune("--trials", "11", "--json", "-o", "a")
        self.assertEqual(self.lines("a.run")[:len(before)], before)
        self.assertEqual(len(json.loads(more.out)["trials"]), 11)

    def test_record_of_other_data_is_refused(self):
        self.tune("--trials", "3", "-o", "a")
        r = self.tune("--trials", "3", "--lr", "0.01", "-o", "a", status=7)
        self.assertIn("E705", r.err)

    def test_ctrl_c_writes_the_best_so_far(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            name = "s%d" % number
            child = self.start("tune", AIR, *FIT, *QUIET, "--trials", "100000", "-o", name)
            self.wait_for_lines(child, name + ".run", 20)
            child.send_signal(number)
            out, err = child.communicate(timeout=60 * SLOW)
            self.assertEqual(child.returncode, 75, err)
            self.assertIn("E802", err.decode())
            self.assertIn("chosen: ", out.decode())
            self.stretto("train", AIR, "-c", name, "-o", "m", "--steps", "5")

    def test_time_limit_ends_the_search_in_time(self):
        start = time.monotonic()
        self.tune("--time-limit", "4s", "-o", "a")
        self.assertLess(time.monotonic() - start, 4 + 4 * SLOW)
        held = len(self.lines("a.run"))
        self.assertGreater(held, 3)
        start = time.monotonic()
        self.tune("--time-limit", "4s", "-o", "a")  # its time is over already
        self.assertLess(time.monotonic() - start, 3 * SLOW)

    def test_given_options_do_not_vary(self):
        result = untimed(self.tune("--trials", "16", "--lr", "0.004", "--base", "mix", "--json", "-o", "a").out)
        for trial in result["trials"]:
            self.assertNotIn("lr", trial["options"])
            self.assertNotIn("base", trial["options"])
        self.assertIn("lr: 0.004", self.read("a").decode())

    def test_tables_and_sequences(self):
        rows = ["a,b,word,y"] + ["%d,%d,%s,%d" % (i * 7 % 31, i * 11 % 17, "xyz"[i % 3], (i * 7 % 31) * 3 + (i % 3) * 9) for i in range(300)]
        self.write("t.csv", "\n".join(rows) + "\n")
        forest = ["tune", "t.csv", "--task", "forest", "--target", "y", *QUIET]
        one = untimed(self.stretto(*forest, "--trials", "12", "--threads", "1", "--json", "-o", "a.yaml", timeout=240).out)
        two = untimed(self.stretto(*forest, "--trials", "12", "--threads", "2", "--json", "-o", "b.yaml", timeout=240).out)
        self.assertEqual(one, two)
        self.assertIn("mtry", one["importance"])
        self.assertNotIn("lr", one["importance"])
        self.stretto("train", "t.csv", "-c", "a.yaml", "-o", "m")
        steps = ["id,t,v,y"] + ["s%d,%d,%.2f,%s" % (k, t, (k % 2) * (t % 3) + 0.1 * (k * 7 % 5), "ab"[k % 2]) for k in range(120) for t in range(8)]
        self.write("s.csv", "\n".join(steps) + "\n")
        classify = ["tune", "s.csv", "--task", "classify", "--id", "id", "--target", "y", "--epochs", "2", *QUIET, "--trials", "8", "--json"]
        one = untimed(self.stretto(*classify, "--threads", "1", "-o", "c.yaml", timeout=240).out)
        two = untimed(self.stretto(*classify, "--threads", "2", "-o", "d.yaml", timeout=240).out)
        self.assertEqual(one, two)
        self.stretto("train", "s.csv", "-c", "c.yaml", "-o", "m2")

    def test_time_names_a_column(self):
        r = self.stretto("tune", AIR, "--target", "Passengers", "--time", "10m", status=2)
        self.assertIn("--time-limit 10m", r.err)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_ranks_share_the_trials(self):
        alone = untimed(self.tune("--trials", "12", "--json", "-o", "alone").out)
        command = ["mpirun", "--oversubscribe", "-n", "2", PROGRAM, "tune", AIR, *FIT, *QUIET, "--trials", "12", "--threads", "1",
                   "--json", "-o", "ranks"]
        done = subprocess.run(command, cwd=self.dir, capture_output=True, timeout=90 * SLOW,
                              env=self.environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
        if b"E803" in done.stderr:
            self.skipTest("ranks cannot connect here: " + done.stderr.decode())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(untimed(done.stdout.decode()), alone)


if __name__ == "__main__":
    main()
