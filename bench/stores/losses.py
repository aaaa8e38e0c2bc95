"""losses.py - what stores and codecs cost in loss at equal samples, and what they save on the wire: parts `local` and `codecs`."""
from common import DATA, ROOT, Failed, machine, middle, say, table, train, verdict

ETT = ["-c", "bench/protocols/etth1-96.yaml", "--preset", "long", "--base", "none", "--no-guard", "--threads", "1", "--validate-every", "500"]
WIDE = ["--time", "date", "--target", "OT", "--until", "2018-02-20", "--validation", "2880", "--test", "2880", "--horizon", "24",
        "--context", "96", "--segment", "24", "--decoder", "direct", "--calendar", "no", "--scale", "last", "--base", "none", "--no-guard",
        "--preset", "none", "--threads", "1", "--hidden", "512", "--batch", "32", "--validate-every", "500", "--head", "point"]
K = (1, 8, 64, 500)


def options(words, steps, seed):
    return [str(ROOT / w) if w.startswith("bench/") else w for w in words] + ["--steps", str(steps), "--seed", str(seed)]


def rounds(args, ways, words, steps, data):
    """{way: [result a seed]}; ways: (name, options, ranks)."""
    got = {name: [] for name, _, _ in ways}
    for seed in range(1, args.seeds + 1):
        for name, more, ranks in ways:
            try:
                got[name].append(train(args, data, [*options(words, steps, seed), *more], ranks, seconds=600))
            except Failed as why:
                say(why)
                got[name].append(None)
                continue
            say("seed %d, %s: %s" % (seed, name, {k: got[name][-1][k] for k in ("valid", "last", "mb", "fewer", "seconds")}))
    return got


def mean_change(got, name, base, what="valid"):
    """Percent by which the loss differs from that of `base`, seed by seed: median, least, most."""
    each = [100 * (a[what] / b[what] - 1) for a, b in zip(got[name], got[base]) if a and b]
    return (middle(each), min(each), max(each)) if each else (None, None, None)


def local_part(args):
    steps, data, text = args.steps or 2000, DATA / "ett" / "ETTh1.csv", []
    rows = []
    for ranks in (2, 4):
        ways = [("sync", ["--parallel", "data_sync"], ranks), *(("local:%d" % k, ["--store", "local:%d" % k], ranks) for k in K),
                ("bmuf:64", ["--store", "bmuf:64"], ranks), ("diloco:64", ["--store", "diloco:64"], ranks)]
        got = rounds(args, ways, ETT, steps, data)
        for name, _, _ in ways:
            done = [r for r in got[name] if r]
            mid, least, most = mean_change(got, name, "sync")
            each = middle([r["mb"] for r in done]) if name != "sync" else middle([r["plan_bytes"] for r in done]) * steps / 1e6 * ranks
            one = middle([r["mb"] for r in got["local:1"] if r])
            k = int(name.split(":")[1]) if ":" in name else 1
            rows.append([ranks, name, "%.4f" % middle([r["valid"] for r in done]), "%+.2f (%+.2f .. %+.2f)" % (mid, least, most), "%.2f" % each,
                         "-" if name == "sync" else "1/%.1f" % (one / each),
                         "-" if name == "sync" else verdict(mid <= 1) if k == 64 else ("%s" % (mid <= 1 and "within" or "beyond"))])
    text = ["## Local steps", "", machine(args, "medians of %d seeds, ranks that are threads of 1 thread" % args.seeds) +
            " ETTh1, 96 hours, recurrent part alone (`--base none --no-guard`), %d steps of 64 windows over all ranks, so samples are equal. The loss "
            "is the lowest on the validation split, its change that against sync of the same seed (least .. most of the seeds). `sent` is what "
            "all ranks together send; sync goes by the messages of the plan. Validations every 500 steps end a round early." % steps, "",
            table(["ranks", "store", "validation loss", "change, %", "sent, MB", "bytes against local:1", "within 1 %"], rows), ""]
    return "\n".join(text)


