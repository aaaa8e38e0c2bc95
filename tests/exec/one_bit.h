/* one_bit.h - a codec for tests that drops most of every gradient: it sends signs and one size, keeps the rest in the residual
 * and adds it in the next step (error feedback: Seide, Fu, Droppo, Li and Yu, Interspeech 2014). */
#ifndef STRETTO_TESTS_EXEC_ONE_BIT_H
#define STRETTO_TESTS_EXEC_ONE_BIT_H

#include "exec/codec.h"

extern const struct codec codec_one_bit; /* for codec_try_first */

#endif
