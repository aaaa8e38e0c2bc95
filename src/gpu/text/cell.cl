/* cell.cl - one time step of a recurrent cell for all rows of a call (kern.h: struct cell_kern; the twin: kern/cell_ref.c).
 *
 *     forward   z += h_prev Wh       group: 16, 32 or 64 rows x 16 units   item: rows/4 rows x the gates of 1 unit, 1 of 4 slices
 *     backward  dh += dz_next Wh^T   group: 16 x 16, 32 x 16 or 32 x 32    item: 4 or 8 rows x 4 or 8 units, 1 of 16 slices
 *
 * A group divides the sum because a step has few outputs, and a device has many items to fill: of every 64 values of the sum, a
 * slice has 16 (forward) or 4 (backward).  The slices are then added in order and each item does the element-wise part of some
 * rows and units.  The slices depend neither on the number of rows nor on the size of a group, so neither do the bits of a row.
 * Large groups read less memory for each product, small ones are more: table.c chooses.
 *
 * While a tile is multiplied, the two after it are on their way to registers: a step has few groups, and the time of a load from
 * memory is that of several products of a small tile.  A tile is stored in the half of the shared memory that is not read.
 * Float4 j of unit u = 4 c + j of a panel lies at 4 j + c ("place"): an item that loads four units of each gate stores the gates
 * of one unit without conflicts of banks. */
enum { SPAN = 64, ROWS = 16, PANEL = 16, SLICES = 4, SLICES_BACK = 16 };
enum { KIND_LSTM, KIND_GRU, KIND_RNN };
#define GATES(kind) ((kind) == KIND_LSTM ? 4 : (kind) == KIND_GRU ? 3 : 1)
#define Z_GATES(kind) ((kind) == KIND_RNN ? 1 : 4)

INLINE float sigmoid1(float x) { return 1.0f / (1.0f + EXP(-x)); }

INLINE float4 four_at(GLOBAL const float *m, i64 at) { return *(GLOBAL const float4 *)(m + at); }

/* A value that may be absent. */
INLINE float value_or_zero(GLOBAL const float *m, i64 buffer, i64 at) { return buffer >= 0 ? m[buffer + at] : 0; }

/* ------------------------------------------------------------------ forward ------------------------------------------------- */

/* A tile has `depth` values of each slice: weights [4 depth][16 places], the gates of a unit in a float4, then h [rows][depth / 4
 * float4 of each slice].  With 16 rows each item loads four weights and one of h; with more, depth is 8, the first half of the
 * items loads weights and the second one loads h. */
#define DEPTH_OF(rows) ((rows) == ROWS ? 16 : 8)
#define H_PITCH(rows) (DEPTH_OF(rows) + 1)
#define FORWARD_TILE(rows) (4 * DEPTH_OF(rows) * PANEL + (rows) * H_PITCH(rows))
#define PASS_AREA (SLICES * ROWS * PANEL)
#define FORWARD_AREA(rows) (2 * FORWARD_TILE(rows) > 2 * PASS_AREA ? 2 * FORWARD_TILE(rows) : 2 * PASS_AREA)

struct forward_loads {
    float4 w[4], h;
};

/* The value of the sum that a tile begins with. */
INLINE int tile_start(int tile, const int depth) { return tile / (16 / depth) * SPAN + tile % (16 / depth) * depth; }

INLINE void load_gates(GLOBAL const float *m, struct cell_step_args a, int start, const int depth, const int G, float4 w[4]) {
    const int i = LOCAL(0) / 4, k = start + i / depth * 16 + i % depth;
    const i64 from = a.at_w + GROUP(0) * a.w_panel + k * (G * PANEL) + LOCAL(0) % 4 * 4;
#pragma unroll
    for (int g = 0; g < 4; g++) w[g] = g < G && k < a.H ? four_at(m, from + g * PANEL) : zero4();
}

/* A step has less than 2^31 floats: offsets in it are int.  Padding of h is zero. */
INLINE float4 load_h(GLOBAL const float *m, struct cell_step_args a, int row, int chunk, int start, const int depth) {
    const int Hp = (a.H + PANEL - 1) / PANEL * PANEL, k = start + chunk / (depth / 4) * 16 + chunk % (depth / 4) * 4;
    return k < Hp ? four_at(m, a.at_h_prev + least(row, a.nb - 1) * Hp + k) : zero4();
}

