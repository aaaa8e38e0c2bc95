/* sequence.cl - all time steps of a recurrent cell in one launch, for small H (kern.h: struct cell_kern; twin: kern/cell_ref.c).
 *
 *     a group    one row of the batch; it keeps the weights of the h side in registers over all steps
 *     item t     unit t / 2 of SIZE; the pair t, t ^ 1 shares the element-wise part of its unit
 *     forward    z += h Wh          each item of a pair: all gates of the unit, half of the sum over k
 *     backward   dh = dz_next Wh^T  eight items: four units, an eighth of the sum over the units of dz each
 *
 * Rows are independent, so groups never wait for each other.  A kernel is compiled for SIZE = 32, 64, 96 and 128 units; smaller
 * layers have zero weights up to SIZE.  Partial sums meet in a fixed tree, so the bits of a row depend on H alone.  The vector of
 * a step (h or dz) has two buffers in shared memory: one barrier a step is enough. */
#ifndef HOST_DEVICE /* unrolled loops take half a minute to compile where kernels run on the host, and gain nothing there */

/* Weights of 128 units and four gates are as many as the registers of a multiprocessor.  PARKED float4 of each item lie in shared
 * memory instead, and FAR (forward) or FAR_BACK of them are read again in each step; they stay in the cache.  The numbers are the
 * smallest with which ptxas spills nothing (tools/cuda_kernels.py); they change no bits. */
#ifdef __OPENCL_VERSION__
enum { PARKED = 5, FAR = 1, FAR_BACK = 2, DESK = 256 };
#elif defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
enum { PARKED = 11, FAR = 1, FAR_BACK = 6, DESK = 1 };
#else
enum { PARKED = 11, FAR = 1, FAR_BACK = 2, DESK = 1 };
#endif

/* The value of item t ^ with.  desk: a value for each item, where the language has no exchange of registers. */
INLINE float2 exchange(float2 v, int with, ON_SHARED float2 *desk) {
#ifdef __OPENCL_VERSION__
    desk[LOCAL(0)] = v;
    BARRIER;
    v = desk[LOCAL(0) ^ with];
    BARRIER;
#else
    v.x = __shfl_xor_sync(0xffffffffu, v.x, with);
    v.y = __shfl_xor_sync(0xffffffffu, v.y, with);
#endif
    return v;
}

INLINE float2 two(float x, float y) {
    float2 v;
    v.x = x, v.y = y;
    return v;
}

INLINE float value_at(GLOBAL const float *m, i64 at, i64 row, bool lives) { return lives && at >= 0 ? m[at + row] : 0; }

/* Whether a step loads what the next one needs.  With most units no register is free, and the sum of a step covers the latency. */
INLINE bool loads_ahead(const int SIZE) { return SIZE < 128; }

/* 1 / x for x from 1 to 2^120: the device's estimate and a step of Newton's method, without the branches of a general division. */
INLINE float inverse(float x) {
#ifdef __OPENCL_VERSION__
    return 1.0f / x;
#else
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return FMA(r, FMA(-x, r, 1.0f), r);
#endif
}

/* tanh x or sigmoid x.  One exponential for both, so that items of a warp with different gates do not part.  Small |x|: the odd
 * polynomial, with a relative error of 2^-22. */
INLINE float curve(float x, bool is_tanh) {
    const float power = is_tanh ? 2.0f * x : -x, r = inverse(1.0f + EXP(power > 80.0f ? 80.0f : power)), q = x * x;
    const float p = FMA(FMA(FMA(1.57396831e-2f, q, -5.23039624e-2f), q, 1.33152977e-1f), q, -3.33327681e-1f);
    const float tanh_x = ABS(x) < 0.55f ? FMA(x * q, p, x) : 1.0f - 2.0f * r;
    return is_tanh ? tanh_x : r;
}

