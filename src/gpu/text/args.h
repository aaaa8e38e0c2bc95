/* args.h - the arguments of each kernel, for the host and for the text of the device (after dialect.h).
 *
 * at_..: offset in the heap in floats, -1 = absent.  Row r of a matrix "in runs" lies at at + (r / nb) * run + (r % nb) * ld: the
 * nb rows of a call in each time step of a buffer [T][B][ld] have run = B * ld.  64-bit members first, and an even number of
 * 32-bit ones: the structs have the same layout in every compiler. */
#ifndef STRETTO_GPU_ARGS_H
#define STRETTO_GPU_ARGS_H

/* Products.  The N columns come in panels of W: column n is j = n % W of panel p = n / W.  col(j) = j < gap_at ? j : j + gap.
 *   product     C[M][N] = (add ? C : bias or 0) + A[M][K] B[K][N]     B at k * ldb + p * b_panel + j;  C at p * c_panel + j of
 *               its row, bias at p * c_panel + j;  A and C in runs
 *   product_nt  C[M][N] = (add ? C : 0) + A[M][K] B[N][K]^T           here K is in panels: A at p * a_panel + col(j) of its row,
 *               B at n * ldb + p * b_panel + j;  A and C in runs
 *   product_tn  C[M][N] = (add ? C : 0) + A[K][M]^T B[K][N]           A and B in runs, B at p * b_panel + col(j) of its row, C at
 *               m * ldc + p * c_panel + j.  Rows of the sum in `splits` chunks; with splits > 1 the sum of each goes to at_part
 *               [splits][M][N], and product_tn_sum adds these to C in order.
 * W, gap_at and gap are multiples of 16.  product, product_tn: N is a multiple of 16, B, C and bias are 16-byte aligned. */
struct product_args {
    i64 at_a, lda, run_a, at_b, ldb, run_b, at_c, ldc, run_c, a_panel, b_panel, c_panel, at_bias, at_part;
    i32 M, N, K, W, nb, add, gap_at, gap, splits, chunk;
};

/* One step of a recurrent cell, rows b < nb; z, s, h, dy, .. point at row 0 of the step (kern.h: layouts).
 *   .._fwd  z (x side and bias) + h_prev Wh -> gates in place; s_prev -> s (lstm), h.  gru: slot 3 of z is unwritten and the bias
 *           of it comes from at_bias; -1 = it is in z
 *   .._bwd  dh = dy + dh_in + ds_in (not lstm) + dz_next Wh^T;  the gates in z -> dz, in place;  ds: of the step before
 *           only_dh = 1: dh goes to at_dh and nothing else is done, for the gradient of the initial state
 * at_w: row of unit 0 of h in panel 0; w_panel: floats from panel to panel.  at_s_prev: c (lstm) or h before the step.
 * at_bias -1: slot 3 of gru's z has the whole h side. */
struct cell_step_args {
    i64 at_z, at_z_next, at_h_prev, at_s_prev, at_s, at_h, at_w, w_panel, at_bias;
    i64 at_dy, at_dh_in, at_ds_in, at_ds, at_dh;
    i32 nb, H, only_dh, zero;
};

/* All steps of a call, for small H (sequence.cl).  z, s, h, dy point at row 0 of its first step; steps lie `step` floats apart,
 * those of z `z_step`.
 *   .._steps_fwd  from the state at_h_prev, at_s_prev; the last one goes to at_hT and (lstm) at_sT
 *   .._steps_bwd  the gradients after the last step are at_dh_in and at_ds_in, and dz_next Wh^T; those before the first one go to
 *                 at_dh, at_ds and (lstm) at_dc0 */
struct cell_sequence_args {
    i64 at_z, at_h_prev, at_s_prev, at_s, at_h, at_hT, at_sT, at_w, w_panel, at_bias;
    i64 at_z_next, at_dy, at_dh_in, at_ds_in, at_ds, at_dh, at_dc0, step, z_step;
    i32 H, steps;
};

/* copy_rows: to[r][i] = from[r][i]; transpose: to[i][r] = from[r][i].
 * column_sum: to[i] += sum over r of from[r][i], rows of from in runs; chunks of rows as in product_tn: at_part [splits][n]. */
struct rows_args {
    i64 at_to, to_ld, at_from, from_ld, run, at_part, rows, n;
    i32 nb, splits, chunk, blocks; /* blocks of columns */
};

/* y += x;  y = x (x -1: zeros);  y = max(x, 0);  y = tanh x;  y = sigmoid x;  y *= 1 - x x;  y = x > 0 ? y : 0 */
enum { ELEMENT_ADD, ELEMENT_COPY, ELEMENT_RELU, ELEMENT_TANH, ELEMENT_SIGMOID, ELEMENT_TANH_SLOPE, ELEMENT_RELU_SLOPE };
struct element_args {
    i64 at_y, at_x, n;
    i32 how, zero;
};

/* sum[k] = sum of squares of block k of x, in double precision; at_sum in doubles. */
struct square_args {
    i64 at_x, at_sum, n, block;
};

/* Rows [b0,b1) of steps [t0,t1): pred [T][B][Ip] with Q quantiles of F values, target and base [T][B][Fp]; a target that is NaN
 * counts nothing.  kind: 0 mse, 1 mae, 2 quantile.  loss_sum: group k adds up micro-batch g0 + k, whose first row is
 * (g0 + k) * grain - row0; at_sum in doubles, of micro-batch 0; += where t0 > 0.  loss_slope: d [T][B][Ip] = slope * scale,
 * padding zero. */
