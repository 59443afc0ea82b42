/* hollow/simulate.h - Brownian paths and steppers for stochastic differential equations with diagonal noise,
 *
 *     dx_i = f_i(t, x) dt + g_i(t, x) dW_i,
 *
 * or with constant correlations, dx = f dt + diag(g) C dW.
 *
 *     hl_noise_system system = { .n = 2, .coefficients = pendulum };
 *     hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "srk", .seed = 1, .level = 3 }, &simulator);
 *     hl_simulator_run(simulator, rows, 0, t, 0.1, 50, y, saved);      50 intervals of 0.1, each of 2^3 steps
 *
 * A path is a function of (seed, path, dimension): its bits do not depend on the step, on the order of the calls, on
 * the other rows or on the number of threads. */
#ifndef HOLLOW_SIMULATE_H
#define HOLLOW_SIMULATE_H

#include "hollow/ode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Brownian paths ---- */

/* Paths over the times 0..span. Span k of level l is [k, k + 1] span / 2^l. */
typedef struct hl_brownian {
    uint64_t seed;
    double span; /* > 0 */
} hl_brownian;

enum { HL_BROWNIAN_LEVELS = 40 }; /* the finest level */

/* Over span `index` of `level` (0..HL_BROWNIAN_LEVELS): dw = W(end) - W(begin), and, unless dz is NULL, dz = the
 * integral of W - W(begin), which is I_(1,0). All W are multiples of one small power of two, so that sums and
 * differences of dw are exact: the dw of two halves add up to that of the whole, bit for bit; the dz agree to rounding.
 * path < 2^40, dimension < 2^20. */
HL_API void hl_brownian_increment(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index,
                                  double *dw, double *dz);
/* W at the time index span / 2^level, 0 <= index <= 2^level. */
HL_API double hl_brownian_value(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index);

/* ---- systems ---- */

/* Drift f and diffusion g at `count` rows, each at its own time, and dg = (d g_i / d x_i); each count x n, and each may
 * be NULL: then it is not wanted. Return 0 or stop the run by another value. A row's values must not depend on other
 * rows. */
typedef int hl_noise_fn(void *user, const hl_rows *at, double *f, double *g, double *dg);
typedef struct hl_noise_system {
    size_t n; /* values of a row */
    hl_noise_fn *coefficients;
    int slope;        /* nonzero: it can give dg */
    int stratonovich; /* nonzero: the equation is meant in Stratonovich's sense; default Ito's */
    void *user;
    /* n x n, lower triangular, borrowed: the noise of value i is g_i (C dW)_i. NULL: C is the unit matrix. Such noise does not commute:
     * methods are euler (default), and sra for a g that depends on t alone. */
    const double *factor;
} hl_noise_system;

/* ---- steppers ---- */

/* Methods, with strong and weak order. An equation in the other sense than the method's gets its drift corrected by g
 * dg / 2, which needs dg. Strong orders above 1/2 need a g_i that depends on no x_j but x_i; otherwise they fall to 1/2.
 *   "euler"     1/2, 1    Euler-Maruyama; Ito
 *   "milstein"  1, 1      needs dg; Ito
 *   "heun"      1, 1      stochastic Heun; Stratonovich
 *   "srk"       3/2, 3/2  SRI1W1 of Roessler (SIAM J. Numer. Anal. 48, 2010); Ito (default). Weak order 2
 *                         if g is linear in x and does not depend on t
 *   "sra"       3/2, 2    SRA1 of Roessler, for a g that depends on t alone; Ito */
typedef struct hl_simulator_options {
    const char *method;
    uint64_t seed;
    int level; /* an interval is made of 2^level steps; 0..20 */
} hl_simulator_options;

typedef struct hl_simulator hl_simulator; /* opaque; use one from one thread at a time */
HL_API hl_status hl_simulator_create(hl_context *context, const hl_noise_system *system,
                                     const hl_simulator_options *options, hl_simulator **simulator);
HL_API void hl_simulator_free(hl_simulator *simulator); /* takes NULL */
/* Take y (rows x n) from t[r] over `intervals` intervals of length `interval` (> 0), in place; t is moved as well. Row
 * r follows the path first_path + r over the span interval x (the least power of two >= intervals). `saved`, unless
 * NULL, receives all rows x (intervals + 1) x n states at the intervals' ends, the start included. Allocates nothing. A
 * row that is no longer finite ends the run with HL_ERR_NOT_FINITE. */
HL_API hl_status hl_simulator_run(hl_simulator *simulator, size_t rows, uint64_t first_path, double *t, double interval,
                                  size_t intervals, double *y, double *saved);
/* The names of the methods, ended by NULL. */
HL_API const char *const *hl_simulator_methods(void);
/* Strong and weak order of a method; HL_ERR_INVALID if there is none of that name. */
HL_API hl_status hl_simulator_orders(const char *method, double *strong, double *weak);

#ifdef __cplusplus
}
#endif

#endif