/* The weights from row k of the h side to unit u, all gates; zero outside of the layer. */
INLINE float4 weights_at(GLOBAL const float *m, struct cell_sequence_args a, int k, int u, const int G) {
    float4 w = zero4();
    if (k >= a.H || u >= a.H) return w;
    GLOBAL const float *from = m + a.at_w + u / PANEL * a.w_panel + k * (G * PANEL) + u % PANEL;
    w.x = from[0];
    if (G > 1) w.y = from[PANEL], w.z = from[2 * PANEL];
    if (G > 3) w.w = from[3 * PANEL];
    return w;
}

/* Weight n of item t.  Forward, n = 4 i + c: to unit t / 2 from k = 8 i + 4 (t % 2) + c.  Backward, n = 4 i + j: from unit j of the
 * four of its eight items to unit 8 i + t % 8, whose dz it reads. */
INLINE float4 weight(GLOBAL const float *m, struct cell_sequence_args a, int n, const int G, const bool forward) {
    const int t = LOCAL(0);
    return forward ? weights_at(m, a, n / 4 * 8 + t % 2 * 4 + n % 4, t / 2, G)
                   : weights_at(m, a, t / 8 * 4 + n % 4, n / 4 * 8 + t % 8, G);
}

/* The first weights are far, then `kept` ones have registers, the last ones are parked. */
INLINE void keep_weights(GLOBAL const float *m, struct cell_sequence_args a, float4 *w, ON_SHARED float4 *parked, const int SIZE,
                         const int kept, const int G, const bool forward) {
    const int far = kept == SIZE / 2 ? 0 : forward ? FAR : FAR_BACK;
#pragma unroll
    for (int n = far; n < SIZE / 2; n++) {
        if (n < far + kept) w[n - far] = weight(m, a, n, G, forward);
        else parked[(n - far - kept) * (2 * SIZE) + LOCAL(0)] = weight(m, a, n, G, forward);
    }
}

INLINE float4 kept_at(GLOBAL const float *m, struct cell_sequence_args a, int n, const float4 *w, ON_SHARED const float4 *parked,
                      const int SIZE, const int kept, const int G, const bool forward) {
    const int far = kept == SIZE / 2 ? 0 : forward ? FAR : FAR_BACK;
    if (n < far) return weight(m, a, n, G, forward);
    return n < far + kept ? w[n - far] : parked[(n - far - kept) * (2 * SIZE) + LOCAL(0)];
}

/* acc.gate += h w.gate */
INLINE void add_step(float h, float4 w, float4 *acc, const int G) {
    acc->x = FMA(h, w.x, acc->x);
    if (G > 1) acc->y = FMA(h, w.y, acc->y), acc->z = FMA(h, w.z, acc->z);
    if (G > 3) acc->w = FMA(h, w.w, acc->w);
}

/* ------------------------------------------------------------------ forward ------------------------------------------------- */

INLINE float4 half_sum(GLOBAL const float *m, struct cell_sequence_args a, ON_SHARED const float4 *h, const float4 *w,
                       ON_SHARED const float4 *parked, const int SIZE, const int kept, const int G) {
    float4 acc = zero4();
#pragma unroll
    for (int i = 0; i < SIZE / 8; i++) {
        const float4 v = h[2 * i + LOCAL(0) % 2];
        add_step(v.x, kept_at(m, a, 4 * i, w, parked, SIZE, kept, G, true), &acc, G);
        add_step(v.y, kept_at(m, a, 4 * i + 1, w, parked, SIZE, kept, G, true), &acc, G);
        add_step(v.z, kept_at(m, a, 4 * i + 2, w, parked, SIZE, kept, G, true), &acc, G);
        add_step(v.w, kept_at(m, a, 4 * i + 3, w, parked, SIZE, kept, G, true), &acc, G);
    }
    return acc;
}

/* Two gates of the item's half: 0 and 1, or 2 and 3. */
INLINE float2 whole_sum(float4 acc, ON_SHARED float2 *desk, const int G) {
    const bool second = LOCAL(0) % 2 != 0;
    if (G == 1) {
        const float2 other = exchange(two(acc.x, 0), 1, desk);
        return two(acc.x + other.x, 0);
    }
    const float2 low = two(acc.x, acc.y), high = two(acc.z, acc.w), other = exchange(second ? low : high, 1, desk);
    return second ? two(high.x + other.x, high.y + other.y) : two(low.x + other.x, low.y + other.y);
}

