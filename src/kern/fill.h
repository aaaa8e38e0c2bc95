/* fill.h - private to src/kern: declares the functions that register one file's kernels in a table, once per instruction set.
 *
 *     ISA_NAME(kern_fill_lstm)   kern_fill_lstm_avx512 in the object compiled with -DISA=avx512 */
#ifndef STRETTO_KERN_FILL_H
#define STRETTO_KERN_FILL_H

#include "kern/kern.h"

#define ISA_PASTE2(a, b) a##_##b
#define ISA_PASTE(a, b) ISA_PASTE2(a, b)
#define ISA_NAME(name) ISA_PASTE(name, ISA)

void kern_fill_cell_ref(struct kern *k);
void kern_fill_bf16_ref(struct kern *k);
void kern_fill_gemm_ref(struct kern *k);
void kern_fill_vec_ref(struct kern *k);

#define KERN_FILLS(isa)                                                                                                          \
    void kern_fill_lstm_##isa(struct kern *k);                                                                                   \
    void kern_fill_gru_##isa(struct kern *k);                                                                                    \
    void kern_fill_rnn_##isa(struct kern *k);                                                                                    \
    void kern_fill_gemm_##isa(struct kern *k);                                                                                   \
    void kern_fill_narrow_##isa(struct kern *k);                                                                                 \
    void kern_fill_vec_##isa(struct kern *k);
KERN_FILLS(base)
KERN_FILLS(neon)
KERN_FILLS(avx2)
KERN_FILLS(avx512)

/* bf16 cells, added to the table of avx512 */
#define KERN_FILLS_BF16(isa)                                                                                                     \
    void kern_fill_bf16_lstm_##isa(struct kern *k);                                                                              \
    void kern_fill_bf16_gru_##isa(struct kern *k);                                                                               \
    void kern_fill_bf16_rnn_##isa(struct kern *k);
KERN_FILLS_BF16(avx512_bf16)
KERN_FILLS_BF16(amx)

#endif
