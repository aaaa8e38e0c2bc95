"""limit.py - lower bound of the step time of `overlap` from its dependencies alone.

    rank      | fwd 0 | fwd 1 | bwd 1 | bwd 0 | dw 0 | sums, norm |     | update |
    line        w0 | w1 |             | g1  |    g0  |            | lag |        | w0 | w1 | ..

Two equal ranks, which send the same amounts.  Times of tasks are measured (bench_pipeline, messages at once), the line
has a rate and a lag, a batch is read while the step before is computed; what belongs to no task (laying out the batch, for one) is
done before the first, and may be hidden by waiting for the weights.  Simulated until the step time is constant.
"""


def stages(lines):
    """Of the tasks of a rank, in their order: forward [ms, bytes awaited], backward [ms, bytes that leave], sums [ms, backward
    stage whose messages they add], and the milliseconds of norm and update."""
    forward, backward, sums, last = [], [], [], {"norm": 0.0, "update": 0.0}
    before = 0.0  # copies of weights, vectors zeroed: part of what comes next
    for line in lines:
        kind, _, ms, count, stage = line.split()
        ms, count, stage = float(ms), int(count), int(stage)
        if kind in ("prep", "zero"):
            before += ms
        elif kind in ("fwd", "bwd", "dw"):
            (forward if kind == "fwd" else backward).append([ms + before, count])
            before = 0.0
        elif kind == "merge" and stage >= 0:
            sums.append([ms, stage])
        elif kind == "merge":
            where = sums if sums else backward
            where[-1][0] += ms
            if where is backward:
                where[-1][1] += count
        else:
            last[kind] += ms
    return forward, backward, sums, last["norm"], last["update"]


def best(lines, tc, ti, rate, lag, steps=12):
    """Milliseconds of a step; rate in bytes per millisecond.  Never less than tc, and never less than ti."""
    forward, backward, sums, norm, update = stages(lines)
    rest = max(0.0, tc - sum(k[0] for k in forward + backward + sums) - norm - update)
    now = line = batch = period = 0.0
    here = [0.0] * len(forward)  # when the weights of an op are
    for _ in range(steps):
        begin = now
        now = max(now, batch)
        batch = now + ti
        now += rest
        for k, (ms, _) in enumerate(forward):
            now = max(now, here[k]) + ms
        came = []
        for ms, leave in backward:
            now += ms
            if leave:
                line = max(line, now) + leave / rate
            came.append(line + lag if leave else now)
        for ms, stage in sums:
            now = max(now, came[stage]) + ms
        now += norm + lag + update  # every rank's share of the norm is awaited
        for k, (_, awaited) in enumerate(forward):
            if awaited:
                line = max(line, now) + awaited / rate
                here[k] = line + lag
        period = now - begin
    return max(period, tc, ti)