/* z of the x side that the item needs: two gates of its half.  gru: the second half has one. */
INLINE float2 load_z(GLOBAL const float *q, bool lives, const int kind) {
    if (!lives) return two(0, 0);
    if (kind == KIND_RNN) return two(q[0], 0);
    if (kind == KIND_GRU && LOCAL(0) % 2) return two(q[0], 0);
    return two(q[0], q[PANEL]);
}

/* The state of a unit and the values that its pair stores in z. */
struct unit_state {
    float2 gates;
    float s, h;
};

/* z: of the x side, sum: of the h side; s: c, of lstm, or h. */
INLINE struct unit_state point_of_pair(float2 z, float2 sum, float s, float bias, ON_SHARED float2 *desk, const int kind) {
    const bool second = LOCAL(0) % 2 != 0;
    struct unit_state r;
    if (kind == KIND_RNN) {
        r.s = r.h = curve(z.x + sum.x, true);
        r.gates = two(r.h, 0);
    } else if (kind == KIND_LSTM) {
        r.gates = two(curve(z.x + sum.x, second), curve(z.y + sum.y, false)); /* i, f or g, o */
        const float2 other = exchange(r.gates, 1, desk);
        const float i = second ? other.x : r.gates.x, f = second ? other.y : r.gates.y;
        const float g = second ? r.gates.x : other.x, o = second ? r.gates.y : other.y;
        r.s = FMA(f, s, i * g);
        r.h = o * curve(r.s, true);
    } else {
        r.gates = second ? two(bias + sum.x, z.x) : two(curve(z.x + sum.x, false), curve(z.y + sum.y, false)); /* hn, xn or r, z */
        const float2 other = exchange(r.gates, 1, desk);
        const float2 rz = second ? other : r.gates, n_sides = second ? r.gates : other;
        const float n = curve(FMA(rz.x, n_sides.x, n_sides.y), true);
        r.s = r.h = FMA(rz.y, s - n, n);
        if (second) r.gates = two(n, n_sides.x);
    }
    return r;
}

INLINE void store_step(GLOBAL float *m, struct cell_sequence_args a, GLOBAL float *q, i64 row, struct unit_state r,
                       const int kind) {
    const bool second = LOCAL(0) % 2 != 0;
    if (!second) m[a.at_h + row] = r.h;
    if (kind == KIND_RNN) {
        if (!second) q[0] = r.h;
        return;
    }
    q[0] = r.gates.x;
    q[PANEL] = r.gates.y;
    if (kind == KIND_LSTM && second) m[a.at_s + row] = r.s;
}

INLINE void sequence_forward(GLOBAL float *m, struct cell_sequence_args a, float4 *w, ON_SHARED float4 *parked,
                             ON_SHARED float4 *sh, ON_SHARED float2 *desk, const int SIZE, const int kept, const int kind) {
    const int t = LOCAL(0), u = t / 2, second = t % 2, Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    const bool lives = u < Hp, ahead = loads_ahead(SIZE);
    i64 row = (i64)GROUP(0) * Hp + u; /* of the step */
    GLOBAL float *q = m + a.at_z + ((i64)GROUP(0) * Hp + u / PANEL * PANEL) * Z_GATES(kind) + u % PANEL;
    ON_SHARED float *h = (ON_SHARED float *)sh;
    struct unit_state now;
    if (kind != KIND_RNN) q += second * (2 * PANEL);
    keep_weights(m, a, w, parked, SIZE, kept, GATES(kind), true);
    const float bias = kind == KIND_GRU ? value_at(m, a.at_bias, u / PANEL * (4 * PANEL) + 3 * PANEL + u % PANEL, lives) : 0;
    now.h = value_at(m, a.at_h_prev, row, lives);
    now.s = kind == KIND_LSTM ? value_at(m, a.at_s_prev, row, lives) : now.h;
    float2 z = load_z(q, lives && ahead, kind);
    if (!second) h[u] = now.h;
    BARRIER;
    for (int step = 0; step < a.steps; step++) {
        const float2 loaded = load_z(ahead ? q + a.z_step : q, lives && (!ahead || step + 1 < a.steps), kind);
        const float4 acc = half_sum(m, a, sh + step % 2 * (SIZE / 4), w, parked, SIZE, kept, GATES(kind));
        now = point_of_pair(ahead ? z : loaded, whole_sum(acc, desk, GATES(kind)), now.s, bias, desk, kind);
        if (!second) h[(step + 1) % 2 * SIZE + u] = now.h;
        if (lives) store_step(m, a, q, row, now, kind);
        BARRIER;
        z = loaded, q += a.z_step, row += a.step;
    }
    if (!lives || second) return;
    row = (i64)GROUP(0) * Hp + u;
    if (a.at_hT >= 0) m[a.at_hT + row] = now.h;
    if (kind == KIND_LSTM && a.at_sT >= 0) m[a.at_sT + row] = now.s;
}

