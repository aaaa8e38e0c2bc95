"""t_report.py - `stretto report`: a report written again, opened and printed; what its sections say; pages of real data in a browser."""
import datetime
import math
import os
import random
import re
import shutil
import stat
import subprocess

import e2e
from e2e import AIR, ROOT, Case, shared

TRAIN = ["--target", "Passengers", "--horizon", "12", "--members", "1", "--steps", "60", "--threads", "1", "--quiet"]
BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


def section(page, name):
    """The text of a section, with its tags."""
    m = re.search(r'<section id="%s">.*?</section>' % name, page, re.S)
    return m.group(0) if m else ""


class Pages(Case):
    def page(self, name):
        return self.read(name).decode("utf-8")

    def script(self, name, text):
        path = self.write(name, "#!/bin/sh\n" + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path


class Report(Pages):
    def train(self, data=AIR, *more):
        self.stretto("train", data, *(more or TRAIN), "-o", "m.model")
        return self.page("m.model.run/report.html")

    def test_report_again_says_the_same(self):
        first = self.train()
        os.remove(self.path("m.model.run/report.html"))
        r = self.stretto("report", "m.model.run")
        self.assertEqual(r.out, "")
        self.assertEqual(r.err, "report m.model.run/report.html\n")
        again = self.page("m.model.run/report.html")
        for name in ("scores", "forecast", "errors", "curves"):
            self.assertNotEqual(section(first, name), "", name)
            self.assertEqual(section(first, name), section(again, name), name)
        for text in ("test 1960-01..1960-12", "stretto train airline-passengers.csv --target Passengers --horizon 12"):
            self.assertTrue(text in first, text)
            self.assertTrue(text in again, text)

    def test_report_of_a_model_finds_its_run(self):
        self.train()
        self.stretto("report", "m.model", "-o", "x.html", "--quiet")
        self.stretto("report", "m.model.run", "-o", "y.html", "--quiet")
        self.assertEqual(section(self.page("x.html"), "scores"), section(self.page("y.html"), "scores"))

    def test_report_on_other_data_scores_them_all(self):
        self.train()
        shutil.copy(AIR, self.path("x.csv"))
        shutil.rmtree(self.path("m.model.run"))
        self.stretto("report", "m.model", "x.csv")
        page = self.page("m.model.html")
        self.assertEqual(section(page, "curves"), "")
        self.assertIn("<td", section(page, "scores"))
        self.assertNotIn("<th scope=\"row\"><span class=\"key k6\"></span>train", page)
        self.assertEqual(self.stretto("eval", "m.model", "x.csv").out.splitlines()[0].split("  ")[0],
                         re.search(r'<p class="lead">(.*?), \d+ window', section(page, "scores")).group(1))

    def test_report_names_what_is_missing(self):
        self.train()
        os.rename(self.path("m.model.run"), self.path("apart"))
        r = self.stretto("report", "m.model", status=2)
        self.assertIn("error[E105] no run folder beside m.model names the data", r.err)
        self.assertIn("fix: stretto report MODEL DATA", r.err)
        os.rename(self.path("m.model"), self.path("gone"))
        self.assertIn("error[E705] apart names no model that is there", self.stretto("report", "apart", status=7).err)
        self.assertIn("error[E701] m.model", self.stretto("report", "m.model", status=7).err)
        self.assertIn("E702", self.stretto("report", "gone", AIR, "-o", "no/such/x.html", status=7).err)

    def test_report_replaces_nothing_but_reports(self):
        shutil.copy(e2e.AIR, self.path("air.csv"))
        self.stretto("train", "air.csv", "--target", "Passengers", "--horizon", "12", "--steps", "5", "-o", "m.model")
        for path in ("air.csv", "m.model", "m.model.run/run.json"):
            with open(self.path(path), "rb") as f:
                before = f.read()
            for flag in ("-o", "--pdf"):
                r = self.stretto("report", "m.model", flag, path, status=7)
                self.assertRegex(r.err, r"error\[E702\] \S*%s: (this file is there and is not a |--\w+ would overwrite)" % re.escape(path))
            with open(self.path(path), "rb") as f:
                self.assertEqual(f.read(), before)
        self.stretto("report", "m.model", "-o", "r.html")
        self.stretto("report", "m.model", "-o", "r.html")
        r = self.stretto("export", "m.model", "--onnx", "air.csv", "--check", "air.csv", status=7)
        self.assertIn("would overwrite what is read from", r.err)

    def test_report_opens_the_browser(self):
        self.train()
        self.script("show", 'echo "$1" >"%s"\n' % self.path("shown"))
        os.environ["BROWSER"] = self.path("show")
        self.addCleanup(os.environ.pop, "BROWSER")
        self.stretto("report", "m.model", "-o", "a b.html", "--open", "--quiet")
        for _ in range(200):
            if os.path.exists(self.path("shown")) and self.read("shown"):
                break
            subprocess.run(["sleep", "0.05"])
        self.assertEqual(self.read("shown").decode(), "file://%s\n" % os.path.realpath(self.path("a b.html")).replace(" ", "%20"))

    def test_report_without_a_browser_is_written_nevertheless(self):
        self.train()
        os.mkdir(self.path("bin"))
        path, browser = os.environ["PATH"], os.environ.pop("BROWSER", None)
        os.environ["PATH"] = self.path("bin")
        self.addCleanup(os.environ.update, {"PATH": path, **({"BROWSER": browser} if browser else {})})
        for option in (["--open"], ["--pdf", "x.pdf"]):
            r = self.stretto("report", "m.model", "-o", "x.html", *option, status=7)
            self.assertIn("report x.html\nerror[E707] %s: no " % option[0], r.err)
            self.assertIn("</html>", self.page("x.html"))
        self.script("bin/chromium", "exit 3\n")
        r = self.stretto("report", "m.model", "-o", "x.html", "--pdf", "x.pdf", status=7)
        self.assertIn("error[E707] --pdf: chromium did not print the report", r.err)
        self.assertFalse(os.path.exists(self.path("x.pdf")))

    def test_report_of_every_learner(self):
        words = "\n".join("%s %s" % (w, t) for w, t in 40 * [("the", "D"), ("dog", "N"), ("barks", "V"), ("", "")]).replace("\n \n", "\n\n")
        self.write("words.txt", words + "\n")
        draw = random.Random(3)
        rows = ["a,b,kind"] + ["%.3f,%.3f,%s" % (draw.gauss(k, .4), draw.gauss(-k, .4), "xyz"[k]) for k in (0, 1, 2) * 60]
        self.write("table.csv", "\n".join(rows) + "\n")
        for task, data, more, figure in (("forest", "table.csv", ["--target", "kind"], "importance"),
                                         ("kmeans", "table.csv", ["--ignore", "kind", "--clusters", "3"], "sizes"),
                                         ("crf", "words.txt", ["--test", "0.2"], "confusion"),
                                         ("hmm", "words.txt", [], "transitions")):
            with self.subTest(task):
                self.stretto("train", data, "--task", task, *more, "-o", task, "--quiet")
                first = self.page(task + ".run/report.html")
                self.stretto("report", task + ".run", "--quiet")
                again = self.page(task + ".run/report.html")
                self.assertIn("<svg", section(first, figure))
                self.assertEqual(section(first, figure), section(again, figure))
                self.assertEqual(section(first, "scores"), section(again, "scores"))
                self.assertIn("For those who ask", again)
                self.stretto("report", task, data, "-o", "other.html", "--quiet")
                self.assertIn("<svg", section(self.page("other.html"), figure))


class Sections(Pages):
    """What the sections say of data whose truth is known."""

    def hourly(self, n, value, names=""):
        start = datetime.datetime(2021, 1, 4)
        rows = ["time,y" + names]
        for i in range(n):
            t = start + datetime.timedelta(hours=i)
            rows.append("%s,%s" % (t.strftime("%Y-%m-%d %H:00"), value(i, t)))
        return self.write("h.csv", "\n".join(rows) + "\n")

    def test_columns_that_say_something_come_first(self):
        draw = random.Random(1)
        known = [draw.choice((-1, 0, 1)) for _ in range(3000)]
        self.hourly(3000, lambda i, t: "%.3f,%d,%.3f" % (10 + 5 * known[i] + draw.gauss(0, .3), known[i], draw.gauss(0, 1)), ",price,noise")
        self.stretto("train", "h.csv", "--target", "y", "--known", "price,noise", "--horizon", "6", "--context", "24", "--steps", "300",
                     "--members", "1", "--calendar", "no", "--base", "ridge", "-o", "m", "--quiet")
        rows = re.findall(r'<th scope="row">(\w+)</th>.*?<td class="n">([-+0-9.]+)%</td>', section(self.page("m.run/report.html"), "columns"), re.S)
        self.assertEqual([name for name, _ in rows][0], "price")
        self.assertGreater(float(dict(rows)["price"]), 50)
        self.assertLess(abs(float(dict(rows)["noise"])), 5)

    def test_errors_by_hour_show_the_hours_that_are_hard(self):
        draw = random.Random(2)
        self.hourly(2000, lambda i, t: "%.3f" % (math.sin(t.hour / 4) + draw.gauss(0, 3 if t.hour == 17 else .1)))
        self.stretto("train", "h.csv", "--target", "y", "--horizon", "24", "--steps", "20", "--members", "1", "-o", "m", "--quiet")
        page = section(self.page("m.run/report.html"), "errors")
        hours = {int(h): float(v) for h, v in re.findall(r"<title>(\d+): ([0-9.]+)</title>", page)}
        self.assertEqual(sorted(hours), list(range(24)))
        self.assertEqual(max(hours, key=hours.get), 17)
        self.assertIn("Error by day of the week", page)

    def test_quality_counts_what_is_missing(self):
        self.hourly(600, lambda i, t: "" if 100 <= i < 105 or i == 300 else "%d" % (7 if 200 <= i < 240 else i % 13))
        self.stretto("train", "h.csv", "--target", "y", "--horizon", "6", "--steps", "5", "--gaps", "mask", "-o", "m", "--quiet")
        page = section(self.page("m.run/report.html"), "quality")
        self.assertIn("6 of 600 (1.0 %)", page)
        self.assertIn("5 rows from 2021-01-08 04:00", page)
        self.assertIn("40 rows from 2021-01-12 08:00, value 7", page)

    def test_quality_has_the_findings_of_check(self):
        self.hourly(600, lambda i, t: "%d,%d,%d" % (i % 13, 2 * (i % 13), i % 7), ",twice,other")
        self.stretto("train", "h.csv", "--target", "y", "--known", "twice", "--horizon", "6", "--steps", "5", "-o", "m", "--quiet")
        page = section(self.page("m.run/report.html"), "quality")
        self.assertIn("<b>W034</b> y = 0.5 x twice + 0 in 600 rows", page)
        self.assertIn("remedy: --past twice   or   --ignore twice", page)
        self.stretto("report", "m", "--quiet")
        self.assertEqual(page, section(self.page("m.run/report.html"), "quality"))
        self.write("t.csv", "a,b,kind\n" + "".join("%d,1,%s\n" % (i % 20, "xy"[i % 2]) for i in range(60)))
        self.stretto("train", "t.csv", "--task", "forest", "--target", "kind", "--trees", "5", "-o", "f", "--quiet")
        page = section(self.page("f.run/report.html"), "quality")
        self.assertIn("40 rows are the same as one before", page)
        self.assertIn("column &quot;b&quot; is 1 in every row", page)

    def test_quality_of_a_pipe_says_why_there_is_nothing(self):
        with open(AIR, "rb") as f:
            done = subprocess.run([e2e.PROGRAM, "train", "-", *TRAIN, "-o", "m"], stdin=f, cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("stretto check did not look at the data: the data are no file", section(self.page("m.run/report.html"), "quality"))

    def test_series_are_worst_median_and_best(self):
        draw = random.Random(5)
        rows = ["id,time,y"]
        for k, name in enumerate("abcdefghi"):
            for i in range(200):
                t = datetime.datetime(2021, 1, 4) + datetime.timedelta(hours=i)
                rows.append("%s,%s,%.3f" % (name, t.strftime("%Y-%m-%d %H:00"), math.sin(i * 6.2832 / 24) + draw.gauss(0, .01 + (.05 if i >= 150 else 0) * k)))
        self.write("p.csv", "\n".join(rows) + "\n")
        self.stretto("train", "p.csv", "--id", "id", "--target", "y", "--horizon", "6", "--steps", "5", "--test", "40", "-o", "m", "--scores", "s.csv", "--quiet")
        page = section(self.page("m.run/report.html"), "series")
        names = re.findall(r"<figcaption>(\w) from", page)
        ranks = re.findall(r'<p class="soft">(worst|median|best), MASE', page)
        self.assertEqual(ranks, ["worst", "worst", "median", "median", "best", "best"])
        head, *lines = self.read("s.csv").decode().splitlines()
        at = head.split(",").index("MASE")
        order = [line.split(",")[0] for line in sorted(lines, key=lambda line: -float(line.split(",")[at]))]
        self.assertEqual(names, [order[i] for i in (0, 1, 3, 4, 7, 8)])


@e2e.unittest.skipUnless(BROWSER, "no Chromium on this machine (Debian and Ubuntu: package chromium)")
class Browser(Pages):
    """Reports of real data, laid out by a browser."""

    def browse(self, *flags):
        done = subprocess.run(["timeout", "60", BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                               "--disable-background-networking", "--user-data-dir=" + self.path("profile"), "--allow-file-access-from-files", *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        return done.stdout.decode()

    def measure(self, report):
        with open(os.path.join(ROOT, "tests", "report", "measure.js"), encoding="utf-8") as f:
            script = f.read()
        self.write("measured.html", self.page(report).replace("</body>", "<script>%s</script></body>" % script))
        for width, dark in ((1200, False), (1200, True), (360, False), (360, True)):
            self.write("frame.html", "<body style='margin:0'><iframe src='measured.html' style='width:%dpx;height:1000px;border:0' "
                       "onload=\"document.body.innerHTML=this.contentDocument.documentElement.outerHTML\"></iframe></body>" % width)
            dom = self.browse(*(["--blink-settings=preferredColorScheme=0"] if dark else []), "--dump-dom", "file://" + self.path("frame.html"))
            self.assertEqual(re.search(r'<p id="measured">(.*?)</p>', dom, re.S).group(1), "[]", "%s, %d wide%s" % (report, width, ", dark" * dark))
        self.stretto("report", report.rsplit("/", 1)[0], "--pdf", "page.pdf", "--quiet", timeout=120)
        pdf = self.read("page.pdf")
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertIn(b"/MediaBox", pdf.replace(b" ", b"")[:len(pdf)])
        self.assertIn(len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)), range(1, 9))

    def train(self, name, *args):
        self.stretto("train", shared(name), *args, "-o", "m.model", "--quiet", timeout=300)
        self.measure("m.model.run/report.html")

    def test_hourly_columns(self):
        self.train("ett/ETTh1.csv", "--target", "OT", "--past", "HUFL,HULL,MUFL,MULL,LUFL,LULL", "--horizon", "24", "--steps", "100", "--members", "1",
                   "--quantiles", "0.1,0.25,0.5,0.75,0.9")

    def test_panel(self):
        self.train("ercot/ercot_multiple_ts.csv", "--id", "unique_id", "--target", "value", "--horizon", "24", "--steps", "100", "--members", "1")

    def test_monthly(self):
        self.train("univariate/airline-passengers.csv", "--target", "Passengers", "--horizon", "12")

    def test_classifier(self):
        self.train("seq_classification/BasicMotions_TRAIN.ts", "--task", "classify", "--steps", "60")

    def test_forest_of_many_classes(self):
        self.train("tabular/letter-recognition.data", "--task", "forest", "--target", "1", "--header", "no", "--trees", "10")


if __name__ == "__main__":
    e2e.main()
