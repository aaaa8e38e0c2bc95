"""t_costs.py - measured costs: kept in the wisdom file, read again, corrected by the first steps of training, which may then go on
with another plan and the same bits."""
import re

import e2e

COST = re.compile(r"^(cost .* work=(\w+):(\w+):(\w+):(\d+):(-?\d+):(\d+) seconds=)(\S+)$")
SHAPE = ("--hidden", 16, "--layers", 2, "--context", 24, "--horizon", 4, "--batch", 16, "--threads", 2)


class Costs(e2e.Case):
    def environment(self, **more):
        return super().environment(STRETTO_WISDOM=self.path("wisdom"), **more)

    def series(self):
        rows = ["%d,%g" % (t, t % 12 + 0.1 * (t * 7919 % 31)) for t in range(600)]
        return self.write("data.csv", "time,y\n" + "\n".join(rows) + "\n")

    def costs(self):
        return [m for m in map(COST.match, self.read("wisdom").decode().splitlines()) if m]

    def words(self, *more):
        return (self.series(), "--target", "y", *SHAPE, *more)

    def train(self, out, *more):
        return self.stretto("train", *self.words("--steps", 160, "--validate-every", 30, "--patience", 0, "--members", 1),
                            "--verbose", "-o", out, *more, timeout=120).err

    def too_fast(self, ranks):
        """The wisdom says of every task that it takes no time, but of forward and backward passes over some of the rows; as if it
        had been measured by so many ranks of one thread."""
        whole = max(int(m.group(7)) for m in self.costs() if m.group(2) == "fwd")
        lines = []
        for line in self.read("wisdom").decode().splitlines():
            m = COST.match(line)
            if m and m.group(2) in ("fwd", "bwd", "prep", "zero", "merge", "norm", "update"):
                some = m.group(2) in ("fwd", "bwd") and (int(m.group(7)) < whole or m.group(4) == "busy")
                line = m.group(1) + ("0.01us" if some else "0.0001us")
            if ranks > 1:
                line = re.sub(r"table=(\S+) threads=2", r"table=\1*%dt threads=1" % ranks, line)  # ranks that are threads
            lines.append(line)
        self.write("wisdom", "\n".join(lines) + "\n")

    def test_plan_measures_once(self):
        first = self.stretto("plan", *SHAPE).out
        kinds = {m.group(2) for m in self.costs()}
        self.assertTrue({"fwd", "bwd", "prep", "zero", "merge", "norm", "update", "around", "task"} <= kinds, kinds)
        for _ in range(20):  # costs of busy workers are measured again until nothing else has used the cores
            before = self.read("wisdom")
            outs = [self.stretto("plan", *SHAPE).out for _ in range(2)]
            if self.read("wisdom") == before:
                self.assertEqual(*outs)
                break
        self.assertIn("strategy ", first)
        self.assertIn("measured times of tasks", self.stretto("plan", *SHAPE, "--compare").out)

    def test_last_chunk_is_read_again(self):
        """Its steps have a minus sign: of the chunk that backward reaches last."""
        shape = (*SHAPE, "--context", 96, "--segment", 1)
        for _ in range(20):  # costs of busy workers are measured until nothing else has used the cores
            self.stretto("plan", *shape)
            last = [m for m in self.costs() if m.group(2) == "bwd" and m.group(6).startswith("-")]
            if last:
                break
        else:
            self.skipTest("other programs used the cores while costs were measured")
        text = self.read("wisdom").decode()
        for m in last:
            text = text.replace(m.group(0), m.group(1) + "7s")
        self.write("wisdom", text)
        said = self.stretto("plan", *shape, "--parallel", "wave:2").out
        self.assertGreater(float(re.search(r"predicted ([\d.]+) ms", said).group(1)), 7000)

    def test_off_measures_nothing(self):
        out = self.stretto("plan", *SHAPE, "--compare", "--machine", "cpu*2").out
        self.assertNotIn("measured times of tasks", out)

    @staticmethod
    def predictions(said):
        return [(name, float(ms)) for name, ms in re.findall(r"plan (\S+): predicted ([\d.]+) ms a step", said)]

    def goes_on_with_another_plan(self, ranks, *more):
        self.stretto("plan", *self.words(*more))
        self.train("serial", "--parallel", "serial", *more)
        if ranks > 1:
            more += ("--ranks", ranks, "--threads", 1)
        for _ in range(5):  # other programs may make every message slower than a serial step
            self.too_fast(ranks)
            said = self.train("auto", *more)
            self.same_model("serial", "auto")
            if "; next plan: " in said:
                break
        wrong, again = self.predictions(said)[0], self.predictions(self.train("again", *more))
        self.assertEqual(wrong[0], "serial")
        self.assertIn("; next plan: ", said)
        if again and again[0][0] == "serial":  # the wisdom has learnt what a serial step takes
            self.assertGreater(again[0][1], 1.5 * wrong[1])
        self.same_model("serial", "again")

    def link(self):
        """Seconds of a message, as written."""
        return [m.group(8) for m in self.costs() if m.group(2) == "latency"]

    def with_link(self, seconds):
        self.write("wisdom", re.sub(r"(work=latency:\S+ seconds=)\S+", r"\g<1>" + seconds, self.read("wisdom").decode()))

    def test_a_link_keeps_its_shortest_time(self):
        """Another program makes messages longer for a while."""
        steps = ("--ranks", 2, "--threads", 1, "--parallel", "data:2", "--steps", 100000, "--time-limit", 1)
        self.stretto("train", *self.words(*steps), "--patience", 0, "-o", "first", status=None, timeout=120)
        self.assertEqual(len(self.link()), 1)
        for given, kept in (("1e+06us", False), ("0.001us", True)):
            self.with_link(given)
            self.stretto("train", *self.words(*steps), "--patience", 0, "-o", "next", status=None, timeout=120)
            self.assertEqual(self.link() == [given], kept, self.link())

    def test_another_plan_of_threads(self):
        self.goes_on_with_another_plan(1)

    def test_another_plan_of_ranks(self):
        self.goes_on_with_another_plan(2, "--hidden", 96, "--batch", 64)  # a step is longer than messages on a busy machine


if __name__ == "__main__":
    e2e.main()
