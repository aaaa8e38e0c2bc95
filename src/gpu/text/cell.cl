/* cell.cl - one time step of a recurrent cell for all rows of a call (kern.h: struct cell_kern; the twin: kern/cell_ref.c).
 *
 *     a group: 16 rows x 16 units (one panel), all gates of a unit; 64 of the sum at a time through shared memory
 *     forward   z += h_prev Wh       item: 4 rows x the gates of 1 unit, one of 4 slices of the sum
 *     backward  dh += dz_next Wh^T   item: 4 rows x 4 units, one of 16 slices of the sum
 *
 * A group divides the sum because a step has few outputs, and a device has many items to fill.  The slices are then added in
 * order and each item does the element-wise part of one row and unit.  The slices do not depend on the number of rows, so neither
 * do the bits of a row. */
enum { SPAN = 64, ROWS = 16, PANEL = 16, STRIDE = 5, AREA = 1024 }; /* STRIDE: of the tiles of 4 float4, against bank conflicts */
enum { KIND_LSTM, KIND_GRU, KIND_RNN };
#define GATES(kind) ((kind) == KIND_LSTM ? 4 : (kind) == KIND_GRU ? 3 : 1)
#define Z_GATES(kind) ((kind) == KIND_RNN ? 1 : 4)

INLINE float sigmoid1(float x) { return 1.0f / (1.0f + EXP(-x)); }

/* Values k of rows 4 q .. 4 q + 3, for k = item % 64 and q = item / 64, into a tile [64 k][4 q] with k as its row.  A step has
 * less than 2^31 floats: offsets in it are int. */
INLINE float4 load_quad(GLOBAL const float *base, const int row[4], int k, bool inside) {
    float4 v = zero4();
    if (!inside) return v;
    v.x = base[row[0] + k], v.y = base[row[1] + k], v.z = base[row[2] + k], v.w = base[row[3] + k];
    return v;
}

/* ------------------------------------------------------------------ forward ------------------------------------------------- */

/* Weights k, k + 16, k + 32, k + 48 of unit l, for k = item / 16 and l = item % 16: the gates of each. */
struct weights {
    float4 v[4];
};

INLINE struct weights load_weights(GLOBAL const float *m, i64 at, int k, int H, const int G) {
    struct weights w;
#pragma unroll
    for (int i = 0; i < 4; i++, k += 16) {
        const i64 from = at + k * (G * PANEL);
        w.v[i] = zero4();
        if (k >= H) continue;
        w.v[i].x = m[from];
        if (G > 1) w.v[i].y = m[from + PANEL], w.v[i].z = m[from + 2 * PANEL];
        if (G > 3) w.v[i].w = m[from + 3 * PANEL];
    }
    return w;
}

/* One gate of four rows: c[row].gate += h[row] w.gate */
#define ADD_GATE(gate)                                                                        \
    c[0].gate = FMA(h.x, w.gate, c[0].gate), c[1].gate = FMA(h.y, w.gate, c[1].gate),         \
    c[2].gate = FMA(h.z, w.gate, c[2].gate), c[3].gate = FMA(h.w, w.gate, c[3].gate)

INLINE void add_gates(float4 h, float4 w, float4 c[4], const int G) {
    ADD_GATE(x);
    if (G > 1) {
        ADD_GATE(y);
        ADD_GATE(z);
    }
    if (G > 3) ADD_GATE(w);
}

/* h_prev Wh of the item's slice: acc[row] holds the gates. */
INLINE void forward_sums(GLOBAL const float *m, struct cell_step_args a, ON_SHARED float4 *sw, ON_SHARED float4 *sh,
                         float4 acc[4], const int G) {
    const int t = LOCAL(0), l = t % 16, Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    const int slice = t / 64, q = t / 16 % 4, column = t % SPAN, row = GROUP(1) * ROWS + t / SPAN * 4;
    const i64 at_w = a.at_w + GROUP(0) * a.w_panel + l;
    GLOBAL const float *h_prev = m + a.at_h_prev;
    int from[4];
#pragma unroll
    for (int i = 0; i < 4; i++) from[i] = least(row + i, a.nb - 1) * Hp;
    struct weights w = load_weights(m, at_w, t / 16, a.H, G);
    float4 h = load_quad(h_prev, from, column, column < a.H);
    for (int k = SPAN; k < a.H + SPAN; k += SPAN) {
#pragma unroll
        for (int i = 0; i < 4; i++) sw[t + 256 * i] = w.v[i];
        sh[column * STRIDE + t / SPAN] = h;
        BARRIER;
        w = load_weights(m, at_w, k + t / 16, a.H, G);
        h = load_quad(h_prev, from, k + column, k + column < a.H);
#pragma unroll
        for (int i = slice * 16; i < slice * 16 + 16; i++) add_gates(sh[i * STRIDE + q], sw[i * 16 + l], acc, G);
        BARRIER;
    }
}