INLINE struct forward_loads load_forward(GLOBAL const float *m, struct cell_step_args a, int tile, const int rows, const int G) {
    const int t = LOCAL(0), depth = DEPTH_OF(rows), start = tile_start(tile, depth), row0 = GROUP(1) * rows;
    struct forward_loads v;
    v.h = zero4();
    if (rows == ROWS) {
        load_gates(m, a, start, depth, G, v.w);
        v.h = load_h(m, a, row0 + t / 16, t % 16, start, depth);
    } else if (t < 128) {
        load_gates(m, a, start, depth, G, v.w);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            v.w[i] = i < rows / 16 ? load_h(m, a, row0 + t / 8 - 16 + 16 * i, t % 8, start, depth) : zero4();
    }
    return v;
}

INLINE void store_gates(ON_SHARED float4 *tile, const float4 w[4]) {
    const int k = LOCAL(0) / 4, c = (LOCAL(0) % 4) ^ ((k & 1) << 2);
    float4 v;
    tile += k * PANEL;
    v.x = w[0].x, v.y = w[1].x, v.z = w[2].x, v.w = w[3].x, tile[c] = v;
    v.x = w[0].y, v.y = w[1].y, v.z = w[2].y, v.w = w[3].y, tile[c ^ 4] = v;
    v.x = w[0].z, v.y = w[1].z, v.z = w[2].z, v.w = w[3].z, tile[c ^ 8] = v;
    v.x = w[0].w, v.y = w[1].w, v.z = w[2].w, v.w = w[3].w, tile[c ^ 12] = v;
}

INLINE void store_forward(ON_SHARED float4 *tile, struct forward_loads v, const int rows) {
    const int t = LOCAL(0), pitch = H_PITCH(rows);
    ON_SHARED float4 *sh = tile + 4 * DEPTH_OF(rows) * PANEL;
    if (rows == ROWS) {
        store_gates(tile, v.w);
        sh[t / 16 * pitch + t % 16] = v.h;
    } else if (t < 128) {
        store_gates(tile, v.w);
    } else {
#pragma unroll
        for (int i = 0; i < rows / 16; i++) sh[(t / 8 - 16 + 16 * i) * pitch + t % 8] = v.w[i];
    }
}

INLINE void add_gates(float h, float4 w, float4 *c, const int G) {
    c->x = FMA(h, w.x, c->x);
    if (G > 1) c->y = FMA(h, w.y, c->y), c->z = FMA(h, w.z, c->z);
    if (G > 3) c->w = FMA(h, w.w, c->w);
}

/* acc[i]: row q + 4 i. */
INLINE void multiply_forward(ON_SHARED const float4 *tile, float4 *acc, const int rows, const int G) {
    const int t = LOCAL(0), slice = t / 64, q = t / 16 % 4, place = t % 16, depth = DEPTH_OF(rows), pitch = H_PITCH(rows);
    ON_SHARED const float4 *sw = tile + slice * depth * PANEL;
    ON_SHARED const float4 *sh = tile + 4 * depth * PANEL + q * pitch + slice * (depth / 4);
#pragma unroll
    for (int k = 0; k < depth; k += 4) {
        const float4 w0 = sw[k * PANEL + place], w1 = sw[(k + 1) * PANEL + (place ^ 4)];
        const float4 w2 = sw[(k + 2) * PANEL + place], w3 = sw[(k + 3) * PANEL + (place ^ 4)];
#pragma unroll
        for (int i = 0; i < rows / 4; i++) {
            const float4 h = sh[4 * i * pitch + k / 4];
            add_gates(h.x, w0, &acc[i], G);
            add_gates(h.y, w1, &acc[i], G);
            add_gates(h.z, w2, &acc[i], G);
            add_gates(h.w, w3, &acc[i], G);
        }
    }
}

