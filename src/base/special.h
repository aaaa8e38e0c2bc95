/* special.h - special functions in f64: gamma and beta functions, the normal and Student's t distribution.
 *
 * Pure, thread-safe (lgamma of libm writes a global) and accurate to about 1e-12 of the result; tails are given as tails, so that
 * nothing small is the difference of two numbers near one. */
#ifndef STRETTO_BASE_SPECIAL_H
#define STRETTO_BASE_SPECIAL_H

#include "base/bits.h"

f64 special_lgamma(f64 x);  /* log of the gamma function, x > 0 */
f64 special_digamma(f64 x); /* its derivative, x > 0 */

f64 special_gamma_lower(f64 a, f64 x); /* regularized P(a, x), a > 0, x >= 0 */
f64 special_gamma_upper(f64 a, f64 x); /* regularized Q(a, x) = 1 - P */
f64 special_beta(f64 a, f64 b, f64 x); /* regularized I_x(a, b), a, b > 0, x in [0,1] */

f64 special_normal_tail(f64 z);     /* share of a standard normal above z */
f64 special_normal_quantile(f64 p); /* z that a share p lies below, 0 < p < 1; accurate for small p */
f64 special_t_tail(f64 nu, f64 t);  /* share of Student's t with nu degrees of freedom above t >= 0 */
f64 special_t_upper(f64 nu, f64 p); /* t >= 0 that a share p lies above, 0 < p <= 0.5 */

#endif
