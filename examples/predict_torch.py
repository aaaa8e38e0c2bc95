"""predict_torch.py MODEL CSV - the means of `stretto predict` by PyTorch: any cell of torch.nn, stacked, one way or both, with the direct decoder."""
import sys

import torch

from model_file import Model


def network(t, w):
    o, t = m.options, {name: torch.tensor(a, dtype=torch.float64) for name, a in t.items()}
    cell = getattr(torch.nn, o["cell"].upper())(w.x.shape[1], o["hidden"], o["layers"], bidirectional=o["bidirectional"],
                                                **({"proj_size": o["projection"]} if o["projection"] else {})).double()
    cell.load_state_dict({name.split(".", 1)[1]: a for name, a in t.items() if name.startswith(o["cell"] + ".")})
    state = cell(torch.tensor(w.x)[:, None])[1]
    last = (state[0] if o["cell"] == "lstm" else state)[-1 - o["bidirectional"] :].flatten()
    return torch.nn.functional.linear(torch.cat([last, torch.tensor(w.ahead)]), t["head.weight"], t["head.bias"]).detach()


m = Model(sys.argv[1])
print("\n".join("%.17g" % v for v in m.forecast(m.window(sys.argv[2]), network)))
