/* special.c - special functions by series, continued fractions and Newton's method (special.h).
 *
 * Sources: Abramowitz and Stegun 6.1.40, 6.3.18, 6.5.29, 6.5.31; Press et al., Numerical Recipes, 6.2 and 6.4 (Lentz); Acklam's
 * rational approximation of the normal quantile, followed by a step of Halley's method. */
#include <float.h>
#include <math.h>

#include "base/special.h"

enum { ROUNDS = 100000, NEWTON = 200 };

static const f64 half_log_2pi = 0.91893853320467274178, sqrt_2pi = 2.50662827463100050242;

/* ------------------------------------------------------------------ gamma --------------------------------------------------- */

f64 special_lgamma(f64 x) {
    f64 shift = 1;
    for (; x < 10; x++) shift *= x; /* at most 10 factors */
    const f64 r = 1 / (x * x);
    const f64 series =
        (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360)))))) / x;
    return (x - 0.5) * log(x) - x + half_log_2pi + series - log(shift);
}

f64 special_digamma(f64 x) {
    f64 shift = 0;
    for (; x < 10; x++) shift += 1 / x;
    const f64 r = 1 / (x * x);
    const f64 series =
        r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760))))));
    return log(x) - 0.5 / x - series - shift;
}

/* x^a e^-x / gamma(a).  Near x = a large terms cancel, so these are taken together. */
static f64 gamma_front(f64 a, f64 x) {
    if (a < 10) return exp(a * log(x) - x - special_lgamma(a));
    const f64 d = (x - a) / a, r = 1 / (a * a);
    const f64 series = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / a;
    return sqrt(a) / sqrt_2pi * exp(a * (log1p(d) - d) - series);
}

static f64 gamma_series(f64 a, f64 x) {
    f64 term = 1 / a, sum = term;
    for (i32 n = 1; n < ROUNDS && term > sum * DBL_EPSILON / 4; n++) term *= x / (a + n), sum += term;
    return sum * gamma_front(a, x);
}

/* No denominator of a continued fraction may be zero. */
static f64 not_zero(f64 v) { return fabs(v) < DBL_MIN / DBL_EPSILON ? DBL_MIN / DBL_EPSILON : v; }

static f64 gamma_fraction(f64 a, f64 x) {
    f64 b = x + 1 - a, c = DBL_EPSILON / DBL_MIN, d = 1 / not_zero(b), h = d, step = 0;
    for (i32 n = 1; n < ROUNDS && fabs(step - 1) > DBL_EPSILON; n++) {
        const f64 an = -n * (n - a);
        b += 2;
        d = 1 / not_zero(an * d + b);
        c = not_zero(b + an / c);
        step = d * c;
        h *= step;
    }
    return h * gamma_front(a, x);
}

f64 special_gamma_lower(f64 a, f64 x) {
    if (x <= 0) return 0;
    return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}

f64 special_gamma_upper(f64 a, f64 x) {
    if (x <= 0) return 1;
    return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

/* ------------------------------------------------------------------ beta ---------------------------------------------------- */

static f64 beta_fraction(f64 a, f64 b, f64 x) {
    f64 c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), h = d, step = 0;
    for (i32 n = 1; n < ROUNDS && fabs(step - 1) > DBL_EPSILON; n++) {
        const f64 even = n * (b - n) * x / ((a + 2.0 * n - 1) * (a + 2.0 * n));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        h *= d * c;
        const f64 odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1));
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        step = d * c;
        h *= step;
    }
    return h;
}

/* x^a (1-x)^b / B(a, b); y = 1 - x. */
static f64 beta_front(f64 a, f64 b, f64 x, f64 y) {
    return exp(special_lgamma(a + b) - special_lgamma(a) - special_lgamma(b) + a * log(x) + b * log(y));
}

static f64 beta_of(f64 a, f64 b, f64 x, f64 y) {
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    const f64 front = beta_front(a, b, x, y);
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, y) / b;
}

f64 special_beta(f64 a, f64 b, f64 x) { return beta_of(a, b, x, 1 - x); }

/* ------------------------------------------------------------------ normal, Student's t ------------------------------------- */

f64 special_normal_tail(f64 z) { return 0.5 * erfc(z * 0.70710678118654752440); }

/* Acklam: relative error below 1.2e-9, for p <= 0.5. */
static f64 rough_quantile(f64 p) {
    static const f64 a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                            1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    static const f64 b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                            -1.328068155288572e+01};
    static const f64 c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                            -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    static const f64 d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
    if (p < 0.02425) {
        const f64 q = sqrt(-2 * log(p));
        return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    }
    const f64 q = p - 0.5, r = q * q;
    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

f64 special_normal_quantile(f64 p) {
    if (p > 0.5) return -special_normal_quantile(1 - p);
    const f64 z = rough_quantile(p), u = (special_normal_tail(-z) - p) * sqrt_2pi * exp(z * z / 2);
    return z - u / (1 + z * u / 2);
}

f64 special_t_tail(f64 nu, f64 t) {
    const f64 t2 = t * t;
    return 0.5 * beta_of(nu / 2, 0.5, nu / (nu + t2), t2 / (nu + t2));
}

/* Newton's method on the logarithm of the tail, within a bracket that shrinks with each step. */
f64 special_t_upper(f64 nu, f64 p) {
    if (p >= 0.5) return 0;
    const f64 norm = special_lgamma((nu + 1) / 2) - special_lgamma(nu / 2) - 0.5 * log(nu * 3.14159265358979323846);
    f64 t = -special_normal_quantile(p), low = 0, high = INFINITY;
    for (i32 n = 0; n < NEWTON; n++) {
        const f64 tail = special_t_tail(nu, t), density = exp(norm - (nu + 1) / 2 * log1p(t * t / nu));
        if (tail > p)
            low = t;
        else
            high = t;
        f64 next = t + tail / density * log(tail / p);
        if (!(next > low && next < high)) next = isinf(high) ? 2 * t + 1 : (low + high) / 2;
        if (fabs(next - t) <= 1e-14 * t) return next;
        t = next;
    }
    return t;
}
