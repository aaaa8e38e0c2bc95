"""t_resume.py - a run that is stopped and resumed ends with the bits of the run that was not.

SIGINT, SIGTERM or SIGUSR1 at some moment -> exit 75 and a checkpoint -> `stretto resume` -> the same tensors, forecasts and guard.
The moment is chosen by what the run has logged (so that it is known to be inside a member or the refit), then drawn at random.
"""
import glob
import json
import os
import random
import shutil
import signal
import time

import e2e
from e2e import AIR, Case

SEED = int(os.environ.get("STRETTO_TEST_SEED") or random.randrange(1 << 30))
STOPPED, UNFINISHED = 75, 76

# name: arguments of train; every run is long enough (about two seconds) to be hit, and short enough to be repeated
SHORT = ["--target", "Passengers", "--horizon", "12", "--members", "3", "--steps", "800", "--hidden", "48", "--batch", "59"]
LONG = ["--preset", "long", "--target", "all", "--horizon", "24", "--context", "96", "--steps", "400", "--hidden", "16", "--validate-every", "20"]
DAY = ["--preset", "day", "--combine", "average", "--target", "height", "--horizon", "24", "--context", "48", "--steps", "600", "--hidden", "32", "--batch", "64",
       "--validate-every", "100", "--no-guard", "--base", "last"]
STREAM = ["--target", "y", "--past", "u", "--horizon", "1", "--context", "2048", "--steps", "300", "--validate-every", "15", "--members", "2", "--refit-all",
          "--parallel", "time:4"]