/* The element-wise part of one row and unit: z holds the sums of the h side. */
INLINE void forward_point(GLOBAL float *m, struct cell_step_args a, int b, float4 z, const int kind) {
    const int l = LOCAL(0) % 16, Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    GLOBAL float *q = m + a.at_z + ((i64)b * Hp + GROUP(0) * PANEL) * Z_GATES(kind) + l;
    const i64 at = (i64)b * Hp + GROUP(0) * PANEL + l;
    const float s_prev = kind != KIND_RNN && a.at_s_prev >= 0 ? m[a.at_s_prev + at] : 0;
    if (kind == KIND_RNN) {
        q[0] = m[a.at_h + at] = TANH(q[0] + z.x);
        return;
    }
    const float first = sigmoid1(q[0] + z.x), second = sigmoid1(q[PANEL] + z.y);
    q[0] = first;
    q[PANEL] = second;
    if (kind == KIND_LSTM) {
        const float g = TANH(q[2 * PANEL] + z.z), o = sigmoid1(q[3 * PANEL] + z.w), c = second * s_prev + first * g;
        q[2 * PANEL] = g;
        q[3 * PANEL] = o;
        m[a.at_s + at] = c;
        m[a.at_h + at] = o * TANH(c);
    } else {
        const float own = a.at_bias >= 0 ? m[a.at_bias + GROUP(0) * (4 * PANEL) + 3 * PANEL + l] : q[3 * PANEL];
        const float hn = own + z.z, n = TANH(q[2 * PANEL] + first * hn);
        q[2 * PANEL] = n;
        q[3 * PANEL] = hn;
        m[a.at_h + at] = n + second * (s_prev - n);
    }
}

INLINE void forward(GLOBAL float *m, struct cell_step_args a, ON_SHARED float4 *sw, ON_SHARED float4 *sh, const int kind) {
    const int t = LOCAL(0), slice = t / 64, q = t / 16 % 4, l = t % 16, b = GROUP(1) * ROWS + t / 16;
    float4 acc[4];
#pragma unroll
    for (int i = 0; i < 4; i++) acc[i] = zero4();
    if (a.at_h_prev >= 0) forward_sums(m, a, sw, sh, acc, GATES(kind));
#pragma unroll
    for (int i = 0; i < 4; i++) sw[(slice * ROWS + 4 * q + i) * PANEL + l] = acc[i];
    BARRIER;
    if (b >= a.nb) return;
    float4 z = sw[t];
#pragma unroll
    for (int i = 1; i < 4; i++) z = add4(z, sw[t + 256 * i]);
    forward_point(m, a, b, z, kind);
}

#define FORWARD(name, kind)                                  \
    KERNEL void name(GLOBAL float *m, struct cell_step_args a) { \
        SHARED float4 sw[AREA], sh[SPAN * STRIDE];           \
        forward(m, a, sw, sh, kind);                         \
    }
FORWARD(lstm_fwd, KIND_LSTM)
FORWARD(gru_fwd, KIND_GRU)
FORWARD(rnn_fwd, KIND_RNN)

/* ------------------------------------------------------------------ backward ------------------------------------------------ */

/* Value k of the sum is gate and lane k % W of panel k / W: of four rows of dz_next, of four units of Wh. */
struct pair {
    float4 z, w;
};

INLINE struct pair load_pair(GLOBAL const float *m, struct cell_step_args a, const int from_z[4], const int from_w[4], int k,
                             int K, const int kind) {
    const int W = GATES(kind) * PANEL, p = k / W, j = k % W, gap = kind == KIND_GRU && j >= 2 * PANEL ? PANEL : 0;
    struct pair v;
    v.z = load_quad(m + a.at_z_next, from_z, p * (Z_GATES(kind) * PANEL) + j + gap, k < K);
    v.w = load_quad(m + a.at_w + p * a.w_panel, from_w, j, k < K);
    return v;
}

/* dz_next Wh^T of the item's slice: acc[row] holds four units.  The last unit stands in for padding, which is not used. */
INLINE void backward_sums(GLOBAL const float *m, struct cell_step_args a, ON_SHARED float4 *sz, ON_SHARED float4 *sw,
                          float4 acc[4], const int kind) {
    const int W = GATES(kind) * PANEL, t = LOCAL(0), panels = (a.H + PANEL - 1) / PANEL, K = panels * W;
    const int slice = t / 16, rq = t / 4 % 4, uq = t % 4, column = t % SPAN, quad = t / SPAN;
    int from_z[4], from_w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        from_z[i] = least(GROUP(1) * ROWS + 4 * quad + i, a.nb - 1) * panels * (Z_GATES(kind) * PANEL);
        from_w[i] = least(GROUP(0) * PANEL + 4 * quad + i, a.H - 1) * W;
    }
    struct pair v = load_pair(m, a, from_z, from_w, column, K, kind);
    for (int k = SPAN; k < K + SPAN; k += SPAN) {
        sz[column * STRIDE + quad] = v.z;
        sw[column * STRIDE + quad] = v.w;
        BARRIER;
        v = load_pair(m, a, from_z, from_w, k + column, K, kind);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 d = sz[(slice * 4 + i) * STRIDE + rq], u = sw[(slice * 4 + i) * STRIDE + uq];
            FMA4(d.x, u, acc[0]);
            FMA4(d.y, u, acc[1]);
            FMA4(d.z, u, acc[2]);
            FMA4(d.w, u, acc[3]);
        }
        BARRIER;
    }
}