/* ------------------------------------------------------------------ backward ------------------------------------------------ */

INLINE float dot_gates(float4 d, float4 w, float acc, const int G) {
    acc = FMA(d.x, w.x, acc);
    if (G > 1) acc = FMA(d.y, w.y, acc), acc = FMA(d.z, w.z, acc);
    if (G > 3) acc = FMA(d.w, w.w, acc);
    return acc;
}

/* dz Wh^T of the item's unit.  Eight partial sums of four units: each exchange halves one or the other. */
INLINE float back_sum(GLOBAL const float *m, struct cell_sequence_args a, ON_SHARED const float4 *dz, const float4 *w,
                      ON_SHARED const float4 *parked, ON_SHARED float2 *desk, const int SIZE, const int kept, const int G) {
    const int t = LOCAL(0);
    float4 acc = zero4();
#pragma unroll
    for (int i = 0; i < SIZE / 8; i++) {
        const float4 d = dz[8 * i + t % 8];
        acc.x = dot_gates(d, kept_at(m, a, 4 * i, w, parked, SIZE, kept, G, false), acc.x, G);
        acc.y = dot_gates(d, kept_at(m, a, 4 * i + 1, w, parked, SIZE, kept, G, false), acc.y, G);
        acc.z = dot_gates(d, kept_at(m, a, 4 * i + 2, w, parked, SIZE, kept, G, false), acc.z, G);
        acc.w = dot_gates(d, kept_at(m, a, 4 * i + 3, w, parked, SIZE, kept, G, false), acc.w, G);
    }
    const float2 low = two(acc.x, acc.y), high = two(acc.z, acc.w), far = exchange(t & 4 ? low : high, 4, desk);
    const float2 left = t & 4 ? two(high.x + far.x, high.y + far.y) : two(low.x + far.x, low.y + far.y);
    const float2 near = exchange(two(t & 2 ? left.x : left.y, 0), 2, desk);
    const float quarter = (t & 2 ? left.y : left.x) + near.x;
    return quarter + exchange(two(quarter, 0), 1, desk).x;
}

/* What the pair of a unit needs of a step: the gates, dy, and s before the step (c of lstm, h of gru).  Each item loads half of it:
 * gates 0, 1 and dy, or gates 2, 3 and s_prev. */
struct step_values {
    float x, y, z, w, dy, s_prev;
};
struct half_values {
    float2 gates;
    float other;
};

/* row: of the step `step` of the call. */
INLINE struct half_values load_half(GLOBAL const float *m, struct cell_sequence_args a, GLOBAL const float *q, i64 row, int step,
                                    bool lives, const int kind) {
    const bool second = LOCAL(0) % 2 != 0;
    struct half_values v;
    v.gates = two(0, 0), v.other = 0;
    if (!lives || step < 0) return v;
    if (kind != KIND_RNN && second) q += 2 * PANEL;
    v.gates.x = q[0];
    if (kind != KIND_RNN) v.gates.y = q[PANEL];
    if (!second) v.other = value_at(m, a.at_dy, row, true);
    else if (kind != KIND_RNN && step == 0) v.other = value_at(m, a.at_s_prev, row - step * a.step, true);
    else if (kind != KIND_RNN) v.other = m[(kind == KIND_LSTM ? a.at_s : a.at_h) + row - a.step];
    return v;
}

