"""predict_numpy.py MODEL CSV - the means of `stretto predict` by NumPy: stacked LSTM layers, one way, with the direct decoder."""
import sys

import numpy as np

from model_file import Model


def network(t, w):
    rows, layer = w.x, 0
    while "lstm.weight_ih_l%d" % layer in t:
        W, U, b, c = (t["lstm.%s_l%d" % (name, layer)] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, s, out = np.zeros(U.shape[1]), np.zeros(U.shape[1]), []
        for x in rows:
            i, f, g, o = np.split(W @ x + b + U @ h + c, 4)
            s = s / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(s) / (1 + np.exp(-o))
            out.append(h)
        rows, layer = np.array(out), layer + 1
    return t["head.weight"] @ np.concatenate([h, w.ahead]) + t["head.bias"]


m = Model(sys.argv[1])
print("\n".join("%.17g" % v for v in m.forecast(m.window(sys.argv[2]), network)))
