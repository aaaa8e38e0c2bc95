/* t_ways.c - slices of time of layers that read both ways, or hand on fewer values than they remember: they give what whole
 * sequences give. */
#include "t.h"

#include "slices.h"

/* Two chains, one from each end: the loss at every step, or of the states at both ends. */
static void both_ways_give_states_and_gradients_of_the_whole(void **state) {
    (void)state;
    static const i32 cuts[] = {2, 3, 7, 16};
    for (i32 cell = 0; cell < (t_few() ? 1 : cell_count()); cell++)
        for (size_t i = 0; i < COUNT(cuts); i += t_few() ? 2 : 1)
            for (i32 end = 0; end < 2; end++) {
                struct sliced s = sliced_small((enum cell_kind)cell);
                s.both = true, s.end = end, s.P = cuts[i];
                s.state = !end; /* of which nothing is left at the end: its gradient is zero in slices, and 1e-30 in the whole */
                s.W = i % 2 ? 3 : 1;
                s.spread = 1.5f; /* an rnn with twice the weights makes 2e-5 of what the last bits of a layer below differ by */
                s.L = 1 + (i > 0);
                if (i % 2) s.T = 1201;
                s.rank = i == 3, s.recompute = i == 3;
                sliced_compare(s, 1 + (i32)i % 3, kern_best(), 5e-6, 1e-5);
            }
}

/* An lstm with a projection: of its state h is narrower than c. */
static void projected_slices_give_states_and_gradients_of_the_whole(void **state) {
    (void)state;
    static const i32 cuts[] = {2, 3, 7, 16}, projection[] = {19, 5, 17, 3};
    for (size_t i = 0; i < COUNT(cuts); i += t_few() ? 2 : 1)
        for (i32 kind = 0; kind < 4; kind++) { /* one way or both; the loss at every step or behind the end */
            struct sliced s = sliced_small(CELL_LSTM);
            s.state = false, s.projection = projection[i], s.P = cuts[i];
            s.both = kind % 2, s.end = kind / 2;
            s.W = i % 2 ? 3 : 1;
            s.L = 1 + (i > 0);
            if (i % 2) s.T = 1201;
            s.rank = i == 3, s.recompute = i >= 2;
            sliced_compare(s, 1 + (i32)i % 3, kern_best(), 5e-6, 1e-5);
        }
}

T_MAIN(cmocka_unit_test(both_ways_give_states_and_gradients_of_the_whole),
       cmocka_unit_test(projected_slices_give_states_and_gradients_of_the_whole))