INLINE struct step_values whole_values(struct half_values own, ON_SHARED float2 *desk, const int kind) {
    const bool second = LOCAL(0) % 2 != 0;
    const float other = exchange(two(own.other, 0), 1, desk).x;
    struct step_values v;
    v.dy = second ? other : own.other, v.s_prev = second ? own.other : other;
    v.x = own.gates.x, v.y = v.z = v.w = 0;
    if (kind == KIND_RNN) return v;
    const float2 gates = exchange(own.gates, 1, desk), low = second ? gates : own.gates, high = second ? own.gates : gates;
    v.x = low.x, v.y = low.y, v.z = high.x, v.w = high.y;
    return v;
}

/* dz of the h side: gru has its n in slot 3. */
INLINE float2 dz_of_h_side(float2 dz, const int kind) {
    return kind == KIND_GRU && LOCAL(0) % 2 ? two(dz.y, 0) : dz;
}

/* Two gates of dz, of the item's half.  ds: in, the gradient of s from later steps; out, that of s before the step. */
INLINE float2 back_of_pair(struct step_values v, float s, float dh, float *ds, const int kind) {
    const bool second = LOCAL(0) % 2 != 0;
    if (kind == KIND_RNN) return two(dh * (1.0f - v.x * v.x), 0);
    if (kind == KIND_LSTM) {
        const float tc = curve(s, true), dc = *ds + dh * v.w * (1.0f - tc * tc);
        *ds = dc * v.y;
        return second ? two(dc * v.x * (1.0f - v.z * v.z), dh * tc * (v.w * (1.0f - v.w)))
                      : two(dc * v.z * (v.x * (1.0f - v.x)), dc * v.s_prev * (v.y * (1.0f - v.y)));
    }
    const float dn = dh * (1.0f - v.y) * (1.0f - v.z * v.z);
    *ds = dh * v.y;
    return second ? two(dn, dn * v.x) : two(dn * v.w * (v.x * (1.0f - v.x)), dh * (v.s_prev - v.z) * (v.y * (1.0f - v.y)));
}

INLINE void store_dz(GLOBAL float *q, float2 dz, const int kind) {
    if (kind == KIND_RNN && LOCAL(0) % 2) return;
    if (kind != KIND_RNN) q += LOCAL(0) % 2 * (2 * PANEL);
    q[0] = dz.x;
    if (kind != KIND_RNN) q[PANEL] = dz.y;
}

/* dz of the step after the last one of the call, in the order of dz of this kernel; zeros where there is none. */
INLINE float2 load_dz_next(GLOBAL const float *m, struct cell_sequence_args a, i64 from, bool lives, const int kind) {
    const int second = LOCAL(0) % 2;
    if (!lives || a.at_z_next < 0) return two(0, 0);
    GLOBAL const float *q = m + a.at_z_next + from;
    if (kind == KIND_RNN) return two(q[0], 0);
    return dz_of_h_side(two(q[second * (2 * PANEL)], q[second * (2 * PANEL) + PANEL]), kind);
}

