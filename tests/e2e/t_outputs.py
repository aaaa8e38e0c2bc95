"""t_outputs.py - what was trained is not lost: outputs that fail, time limits that end a run, signals of terminals and limits."""
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import time

import e2e
from e2e import AIR, Case
from t_limits import unprivileged

TRAIN = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "2500", "--batch", "40", "--validate-every", "500",
         "--threads", "1", "--quiet"]
QUICK = [*TRAIN[:7], "40", "--quiet"]
UNFINISHED = 76


class Outputs(Case):
    def setUp(self):
        super().setUp()
        for name in ("state", "tmp"):
            os.mkdir(self.path(name))

    def environment(self, **more):
        return super().environment(XDG_STATE_HOME=self.path("state"), TMPDIR=self.path("tmp"), **more)

    def small_disk(self, size="1m"):
        small, libc = self.path("small"), ctypes.CDLL(None, use_errno=True)
        os.mkdir(small)
        if os.geteuid() != 0 or libc.mount(b"none", small.encode(), b"tmpfs", 0, b"size=" + size.encode()) != 0:
            self.skipTest("a small disk can only be mounted by root")
        self.addCleanup(libc.umount2, small.encode(), 2)
        return small

    def fill(self, folder):
        with open(os.path.join(folder, "fill"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass

    def in_training(self, child, run):
        """Waits until the first steps are done."""
        limit = time.monotonic() + 60 * e2e.SLOW
        while child.poll() is None and time.monotonic() < limit:
            try:
                with open(self.path(run + "/status/rank-0.json"), encoding="utf-8") as f:
                    if json.load(f)["phase"] == "train":
                        return
            except (OSError, ValueError):
                pass
            time.sleep(0.002)
        self.fail("it never trained: %s" % child.communicate()[1].decode())

    def end(self, child, status):
        out, err = child.communicate(timeout=120 * e2e.SLOW)
        self.assertEqual(child.returncode, status, err.decode())
        return out.decode(), err.decode()

    def stopped_run(self):
        """whole.model, and the run m.model.run that was stopped at a checkpoint on its way there."""
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model")
        child = self.start("train", AIR, *TRAIN, "-o", "m.model", "--checkpoint-every", "0.05s")
        self.in_training(child, "m.model.run")
        child.send_signal(signal.SIGTERM)
        self.end(child, 75)

    def finish(self, run, *more, model="m.model"):
        """Resume writes what is missing, and trains nothing."""
        r = self.stretto("resume", run, *more)
        self.assertIn("the training is over, its model is in ", r.err)
        self.assertNotIn("resumed member", r.err)
        self.assertNotIn("base ", "".join(line for line in r.err.splitlines(True) if not line.startswith("preset")))
        self.assertIn("skill", r.out)
        self.same_model("whole.model", model, "finished by resume")
        self.assertEqual([os.path.join(at, n) for at, _, names in os.walk(self.dir) for n in names if "trained" in n or n == "reserve"], [])
        self.assertEqual(os.listdir(self.path("tmp")), [])
        with open(self.path(run + "/run.json"), encoding="utf-8") as f:
            self.assertTrue(json.load(f)["finished"])
        self.assertTrue(os.path.exists(self.path(run + "/report.html")))
        return r

    def test_log_that_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model", "--log", "whole.csv")
        r = self.stretto("train", AIR, *TRAIN, "-o", "m.model", "--log", "/dev/full", status=7)
        self.assertRegex(r.err, r"error\[E703\] cannot write /dev/full: no space left on device\n  the trained model is in m\.model\n"
                                r"  fix: make room, then: stretto resume m\.model\.run\n  fix: stretto resume m\.model\.run --log OTHER/NAME\n$")
        self.same_model("whole.model", "m.model", "its log failed")
        self.finish("m.model.run", "--log", "m.csv")
        self.assertEqual(self.read("whole.csv"), self.read("m.csv"), "the log of the whole run")

    def test_log_of_a_resumed_run_is_whole(self):
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model", "--log", "whole.csv")
        child = self.start("train", AIR, *TRAIN, "-o", "m.model")
        self.in_training(child, "m.model.run")
        child.send_signal(signal.SIGTERM)
        self.end(child, 75)
        self.stretto("resume", "m.model.run", "--log", "m.csv")
        self.assertEqual(self.read("whole.csv"), self.read("m.csv"))

    def test_model_on_a_disk_that_fills_up(self):
        """-o on a full disk, the run folder on another one: the model is in the run folder."""
        small = self.small_disk()
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model")
        child = self.start("train", AIR, *TRAIN, "-o", "small/m.model", "--run-dir", "r")
        self.in_training(child, "r")
        self.fill(small)
        _, err = self.end(child, 7)
        self.assertRegex(err, r"error\[E703\] cannot write small/m\.model\.tmp: no space left on device .*\n  the trained model is in "
                              r"r/trained\.model\n  fix: make room, then: stretto resume r\n  fix: stretto resume r --out OTHER/NAME\n$")
        self.same_model("whole.model", "r/trained.model", "in the run folder")
        self.finish("r", "--out", "m.model")

    def test_run_on_a_disk_that_fills_up(self):
        """Everything on a disk that fills up: the place of the model was reserved before the first step."""
        small = self.small_disk()
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model")
        child = self.start("train", AIR, *TRAIN, "-o", "small/m.model")
        self.in_training(child, "small/m.model.run")
        self.assertTrue(os.path.exists(self.path("small/m.model.run/reserve")))
        self.fill(small)
        self.end(child, 0)
        self.same_model("whole.model", "small/m.model", "in the reserved place")

    def test_folder_that_becomes_read_only(self):
        """Neither -o nor the run folder nor its neighbour: the model is in the folder of the user's state."""
        shutil.copy(AIR, self.path("air.csv"))
        program = shutil.copy(e2e.PROGRAM, self.path("stretto"))
        os.mkdir(self.path("out"))
        for name in ("", "out", "state", "tmp"):
            os.chmod(self.path(name), 0o777)
        self.stretto("train", "air.csv", *TRAIN, "-o", "whole.model")
        child = subprocess.Popen([*unprivileged(), program, "train", "air.csv", *TRAIN, "-o", "out/m.model"], cwd=self.dir,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        self.in_training(child, "out/m.model.run")
        for name in ("out/m.model.run", "out"):
            os.chmod(self.path(name), 0o555)
        _, err = self.end(child, 7)
        self.assertRegex(err, r"error\[E702\] .*Permission denied\n  the trained model is in \S*/state/stretto/m\.model\.run-[0-9a-f]{16}\.model\n"
                              r"  fix: stretto resume out/m\.model\.run\n")
        kept = os.listdir(self.path("state/stretto"))
        self.same_model("whole.model", "state/stretto/" + kept[0], "in the state of the user")
        for name in ("out", "out/m.model.run"):
            os.chmod(self.path(name), 0o777)
        done = subprocess.run([*unprivileged(), program, "resume", "out/m.model.run"], cwd=self.dir, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * e2e.SLOW, env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(b"the training is over, its model is in ", done.stderr)
        self.same_model("whole.model", "out/m.model", "finished by resume")
        self.assertEqual(os.listdir(self.path("state/stretto")), [])

    def test_report_that_cannot_be_written(self):
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model")
        os.makedirs(self.path("m.model.run/report.html"))
        r = self.stretto("train", AIR, *TRAIN, "-o", "m.model", status=7)
        self.assertRegex(r.err, r"error\[E702\] m\.model\.run/report\.html: cannot write: this is a directory\n  the trained model is in m\.model\n"
                                r"  fix: stretto resume m\.model\.run\n$")
        os.rmdir(self.path("m.model.run/report.html"))
        self.finish("m.model.run")

    def test_a_new_run_sets_aside_what_was_kept(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        self.stretto("train", AIR, *QUICK, "-o", "m.model", "--log", "/dev/full", status=7)
        kept = self.read("m.model.run/trained.model")
        child = self.start("train", AIR, *TRAIN, "-o", "m.model")
        self.in_training(child, "m.model.run")
        self.assertFalse(os.path.exists(self.path("m.model.run/trained.model")))
        self.assertEqual(kept, self.read("m.model.run/trained.model.earlier"))
        self.assertTrue(stat.S_ISREG(os.stat(self.path("m.model.run/reserve")).st_mode))
        child.kill()
        child.wait()
        self.stretto("train", AIR, *QUICK, "-o", "m.model")
        self.assertFalse(os.path.exists(self.path("m.model.run/trained.model.earlier")), "that run is done")

    def test_a_refused_run_leaves_the_earlier_one(self):
        """A run in the folder of another that ends before its first step: horizon, test part and plan do not fit."""
        self.stopped_run()
        before = {name: self.read("m.model.run/" + name) for name in ("run.json", "config.json", "data.json", "metrics.jsonl")}
        for more, status in ((["--horizon", "500"], 4), (["--test", "2060-01-01"], 2), (["--plan", "none.plan"], 7), (["--place", "foo"], 2),
                             (["--store", "asp"], 2), (["--ranks", "2", "--servers", "2"], 2), (["--hidden", "65536", "--layers", "8"], 6),
                             (["--micro-batches", "7", "--parallel", "pipeline"], 2)):
            self.stretto("train", AIR, *TRAIN, *more, "-o", "m.model", status=status)
            self.assertEqual(before, {name: self.read("m.model.run/" + name) for name in before}, more)
        self.stretto("resume", "m.model.run", "--quiet")
        self.same_model("whole.model", "m.model", "resumed after runs that were refused")
        os.unlink(self.path("m.model"))
        self.assertRegex(self.stretto("resume", "m.model.run", status=7).err, r"is finished: its model was \S+m\.model, which is not there any more\n")

    def test_checkpoints_in_a_folder_of_their_own_are_kept(self):
        """A run that is refused puts them back, one that goes on drops them; with and without what the run folder holds."""
        os.environ["STRETTO_CHECKPOINTS"] = self.path("apart")
        self.addCleanup(os.environ.pop, "STRETTO_CHECKPOINTS")
        self.stretto("train", AIR, *TRAIN, "--steps", "1000000", "--time-limit", "0.1s", "-o", "m.model", status=UNFINISHED)
        before = sorted(os.listdir(self.path("apart")))
        self.assertTrue(before)
        for gone in (False, True):
            if gone:
                shutil.rmtree(self.path("m.model.run"))
            self.stretto("train", AIR, *TRAIN, "--horizon", "500", "-o", "m.model", status=4)
            self.assertEqual(before, sorted(os.listdir(self.path("apart"))))
            self.assertFalse(os.path.exists(self.path("apart.earlier")))
        self.stretto("train", AIR, *QUICK, "-o", "m.model")
        self.assertFalse(os.path.exists(self.path("apart.earlier")))

    def test_a_run_without_a_checkpoint_gives_way_to_the_earlier_one(self):
        """It is killed after its first steps. resume would begin it anew; a refused run finds the one that was in the folder before."""
        self.stopped_run()
        child = self.start("train", AIR, *TRAIN, "-o", "m.model", "--hidden", "9", "--checkpoint-every", "1h")
        self.in_training(child, "m.model.run")
        child.kill()
        child.wait()
        self.assertTrue(os.path.isdir(self.path("m.model.run/.earlier")))
        self.stretto("train", AIR, *TRAIN, "-o", "m.model", "--place", "foo", status=2)
        self.stretto("resume", "m.model.run", "--quiet")
        self.same_model("whole.model", "m.model", "resumed after a run that was killed")
        self.assertFalse(os.path.exists(self.path("m.model.run/.earlier")))

    def test_killed_before_its_options_are_resolved(self):
        """Whoever finds run.json can resume: config.json is there before it."""
        self.stretto("train", AIR, *QUICK, "-o", "whole.model")
        for k in range(5):
            shutil.rmtree(self.path("m.model.run"), True)
            child = self.start("train", AIR, *QUICK, "-o", "m.model")
            while not os.path.exists(self.path("m.model.run/run.json")):
                self.assertIsNone(child.poll())
            child.kill()
            child.wait()
            self.stretto("resume", "m.model.run")
            self.same_model("whole.model", "m.model", "killed at its beginning")

    def test_room_is_looked_for_before_training(self):
        small = self.small_disk()
        self.fill(small)
        for option, name in (("--out", "m.model"), ("--log", "l.csv"), ("--plot", "p.svg"), ("--trace", "t.json")):
            more = [] if option == "--out" else ["-o", "m.model"]
            r = self.stretto("train", AIR, *TRAIN, *more, "--run-dir", "r", option, "small/" + name, status=7)
            self.assertRegex(r.err, r"error\[E703\] there is too little space for small/%s: [\d.]+ MB are needed at the end of the training, "
                                    r"0\.00 MB are free\n  fix: make room, or another place: %s OTHER/NAME\n$" % (name, option))
            self.assertEqual(self.read("r/metrics.jsonl"), b"", "no step was made")

    def test_full_disk_names_the_option_of_each_verb(self):
        """The path as it was given, and an option that the verb has; what was there before stays."""
        small = self.small_disk()
        self.stretto("train", AIR, *QUICK, "-o", "m.model")
        self.fill(small)
        column = QUICK[:4]
        for args, name, option in (
                (["predict", "m.model", AIR, "-o", "small/p.csv"], "p.csv.tmp", "--out"), (["cache", AIR, "-o", "small/a"], "a.tmp", "--out"),
                (["report", "m.model.run", "-o", "small/r.html"], "r.html.tmp", "--out"), (["sample", "airline", "-o", "small/s"], "s.tmp", "--out"),
                (["export", "m.model", "--onnx", "small/m.onnx"], "m.onnx.tmp", "--onnx"),
                (["eval", "m.model", AIR, "--scores", "small/s.csv"], "s.csv.tmp", "--scores"),
                (["check", AIR, "--write-config", "small/c.yaml"], "c.yaml.tmp", "--write-config"),
                (["plan", AIR, *column, "--save", "small/p.plan"], "p.plan.tmp", "--save"),
                (["plan", AIR, *column, "--draw", "svg", "-o", "small/p.svg"], "p.svg.tmp", "--out"),
                (["predict", "m.model", AIR, "-o", "p.csv", "--plot", "small/p.svg"], "p.svg.tmp", "--plot"),
                (["tune", AIR, *column, "--trials", "1", "--run-dir", "small/t", "-o", "b.yaml"], "t/trials.jsonl", "--run-dir")):
            r = self.stretto(*args, status=7)
            self.assertRegex(r.err, r"error\[E703\] cannot write small/%s: no space left on device[^\n]*\n  fix: make room, or another place: "
                                    r"%s OTHER/NAME\n$" % (re.escape(name), option))
            self.assertIn("--%s " % option[2:], self.stretto(args[0], "--help").out)
        self.assertEqual(sorted(os.listdir(small)), ["fill", "t"])

    def test_limit_on_file_sizes(self):
        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        r = self.stretto("train", AIR, *TRAIN, "-o", "m.model", preexec_fn=limit(20000), status=7)
        self.assertRegex(r.err, r"error\[E703\] files are limited to less than is needed for \S+: .* allowed \(ulimit -f\)\n")
        child = self.start("train", AIR, *TRAIN, "-o", "m.model")
        self.in_training(child, "m.model.run")
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        _, err = self.end(child, 7)
        self.assertIn("the limit on file sizes (ulimit -f) is reached", err)
        self.stretto("resume", "m.model.run")
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model")
        self.same_model("whole.model", "m.model", "resumed without the limit")

    def test_predict_that_is_stopped_leaves_nothing(self):
        rows = ["id,ds,y"] + ["s%d,2020-01-%02d,%d" % (k, d + 1, k % 7 + d) for k in range(4000) for d in range(20)]
        with open(self.path("many.csv"), "w", encoding="utf-8") as f:
            f.write("\n".join(rows) + "\n")
        self.assertEqual(self.stretto("train", "many.csv", "--id", "id", "--target", "y", "--horizon", "3", "--steps", "0", "-o", "m.model").status, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            with open(self.path("next.csv"), "w", encoding="utf-8") as f:
                f.write("old")
            job = self.start("predict", "m.model", "many.csv", "-o", "next.csv")
            while not os.path.exists(self.path("next.csv.tmp")) and job.poll() is None:
                time.sleep(0.001)
            time.sleep(0.02)  # the file is known to the handler a moment after it is there
            job.send_signal(number)
            job.wait()
            self.assertFalse(os.path.exists(self.path("next.csv.tmp")))
            if job.returncode != 0:  # else it was faster than the signal
                self.assertEqual(job.returncode, -number)
                with open(self.path("next.csv"), encoding="utf-8") as f:
                    self.assertEqual(f.read(), "old")

    def test_reader_that_ends(self):
        """`stretto train .. 2>&1 | head`: a pipe without a reader does not end the training."""
        child = subprocess.Popen([e2e.PROGRAM, "train", AIR, *TRAIN[:-1], "-o", "m.model", "--progress", "plain"], cwd=self.dir,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment())
        child.stderr.readline()
        child.stderr.close()
        self.assertEqual(child.wait(timeout=60 * e2e.SLOW), 0)
        self.stretto("train", AIR, *TRAIN, "-o", "whole.model")
        self.same_model("whole.model", "m.model", "nobody reads")


class Limits(Case):
    LONG = [*TRAIN[:7], "100000", "--batch", "40", "--threads", "1", "--quiet"]

    def limit(self):
        with open(self.path("m.model.run/config.json"), encoding="utf-8") as f:
            return json.load(f)["time-limit"]

    def test_time_limit_of_resume_is_for_that_call(self):
        r = self.stretto("train", AIR, *self.LONG, "-o", "m.model", "--time-limit", "0.3s", status=UNFINISHED)
        self.assertRegex(r.err, r"error\[E807\] unfinished: --time-limit 0\.3s ended the training; m\.model holds the best weights so far\n"
                                r"  fix: stretto resume m\.model\.run --time-limit 0   \(")
        self.assertIn("skill", r.out)
        first = self.limit()
        self.stretto("resume", "m.model.run", "--time-limit", "0.1s", status=UNFINISHED)
        self.assertEqual(self.limit(), first)
        child = self.start("resume", "m.model.run", "--time-limit", "0")
        time.sleep(1)
        self.assertIsNone(child.poll())
        self.assertEqual(self.limit(), first)
        child.send_signal(signal.SIGTERM)
        child.communicate()
        begin = time.monotonic()
        self.stretto("resume", "m.model.run", status=UNFINISHED)
        self.assertLess(time.monotonic() - begin, 20 * e2e.SLOW)

    def signalled(self, number, **more):
        child = subprocess.Popen([e2e.PROGRAM, "train", AIR, *self.LONG[:-1], "--progress", "plain", "-o", "m.model"], cwd=self.dir,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(), **more)
        self.said(child, "columns: ")
        time.sleep(0.5)
        if number:
            child.send_signal(number)
        return child

    def test_closed_terminal(self):
        """A terminal that closes sends SIGHUP: a checkpoint, as SIGTERM; not under nohup."""
        child = self.signalled(signal.SIGHUP)
        _, err = child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, 75, err.decode())
        self.assertIn(b"E802", err)
        self.assertTrue(os.listdir(self.path("m.model.run/checkpoints")))
        child = self.signalled(signal.SIGHUP, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        time.sleep(0.5)
        self.assertIsNone(child.poll(), "nohup")
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60 * e2e.SLOW)
        self.assertEqual(child.returncode, 75)

    def test_limit_of_processor_time(self):
        """ulimit -t: SIGXCPU at the soft limit, and a checkpoint before the hard one."""
        child = self.signalled(0, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 30)))
        _, err = child.communicate(timeout=120 * e2e.SLOW)
        self.assertEqual(child.returncode, 75, err.decode())
        self.assertTrue(os.listdir(self.path("m.model.run/checkpoints")))


if __name__ == "__main__":
    e2e.main()