class Resume(Case):
    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)
        print("seed %d (STRETTO_TEST_SEED repeats a run)" % SEED)

    def reached(self, run, member, step, refit=False):
        """Has the run logged `step` of `member` (in the refit, where steps begin again, when that is asked)?"""
        path = self.path(run + "/metrics.jsonl")
        if not os.path.exists(path):
            return False
        last, again = (-1, -1), False
        with open(path, encoding="utf-8") as f:
            for line in f:
                if not line.endswith("\n"):
                    break  # caught while it is written; what comes next would be the rest of it
                e = json.loads(line)
                now = (e["member"], e["step"])
                again |= now < last
                last = now
                if (again or not refit) and now >= (member, step):
                    return True
        return False

    def stop(self, child, run, number, member=0, step=20, refit=False):
        """Sends the signal once the run is past the given point.  True when it stopped with a checkpoint, False when it was over."""
        limit = time.monotonic() + 60 * e2e.SLOW
        while child.poll() is None and not self.reached(run, member, step, refit):
            self.assertLess(time.monotonic(), limit, "the run never got to member %d" % member)
            time.sleep(0.002)
        if not refit:
            time.sleep(self.random.uniform(0, 0.02))
        if child.poll() is None:
            child.send_signal(number)
        out, err = child.communicate(timeout=60 * e2e.SLOW)
        if child.returncode == 0:
            return False
        self.assertEqual(child.returncode, STOPPED, err.decode())
        self.assertIn("stretto resume", err.decode())
        self.assertEqual(out, b"")
        self.assertTrue(os.listdir(self.path(run + "/checkpoints")))
        return True

    def interrupted(self, data, options, number, points, name="cut"):
        """Trains with an interruption at each (member, step, refit); returns how many hit."""
        hits = 0
        if os.path.exists(self.path(name + ".model")):
            os.unlink(self.path(name + ".model"))
        args = ["train", data, *options, "-o", name + ".model", "--quiet"]
        for point in points:
            child = self.start(*args)
            if not self.stop(child, name + ".model.run", number, *point):
                return hits
            self.assertFalse(os.path.exists(self.path(name + ".model")), "no model before the end")
            hits += 1
            args = ["resume", name + ".model.run", "--quiet"]
        self.stretto(*args)
        return hits

    def compare(self, data, options, number, points, name):
        self.stretto("train", data, *options, "-o", "whole.model", "--quiet")
        hits = 0
        for attempt in range(4):
            hits = self.interrupted(data, options, number, points, name)
            self.same_model("whole.model", name + ".model", "%d interruptions" % hits)
            self.same_metrics("whole.model.run", name + ".model.run", "%d interruptions" % hits)
            if hits == len(points):
                break
        self.assertEqual(hits, len(points), "the run was over before it could be stopped")
        a = self.stretto("predict", "whole.model", data).out
        self.assertEqual(a, self.stretto("predict", name + ".model", data).out)

    def test_sigint_in_the_first_member(self):
        self.compare(AIR, SHORT, signal.SIGINT, [(0, 50)], "int")

    def test_sigterm_in_a_later_member(self):
        self.compare(AIR, SHORT, signal.SIGTERM, [(1, 200)], "term")

    def test_sigusr1_twice_over_members(self):
        self.compare(AIR, SHORT, signal.SIGUSR1, [(0, 300), (2, 100)], "usr1")

    def test_ensemble_that_ends_early_and_its_refit(self):
        options = [*SHORT, "--member-gain", "100", "--base", "none", "--no-guard", "--refit-all"]
        self.compare(AIR, options, signal.SIGTERM, [(1, 200), (0, 0, True)], "few")
        self.assertEqual(json.loads(self.stretto("info", "few.model", "--json").out)["training"]["members"], 2)

    def test_preset_long_twice(self):
        self.stretto("sample", "tides", "--rows", "1500", "-o", "tides.csv")
        data = self.two_columns("tides.csv")
        self.compare(data, LONG, signal.SIGTERM, [(0, 40), (0, 200)], "long")

    def test_preset_day_in_the_refit(self):
        self.stretto("sample", "tides", "--rows", "1500", "-o", "tides.csv")
        self.compare(self.path("tides.csv"), DAY, signal.SIGINT, [(0, 60), (0, 0, True)], "day")

    def test_stream_twice_and_in_the_refit(self):
        self.stretto("sample", "long-memory", "--rows", "12000", "-o", "long.csv")
        self.compare(self.path("long.csv"), STREAM, signal.SIGTERM, [(0, 60), (1, 45), (0, 0, True)], "stream")

    def two_columns(self, name):
        lines = self.read(name).decode().splitlines()
        out = [lines[0] + ",other"]
        for i, line in enumerate(lines[1:]):
            out.append("%s,%.4f" % (line, float(line.rsplit(",", 1)[1]) * 0.5 + i % 7))
        return self.write("two.csv", "\n".join(out) + "\n")

    def killed(self, *who):
        """kill -9 while steps are done that no checkpoint has; False when the run was over."""
        child = self.start("train", AIR, *SHORT, *who, "--checkpoint-every", "0.3s", "-o", "kill.model", "--quiet")
        folder = self.path("kill.model.run/checkpoints")
        limit = time.monotonic() + 60 * e2e.SLOW
        while child.poll() is None and not glob.glob(folder + "/*.ckpt"):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.002)
        time.sleep(0.1 + self.random.uniform(0, 0.1))
        child.kill()
        child.communicate()
        newest = max([int(os.path.basename(p)[:-5]) for p in glob.glob(folder + "/*.ckpt")] or [1 << 60])
        last = e2e.metrics(self.path("kill.model.run"))[-1]
        return last["member"] * 801 + last["step"] > newest

    def test_metrics_after_a_kill(self):
        """What the dead run had told of steps that are done again is not told twice."""
        self.stretto("train", AIR, *SHORT, "-o", "whole.model", "--quiet")
        for before, after in (((), ()), (("--ranks", "2"), ("--ranks", "3"))):
            self.assertTrue(any(self.killed(*before) for _ in range(4)), "every kill hit right after a checkpoint")
            self.stretto("resume", "kill.model.run", *after, "--quiet")
            self.same_model("whole.model", "kill.model", "killed")
            self.same_metrics("whole.model.run", "kill.model.run", "killed")

    def test_metrics_where_the_time_was_over(self):
        """A run that is out of time measures once more, which the unbroken one does not."""
        options = [*SHORT, "--members", "1", "--steps", "4000"]
        self.stretto("train", AIR, *options, "-o", "whole.model", "--quiet")
        for limit in ("0.2s", "0.3s", "0.4s", "0.6s", "0.8s", "1.6s", "3.2s"):  # some machine is busy until then, or measures just then
            self.stretto("train", AIR, *options, "-o", "late.model", "--quiet", "--time-limit", limit, status=UNFINISHED)
            if any(line.get("early") for line in e2e.metrics(self.path("late.model.run"))):
                break
        else:
            self.fail("it was never out of time between two measurements")
        self.stretto("resume", "late.model.run", "--time-limit", "0", "--quiet")
        self.same_model("whole.model", "late.model", "out of time")
        self.same_metrics("whole.model.run", "late.model.run", "out of time")

    def test_any_moment(self):
        """No waiting for a point: the signal may fall into reading, choosing a base, training or scoring."""
        self.stretto("train", AIR, *SHORT, "-o", "whole.model", "--quiet")
        for i in range(e2e.times(2, 8)):
            name = "any%d" % i
            child = self.start("train", AIR, *SHORT, "-o", name + ".model", "--quiet")
            time.sleep(0.05 + self.random.uniform(0, 1.0))
            child.send_signal(signal.SIGUSR1)
            _, err = child.communicate(timeout=60 * e2e.SLOW)
            self.assertIn(child.returncode, (0, STOPPED, -signal.SIGUSR1), err.decode())
            if child.returncode == STOPPED:
                self.stretto("resume", name + ".model.run", "--quiet")
            if child.returncode >= 0:
                self.same_model("whole.model", name + ".model", "stopped at any moment")


