/* gather.cl - sums over the edges of rows (the twin: gather_f32 in learn/graph/gather.c, with the same order of sums). */

/* An item has a row: four sums in turn for blocks of four edges, then one by one.  No product is fused with a sum: the bits are
 * those of the host. */
KERNEL void gather(GLOBAL float *m, struct gather_args a) {
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#endif
    const i64 r = a.lo + (i64)GROUP(0) * 256 + LOCAL(0);
    if (r >= a.hi) return;
    GLOBAL const i64 *row = (GLOBAL const i64 *)m + a.at_row;
    const i64 e = row[r], n = row[r + 1] - e;
    GLOBAL const u32 *from = (GLOBAL const u32 *)m + a.at_from + e;
    GLOBAL const f64 *weight = (GLOBAL const f64 *)m + a.at_weight + e;
    GLOBAL const float *y = m + a.at_y;
    f64 s[4] = {0, 0, 0, 0};
    i64 i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) {
            const f64 v = (f64)y[from[i + k]];
            s[k] += a.weighted ? PRODUCT64(weight[i + k], v) : v;
        }
    for (; i < n; i++) {
        const f64 v = (f64)y[from[i]];
        s[0] += a.weighted ? PRODUCT64(weight[i], v) : v;
    }
    ((GLOBAL f64 *)m)[a.at_out + r] = (s[0] + s[1]) + (s[2] + s[3]);
}
