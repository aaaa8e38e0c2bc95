"""rounds.py - trains nets and counts the rounds that their chains take when the series is sliced (docs/time-parallel.md).

    tasks   A next value of a noisy AR(2) and sines    B sample and hold, 2 % updates    C, D leaky integrators, 0.99 and 0.999
    nets    H = 32, 128, 256; 1 and 2 layers; 3 seeds; T = 4096, one series, loss at every step, Adam, exact slices
    data    ETTh1, Beijing PM2.5, bike sharing, ERCOT as one series each, H = 64

w(tol), of each layer: the worst of eight restarts from the zero state, steps until no state is further than tol from the true run; in float64
by the step equations here, a layer above on the true outputs of the one below.  Nets are kept in DIR/nets and trained once; rounds are counted
anew with every build of bench_slices."""
import concurrent.futures
import csv
import hashlib
import json
import pathlib
import shutil
import sys

import numpy

import cases
import workers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT.parent / "shared" / "data"
T, CUTS, TOLS, RESTARTS = 4096, (8, 16, 32, 64), (1e-4, 1e-6), 8
UPDATES = {20: 20, 32: 400, 64: 150, 128: 150, 256: 80}  # by H: the time of a run is the reason
RATE = {256: 1e-3}


# ---------------------------------------------------------------------- series

def leaky(rng, n, a):
    x, y = rng.standard_normal(n), numpy.zeros(n)
    for t in range(1, n):
        y[t] = a * y[t - 1] + (1 - a * a) ** 0.5 * x[t]
    return x[:, None], y


def task(name, seed, n):
    """x [n][I] and y [n]."""
    rng = numpy.random.default_rng([ord(name), seed])
    if name in "CD":
        return leaky(rng, n, 0.99 if name == "C" else 0.999)
    t = numpy.arange(n + 1)
    if name == "A":
        s = numpy.zeros(n + 1)
        for i in range(2, n + 1):
            s[i] = 1.6 * s[i - 1] - 0.8 * s[i - 2] + 0.2 * rng.standard_normal()
        s = s + numpy.sin(0.05 * t) + 0.5 * numpy.sin(0.011 * t) + 0.05 * rng.standard_normal(n + 1)
        return s[:n, None], s[1:]
    u, new = rng.uniform(-1, 1, n), rng.uniform(size=n) < 0.02
    y = numpy.zeros(n)
    for i in range(n):
        y[i] = u[i] if new[i] else y[max(i - 1, 0)]
    return numpy.stack([u, new], 1), y


def columns(path, names):
    """Columns of a file as numbers; what is missing is the value before it."""
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    out = numpy.zeros((len(rows), len(names)))
    for j, name in enumerate(names):
        last = 0.0
        for i, row in enumerate(rows):
            last = out[i, j] = last if row[name] in ("", "NA") else float(row[name])
    return out


def stream(name):
    """z-scored columns as x, the next value of the last of them as y; None without the data."""
    files = {"ETTh1": ("ett/ETTh1.csv", "HUFL HULL MUFL MULL LUFL LULL OT"), "Beijing": ("beijing_pm25/pollution.csv", "DEWP TEMP PRES Iws pm2.5"),
             "bike": ("bike_sharing/hour.csv", "hr workingday temp hum windspeed cnt")}
    if not DATA.exists():
        return None
    if name == "ERCOT":
        v = columns(DATA / "ercot" / "ercot_multiple_ts.csv", ["value"]).reshape(8, -1).T
    else:
        v = columns(DATA / files[name][0], files[name][1].split())
    v = (v - v.mean(0)) / v.std(0)
    return v[:-1], v[1:, -1]


# ---------------------------------------------------------------------- how long a net remembers

def sigmoid(z):
    return 0.5 * (1 + numpy.tanh(0.5 * z))


