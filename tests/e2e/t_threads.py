"""t_threads.py - the same bits for any number of threads and for every exact strategy: weights, forecasts, scores, losses."""
import json

import e2e
from e2e import AIR, Case

# where a number may depend on the number of threads: only in what says how fast it was, or where
FREE = ("seconds", "windows_per_s", "device_share")


class Threads(Case):
    def run_one(self, name, data, options, machine):
        r = self.stretto("train", data, *options, *machine, "-o", name + ".model", "--progress", "none")
        course = []
        for line in self.read(name + ".model.run/metrics.jsonl").splitlines():
            e = json.loads(line)
            course.append({k: v for k, v in e.items() if k not in FREE})
        predicted = self.stretto("predict", name + ".model", data, *(machine[:2] if machine[0] == "--threads" else [])).out
        return r.out, course, predicted

    def compare(self, data, options):
        first = None
        machines = [["--threads", "1"], ["--threads", "3", "--parallel", "data:3"]]
        if not e2e.FEW:
            machines += [["--threads", "2"], ["--threads", "3"], ["--threads", "4"], ["--parallel", "serial"]]
        for machine in machines:
            name = "m" + "".join(machine).replace("-", "").replace(":", "")
            got = self.run_one(name, data, options, machine)
            if first is None:
                first, whole = got, name
                continue
            self.same_model(whole + ".model", name + ".model", " ".join(machine))
            self.assertEqual(first[0], got[0], "scores with %s" % machine)
            self.assertEqual(first[1], got[1], "course with %s" % machine)
            self.assertEqual(first[2], got[2], "forecasts with %s" % machine)

    def test_one_row_shared_by_units(self):
        options = ["--target", "Passengers", "--horizon", "4", "--batch", "1", "--hidden", "40", "--steps", "30", "--layers", "2"]
        whole = self.run_one("whole", AIR, options, ["--threads", "1"])
        for n in "2", "3":
            got = self.run_one("team" + n, AIR, options, ["--threads", n, "--parallel", "unit:" + n])
            self.same_model("whole.model", "team" + n + ".model", "unit:" + n)
            self.assertEqual(whole, got, "unit:" + n)

    def test_preset_short(self):
        self.compare(AIR, ["--target", "Passengers", "--horizon", "12", "--members", "2", "--steps", "40"])

    def test_preset_long_three_columns(self):
        self.stretto("sample", "tides", "--rows", "700", "-o", "t.csv")
        lines = self.read("t.csv").decode().splitlines()
        rows = [lines[0] + ",b,c"]
        for i, line in enumerate(lines[1:]):
            rows.append("%s,%d,%.3f" % (line, i * i % 11, float(line.split(",")[1]) * 2 + i % 5))
        data = self.write("three.csv", "\n".join(rows) + "\n")
        self.compare(data, ["--preset", "long", "--target", "all", "--horizon", "48", "--context", "96", "--steps", "25", "--hidden", "24"])

    def test_preset_day_with_missing_cells(self):
        self.stretto("sample", "tides", "--rows", "600", "-o", "t.csv")
        lines = self.read("t.csv").decode().splitlines()
        for i in (17, 18, 19, 300):
            lines[i] = lines[i].split(",")[0] + ","
        data = self.write("holes.csv", "\n".join(lines) + "\n")
        self.compare(data, ["--preset", "day", "--target", "height", "--horizon", "24", "--context", "48", "--steps", "25", "--hidden", "24",
                            "--gaps", "mask", "--no-guard", "--dropout", "0.2"])


if __name__ == "__main__":
    e2e.main()
