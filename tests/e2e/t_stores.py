"""t_stores.py - training through a parameter store, as a user runs it: a recorded run repeats its bits, refit included, and
`--codec sign` says how its workers push."""
import re
import unittest

import e2e
from e2e import Case

# `tides` has more than 5000 records, so --preset auto trains the network again on training and validation rows
TRAIN = ["--target", "height", "--horizon", "24", "--context", "48", "--hidden", "16", "--batch", "32", "--steps", "120", "--max-steps", "0",
         "--validate-every", "20", "--base", "none", "--no-guard", "--ranks", "2", "--threads", "1", "--progress", "none", "--verbose"]


class Stores(Case):
    def train(self, name, *more):
        return self.stretto("train", "tides.csv", *TRAIN, *more, "-o", name + ".model", timeout=120)

    def sample(self):
        self.stretto("sample", "tides", "--rows", "6000", "-o", "tides.csv")

    def test_replay_of_a_run_with_a_refit(self):
        """Search and refit count steps from 0, so their legs begin alike: each is repeated by its own."""
        self.sample()
        for store in ("asp", "ssp:2", "easgd:4"):
            name = store.replace(":", "")
            first = self.train(name, "--store", store)
            self.assertRegex(first.err, r"refit on all rows before the test part: \d+ steps")
            again = self.train(name + "-again", "--store", store, "--replay", name + ".model.run/order.txt")
            self.same_model(name + ".model", name + "-again.model", store)
            self.assertEqual(first.out, again.out)

    def legs(self, name):
        """(refit, step) of each leg of a recorded run."""
        return [tuple(map(int, line.split()[2:4])) for line in self.read(name + ".model.run/order.txt").decode().splitlines() if line.startswith("leg ")]

    def test_a_record_without_its_refit_is_refused(self):
        self.sample()
        self.train("whole", "--store", "asp")
        legs = self.legs("whole")
        self.assertEqual([step for refit, step in legs if not refit], list(range(0, 120, 20)))
        self.assertEqual([step for refit, step in legs if refit][:1], [0])
        text = self.read("whole.model.run/order.txt").decode()
        self.write("cut.txt", text[:text.index("leg 0 1 ")])
        r = self.stretto("train", "tides.csv", *TRAIN, "--store", "asp", "--replay", "cut.txt", "-o", "m.model", status=2)
        self.assertIn("the record has no leg that begins with step 0 of the refit of member 1", r.err)

    def test_sign_pushes_after_local_steps(self):
        self.sample()
        alone = ["--no-refit-all", "--keep-codec", "--store", "sync", "--codec", "sign"]
        notes = {"": 60, "--granularity 1step": 240, "--server-optim adam": 240, "--optim sgd --lr 0.1": 240, "--worker-optim adam": 240}
        for more, pushes in notes.items():
            r = self.train("m", *alone, *more.split())
            self.assertIn("store sync, codec sign: %d pushes" % pushes, r.err)
            self.assertEqual("codec sign: workers make 4 steps of adam before they push" in r.err, more == "", more)
            self.assertGreater(float(re.search(r"\(([\d.]+) times fewer than f32\)", r.err).group(1)), 5)


if __name__ == "__main__":
    e2e.main()