def run_layer(w, x, h, c, seen):
    """The step equations over x [n][B][I]; seen(t, h, c) after every step."""
    wi, wh, b = w
    for t in range(len(x)):
        z = x[t] @ wi + h @ wh + b
        i, f, g, o = numpy.split(z, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
        h = sigmoid(o) * numpy.tanh(c)
        seen(t, h, c)


def layer_weights(folder, k, I, H):
    def raw(name, *shape):
        return numpy.fromfile(folder / f"lstm.{name}_l{k}.f32", dtype=numpy.float32).reshape(shape).astype(float)
    wi, wh = raw("weight_ih", 4 * H, I if k == 0 else H), raw("weight_hh", 4 * H, H)
    return wi.T.copy(), wh.T.copy(), raw("bias_ih", 4 * H) + raw("bias_hh", 4 * H)


def memory(folder, x, H, layers, span):
    """[{tol: w or None}] by layer: None = not within `span` steps."""
    out = []
    for k in range(layers):
        w, n = layer_weights(folder, k, x.shape[1], H), len(x)
        true = numpy.zeros((n, 2, H))

        def keep(t, h, c):
            true[t, 0], true[t, 1] = h[0], c[0]
        run_layer(w, x[:, None], numpy.zeros((1, H)), numpy.zeros((1, H)), keep)
        start = [1 + (n - 1 - span) * j // (RESTARTS - 1) for j in range(RESTARTS)]
        scale, last = max(1.0, numpy.abs(true).max()), {tol: 0 for tol in TOLS}

        def compare(t, h, c):
            far = max(max(numpy.abs(h[j] - true[s + t, 0]).max(), numpy.abs(c[j] - true[s + t, 1]).max()) for j, s in enumerate(start))
            for tol in TOLS:
                if far > tol * scale:
                    last[tol] = t + 1
        run_layer(w, numpy.stack([x[s:s + span] for s in start], 1), numpy.zeros((RESTARTS, H)), numpy.zeros((RESTARTS, H)), compare)
        out.append({f"{tol:g}": last[tol] + 1 if last[tol] < span else None for tol in TOLS})
        x = true[:, 0]
    return out


# ---------------------------------------------------------------------- one net

def chains(worker, n):
    """[layer] of (rounds forward, one after another, rounds backward, one after another)."""
    words = worker.ask(f"chain {n}")
    return [[int(words[i + j]) for j in (0, 1, 4, 5)] for i in range(0, len(words), 8)]


def train(build, folder, x, y, H, layers, updates, rate):
    """From PyTorch's initial weights in `folder`; (first loss, last loss)."""
    worker = workers.ours(build)
    try:
        size = f"T={len(y)} B=1 I={x.shape[1]} H={H} layers={layers} threads=1"
        n = worker.ask(f"case {size} P={16 if len(y) < 2000 else 32}")[0]
        worker.ask(f"load {n} {folder}")
        worker.ask(f"step {n} 1 0")
        first = float(worker.ask(f"loss {n}")[0])
        worker.ask(f"step {n} {updates} {rate}", 600)
        worker.ask(f"save {n} {folder}")
        worker.ask(f"step {n} 1 0")
        return first, float(worker.ask(f"loss {n}")[0])
    finally:
        worker.close()


def true_grads(folder, size):
    """PyTorch's gradients in float64, once for a net; in files, for whoever counts again."""
    true = folder / "true"
    if not true.exists():
        import peer  # torch is slow to import, and seldom needed: 2 s
        peer.torch.set_num_threads(1)
        found = peer.truth(folder, size)
        true.mkdir()
        for name, g in found.items():
            cases.put(true, name, g.numpy())
    return vectors(true)


def vectors(folder):
    return {f.name: numpy.fromfile(f, dtype=numpy.float32).astype(float) for f in sorted(folder.glob("*.f32"))}


def apart(a, b):
    """Relative L2 distance, of the tensor where it is largest."""
    return max(float(numpy.linalg.norm(a[k] - b[k]) / (numpy.linalg.norm(b[k]) + 1e-300)) for k in b)


def gradients(worker, n, folder, keep):
    shutil.rmtree(folder / "ours", ignore_errors=True)
    (folder / "ours").mkdir()
    worker.ask(f"grad {n} {folder / 'ours'}")
    return {k: v for k, v in vectors(folder / "ours").items() if k in keep}


def count(build, folder, x, y, H, layers):
    """Rounds of every cut and tolerance; gradients: of the uncut series against float64, of every cut against both."""
    worker, out, true = workers.ours(build), {}, true_grads(folder, (len(y), x.shape[1], H, layers))
    grads = {"rounds": out, "grads": {}, "true": {}}
    try:
        size = f"T={len(y)} B=1 I={x.shape[1]} H={H} layers={layers} threads=1"
        whole = worker.ask(f"case {size} P=1")[0]
        worker.ask(f"load {whole} {folder}")
        worker.ask(f"step {whole} 1")
        serial = gradients(worker, whole, folder, true)
        grads["true"]["serial"] = apart(serial, true)
        for tol, P in ((tol, P) for tol in TOLS for P in CUTS):
            key = f"{tol:g} {P}"
            try:
                n = worker.ask(f"case {size} P={P} tol={tol:g}")[0]
            except workers.Failed as e:
                out[key] = str(e)
                continue
            worker.ask(f"load {n} {folder}")
            worker.ask(f"step {n} 1")
            out[key] = chains(worker, n)
            mine = gradients(worker, n, folder, true)
            grads["grads"][key], grads["true"][key] = apart(mine, serial), apart(mine, true)
        return grads
    finally:
        worker.close()


def net(job):
    """Trains (or finds) one net and cuts it; what is in its result.json."""
    build, folder, name, H, layers, seed, updates = job
    done, built = folder / "result.json", hashlib.sha1((build / "bench_slices").read_bytes()).hexdigest()
    if done.exists() and json.loads(done.read_text())["built"] == built and "true" in json.loads(done.read_text()):
        return json.loads(done.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        long = name in "ABCD"
        x, y = task(name, seed, 2 * T) if long else stream(name)
        n = T if long else len(y)
        cases.put(folder, "x", x[:n])
        cases.put(folder, "y", y[:n])
        record = {"task": name, "H": H, "layers": layers, "seed": seed, "T": n, "updates": updates, "built": built}
        if not (folder / "trained.json").exists():
            cases.weights(folder, x.shape[1], H, layers, seed=seed)
            loss = train(build, folder, x[:n], y[:n], H, layers, updates, RATE.get(H, 3e-3))
            w = memory(folder, x.astype(numpy.float32).astype(float), H, layers, T if long else n // 2)
            (folder / "trained.json").write_text(json.dumps({"loss": loss, "w": w}))
        record |= json.loads((folder / "trained.json").read_text())
        record |= count(build, folder, x[:n], y[:n], H, layers)
    except workers.Failed as e:
        return {"task": name, "H": H, "layers": layers, "seed": seed, "trouble": str(e)}
    done.write_text(json.dumps(record))
    return record


def jobs(build, out):
    nets = [(build, out / "nets" / f"{name}-{H}-{layers}-{seed}", name, H, layers, seed, UPDATES[H])
            for H in (32, 128, 256) for layers in (1, 2) for name in "ABCD" for seed in (1, 2, 3)]
    return [(build, out / "nets" / name, name, 64, 1, 1, UPDATES[64]) for name in ("ERCOT", "ETTh1", "bike", "Beijing") if DATA.exists()] + nets


def run(build, out):
    """All nets, two at a time; nets.json after each of them."""
    records, todo = [], jobs(build, out)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for i, record in enumerate(pool.map(net, todo)):
            records.append(record)
            (out / "nets.json").write_text(json.dumps(records, indent=1))
            text = record.get("trouble") or f"loss {record['loss'][0]:.3g} -> {record['loss'][1]:.3g}, w {record['w']}, rounds at P=64 {record['rounds'].get('1e-06 64')}"
            print(f"net {i + 1} of {len(todo)}: {record['task']} H={record['H']} layers={record['layers']} seed={record['seed']}: {text}", flush=True)
    return records


def quick(build, folder):
    """A tiny net: it learns, and its gradients in slices are those of the whole."""
    global T
    whole, T = T, 600
    try:
        record = net((build, folder / "tiny", "B", 20, 2, 1, UPDATES[20]))
    finally:
        T = whole
        shutil.rmtree(folder / "tiny", ignore_errors=True)
    good = "trouble" not in record and record["loss"][1] < record["loss"][0] and all(g <= 1e-5 for k, g in record["grads"].items() if k.startswith("1e-06"))
    if not good:
        print("wrong:", record, file=sys.stderr)
    return [record] if good else []