# codec, what it must save at H = 512
CODECS = [("bf16", 2), ("int8", 4), ("sign", 20), ("topk:0.01", 50), ("powersgd:4", 10)]
# where a codec is known to want another optimiser or rate: options, and sync with the same
AUTO = ["--granularity", "auto"]  # `sign` then makes local steps; its bytes are against f32 as often
SGD = ["--optim", "sgd", "--momentum", "0.9"]
VARIANTS = [("none", []), ("fp16", ["--codec", "fp16"]), *((c, ["--codec", c, *AUTO]) for c, _ in CODECS),
            ("none, sgd lr 0.1", [*SGD, "--lr", "0.1"]), ("none, sgd lr 0.3", [*SGD, "--lr", "0.3"]),
            ("sign, adam on servers", ["--codec", "sign"]), ("sign, adam on workers", ["--codec", "sign", "--worker-optim", "adam"]),
            *(("%s, sgd lr %s" % (c, lr), ["--codec", c, *SGD, "--lr", lr]) for c in ("topk:0.01", "sign") for lr in ("0.1", "0.3"))]


def saved(got, name):
    """Times fewer bytes than f32."""
    return middle([r["fewer"] for r in got[name] if r])


def codec_table(got, bars, wide):
    rows = []
    for name, _ in VARIANTS:
        if name not in got:
            continue
        done = [r for r in got.get(name, []) if r]
        if not done:
            rows.append([name, 0, "failed"] + ["-"] * 4)
            continue
        base = "none" + name[name.index(","):] if ", sgd" in name else "none"
        mid, least, most = mean_change(got, name, base)
        over = 100 * (middle([r["valid"] for r in done]) / middle([r["valid"] for r in got["none"] if r]) - 1)
        codec, times = name.split(",")[0], saved(got, name)
        bar = dict(bars).get(codec)
        rows.append([name, len(done), "%.4f" % middle([r["valid"] for r in done]), "%+.2f (%+.2f .. %+.2f)" % (mid, least, most), "%+.2f" % over,
                     "%.1f" % times if times else "-",
                     ("loss %s" % verdict(mid <= 1) + (", bytes %s (%dx)" % (verdict(times >= bar - 0.15), bar) if wide else "")) if bar else "-"])
    return table(["codec", "seeds", "validation loss", "change against none with the same optimiser, %", "against none with Adam, %", "times fewer bytes",
                  "bar"], rows)


def codecs_part(args):
    data = DATA / "ett" / "ETTh1.csv"
    ways = [(name, ["--store", "sync", "--granularity", "1step", "--keep-codec", *more], 2) for name, more in VARIANTS if not args.rows or name in args.rows]
    text = ["## Codecs", ""]
    small = rounds(args, ways, [*ETT, "--hidden", "64"], args.steps or 2000, data)
    wide = rounds(args, ways, WIDE, args.steps or 2000, data)
    text += [machine(args, "medians of %d seeds, 2 ranks that are threads of 1 thread" % args.seeds) +
             " `--store sync` with `--codec` and `--keep-codec`; the loss is the lowest on the validation split, at equal steps. Bytes are those of pushes and "
             "pulls of all ranks with the heads of messages, against f32; the last weights before a validation go plain, and are counted. A bar of bytes is met to 0.15: int8 has a scale for each 256 values, and messages have heads.", "",
             "H = 512: ETTh1, column OT, 24 hours ahead of 96 in segments of 24, batches of 32, %d steps, validated every 500." % (
                 args.steps or 2000), "", codec_table(wide, CODECS, True), "",
             "H = 64: ETTh1, seven columns, 96 hours, preset `long`, recurrent part alone, %d steps, validated every 500." % (args.steps or 2000),
             "", codec_table(small, CODECS, False), ""]
    return "\n".join(text)
