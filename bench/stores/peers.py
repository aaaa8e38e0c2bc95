"""peers.py - our synchronous messages, codecs and local steps beside PyTorch DDP over Gloo with its hooks: part `peers`.

Both sides begin with the same weights, those of ours, and draw the batches of a seed each by their own random numbers.
"""
import socket
import tempfile

from common import DATA, ROOT, Failed, machine, middle, run, say, table, train, verdict

# B, segment (inputs), context, H, steps
SHAPES = [(32, 24, 96, 512, 400), (64, 2, 96, 128, 400)]
HORIZON = 24
PAIRS = [("plain", ["--store", "sync", "--parallel", "data_sync"]), ("fp16", ["--store", "sync", "--codec", "fp16", "--keep-codec"]),
         ("powersgd:4", ["--store", "sync", "--codec", "powersgd:4", "--keep-codec"]), ("postlocal:16", ["--store", "local:16"])]


def words(shape, seed):
    b, segment, context, h, steps = shape
    return ["--time", "date", "--target", "OT", "--until", "2018-02-20", "--validation", "2880", "--test", "2880", "--horizon", str(HORIZON),
            "--context", str(context), "--segment", str(segment), "--decoder", "direct", "--calendar", "no", "--scale", "series", "--base", "none",
            "--no-guard", "--preset", "none", "--threads", "1", "--hidden", str(h), "--batch", str(b), "--steps", str(steps), "--validate-every",
            str(max(1, steps // 2)), "--loss-steps", "last", "--seed", str(seed)]


def first_weights(args, data, shape, seed, folder):
    """The model with which ours begins: a step of rate 0."""
    train(args, data, [*words((*shape[:4], 1), seed), "--lr", "0"], keep=folder)
    return folder + "/m.model"


def peer(args, how, data, shape, seed, weights):
    python = ROOT / ".peers" / "bin" / "python3"
    if not python.exists():
        raise Failed("no .peers: run bench/peers.sh")
    b, segment, context, h, steps = shape
    with socket.socket() as s:  # a free port
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    out, _ = run([*args.front, python, ROOT / "bench" / "stores" / "torch_sync.py", how, data, steps, b, segment, context, h, HORIZON, seed, 2, weights], 120,
                 {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"})
    return [float(w) for w in out.split()[-2:]]


def measure(args, data, shape, seed, weights, got):
    for how, more in PAIRS:
        for who in ("ours, threads", "ours, Open MPI", "torch"):
            try:
                if who == "torch":
                    ms, loss = peer(args, how, data, shape, seed, weights)
                else:
                    r = train(args, data, [*words(shape, seed), *more], 2, "MPI" in who, args.front)
                    ms, loss = 1e3 * shape[0] / r["rate"][-1], r["last"]
                got.setdefault((how, who), []).append((ms, loss))
                say("peers, seed %d, %s, %s, %s: %.2f ms, %.5f" % (seed, shape, how, who, ms, loss))
            except Failed as why:
                say(why)


def peers_part(args):
    data, rows = DATA / "ett" / "ETTh1.csv", []
    for shape in SHAPES:
        got = {}
        for seed in range(1, args.seeds + 1):
            with tempfile.TemporaryDirectory(prefix="stretto-stores-") as folder:
                measure(args, data, shape, seed, first_weights(args, data, shape, seed, folder), got)
        for how, more in PAIRS:
            ms = {who: middle([a for a, _ in got.get((how, who), [])]) for who in ("ours, threads", "ours, Open MPI", "torch")}
            loss = {who: middle([b for _, b in got.get((how, who), [])]) for who in ms}
            if None in ms.values():
                rows.append(["%d, %d, %d" % (shape[0], shape[2] // shape[1], shape[3]), how, "failed"] + ["-"] * 7)
                continue
            mpi, torch = "ours, Open MPI", "torch"
            own = ["%+.2f" % middle([100 * (a[1] / b[1] - 1) for a, b in zip(got[how, who], got["plain", who])]) for who in (mpi, torch)]
            rows.append(["%d, %d, %d" % (shape[0], shape[2] // shape[1], shape[3]), how, " ".join(more).replace(" --parallel data_sync", ""),
                         *("%.2f" % ms[who] for who in ms), "%.2fx" % (ms[torch] / ms[mpi]), "%.4f / %.4f" % (loss[mpi], loss[torch]), " / ".join(own),
                         "step %s, loss %s" % (verdict(ms[mpi] < ms[torch]), verdict(loss[mpi] <= 1.005 * loss[torch]))])
    return "\n".join(["## PyTorch", "", machine(args, "medians of %d seeds, in turns%s" % (args.seeds, ", before other programs (nice -15)" if args.first else "")) +
                      " Two processes of one thread on this host, %s; ETTh1, column OT, standardized, 24 hours ahead of 96, MSE, Adam with the same rates, "
                      "clipping, the same number of steps. Ours: the second half of the run with filling of batches and one validation's messages; "
                      "PyTorch: forward to update, batches at hand. The loss is that on the validation split at the end; equal means within 0.5 %%, on the "
                      "windows that ours validates on. Both begin with our initial weights; PyTorch's second bias stays zero; batches are drawn by other random numbers." % version(), "",
                      table(["B, T, H", "hook", "ours", "ours, threads, ms", "ours, Open MPI, ms", "torch, ms", "torch over Open MPI", "loss, ours / torch", "change over own plain, %", "bar"], rows), ""])


def version():
    try:
        return "torch " + run([ROOT / ".peers" / "bin" / "python3", "-c", "import torch; print(torch.__version__)"])[0].strip()
    except (Failed, OSError):
        return "no torch"
