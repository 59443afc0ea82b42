/* hollow/simulate.h - Brownian paths, and steppers for stochastic differential equations with diagonal noise,
 *
 *     dx_i = f_i(t, x) dt + g_i(t, x) dW_i,
 *
 * or with constant correlations, dx = f dt + diag(g) C dW.
 *
 *     hl_noise_system system = { .n = 2, .coefficients = pendulum };
 *     hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "srk", .seed = 1, .level = 3 }, &simulator);
 *     hl_simulator_run(simulator, rows, 0, t, 0.1, 50, y, saved);      50 intervals of 0.1, each of 2^3 steps
 *
 * A Brownian path is a function of (seed, path, dimension). It is bitwise independent of the step, the order of calls, the other rows and the
 * number of threads. */
#ifndef HOLLOW_SIMULATE_H
#define HOLLOW_SIMULATE_H

#include "hollow/ode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Brownian paths ---- */

/* Paths on the times 0..span. Interval k of level l is [k, k + 1] span / 2^l. */
typedef struct hl_brownian {
    uint64_t seed;
    double span; /* > 0 */
} hl_brownian;

enum { HL_BROWNIAN_LEVELS = 40 }; /* the finest level */

/* Increments over interval `index` of `level` (0..HL_BROWNIAN_LEVELS): dw = W(end) - W(begin), and, if dz is not NULL, dz = I_(1,0) = the
 * integral of W - W(begin). All W are multiples of a small power of two, so sums and differences of dw are exact: the dw of two halves add up
 * to that of the whole, bit for bit. The dz agree up to rounding. path < 2^40, dimension < 2^20. */
HL_API void hl_brownian_increment(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index,
                                  double *dw, double *dz);
/* W at the time index span / 2^level, 0 <= index <= 2^level. */
HL_API double hl_brownian_value(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index);

/* ---- systems ---- */

/* Write drift f, diffusion g and dg = (d g_i / d x_i) at `count` rows, each at its own time; each array is count x n, and is NULL if not needed.
 * The values of a row must not depend on other rows. Return 0, or another value to stop the run. */
typedef int hl_noise_fn(void *user, const hl_rows *at, double *f, double *g, double *dg);
typedef struct hl_noise_system {
    size_t n; /* values per row */
    hl_noise_fn *coefficients;
    int slope;        /* nonzero: `coefficients` can compute dg */
    int stratonovich; /* nonzero: Stratonovich equation; default Ito */
    void *user;
    /* C, n x n and lower triangular; borrowed. The noise of value i is g_i (C dW)_i. NULL: the unit matrix. Such noise does not commute;
     * methods for it are "euler" (default), and "sra" if g depends on t only. */
    const double *factor;
} hl_noise_system;

/* ---- steppers ---- */

/* Methods with strong and weak order:
 *   "euler"     1/2, 1    Euler-Maruyama; Ito
 *   "milstein"  1, 1      needs dg; Ito
 *   "heun"      1, 1      stochastic Heun; Stratonovich
 *   "srk"       3/2, 3/2  SRI1W1 of Roessler (SIAM J. Numer. Anal. 48, 2010); Ito (default). Weak order 2
 *                         if g is linear in x and does not depend on t
 *   "sra"       3/2, 2    SRA1 of Roessler, for g that depends on t only; Ito
 *
 * If method and equation use different interpretations (Ito, Stratonovich), the drift is corrected by g dg / 2, which needs dg. Strong
 * orders above 1/2 require that g_i depends on no x_j except x_i; otherwise the order is 1/2. */
typedef struct hl_simulator_options {
    const char *method;
    uint64_t seed;
    int level; /* an interval consists of 2^level steps; 0..20 */
    /* nonzero: a row that is no longer finite at the end of an interval is NaN from then on, and the others go on */
    int escapes;
} hl_simulator_options;

typedef struct hl_simulator hl_simulator; /* opaque; use one from one thread at a time */
HL_API hl_status hl_simulator_create(hl_context *context, const hl_noise_system *system,
                                     const hl_simulator_options *options, hl_simulator **simulator);
HL_API void hl_simulator_free(hl_simulator *simulator); /* takes NULL */
/* Advance y (rows x n) and t (rows) in place over `intervals` intervals of length `interval` (> 0). Row r uses path first_path + r, on the span
 * interval x (the smallest power of two >= intervals). If saved is not NULL, it receives rows x (intervals + 1) x n states: the start and the
 * end of each interval. Allocates nothing. Returns HL_ERR_NOT_FINITE if a row is no longer finite, unless `escapes` is set. */
HL_API hl_status hl_simulator_run(hl_simulator *simulator, size_t rows, uint64_t first_path, double *t, double interval,
                                  size_t intervals, double *y, double *saved);
/* Names of the methods; the list ends with NULL. */
HL_API const char *const *hl_simulator_methods(void);
/* Strong and weak order of a method; HL_ERR_INVALID if there is no such method. */
HL_API hl_status hl_simulator_orders(const char *method, double *strong, double *weak);

#ifdef __cplusplus
}
#endif

#endif
