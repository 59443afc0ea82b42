/* compare.h - two samples compared: distances, their p-values, and the bands that hold by chance. */
#ifndef HL_REPORT_COMPARE_H
#define HL_REPORT_COMPARE_H

#include "base/base.h"
#include "hollow/report.h"

/* P(K > k) of Kolmogorov's distribution. */
double hl_kolmogorov_p(double k);
/* The same of the largest distance of two empirical distribution functions of n and m values, by Stephens' correction; m = 0: of one from
 * the true one. */
double hl_ks_p(double distance, double n, double m);
/* The distance whose p is 0.05. */
double hl_ks_band(double n, double m);
/* Finite values to rising order; `room` has place for 2 n of them. */
void hl_sort_finite(size_t n, double *values, uint64_t *room);
/* The largest distance of the distribution functions of two samples in rising order. */
double hl_ks_distance(size_t n, const double *a, size_t m, const double *b);
/* The value that the share q of a sample in rising order is not above. */
double hl_quantile(size_t n, const double *sorted, double q);
/* The share of a sample in rising order that is not above the value. */
double hl_share_below(size_t n, const double *sorted, double value);
/* Of the standard normal and the chi-squared distribution of d degrees of freedom (Wilson and Hilferty's for d > 2). */
double hl_normal_cdf(double x);
double hl_chi2_quantile(double d, double p);

/* x: `rows` rows of a, then as many of b, of deviation about 1. Energy distance of a and b, of the halves of a, and its p-value by permutations. `paired`: row i
 * of both belong together, and permutations exchange these alone. */
hl_status hl_compare_energy(hl_context *ctx, size_t dim, size_t rows, const double *x, bool paired, uint64_t seed,
                            hl_report_distance *result);

/* For each row of a the distance to the nearest row of b; `same`: a is the beginning of b, and a row is not its own neighbour. */
hl_status hl_compare_nearest(hl_context *ctx, size_t dim, size_t rows, const double *a, size_t b_rows, const double *b,
                             bool same, double *distance);

/* Are rows of b copies of rows of a? x has `rows` rows of a, then as many of b. Of the shortest distances of rows of both to their nearest, how many
 * join a row of a and one of b: the p-value of that many or more, by permutations. If both samples are independent, whatever their densities p and q, those are not more
 * than by chance: 2 pq <= p^2 + q^2. `paired` as above; rows i of both are not compared with one another then. */
hl_status hl_compare_copies(hl_context *ctx, size_t dim, size_t rows, const double *x, bool paired, uint64_t seed,
                            double *p);

#endif