class ChangedData(Case):
    """The file changes between a stop and `resume`."""
    ARGS = ["--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "600", "--batch", "59", "--quiet"]

    def setUp(self):
        super().setUp()
        with open(AIR, encoding="utf-8") as f:
            self.lines = f.read().splitlines()

    def put(self, lines, name="air.csv"):
        return self.write(name, "\n".join(lines) + "\n")

    def cut_run(self, *more, lines=None, args=None):
        """A run with a checkpoint and without an end; the trainings that follow begin with a copy of it."""
        data = self.put(lines or self.lines)
        args = args or self.ARGS
        self.stretto("train", data, *args, *more, "-o", "whole.model")
        for limit in ("0.1s", "0.05s", "0.02s", "0.01s"):
            self.stretto("train", data, *args, *more, "-o", "cut.model", "--time-limit", limit, status=UNFINISHED)
            if os.path.isdir(self.path("cut.model.run/checkpoints")) and os.listdir(self.path("cut.model.run/checkpoints")):
                break
        else:
            self.fail("it was never out of time")
        shutil.copytree(self.path("cut.model.run"), self.path("kept.run"))
        os.unlink(self.path("cut.model"))

    def resume(self, *more, status=0):
        shutil.rmtree(self.path("cut.model.run"))
        shutil.copytree(self.path("kept.run"), self.path("cut.model.run"))
        r = self.stretto("resume", "cut.model.run", "--quiet", "--time-limit", "0", *more, status=status)
        self.assertEqual(os.path.exists(self.path("cut.model")), status == 0)
        if status == 0:
            os.rename(self.path("cut.model"), self.path("last.model"))
        return "".join(line for line in r.err.splitlines(True) if "on the test split" not in line)

    def test_same_values_in_another_form(self):
        self.cut_run()
        self.put([line.replace(",", ";") for line in self.lines])
        self.assertEqual(self.resume(), "")
        self.same_model("whole.model", "last.model", "with semicolons")

    def test_appended_rows(self):
        self.cut_run()
        self.put(self.lines + ["1961-01,450", "1961-02,418"])
        err = self.resume(status=3)
        self.assertRegex(err, r"^error\[E215\] \S*air.csv:146: there were 144 rows up to 1960-12 when the run began, there are 146 up to 1961-02: "
                              r"2 more, lines 146 to 147\n  fix: .* stretto resume cut.model.run --data-changed\n$")
        self.assertIn("rows behind the test part are not used", self.resume("--data-changed"))
        self.same_model("whole.model", "last.model", "with rows that are not used")
        self.same_metrics("whole.model.run", "cut.model.run", "with rows that are not used")

    def test_accepted_data_are_those_of_the_run_from_then_on(self):
        self.cut_run()
        self.put(self.lines + ["1961-01,450"])
        shutil.rmtree(self.path("cut.model.run"))
        shutil.copytree(self.path("kept.run"), self.path("cut.model.run"))
        self.stretto("resume", "cut.model.run", "--quiet", "--time-limit", "0.01s", "--data-changed", status=UNFINISHED)
        os.unlink(self.path("cut.model"))
        shutil.rmtree(self.path("kept.run"))
        shutil.copytree(self.path("cut.model.run"), self.path("kept.run"))
        self.assertEqual(self.resume(), "")
        self.same_model("whole.model", "last.model", "resumed once more")
        self.put(self.lines)
        self.assertIn("1 fewer", self.resume(status=3))

    def test_one_value(self):
        self.cut_run()
        for line, part in ((50, "training"), (120, "validation"), (140, "test")):
            self.put(self.lines[:line - 1] + [self.lines[line - 1].split(",")[0] + ",333"] + self.lines[line:])
            err = self.resume(status=3)
            was = self.lines[line - 1].split(",")[1].strip()
            self.assertRegex(err, r'the value of column "Passengers" is not as it was when the run began, in line %d \([-0-9]+, %s part\): '
                                  r"%s, now 333\n" % (line, part, was))
            self.assertIn("training continues with the data as they are", self.resume("--data-changed"))

    def test_cut(self):
        self.cut_run()
        self.put(self.lines[:130])
        for more in ((), ("--data-changed",)):
            err = self.resume(*more, status=3)
            self.assertIn("there are 129 up to 1959-09: 15 fewer\n", err)
            self.assertIn("rows of the training or validation part are gone", err)
            self.assertNotIn("--data-changed", err)
        self.put(self.lines[:140])
        self.assertIn("--data-changed", self.resume(status=3))
        self.assertIn("there are 139 up to 1960-07: 5 fewer; training continues", self.resume("--data-changed"))
        self.put(self.lines[:1] + self.lines[2:])
        self.assertIn("rows of the training or validation part were added, removed or shifted", self.resume("--data-changed", status=3))

    def test_other_name(self):
        self.cut_run()
        self.put(["Month,People"] + self.lines[1:])
        self.assertIn("fix: the file as it was when the run began", self.resume(status=2))
        args = ["--target", "all", *self.ARGS[2:]]
        shutil.rmtree(self.path("kept.run"))
        self.cut_run(args=args)
        self.put(["Month,People"] + self.lines[1:])
        self.assertIn('column "People" was called "Passengers" when the run began\n', self.resume(status=3))
        self.assertIn('column "People" was called "Passengers"', self.resume("--data-changed"))

    def test_filled_gaps(self):
        holes = self.lines[:40] + [self.lines[40].split(",")[0] + ","] + self.lines[41:60] + self.lines[61:]  # a cell and a row
        self.cut_run("--gaps", "mask", lines=holes)
        self.put(holes)
        self.assertEqual(self.resume(), "")
        self.same_model("whole.model", "last.model", "with gaps")
        self.put(self.lines[:60] + self.lines[61:])
        err = self.resume(status=3)
        self.assertRegex(err, r'column "Passengers" .*: missing, now [0-9.]+\n')
        self.put(holes[:60] + [self.lines[60]] + holes[60:])
        self.assertRegex(self.resume(status=3), r'column "Passengers" .*: missing, now 201\n')
        self.assertIn("training continues", self.resume("--data-changed"))

    def test_run_of_an_earlier_version(self):
        self.cut_run()
        for text in (None, "{", "{}", '{"stretto.fingerprint":2}'):
            os.unlink(self.path("kept.run/data.json")) if text is None else self.write("kept.run/data.json", text)
            err = self.resume()
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn("warning: the data cannot be compared with those that the run began with: ", err)
            self.same_model("whole.model", "last.model", "not compared")
            self.assertTrue(json.loads(self.read("cut.model.run/data.json"))["columns"], "written for the next resume")

    def test_cache_file(self):
        """A run may read a cache file, and resume from the text that it was made of, and the other way round."""
        self.cut_run()
        text = self.read("air.csv")
        self.stretto("cache", "air.csv", "-o", "air.bin", "--quiet")
        os.rename(self.path("air.bin"), self.path("air.csv"))
        self.assertEqual(self.resume(), "")
        self.same_model("whole.model", "last.model", "from a cache file")
        self.write("air.txt", text.decode().replace(",118", ",119", 1))
        self.stretto("cache", "air.txt", "-o", "air.csv", "--quiet")
        self.assertIn('the value of column "Passengers"', self.resume(status=3))
        data = bytearray(self.read("air.csv"))
        data[-100] ^= 4
        with open(self.path("air.csv"), "wb") as f:
            f.write(data)
        self.assertIn("E202", self.resume(status=3))

    def test_place_in_a_folder_and_in_a_panel(self):
        """The file and line of a folder; of a panel, whose rows are one of each series, too."""
        os.mkdir(self.path("air.csv"))
        parts = [self.lines[:1] + self.lines[k:k + 48] for k in (1, 49, 97)]
        for k, lines in enumerate(parts):
            self.put(lines, "air.csv/%d.csv" % k)
        args = ["train", "air.csv", *self.ARGS, "--steps", "1000000", "--time-limit", "0.1s", "-o", "cut.model"]
        self.stretto(*args, status=UNFINISHED)
        os.rename(self.path("cut.model.run"), self.path("kept.run"))
        os.unlink(self.path("cut.model"))
        os.mkdir(self.path("cut.model.run"))
        self.put(parts[1][:7] + ["1953-07,333"] + parts[1][8:], "air.csv/1.csv")
        self.assertRegex(self.resume(status=3), r"^error\[E215\] \S*air\.csv/1\.csv:8: .* in line 8 \(1953-07, training part\): 264, now 333\n")
        self.put(parts[1], "air.csv/1.csv")
        self.put(parts[2] + ["1961-01,450"], "air.csv/2.csv")
        self.assertRegex(self.resume(status=3), r"^error\[E215\] \S*air\.csv/2\.csv:50: .*: 1 more, line 50\n")
        shutil.rmtree(self.path("air.csv"))
        shutil.rmtree(self.path("kept.run"))
        rows = ["%s,2020-%02d-%02d,%d" % (s, 1 + d // 28, 1 + d % 28, d * 37 % 11) for s in "ab" for d in range(140)]
        self.put(["id,day,Passengers"] + rows)
        self.stretto(*args, "--id", "id", "--gaps", "mask", status=UNFINISHED)
        os.rename(self.path("cut.model.run"), self.path("kept.run"))
        os.unlink(self.path("cut.model"))
        os.mkdir(self.path("cut.model.run"))
        self.put(["id,day,Passengers"] + rows[:150] + ["b,2020-01-11,333"] + rows[151:])
        self.assertRegex(self.resume(status=3), r'^error\[E215\] \S*air\.csv:152: the value of column "b" is not as it was when the run began, in '
                                                r"2020-01-11 \(training part\): 7, now 333\n")

    def test_ranks_end_with_the_same_error(self):
        self.cut_run("--ranks", "2")
        self.put(self.lines + ["1961-01,450"])
        self.assertIn("E215", self.resume("--ranks", "3", status=3))
        self.assertIn("rows behind the test part are not used", self.resume("--ranks", "3", "--data-changed"))
        self.same_model("whole.model", "last.model", "three ranks")


class RunFolder(Case):
    def until(self, name):
        """Waits for a file of a run that has just been started."""
        limit = time.monotonic() + 30 * e2e.SLOW
        while not os.path.exists(self.path(name)):
            self.assertLess(time.monotonic(), limit, name)
            time.sleep(0.01)

    def test_second_run_in_the_same_folder_is_refused(self):
        args = ["train", AIR, "--target", "Passengers", "--horizon", "12", "--steps", "100000000", "--run-dir", "r", "--quiet"]
        child = self.start(*args, "-o", "a.model")
        self.until("r/config.json")
        config = self.read("r/config.json")
        r = self.stretto(*args, "-o", "b.model", status=7)
        self.assertEqual(r.err, "error[E704] another process is writing to the run folder r\n"
                                "  fix: --run-dir OTHER   (or wait until the other run is over)\n")
        self.assertEqual(config, self.read("r/config.json"), "the folder of the first run is untouched")
        self.assertEqual(self.stretto("resume", "r", "--quiet", status=7).err[:11], "error[E704]")
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, STOPPED)

    def test_second_sigint_stops_at_once(self):
        child = self.start("train", AIR, "--target", "Passengers", "--horizon", "12", "--steps", "100000000", "--hidden", "512", "--batch", "64",
                           "-o", "a.model", "--quiet")
        self.until("a.model.run/metrics.jsonl")
        child.send_signal(signal.SIGINT)
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertIn(child.returncode, (130, STOPPED))

    def test_two_sigints_at_once_are_one(self):
        """As `timeout -s INT` sends them: to its command, and to the group."""
        child = self.start("train", AIR, "--target", "Passengers", "--horizon", "12", "--steps", "100000000", "-o", "a.model", "--quiet")
        self.until("a.model.run/metrics.jsonl")
        for _ in range(20):
            child.send_signal(signal.SIGINT)
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, STOPPED)

    def test_files_of_the_command_line_are_those_of_where_it_was_given(self):
        """A plan, a log and a picture named by a relative path; the resume is given in another folder."""
        common = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--preset", "none"]
        self.stretto("plan", AIR, *common[:4], "--preset", "none", "--save", "p.plan", "--quiet")
        child = self.start("train", AIR, *common, "--plan", "p.plan", "--log", "cut.csv", "--plot", "cut.svg", "--steps", "100000000",
                           "-o", "cut.model", "--quiet")
        self.until("cut.model.run/metrics.jsonl")
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, STOPPED)
        os.unlink(self.path("cut.csv"))
        os.mkdir(self.path("elsewhere"))
        self.stretto("resume", self.path("cut.model.run"), "--steps", "60", "--quiet", cwd=self.path("elsewhere"))
        for name in ("cut.model", "cut.csv", "cut.svg"):
            self.assertTrue(os.path.exists(self.path(name)), name)
        self.assertEqual(os.listdir(self.path("elsewhere")), [])

    def test_new_run_forgets_the_checkpoints_of_the_old_one(self):
        common = ["train", AIR, "--target", "Passengers", "--horizon", "12", "--members", "1", "--quiet", "-o", "a.model"]
        child = self.start(*common, "--steps", "100000000")
        self.until("a.model.run/metrics.jsonl")
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, STOPPED)
        self.stretto(*common, "--steps", "50")
        folder = self.path("a.model.run/checkpoints")
        self.assertEqual(os.listdir(folder) if os.path.exists(folder) else [], [])


if __name__ == "__main__":
    e2e.main()
