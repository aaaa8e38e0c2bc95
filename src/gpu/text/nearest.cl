/* nearest.cl - the nearest center of each row (the twin: learn/kmeans/near.c); args.h has the layouts. */
enum { ROW_TILE = 16, CHAIN = 64, ROW_PITCH = ROW_TILE + 1 }; /* CHAIN: NEAR_CHAIN of near.h, which bounds the rounding */
#define LARGEST 3.402823466e38f

/* The two smallest values so far, and the center of the smallest. */
struct smallest {
    float low, next;
    int label, odd; /* odd: a value was not a number */
};

INLINE struct smallest smaller(struct smallest q, float v, int k) {
    if (v != v) q.odd = 1;
    if (v < q.low) {
        q.next = q.low;
        q.low = v;
        q.label = k;
    } else if (v < q.next) {
        q.next = v;
    }
    return q;
}

/* A group has 256 rows, an item one of them; 16 columns of these and of a panel are shared at a time. */
KERNEL void nearest(GLOBAL float *m, struct nearest_args a) {
    SHARED float x[256 * ROW_PITCH];
    SHARED float c[ROW_TILE * 16];
    const int t = LOCAL(0);
    const i64 first = a.from + (i64)GROUP(0) * 256;
    struct smallest q = {LARGEST, LARGEST, -1, 0};
    for (int g = 0; g < a.groups; g++) {
        float sum[16], chain[16];
        for (int s = 0; s < 16; s++) {
            sum[s] = m[a.at_start + g * 16 + s];
            chain[s] = 0;
        }
        for (int j0 = 0; j0 < a.d; j0 += ROW_TILE) {
            BARRIER;
            for (int i = t; i < 256 * ROW_TILE; i += 256) {
                const int r = i / ROW_TILE, j = i % ROW_TILE;
                const bool real = first + r < a.to && j0 + j < a.d;
                x[r * ROW_PITCH + j] = real ? m[a.at_x + (first + r) * a.d + j0 + j] : 0;
            }
            c[t] = j0 + t / 16 < a.d ? m[a.at_panel + ((i64)g * a.d + j0) * 16 + t] : 0;
            BARRIER;
            for (int j = 0; j < ROW_TILE; j++)
                for (int s = 0; s < 16; s++) chain[s] = FMA(x[t * ROW_PITCH + j], c[j * 16 + s], chain[s]);
            if ((j0 + ROW_TILE) % CHAIN != 0 && j0 + ROW_TILE < a.d) continue;
            for (int s = 0; s < 16; s++) {
                sum[s] += chain[s];
                chain[s] = 0;
            }
        }
        for (int s = 0; s < 16; s++) q = smaller(q, sum[s], g * 16 + s);
    }
    const float limit = q.low + a.margin + a.share * ABS(q.low);
    GLOBAL int *label = (GLOBAL int *)m + a.at_label;
    if (first + t < a.to) label[first + t] = q.odd == 0 && q.next > limit ? q.label : -1;
}