INLINE void lstm_back(GLOBAL float *m, struct cell_step_args a, GLOBAL float *q, i64 at, float dh) {
    const float i = q[0], f = q[PANEL], g = q[2 * PANEL], o = q[3 * PANEL], tc = TANH(m[a.at_s + at]);
    const float later = a.at_ds_in >= 0 ? m[a.at_ds_in + at] : 0, s_prev = a.at_s_prev >= 0 ? m[a.at_s_prev + at] : 0;
    const float dc = later + dh * o * (1.0f - tc * tc);
    q[0] = dc * g * (i * (1.0f - i));
    q[PANEL] = dc * s_prev * (f * (1.0f - f));
    q[2 * PANEL] = dc * i * (1.0f - g * g);
    q[3 * PANEL] = dh * tc * (o * (1.0f - o));
    m[a.at_ds + at] = dc * f;
}

INLINE void gru_back(GLOBAL float *m, struct cell_step_args a, GLOBAL float *q, i64 at, float dh) {
    const float r = q[0], z = q[PANEL], n = q[2 * PANEL], hn = q[3 * PANEL];
    const float s_prev = a.at_s_prev >= 0 ? m[a.at_s_prev + at] : 0, dn = dh * (1.0f - z) * (1.0f - n * n);
    q[0] = dn * hn * (r * (1.0f - r));
    q[PANEL] = dh * (s_prev - n) * (z * (1.0f - z));
    q[2 * PANEL] = dn;
    q[3 * PANEL] = dn * r;
    m[a.at_ds + at] = dh * z;
}

/* The element-wise part of one row and unit: dh holds the sum over dz_next. */
INLINE void backward_point(GLOBAL float *m, struct cell_step_args a, int b, float dh, const int kind) {
    const int Hp = (a.H + PANEL - 1) / PANEL * PANEL, unit = GROUP(0) * PANEL + LOCAL(0) % PANEL;
    const i64 at = (i64)b * Hp + unit;
    GLOBAL float *q = m + a.at_z + ((i64)b * Hp + GROUP(0) * PANEL) * Z_GATES(kind) + LOCAL(0) % PANEL;
    if (unit >= a.H) dh = 0;
    if (a.at_dh_in >= 0) dh += m[a.at_dh_in + at];
    if (kind == KIND_GRU && a.at_ds_in >= 0) dh += m[a.at_ds_in + at];
    if (a.only_dh) {
        m[a.at_dh + at] = dh;
        return;
    }
    if (a.at_dy >= 0) dh += m[a.at_dy + at];
    if (kind == KIND_LSTM) lstm_back(m, a, q, at, dh);
    if (kind == KIND_GRU) gru_back(m, a, q, at, dh);
    if (kind == KIND_RNN) q[0] = dh * (1.0f - q[0] * q[0]);
}

/* The tiles and then the sums of the slices [slice][row][unit] use the same shared memory. */
INLINE void backward(GLOBAL float *m, struct cell_step_args a, ON_SHARED float4 *area, const int kind) {
    const int t = LOCAL(0), b = GROUP(1) * ROWS + t / 16;
    ON_SHARED const float *sum = (ON_SHARED const float *)area;
    float4 acc[4];
#pragma unroll
    for (int i = 0; i < 4; i++) acc[i] = zero4();
    if (a.at_z_next >= 0) backward_sums(m, a, area, area + SPAN * STRIDE, acc, kind);
#pragma unroll
    for (int i = 0; i < 4; i++) area[(t / 16 * ROWS + t / 4 % 4 * 4 + i) * 4 + t % 4] = acc[i];
    BARRIER;
    if (b >= a.nb) return;
    float dh = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) dh += sum[i * 256 + t];
    backward_point(m, a, b, dh, kind);
}

#define BACKWARD(name, kind)                                 \
    KERNEL void name(GLOBAL float *m, struct cell_step_args a) { \
        SHARED float4 area[AREA];                            \
        backward(m, a, area, kind);                          \
    }
BACKWARD(lstm_bwd, KIND_LSTM)
BACKWARD(gru_bwd, KIND_GRU)
BACKWARD(rnn_bwd, KIND_RNN)