/* h_prev Wh of the item's slice. */
INLINE void forward_sums(GLOBAL const float *m, struct cell_step_args a, ON_SHARED float4 *area, float4 *acc, const int rows,
                         const int G) {
    const int tiles = (a.H + SPAN - 1) / SPAN * (16 / DEPTH_OF(rows));
    ON_SHARED float4 *other = area + FORWARD_TILE(rows);
    struct forward_loads even = load_forward(m, a, 0, rows, G), odd = load_forward(m, a, 1, rows, G);
    store_forward(area, even, rows);
    BARRIER;
    for (int tile = 0; tile < tiles; tile += 2) {
        even = load_forward(m, a, tile + 2, rows, G);
        multiply_forward(area, acc, rows, G);
        store_forward(other, odd, rows);
        BARRIER;
        odd = load_forward(m, a, tile + 3, rows, G);
        if (tile + 1 < tiles) multiply_forward(other, acc, rows, G);
        store_forward(area, even, rows);
        BARRIER;
    }
}

/* What the element-wise part of one row and unit reads. */
struct forward_values {
    float x, y, z, w, s;
};

INLINE int unit_at(int place) { return place % 4 * 4 + place / 4; }

INLINE struct forward_values load_values(GLOBAL const float *m, struct cell_step_args a, int b, const int kind) {
    const int l = unit_at(LOCAL(0) % 16), Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    struct forward_values v;
    v.x = v.y = v.z = v.w = v.s = 0;
    if (b >= a.nb) return v;
    GLOBAL const float *q = m + a.at_z + ((i64)b * Hp + GROUP(0) * PANEL) * Z_GATES(kind) + l;
    v.x = q[0];
    if (kind == KIND_RNN) return v;
    v.y = q[PANEL], v.z = q[2 * PANEL];
    v.s = value_or_zero(m, a.at_s_prev, (i64)b * Hp + GROUP(0) * PANEL + l);
    if (kind == KIND_GRU && a.at_bias >= 0) v.w = m[a.at_bias + GROUP(0) * (4 * PANEL) + 3 * PANEL + l];
    else v.w = q[3 * PANEL];
    return v;
}

/* The element-wise part of one row and unit: z holds the sums of the h side. */
INLINE void forward_point(GLOBAL float *m, struct cell_step_args a, int b, struct forward_values v, float4 z, const int kind) {
    const int l = unit_at(LOCAL(0) % 16), Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    GLOBAL float *q = m + a.at_z + ((i64)b * Hp + GROUP(0) * PANEL) * Z_GATES(kind) + l;
    const i64 at = (i64)b * Hp + GROUP(0) * PANEL + l;
    if (b >= a.nb) return;
    if (kind == KIND_RNN) {
        q[0] = m[a.at_h + at] = TANH(v.x + z.x);
        return;
    }
    const float first = sigmoid1(v.x + z.x), second = sigmoid1(v.y + z.y);
    q[0] = first;
    q[PANEL] = second;
    if (kind == KIND_LSTM) {
        const float g = TANH(v.z + z.z), o = sigmoid1(v.w + z.w), c = second * v.s + first * g;
        q[2 * PANEL] = g;
        q[3 * PANEL] = o;
        m[a.at_s + at] = c;
        m[a.at_h + at] = o * TANH(c);
    } else {
        const float hn = v.w + z.z, n = TANH(v.z + first * hn);
        q[2 * PANEL] = n;
        q[3 * PANEL] = hn;
        m[a.at_h + at] = n + second * (v.s - n);
    }
}

/* 16 rows at a time, the sums of the slices [slice][row][place] in one half of the shared memory or the other. */
INLINE void forward(GLOBAL float *m, struct cell_step_args a, ON_SHARED float4 *area, float4 *acc, const int rows,
                    const int kind) {
    const int t = LOCAL(0), slice = t / 64, q = t / 16 % 4, place = t % 16, b = GROUP(1) * rows + t / 16;
    struct forward_values v = load_values(m, a, b, kind);
#pragma unroll
    for (int i = 0; i < rows / 4; i++) acc[i] = zero4();
    if (a.at_h_prev >= 0) forward_sums(m, a, area, acc, rows, GATES(kind));
#pragma unroll
    for (int pass = 0; pass < rows / ROWS; pass++) {
        ON_SHARED float4 *sums = area + pass % 2 * PASS_AREA;
        const int row = b + pass * ROWS;
#pragma unroll
        for (int i = 0; i < 4; i++) sums[(slice * ROWS + q + 4 * i) * PANEL + place] = acc[4 * pass + i];
        const struct forward_values next = pass + 1 < rows / ROWS ? load_values(m, a, row + ROWS, kind) : v;
        BARRIER;
        float4 z = sums[t];
#pragma unroll
        for (int i = 1; i < SLICES; i++) z = add4(z, sums[t + 256 * i]);
        forward_point(m, a, row, v, z, kind);
        v = next;
    }
}

