/* viterbi.cl - paths of many short sequences (the twin: kern/viterbi_ref.c); args.h has the layouts. */
enum { KEPT_LABELS = 64, DRIFT = 8 }; /* DRIFT: VITERBI_DRIFT of kern/viterbi.h, which bounds the scores */

/* The best score of label j after one more step: the label before it is in the low bits. */
INLINE int best_before(ON_SHARED const int *v, int off, ON_SHARED const int *kept, GLOBAL const int *trans, int L, int Lp, int j) {
    int best = -2147483647;
    for (int i = 0; i < L; i++) {
        const int to = v[i] - off + (L <= KEPT_LABELS ? kept[i * L + j] : trans[i * Lp + j]);
        best = to > best ? to : best;
    }
    return best;
}

/* Writes the path of a sequence of n steps backwards, from the best label after the last one, of equal ones the lowest. */
INLINE void walk_back(ON_SHARED const int *v, GLOBAL const unsigned char *back, int n, struct viterbi_args a,
                      GLOBAL unsigned char *path) {
    const int mask = (1 << a.shift) - 1;
    int label = 0;
    for (int j = 1; j < a.L; j++)
        if (v[j] > v[label]) label = j;
    for (int t = n - 1; t > 0; t--) {
        path[t] = (unsigned char)label;
        label = mask - back[(i64)t * a.L + label];
    }
    path[0] = (unsigned char)label;
}

/* A group has 256 / width sequences, each with an item for each label; they run to the end of the longest. */
KERNEL void viterbi(GLOBAL float *m, struct viterbi_args a) {
    SHARED int v[2 * 256];
    SHARED int kept[KEPT_LABELS * KEPT_LABELS];
    const int t = LOCAL(0), per = 256 / a.width, q = t / a.width, j = t % a.width, row0 = GROUP(0) * per, row = row0 + q;
    const int mask = (1 << a.shift) - 1;
    GLOBAL const int *first = (GLOBAL const int *)m + a.at_first;
    GLOBAL const int *trans = (GLOBAL const int *)m + a.at_trans;
    GLOBAL const int *emit = (GLOBAL const int *)m + a.at_emit;
    const int from = row < a.n ? first[row] : 0, n = row < a.n ? first[row + 1] - from : 0;
    GLOBAL const int *word = (GLOBAL const int *)m + a.at_word + from;
    GLOBAL unsigned char *back = (GLOBAL unsigned char *)m + a.at_back + (i64)from * a.L;
    int longest = 0;
    for (int r = row0; r < row0 + per && r < a.n; r++) longest = first[r + 1] - first[r] > longest ? first[r + 1] - first[r] : longest;
    if (a.L <= KEPT_LABELS)
        for (int i = t; i < a.L * a.L; i += 256) kept[i] = trans[i / a.L * a.Lp + i % a.L];
    v[t] = n > 0 && j < a.L ? ((GLOBAL const int *)m)[a.at_start + j] + emit[(i64)word[0] * a.Lp + j] : 0;
    for (int step = 1; step < longest; step++) {
        ON_SHARED const int *old = v + (step + 1) % 2 * 256 + q * a.width;
        BARRIER;
        int next = old[j];
        if (step < n && j < a.L) {
            const int best = best_before(old, step % DRIFT == 0 ? old[0] : 0, kept, trans, a.L, a.Lp, j);
            back[(i64)step * a.L + j] = (unsigned char)(best & mask);
            next = (best & ~mask) + emit[(i64)word[step] * a.Lp + j];
        }
        v[step % 2 * 256 + t] = next;
    }
    BARRIER_ALL;
    if (j == 0 && n > 0)
        walk_back(v + (longest + 1) % 2 * 256 + q * a.width, back, n, a, (GLOBAL unsigned char *)m + a.at_path + from);
}
