#!/usr/bin/env python3
"""run.py BUILD [--part NAME]... [--turns N] [--seeds N] [--steps N] [--kills N] [--minutes N] [--row NAME]... [--first] [--out FILE]
- what stores and codecs reach: speed beside a slow rank, loss at equal samples, bytes, emulated lines, lock-free threads, the way to a server, PyTorch's hooks, replays, and
runs whose ranks are killed.

    losses.py  local, codecs            timing.py  straggler, network, hogwild, path
    peers.py   peers (and torch_sync.py)       trouble.py  replay, kills

Implementations take turns; a value is the median of the turns or seeds.  Writes bench/results/stores.md; with --part the other parts of
the page stay as they are.
"""
import argparse
import os
import pathlib
import re

import losses
import peers
import timing
import trouble
from common import ROOT, say

PARTS = {"straggler": ("## One slow rank", timing.straggler_part), "local": ("## Local steps", losses.local_part),
         "codecs": ("## Codecs", losses.codecs_part), "network": ("## Emulated lines", timing.network_part),
         "hogwild": ("## Hogwild", timing.hogwild_part), "path": ("## The way to a server", timing.path_part),
         "peers": ("## PyTorch", peers.peers_part), "replay": ("## Replays", trouble.replay_part), "kills": ("## Kills", trouble.kills_part)}
HEAD = """# Stores and codecs

Made by `make bench-stores`, a part at a time; every row, good or bad, as it came out. Bars are those of the table in issue 18.
"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--part", action="append", choices=PARTS, help="only this one; may be given more than once")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--steps", type=int, default=2000, help="of the trainings whose losses are compared")
    p.add_argument("--kills", type=int, default=5, help="for each store")
    p.add_argument("--minutes", type=float, default=1e9, help="of part kills: fewer runs where they take longer")
    p.add_argument("--row", dest="rows", action="append", help="of part codecs, only this one; may be given more than once")
    p.add_argument("--first", action="store_true", help="what is timed runs before other programs (nice -15, for its session too)")
    p.add_argument("--out", default=str(ROOT / "bench" / "results" / "stores.md"))
    args = p.parse_args()
    args.build = pathlib.Path(args.build).resolve()
    args.program = str(args.build / "cli" / "stretto")
    args.front = [str(ROOT / "bench" / "stores" / "first.sh")] if args.first else []
    os.chdir(ROOT)
    out = pathlib.Path(args.out)
    for name in args.part or PARTS:
        args.now = name
        text = PARTS[name][1](args).strip("\n") + "\n"
        before, mark, picture = (out.read_text() if out.exists() else "").partition("<!-- begin policies -->")  # of picture.py
        old = re.split(r"(?m)^(?=## )", before)  # other parts may have been written meanwhile
        sections = {s.partition("\n")[0]: s for s in old if s.startswith("## ")}
        sections[PARTS[name][0]] = text
        out.write_text("\n".join([HEAD, *(sections[h].strip("\n") + "\n" for h, _ in PARTS.values() if h in sections), mark + picture]))
        say(text)


if __name__ == "__main__":
    main()