#define FORWARD(name, rows, kind)                                \
    KERNEL void name(GLOBAL float *m, struct cell_step_args a) { \
        SHARED float4 area[FORWARD_AREA(rows)];                  \
        float4 acc[rows / 4];                                    \
        forward(m, a, area, acc, rows, kind);                    \
    }
#define FORWARDS(suffix, rows)                  \
    FORWARD(lstm_fwd##suffix, rows, KIND_LSTM)  \
    FORWARD(gru_fwd##suffix, rows, KIND_GRU)    \
    FORWARD(rnn_fwd##suffix, rows, KIND_RNN)
FORWARDS(, 16)
#ifndef HOST_DEVICE /* tiles for large devices: seconds to compile where kernels run on the host */
FORWARDS(_32, 32)
FORWARDS(_64, 64)
#endif

/* ------------------------------------------------------------------ backward ------------------------------------------------ */

/* A tile: 64 values of the sum, gates and lanes of panels in order, of the rows of dz_next and then of the units of Wh; a float4
 * of four values for each slice.  The smallest group has two of these spans in a tile. */
#define SPANS(rows, units) ((rows) + (units) == 2 * ROWS ? 2 : 1)
#define CHUNKS(rows, units) (SPANS(rows, units) * SLICES_BACK)
#define PITCH_BACK(rows, units) (CHUNKS(rows, units) + 2)
#define BACK_TILE(rows, units) (((rows) + (units)) * PITCH_BACK(rows, units))

struct back_loads {
    float4 v[4];
};

/* The last row and the last unit stand in for those beyond the edge, which are not used. */
INLINE struct back_loads load_back(GLOBAL const float *m, struct cell_step_args a, int tile, const int rows, const int units,
                                   const int kind) {
    const int W = GATES(kind) * PANEL, panels = (a.H + PANEL - 1) / PANEL, chunks = CHUNKS(rows, units), each = 256 / chunks;
    const int row = LOCAL(0) / chunks, k = (tile * chunks + LOCAL(0) % chunks) * 4, p = k / W, j = k % W;
    const int gap = kind == KIND_GRU && j >= 2 * PANEL ? PANEL : 0;
    const i64 from_z = a.at_z_next + p * (Z_GATES(kind) * PANEL) + j + gap, from_w = a.at_w + p * a.w_panel + j;
    struct back_loads f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        f.v[i] = zero4();
        if (p >= panels || i * each >= rows + units) continue;
        if (i * each < rows)
            f.v[i] = four_at(m, from_z + least(GROUP(1) * rows + row + each * i, a.nb - 1) * panels * (Z_GATES(kind) * PANEL));
        else f.v[i] = four_at(m, from_w + least(GROUP(0) * units + row + each * i - rows, a.H - 1) * W);
    }
    return f;
}

INLINE void store_back(ON_SHARED float4 *tile, struct back_loads f, const int rows, const int units) {
    const int chunks = CHUNKS(rows, units), each = 256 / chunks;
    tile += LOCAL(0) / chunks * PITCH_BACK(rows, units) + LOCAL(0) % chunks;
#pragma unroll
    for (int i = 0; i < (rows + units) / each; i++) tile[each * i * PITCH_BACK(rows, units)] = f.v[i];
}

/* acc[i * units / 4 + j]: row rq + 4 i, unit uq + 4 j. */
INLINE void multiply_back(ON_SHARED const float4 *tile, float *acc, const int rows, const int units) {
    const int t = LOCAL(0), slice = t / 16, rq = t / 4 % 4, uq = t % 4, pitch = PITCH_BACK(rows, units);
    ON_SHARED const float4 *sz = tile + rq * pitch + slice, *sw = tile + (rows + uq) * pitch + slice;
#pragma unroll
    for (int span = 0; span < SPANS(rows, units); span++, sz += SLICES_BACK, sw += SLICES_BACK) {
        float4 w[8];
#pragma unroll
        for (int j = 0; j < units / 4; j++) w[j] = sw[4 * j * pitch];
#pragma unroll
        for (int i = 0; i < rows / 4; i++) {
            const float4 d = sz[4 * i * pitch];
#pragma unroll
            for (int j = 0; j < units / 4; j++) {
                float c = acc[i * (units / 4) + j];
                c = FMA(d.x, w[j].x, c);
                c = FMA(d.y, w[j].y, c);
                c = FMA(d.z, w[j].z, c);
                acc[i * (units / 4) + j] = FMA(d.w, w[j].w, c);
            }
        }
    }
}

/* dz_next Wh^T of the item's slice. */
INLINE void backward_sums(GLOBAL const float *m, struct cell_step_args a, ON_SHARED float4 *area, float *acc, const int rows,
                          const int units, const int kind) {
    const int each = 4 * CHUNKS(rows, units), K = (a.H + PANEL - 1) / PANEL * (GATES(kind) * PANEL);
    const int tiles = (K + each - 1) / each;
    ON_SHARED float4 *other = area + BACK_TILE(rows, units);
    struct back_loads even = load_back(m, a, 0, rows, units, kind), odd = load_back(m, a, 1, rows, units, kind);
    store_back(area, even, rows, units);
    BARRIER;
    for (int tile = 0; tile < tiles; tile += 2) {
        even = load_back(m, a, tile + 2, rows, units, kind);
        multiply_back(area, acc, rows, units);
        store_back(other, odd, rows, units);
        BARRIER;
        odd = load_back(m, a, tile + 3, rows, units, kind);
        if (tile + 1 < tiles) multiply_back(other, acc, rows, units);
        store_back(area, even, rows, units);
        BARRIER;
    }
}

/* What the element-wise part of one row and unit reads.  later: the gradients that reach dh beside the sum. */
struct back_values {
    float x, y, z, w, s, s_prev, ds, later, dy;
};

INLINE struct back_values load_back_values(GLOBAL const float *m, struct cell_step_args a, int b, int unit, const int kind) {
    const int Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    const i64 at = (i64)b * Hp + unit;
    struct back_values v;
    v.x = v.y = v.z = v.w = v.s = v.s_prev = v.ds = v.later = v.dy = 0;
    if (b >= a.nb || unit >= Hp) return v;
    v.later = value_or_zero(m, a.at_dh_in, at);
    if (kind != KIND_RNN) v.ds = value_or_zero(m, a.at_ds_in, at);
    if (a.only_dh) return v;
    GLOBAL const float *q = m + a.at_z + ((i64)b * Hp + unit / PANEL * PANEL) * Z_GATES(kind) + unit % PANEL;
    v.dy = value_or_zero(m, a.at_dy, at);
    v.x = q[0];
    if (kind == KIND_RNN) return v;
    v.y = q[PANEL], v.z = q[2 * PANEL], v.w = q[3 * PANEL];
    v.s_prev = value_or_zero(m, a.at_s_prev, at);
    if (kind == KIND_LSTM) v.s = m[a.at_s + at];
    return v;
}

INLINE void lstm_back(GLOBAL float *m, struct cell_step_args a, GLOBAL float *q, i64 at, struct back_values v, float dh) {
    const float i = v.x, f = v.y, g = v.z, o = v.w, tc = TANH(v.s), dc = v.ds + dh * o * (1.0f - tc * tc);
    q[0] = dc * g * (i * (1.0f - i));
    q[PANEL] = dc * v.s_prev * (f * (1.0f - f));
    q[2 * PANEL] = dc * i * (1.0f - g * g);
    q[3 * PANEL] = dh * tc * (o * (1.0f - o));
    m[a.at_ds + at] = dc * f;
}

INLINE void gru_back(GLOBAL float *m, struct cell_step_args a, GLOBAL float *q, i64 at, struct back_values v, float dh) {
    const float r = v.x, z = v.y, n = v.z, hn = v.w, dn = dh * (1.0f - z) * (1.0f - n * n);
    q[0] = dn * hn * (r * (1.0f - r));
    q[PANEL] = dh * (v.s_prev - n) * (z * (1.0f - z));
    q[2 * PANEL] = dn;
    q[3 * PANEL] = dn * r;
    m[a.at_ds + at] = dh * z;
}

/* The element-wise part of one row and unit: dh holds the sum over dz_next. */
INLINE void backward_point(GLOBAL float *m, struct cell_step_args a, int b, int unit, struct back_values v, float dh,
                           const int kind) {
    const int Hp = (a.H + PANEL - 1) / PANEL * PANEL;
    const i64 at = (i64)b * Hp + unit;
    if (b >= a.nb || unit >= Hp) return;
    GLOBAL float *q = m + a.at_z + ((i64)b * Hp + unit / PANEL * PANEL) * Z_GATES(kind) + unit % PANEL;
    if (unit >= a.H) dh = 0;
    dh += v.later;
    if (kind == KIND_GRU) dh += v.ds;
    if (a.only_dh) {
        m[a.at_dh + at] = dh;
        return;
    }
    dh += v.dy;
    if (kind == KIND_LSTM) lstm_back(m, a, q, at, v, dh);
    if (kind == KIND_GRU) gru_back(m, a, q, at, v, dh);
    if (kind == KIND_RNN) q[0] = dh * (1.0f - v.x * v.x);
}

/* 16 rows at a time: the sums of the slices [slice][row][units] are in the shared memory of the tiles, unit uq + 4 j of a row at
 * uq * units / 4 + j.  An item has one place of a row of 16 units, or of two rows of 32. */
INLINE void backward(GLOBAL float *m, struct cell_step_args a, ON_SHARED float4 *area, float *acc, const int rows,
                     const int units, const int kind) {
    const int t = LOCAL(0), place = t % units, unit = GROUP(0) * units + place / (units / 4) + place % (units / 4) * 4;
    const int b = GROUP(1) * rows + t / units;
    ON_SHARED const float *sum = (ON_SHARED const float *)area;
    struct back_values v[2];
    if (rows == ROWS) v[0] = load_back_values(m, a, b, unit, kind); /* larger groups have no registers for them */
#pragma unroll
    for (int i = 0; i < rows * units / 16; i++) acc[i] = 0;
    if (a.at_z_next >= 0) backward_sums(m, a, area, acc, rows, units, kind);
#pragma unroll
    for (int pass = 0; pass < rows / ROWS; pass++) {
        const int row = b + pass * ROWS;
        if (pass > 0) BARRIER;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < units / 16; j++) {
                const int from = (4 * pass + i) * (units / 4) + 4 * j;
                float4 c;
                c.x = acc[from], c.y = acc[from + 1], c.z = acc[from + 2], c.w = acc[from + 3];
                area[(t / 16 * ROWS + t / 4 % 4 + 4 * i) * (units / 4) + t % 4 * (units / 16) + j] = c;
            }
        if (rows > ROWS) v[0] = load_back_values(m, a, row, unit, kind);
        if (units > PANEL) v[1] = load_back_values(m, a, row + 8, unit, kind);
        BARRIER;
#pragma unroll
        for (int e = 0; e < units / 16; e++) {
            float dh = 0;
#pragma unroll
            for (int i = 0; i < SLICES_BACK; i++) dh += sum[i * ROWS * units + e * 256 + t];
            backward_point(m, a, row + 8 * e, unit, v[e], dh, kind);
        }
    }
}

#define BACKWARD(name, rows, units, kind)                        \
    KERNEL void name(GLOBAL float *m, struct cell_step_args a) { \
        SHARED float4 area[2 * BACK_TILE(rows, units)];          \
        float acc[rows * units / 16];                            \
        backward(m, a, area, acc, rows, units, kind);            \
    }
#define BACKWARDS(suffix, rows, units)                  \
    BACKWARD(lstm_bwd##suffix, rows, units, KIND_LSTM)  \
    BACKWARD(gru_bwd##suffix, rows, units, KIND_GRU)    \
    BACKWARD(rnn_bwd##suffix, rows, units, KIND_RNN)
BACKWARDS(, 16, 16)
#ifndef HOST_DEVICE
BACKWARDS(_32, 32, 16)
BACKWARDS(_64, 32, 32)
#endif
