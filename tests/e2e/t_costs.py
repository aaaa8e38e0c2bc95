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
        """The wisdom says of every forward and backward pass that it takes no time, and of one of all rows the least; as if it had
        been measured by so many ranks of one thread."""
        whole = max(int(m.group(7)) for m in self.costs() if m.group(2) == "fwd")
        lines = []
        for line in self.read("wisdom").decode().splitlines():
            m = COST.match(line)
            if m and m.group(2) in ("fwd", "bwd"):
                least = int(m.group(7)) == whole and m.group(4) == "alone"
                line = m.group(1) + ("0.0001us" if least else "0.01us")
            if ranks > 1:
                line = re.sub(r"table=(\S+) threads=2", r"table=\1*%d threads=1" % ranks, line)
            lines.append(line)
        self.write("wisdom", "\n".join(lines) + "\n")

    def test_plan_measures_once(self):
        first = self.stretto("plan", *SHAPE).out
        kinds = {m.group(2) for m in self.costs()}
        self.assertTrue({"fwd", "bwd", "prep", "zero", "merge", "norm", "update", "around", "task"} <= kinds, kinds)
        for _ in range(20):  # costs of busy workers are measured again until nothing else has used the cores
            before = self.read("wisdom")
            out = self.stretto("plan", *SHAPE).out
            if self.read("wisdom") == before:
                break
        else:
            return
        self.assertEqual(self.stretto("plan", *SHAPE).out, out)
        self.assertIn("strategy ", first)
        self.assertIn("measured times of tasks", self.stretto("plan", *SHAPE, "--compare").out)

    def test_off_measures_nothing(self):
        out = self.stretto("plan", *SHAPE, "--compare", "--machine", "cpu*2").out
        self.assertNotIn("measured times of tasks", out)

    def goes_on_with_another_plan(self, ranks):
        self.stretto("plan", *self.words())
        self.train("serial", "--parallel", "serial")
        self.too_fast(ranks)
        more = ("--ranks", ranks, "--threads", 1) if ranks > 1 else ()
        said = self.train("auto", *more)
        self.assertIn("plan serial: predicted", said)
        self.assertIn("; next plan: ", said)
        self.same_model("serial", "auto")
        self.assertNotIn("plan serial: predicted", self.train("again", *more))  # the wisdom knows now what a serial step takes
        self.same_model("serial", "again")

    def test_another_plan_of_threads(self):
        self.goes_on_with_another_plan(1)

    def test_another_plan_of_ranks(self):
        self.goes_on_with_another_plan(2)


if __name__ == "__main__":
    e2e.main()