struct loss_args {
    i64 at_pred, at_target, at_base, at_d, at_sum;
    i32 Ip, Fp, F, Q, t0, t1, b0, b1, B, grain, row0, g0, kind;
    f32 scale, quantile[16];
};

/* y = mask ? x * scale : 0 for panels of 16 floats of consecutive rows; draw = 1: the mask (a u32 a panel, at_mask) is drawn by
 * Philox4x32-10 of (seed, stream, step, place + 2 * panel): base/rng.h, model/layer/dropout.c. */
struct dropout_args {
    i64 at_x, at_y, at_mask, panels;
    u64 place, seed;
    u32 step, drop, stream;
    i32 draw;
    f32 scale, zero;
};

/* The rules of model/optim/<..>.c on n elements, `rule` in the order of optims.def.  rate, root: adam's lr and root of v with
 * their corrections of bias; decay: adamw's lr * weight_decay. */
struct optim_args {
    i64 at_theta, at_grad, at_s0, at_s1, n;
    i32 rule;
    f32 lr, grad_scale, weight_decay, momentum, beta1, beta2, eps, rate, root, decay, zero;
};

/* y [T][B][Fp] = rows of the table by ids (i32 [T][B]); bwd: dy is added to the table's gradient, rows in order; at_marks in
 * bytes, -1 = none. */
struct embed_args {
    i64 at_ids, at_table, at_y, at_marks;
    i32 vocab, Fp, B, t0, t1, b0, b1, zero;
};

/* Layer norm of rows [Fp] with F values (model/layer/norm.c): row r of a call is step t0 + r / (b1 - b0), batch row
 * b0 + r % (b1 - b0).
 *   norm_fwd   y, and stat [T][B][2] = mean, 1 / deviation          norm_bwd   dx, from dy and stat
 *   norm_grad  grad [2][Fp] += sum of dy * normalized row, sum of dy, over the rows in a fixed order */
struct norm_args {
    i64 at_x, at_y, at_weight, at_stat, at_dy, at_dx, at_grad, rows;
    i32 F, Fp, B, t0, b0, b1;
};

/* Rows [from, to) of x [..][d] and their nearest center (nearest.cl).  panel [groups][d][16]: centers times -2; start
 * [groups][16]: squared norms, infinite where there is no center.  label [..], i32: the center of least start + x . panel; -1
 * where another one is at most margin + share * |least| larger, or a value is not a number. */
struct nearest_args {
    i64 at_x, at_panel, at_start, at_label, from, to;
    i32 d, groups;
    f32 margin, share;
};

/* Counts by bin of n entries (u32 row, u32 weight << 24 | class or value) at each of some inputs (histogram.cl).  Chunk k of an
 * input counts entries from k * chunk on into its own block of part [inputs][chunks][cells], u32:
 *   classes   cells 256 * nclass: the weights by bin and class
 *   numbers   cells 3 * 256: the weights by bin, those times the low 12 bits of the value, and those times the high bits
 * at_bin, bin_step: bytes, bin_step from input to input; the others in words of 4 bytes.  at_input: i32 number of each input. */
struct histogram_args {
    i64 at_bin, bin_step, at_entry, at_input, at_part;
    i32 n, chunk, chunks, nclass;
};

/* Viterbi paths of n sequences (viterbi.cl), in the fixed point of kern/viterbi.h.  trans [L][Lp] packed; start [L] and emit
 * [..][Lp] scores << shift; first [n + 1], i32: tokens of sequence k are word[first[k]] .. , rows of emit.  back [tokens][L] and
 * path [tokens], u8; at_back and at_path in bytes.  width: items of a sequence, a power of two, at least L, at most 256. */
struct viterbi_args {
    i64 at_trans, at_start, at_emit, at_first, at_word, at_back, at_path;
    i32 n, L, Lp, shift, width, zero;
};

/* Sentences of a linear-chain CRF (chain.cl), with the sums and bits of learn/crf/kernel.c.  Token t of a launch is token0 + t of
 * the data: its attributes are attribute[at[token0 + t]] .. (at: i64), rows of w [..][Lp], its label gold[token0 + t].  Sentence
 * k has the tokens first[k] .. first[k + 1] - 1 of the launch.
 *   chain_score  u [T][Lp] = scores; or, raw = 0: e^{u - max}, and note [T][4] = max, score of the gold label
 *   chain_pass   a [T][Lp] = alpha, d = P - Y, u becomes beta .* e^{u} / s, note[2] = s; M, back: [L][Lp] e^{A - top}, transposed
 *   chain_pairs  pair [blocks][L][Lp] = sums of alpha_{t-1} x u_t over the sentences block[b] .. block[b + 1] - 1
 *   chain_paths  path [T] u8 = best path of the scores u with the transitions M [L][Lp]; from [T][L] u8
 * n: tokens, sentences, blocks or sentences; width as in viterbi_args.  at_from and at_path in bytes. */
struct chain_args {
    i64 at_w, at_at, at_attribute, at_gold, at_first, at_block, at_M, at_back, at_u, at_a, at_d, at_note, at_pair, at_from;
    i64 at_path, token0;
    i32 n, L, Lp, width, raw, zero;
};

#endif
