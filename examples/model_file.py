"""model_file.py - a model file for other programs: its tensors, and what stands around its network (docs/model-file.md).  Needs NumPy.

    m = Model("air.model")
    w = m.window("air.csv")            the last context, scaled: w.x [segments][features], w.ahead [features], w.steps [steps of
                                       the parallel decoder][features], w.base [horizon]
                                       (the time column is the first one)
    m.forecast(w, network)             original units; network(t, w): outputs for the tensors t of one member
"""
import csv
import datetime
import json
import re
import struct
import types

import numpy as np

DAY, WEEK, YEAR = 86400, 604800, 31556952


class Model:
    def __init__(self, path):
        with open(path, "rb") as f:
            raw = f.read()
        size = struct.unpack("<Q", raw[:8])[0]
        header, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
        meta = header.pop("__metadata__")
        self.facts, self.options = json.loads(meta["stretto.forecast"]), json.loads(meta["stretto.options"])
        self.recipe, self.context, self.horizon = self.facts["recipe"], self.facts["shape.context"], self.facts["shape.horizon"]
        self.tensors = {}
        for name, t in header.items():
            kind = {"F32": "<f4", "F64": "<f8"}[t["dtype"]]
            self.tensors[name] = np.frombuffer(data[slice(*t["data_offsets"])], kind).reshape(t["shape"]).astype(float)

    def window(self, path, target=0):
        """The window behind the last value of a target column; no value of the target may be missing."""
        with open(path, newline="") as f:
            table = list(csv.DictReader(f))
        facts, r, column = self.facts, self.recipe, self.facts["columns"][target]
        v = self.scaled(table, column)
        origin = max(np.flatnonzero(~np.isnan(v))) + 1
        v = v[:origin]
        if np.isnan(v).any() or "category" in r["segment"]:
            raise SystemExit("model_file.py fills no gaps and has no embeddings of categories")
        self.seconds = self.times(table) if "calendar" in json.dumps(facts["recipe"]) + facts["base"] else None
        past, zero = v[-self.context :], column["mean"] / column["dev"]
        shift = {"0": 0.0, "last": v[-1], "-mean/dev": -zero}[r["shift"]]
        divisor = {"1": 1.0, "deviation": past.std(), "mean |v - shift|": abs(past - shift).mean()}[r["divisor"]]
        w = types.SimpleNamespace(column=column, shift=shift, divisor=max(r["least_divisor"], divisor))
        rows = {"target": (v - shift) / w.divisor, "present": np.ones(origin)}
        for c in facts["columns"]:
            rows["past " + c["name"]] = rows["known " + c["name"]] = np.nan_to_num(self.scaled(table, c))
        w.x = self.segments(r["segment"], rows, origin - self.context, origin, facts["shape.seg"], facts["shape.seg"] - 1)
        w.ahead = self.segments(r["ahead"], rows, origin, origin + self.horizon, self.horizon, 0).flatten()
        size = facts["shape.out_seg"]
        w.steps = self.segments(r["ahead"], rows, origin, origin + -(-self.horizon // size) * size, size, 0)
        w.base = self.base(v, zero, origin, rows) if facts["base"] else np.full(self.horizon, shift)
        return w

    def segments(self, names, rows, first, end, size, marked):
        """[segments][features] of rows first..end: `size` values of each column, and the calendar of row `marked` of the segment."""
        count = -(-(end - first) // size)
        start = end - count * size
        blocks = [[self.calendar(start + t * size + marked) for t in range(count)] if name == "calendar" else
                  np.r_[np.zeros(first - start), rows[name][first:end]].reshape(count, size) for name in names]
        return np.hstack(blocks) if blocks else np.zeros((count, 0))

    def scaled(self, table, column):
        return (np.array([float(row[column["name"]] or "nan") for row in table]) - column["mean"]) / column["dev"]

    def times(self, table):
        """Seconds since 1970 of the rows and of the horizon behind them; the time is the first column, as ISO 8601."""
        step = self.facts["freq"]["step"]
        t = [datetime.datetime.fromisoformat(next(iter(row.values()))) for row in table]
        t += [t[-1] + datetime.timedelta(seconds=step * (k + 1)) for k in range(self.horizon)]
        return [(at - datetime.datetime(1970, 1, 1)).total_seconds() for at in t]

    def calendar(self, row):
        angles = [2 * np.pi * (self.seconds[row] % p) / p for p in (DAY, WEEK, YEAR) if 2 * self.facts["freq"]["step"] <= p]
        return [f(a) for a in angles for f in (np.sin, np.cos)]

    def base(self, v, zero, origin, rows):
        """The weighted sum of "base": "0.6*season(12) + 0.4*ses(0.3)"."""
        total = np.zeros(self.horizon)
        for weight, kind, args in re.findall(r"(?:([\d.e+-]+)\*)?([a-z]+)(?:\(([^)]*)\))?", self.facts["base"]):
            rule = self.ridge(v, args, origin, rows) if kind == "ridge" else self.rule(kind, [float(a) for a in args.split(",") if a], v, zero)
            total += float(weight or 1) * rule
        return total

    def ridge(self, v, args, origin, rows):
        """Rows of W: the lags, a constant, with "calendar" hours, weekdays and months, with "ahead:columns:back:group" means of
        `group` rows of the known columns, from `back` rows before the origin to the end of the horizon."""
        lags, W = int(args.split(",")[0]), self.tensors["base.ridge"]
        past = np.pad(v[-lags:], (max(0, lags - len(v)), 0), constant_values=v[-1])
        forecast = v[-1] + (past - v[-1]) @ W[:lags] + W[lags]
        if "calendar" in args:
            t = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=self.seconds[origin])
            forecast = forecast + W[lags + 1 + t.hour] + W[lags + 25 + t.isoweekday() % 7] + W[lags + 32 + t.month - 1]
        if "ahead" in args:
            columns, back, group = (int(n) for n in args.split("ahead:")[1].split(":"))
            end = origin + self.horizon
            names = [c["name"] for c in self.facts["columns"]][-columns:]
            u = [rows["known " + c][k : min(k + group, end)].mean() for c in names for k in range(origin - back, end, group)]
            forecast = forecast + u @ W[-len(u) :]
        return forecast

    def rule(self, kind, args, v, zero):
        k, m, recent = np.arange(self.horizon), int(args[0]) if args else 1, v[-4096:]
        n = len(recent)
        if kind in ("last", "mean", "drift"):
            slope = (v[-1] - recent[0]) / (n - 1) if kind == "drift" else 0
            return (recent.mean() if kind == "mean" else v[-1]) + slope * (k + 1)
        if kind in ("season", "growth", "ratio", "average"):
            season, seasons = v[len(v) - m + k % m], k // m + 1
            now, before = (v[-m:].mean(), v[-2 * m : -m].mean()) if len(v) >= 2 * m else (0, 0)
            factor = min(max((now + zero) / (before + zero), 0.5), 2) if now + zero > 0 and before + zero > 0 and kind == "ratio" else 1
            return {"season": season, "growth": season + (now - before) * seasons, "ratio": (season + zero) * factor ** seasons - zero,
                    "average": np.mean([v[len(v) - j * m + k % m] for j in (1, 2, 3) if j * m <= len(v)], axis=0)}[kind]
        alpha, index = args[-1], np.zeros(1)
        if kind == "theta" and m > 1 and n >= 2 * m:  # mean distance of each phase from the centred moving average
            half = m // 2
            window = np.ones(2 * half + 1) if m % 2 else np.r_[0.5, np.ones(m - 1), 0.5]
            distance = recent[half : n - half] - np.convolve(recent, window, "valid") / m
            index = np.array([distance[np.arange(half, n - half) % m == p].mean() for p in range(m)])
            index -= index.mean()
        z, level = recent - np.resize(index, n), 0
        for i, value in enumerate(z):
            level = value if i == 0 else level + alpha * (value - level)
        if kind == "ses":
            return np.full(self.horizon, level)
        slope = np.polyfit(np.arange(n), z, 1)[0] if n > 1 else 0
        return level + 0.5 * slope * (k + (1 - (1 - alpha) ** n) / alpha) + index[(n + k) % len(index)]

    def forecast(self, w, network):
        """mean + dev * (base + weight * divisor * output), the outputs averaged over the members.  With "shares", the network forecasts
        shift + divisor * output by itself: base + weight * share * (its forecast - base)."""
        count, first, total = self.facts["nmember"], self.recipe["output"] * self.horizon, 0
        for k in range(count):
            prefix = "member.%d." % k if k else ""
            t = {name[len(prefix) :]: a for name, a in self.tensors.items() if name.startswith(prefix)}
            total = total + np.asarray(network(t, w))[first : first + self.horizon] / count
        correction, shares = w.divisor * total, np.array(self.facts.get("shares", []))
        if len(shares):
            piece = np.arange(self.horizon) * len(shares) // self.horizon
            correction = shares[piece] * (w.shift + correction - w.base)
        return w.column["mean"] + w.column["dev"] * (w.base + self.facts["weight"] * correction)