INLINE void sequence_backward(GLOBAL float *m, struct cell_sequence_args a, float4 *w, ON_SHARED float4 *parked,
                              ON_SHARED float4 *sz, ON_SHARED float2 *desk, const int SIZE, const int kept, const int kind) {
    const int t = LOCAL(0), u = t / 2, Hp = (a.H + PANEL - 1) / PANEL * PANEL, last = a.steps - 1;
    const bool lives = u < Hp, ahead = loads_ahead(SIZE);
    const i64 from = ((i64)GROUP(0) * Hp + u / PANEL * PANEL) * Z_GATES(kind) + u % PANEL;
    i64 row = (i64)GROUP(0) * Hp + u; /* of the step, from the loop on */
    GLOBAL float *q = m + a.at_z + from + last * a.z_step;
    ON_SHARED float2 *shared_dz = (ON_SHARED float2 *)sz + t;
    float ds = value_at(m, a.at_ds_in, row, lives);
    float s = kind == KIND_LSTM ? value_at(m, a.at_s, row + last * a.step, lives) : 0;
    keep_weights(m, a, w, parked, SIZE, kept, GATES(kind), false);
    shared_dz[0] = load_dz_next(m, a, from, lives, kind);
    row += last * a.step;
    struct half_values half_of = load_half(m, a, q, row, last, lives && ahead, kind);
    BARRIER;
    float dh;
    for (int step = last, in = 0;; step--, in ^= 1) {
        const struct half_values loaded =
            load_half(m, a, ahead ? q - a.z_step : q, ahead ? row - a.step : row, ahead ? step - 1 : step, lives, kind);
        dh = back_sum(m, a, sz + in * SIZE, w, parked, desk, SIZE, kept, GATES(kind));
        if (step == last) dh += value_at(m, a.at_dh_in, row - step * a.step, lives);
        if (kind == KIND_GRU) dh += ds;
        if (step < 0) break;
        const struct step_values v = whole_values(ahead ? half_of : loaded, desk, kind);
        const float2 dz = back_of_pair(v, s, dh + v.dy, &ds, kind);
        shared_dz[(in ^ 1) * (2 * SIZE)] = dz_of_h_side(dz, kind);
        if (lives) store_dz(q, dz, kind);
        BARRIER;
        s = v.s_prev, half_of = loaded, q -= a.z_step, row -= a.step;
    }
    if (!lives || t % 2) return;
    row += a.step; /* of the first step of the call: as in a buffer [B][Hp] */
    if (a.at_dh >= 0) m[a.at_dh + row] = dh;
    if (kind != KIND_RNN) m[a.at_ds + row] = ds;
    if (kind == KIND_LSTM && a.at_dc0 >= 0) m[a.at_dc0 + row] = ds;
}

/* ------------------------------------------------------------------ the kernels --------------------------------------------- */

/* All weights of an item in registers, or all but PARKED and the far ones. */
#define SEQUENCE(name, direction, kind, SIZE, VECTOR, far)                                       \
    KERNEL_OF(2 * SIZE) void name##_##SIZE(GLOBAL float *m, struct cell_sequence_args a) {       \
        SHARED float4 vector[VECTOR];                                                            \
        SHARED float2 desk[DESK];                                                                \
        float4 w[SIZE / 2];                                                                      \
        direction(m, a, w, vector, vector, desk, SIZE, SIZE / 2, kind);                          \
    }
#define SEQUENCE_PARKED(name, direction, kind, SIZE, VECTOR, far)                                \
    KERNEL_OF(2 * SIZE) void name##_##SIZE(GLOBAL float *m, struct cell_sequence_args a) {       \
        SHARED float4 vector[VECTOR], parked[PARKED * 2 * SIZE];                                 \
        SHARED float2 desk[DESK];                                                                \
        float4 w[SIZE / 2 - PARKED - far];                                                       \
        direction(m, a, w, parked, vector, desk, SIZE, SIZE / 2 - PARKED - far, kind);           \
    }
#define SEQUENCES(SIZE, OF_LSTM)                                                    \
    OF_LSTM(lstm_steps_fwd, sequence_forward, KIND_LSTM, SIZE, SIZE / 2, FAR)       \
    SEQUENCE(gru_steps_fwd, sequence_forward, KIND_GRU, SIZE, SIZE / 2, 0)          \
    SEQUENCE(rnn_steps_fwd, sequence_forward, KIND_RNN, SIZE, SIZE / 2, 0)          \
    OF_LSTM(lstm_steps_bwd, sequence_backward, KIND_LSTM, SIZE, 2 * SIZE, FAR_BACK) \
    SEQUENCE(gru_steps_bwd, sequence_backward, KIND_GRU, SIZE, 2 * SIZE, 0)         \
    SEQUENCE(rnn_steps_bwd, sequence_backward, KIND_RNN, SIZE, 2 * SIZE, 0)
SEQUENCES(32, SEQUENCE)
SEQUENCES(64, SEQUENCE)
SEQUENCES(96, SEQUENCE)
SEQUENCES(128, SEQUENCE_PARKED)
#endif
