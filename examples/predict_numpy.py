"""predict_numpy.py MODEL CSV - the means of `stretto predict` by NumPy: stacked LSTM layers, one way, with the direct or the parallel decoder."""
import sys

import numpy as np

from model_file import Model


def cell(z, s):
    i, f, g, o = np.split(z, 4)
    s = s / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
    return np.tanh(s) / (1 + np.exp(-o)), s


def network(t, w):
    rows, layer = w.x, 0
    if "lstm.weight_ih_l0" not in t:
        raise SystemExit("predict_numpy.py has the LSTM cell alone: " + m.options["cell"])
    if "segment.weight" in t:
        rows = np.maximum(rows @ t["segment.weight"].T + t["segment.bias"], 0)
    while "lstm.weight_ih_l%d" % layer in t:
        W, U, b, c = (t["lstm.%s_l%d" % (name, layer)] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, s, out = np.zeros(U.shape[1]), np.zeros(U.shape[1]), []
        for x in rows:
            h, s = cell(W @ x + b + U @ h + c, s)
            out.append(h)
        rows, layer = np.array(out), layer + 1
    if "decode.pos" not in t:
        return t["head.weight"] @ np.concatenate([h, w.ahead]) + t["head.bias"]
    K = t.get("decode.weight_k", np.zeros((4 * len(h), w.steps.shape[1])))  # each step: the last layer's cell, from its end state
    steps = [W @ np.concatenate([p, t["decode.col"][0]]) + b + U @ h + c + K @ known for p, known in zip(t["decode.pos"], w.steps)]
    out = np.array([t["head.weight"] @ cell(z, s)[0] + t["head.bias"] for z in steps]).reshape(len(steps), -1, m.facts["shape.out_seg"])
    return np.hstack(list(out))[:, : m.horizon].flatten()


m = Model(sys.argv[1])
print("\n".join("%.17g" % v for v in m.forecast(m.window(sys.argv[2]), network)))
