/* tree.c - the pairs of the merge tree, level by level. */
#include "plan/tree.h"

i32 merge_pairs(i32 n, struct merge_pair *out) {
    i32 count = 0;
    for (i32 level = 0; level < 30 && 1 << level < n; level++) {
        i32 half = 1 << level;
        for (i32 a = 0; a + half < n; a += 2 * half)
            out[count++] = (struct merge_pair){.a = a, .b = a + half, .end = imin(a + 2 * half, n), .level = level};
    }
    return count;
}
