"""files.py - the files that pages of the documentation name without making them: small, and of the shape that the page speaks of.

    make(page)      writes those of FILES[page] into the current folder; page: the path below docs/, or README.md"""
import datetime
import gzip
import math
import os
import random
import shutil
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
HOURS, DAYS = 1200, 500


def write(name, head, rows):
    with open(name, "w", encoding="utf-8") as f:
        f.write(head + "\n" if head else "")
        for row in rows:
            f.write(",".join(str(cell) for cell in row) + "\n")


def hour(k):
    return (datetime.datetime(2023, 1, 2) + datetime.timedelta(hours=k)).strftime("%Y-%m-%d %H:%M")


def day(k):
    return (datetime.date(2022, 1, 3) + datetime.timedelta(days=k)).isoformat()


def wave(k, period, draw):
    return 10 + 3 * math.sin(2 * math.pi * k / period) + draw.gauss(0, 0.3)


def hourly(name, column="y", rows=HOURS):
    """One series of hours."""
    draw = random.Random(1)
    write(name, f"hour,{column}", ((hour(k), f"{wave(k, 24, draw):.3f}") for k in range(rows)))


def zones(name, rows=HOURS // 2):
    """A panel with columns that are known ahead and one that is constant."""
    draw = random.Random(2)
    write(name, "zone,hour,load,price,holiday,size",
          ((z, hour(k), f"{wave(k, 24, draw) * (i + 1):.3f}", f"{30 + draw.random():.2f}", int(k // 24 % 7 == 6), 100 * (i + 1))
           for i, z in enumerate(("north", "south", "west")) for k in range(rows)))


def sales(name, rows=DAYS, column="units"):
    draw = random.Random(3)
    write(name, f"day,price,{column}", ((day(k), f"{5 + draw.random():.2f}", f"{20 + wave(k, 7, draw):.2f}") for k in range(rows)))


def shops(name, rows=DAYS // 2):
    draw = random.Random(4)
    write(name, "shop,item,region,day,units",
          ((f"shop {s}", f"item {i}", "north" if s < 2 else "south", day(k), int(20 + wave(k, 7, draw)))
           for s in range(3) for i in range(2) for k in range(rows)))


def irregular(name, head, id_of, rows=900):
    """Records at irregular times, of one series or of several."""
    draw = random.Random(5)
    out = []
    for i in range(3 if id_of else 1):
        at = datetime.datetime(2024, 1, 1)
        for k in range(rows):
            at += datetime.timedelta(minutes=draw.randrange(5, 90))
            out.append(([f"{id_of} {i}"] if id_of else []) + [at.strftime("%Y-%m-%d %H:%M:%S"), f"{wave(k, 24, draw):.2f}"])
    write(name, head, out)


def letters(name, rows=400, head="a,b,c,d,class"):
    draw = random.Random(6)
    def row(k):
        return [f"{draw.gauss(k % 3, 0.6):.3f}" for _ in range(4)] + ["xyz"[k % 3]]
    write(name, head, (row(k) for k in range(rows)))


def points(name, rows=600):
    draw = random.Random(7)
    write(name, "a,b", ((f"{draw.gauss(k % 100, 0.1):.3f}", f"{draw.gauss(k % 7, 0.1):.3f}") for k in range(rows)))


def iris(name, rows=150):
    draw = random.Random(8)
    write(name, "sepal,petal,species", ((f"{draw.gauss(k % 3, 0.2):.3f}", f"{draw.gauss(2 * (k % 3), 0.2):.3f}", "abc"[k % 3]) for k in range(rows)))


def sentences(name, tagged=True, count=120, columns=2):
    """Words, a column between them and the tag where there are three columns, and a blank line after each sentence."""
    draw = random.Random(9)
    kinds = {"B-NP": ("the", "a", "this"), "I-NP": ("dog", "house", "tree", "river"), "B-VP": ("sees", "likes", "takes"), "O": (".", "and")}
    with open(name, "w", encoding="utf-8") as f:
        for _ in range(count):
            for tag in ("B-NP", "I-NP", "B-VP", "B-NP", "I-NP", "O"):
                words = [draw.choice(kinds[tag])] + (["POS"] if columns == 3 else [])
                f.write(" ".join(words + ([tag] if tagged else [])) + "\n")
            f.write("\n")


def crfsuite(name, count=120):
    draw = random.Random(10)
    with open(name, "w", encoding="utf-8") as f:
        for _ in range(count):
            for tag in ("B", "I", "O"):
                f.write(f"{tag}\tw={tag.lower()}{draw.randrange(4)}\tshape={draw.randrange(2)}\n")
            f.write("\n")


def words(name, count=3000):
    """One long sequence, a word a line."""
    draw = random.Random(11)
    with open(name, "w", encoding="utf-8") as f:
        f.writelines(f"{'rain' if draw.random() < 0.5 + 0.4 * math.sin(k / 50) else 'sun'}\n" for k in range(count))


def motions(name, cases=24, tail=""):
    """A file of sequences of two channels and two classes, in the format of sktime and the UEA archive."""
    draw = random.Random(12)
    with open(name, "w", encoding="utf-8") as f:
        f.write("@problemName motions\n@timeStamps false\n@univariate false\n@dimensions 2\n@equalLength true\n@seriesLength 20\n"
                "@classLabel true rest run\n@data\n")
        for k in range(cases):
            chan = [",".join(f"{draw.gauss(k % 2, 0.2) * math.sin(t + c):.3f}" for t in range(20)) for c in range(2)]
            f.write(":".join(chan + [("rest", "run")[k % 2]]) + "\n")


def visits(name):
    """Sequences in long form, with a label each."""
    draw = random.Random(13)
    write(name, "visit,second,pressure,outcome",
          ((v, t, f"{draw.gauss(v % 2, 0.3):.3f}", ("ill", "well")[v % 2]) for v in range(40) for t in range(15)))


def engines(name):
    draw = random.Random(14)
    write(name, "engine,cycle,heat,life", ((e, t, f"{t / (10 + e) + draw.gauss(0, 0.1):.3f}", 10 + e) for e in range(40) for t in range(12)))


def links(name):
    draw = random.Random(15)
    text = "".join(f"{a} {draw.randrange(200)}\n" for a in range(200) for _ in range(4))
    with (gzip.open(name, "wt") if name.endswith(".gz") else open(name, "w", encoding="utf-8")) as f:
        f.write(text)


def template(name):
    with open(name, "w", encoding="utf-8") as f:
        f.write("U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nB\n")


def air(name):
    shutil.copy(os.path.join(ROOT, "examples", "airline-passengers.csv"), name)


def packed(name, make=hourly):
    make(name[:-3])
    subprocess.run(["gzip", "-f", name[:-3]], check=True)


def sentence_files(*names, columns=2):
    return {name: (lambda n: sentences(n, columns=columns)) for name in names}


FILES = {
    "README.md": {"sales.csv": sales, "newer.csv": sales, "load.csv": zones, "letters.csv": letters, "motions.ts": motions,
                  "chunks.txt": sentences, "links.txt": links, "big.csv": sales},
    "data.md": {"load.csv.gz": packed, "orders.csv": lambda n: irregular(n, "at,units", ""), "sensors.csv": lambda n: irregular(n, "sensor,at,temp", "s"),
                "visits.csv": lambda n: irregular(n, "at,pressure", "")},
    "panels.md": {"load.csv": zones, "newer.csv": zones, "sales.csv": shops},
    "probabilities.md": {"load.csv": hourly},
    "parallel.md": {"big.csv": hourly, "sales.csv": sales},
    "stores.md": {"load.csv": hourly},
    "report.md": {"sales.csv": sales, "newer.csv": sales},
    "onnx.md": {"sales.csv": sales},
    "tune.md": {"air.csv": air},
    "devices.md": {"sales.csv": sales, "newer.csv": sales, "points.csv": points},
    "memory.md": {},
    "time-parallel.md": {},
    "model-file.md": {},
    "cluster.md": {"sales.csv": lambda n: sales(n, column="sales")},
    "learners/README.md": {"letters.csv": letters, "new.csv": lambda n: letters(n, 30), "newer.csv": letters},
    "learners/classify.md": {"motions_TRAIN.ts": motions, "motions_TEST.ts": motions, "new.ts": motions, "visits.csv": visits, "engines.csv": engines},
    "learners/crf.md": {**sentence_files("train.txt", "test.txt"), "chunk.tpl": template, "train.crfsuite": crfsuite, "test.crfsuite": crfsuite},
    "learners/forest.md": {"letters.csv": letters, "rows.csv": lambda n: letters(n, 30), "newer.csv": letters},
    "learners/graph.md": {"links.txt": links, "links.txt.gz": links},
    "learners/hmm.md": {"tagged.txt": sentences, "more.txt": sentences, "new.txt": lambda n: sentences(n, tagged=False),
                        "visits.txt": lambda n: sentences(n, tagged=False), "long.txt": words},
    "learners/kmeans.md": {"iris.csv": iris, "new.csv": iris},
    "learners/tagger.md": sentence_files("train.txt", "test.txt", "new.txt"),
}


def make(page):
    for name, maker in FILES.get(page, {}).items():
        maker(name)
