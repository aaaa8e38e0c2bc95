/* histogram.cl - counts by bin (the twin: counts_add in learn/forest/split.c); args.h has the layouts. */
enum { BINS = 256, CLASSES = 16, LOW_BITS = 12 }; /* CLASSES: of one group */

/* Entry i of the piece: adds it to the counts of the group, [BINS][CLASSES] or [3][BINS]. */
INLINE void count_entry(ON_SHARED u32 *h, u32 bin, u32 tag, int nclass, int first) {
    const u32 w = tag >> 24, v = tag & 0xffffff;
    const int k = (int)v - first;
    if (nclass > 0) {
        if (k >= 0 && k < CLASSES) ATOMIC_ADD(h + bin * CLASSES + k, w);
        return;
    }
    ATOMIC_ADD(h + bin, w);
    ATOMIC_ADD(h + BINS + bin, w * (v & ((1 << LOW_BITS) - 1)));
    ATOMIC_ADD(h + 2 * BINS + bin, w * (v >> LOW_BITS));
}

/* GROUP: chunk, input, 16 classes.  Items take entries in turn. */
KERNEL void histogram(GLOBAL float *m, struct histogram_args a) {
    SHARED u32 h[BINS * CLASSES];
    const int t = LOCAL(0), first = GROUP(2) * CLASSES;
    const i64 from = (i64)GROUP(0) * a.chunk, end = from + a.chunk < a.n ? from + a.chunk : a.n;
    GLOBAL const u32 *entry = (GLOBAL const u32 *)m + a.at_entry;
    const int input = ((GLOBAL const int *)m + a.at_input)[GROUP(1)];
    GLOBAL const unsigned char *bin = (GLOBAL const unsigned char *)m + a.at_bin + a.bin_step * input;
    for (int i = t; i < BINS * CLASSES; i += 256) h[i] = 0;
    BARRIER;
    for (i64 i = from + t; i < end; i += 256) count_entry(h, bin[entry[2 * i]], entry[2 * i + 1], a.nclass, first);
    BARRIER;
    const i64 block = (i64)GROUP(1) * a.chunks + GROUP(0);
    GLOBAL u32 *part = (GLOBAL u32 *)m + a.at_part;
    if (a.nclass == 0) {
        for (int i = t; i < 3 * BINS; i += 256) part[block * 3 * BINS + i] = h[i];
        return;
    }
    for (int i = t; i < BINS * CLASSES; i += 256) {
        const int k = first + i % CLASSES;
        if (k < a.nclass) part[(block * BINS + i / CLASSES) * a.nclass + k] = h[i];
    }
}
