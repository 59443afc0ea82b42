/* column_map.h - a monotone map of one column to a nearly normal one, y = Phi^-1(F(x)).
 *
 * With u = (x - centre) / scale, F(u) = sum_j w_j Phi((u - m_j) / s_j) + b T(u), where T is Student's distribution with two
 * degrees of freedom: its weight b > 0 keeps every finite x at a finite y with a finite slope.
 *
 * A small part of b, and a y a little larger than those of the rows, would make x absurd: T has x grow as exp(y^2 / 4). So beyond the
 * least and the greatest of the rows that it was fitted to, low and high, the map goes on with the slope that it has there, and
 * x grows as exp(y / 2): with d = u - high and y' = dy/du at high, y = y(high) + 2 log(1 + d y' / 2), and likewise below. */
#ifndef HL_LEARN_COLUMN_MAP_H
#define HL_LEARN_COLUMN_MAP_H

#include "base/base.h"

typedef struct hl_column_map {
    hl_context *ctx;
    size_t parts;
    double centre, scale, background;
    double low, high;                  /* of u; infinite: T has the tails */
    double *weight, *mean, *deviation; /* [parts] each, in one block that begins at weight */
} hl_column_map;

/* Rows to fit on and rows to judge by. A column's values are x[0], x[stride], x[2 stride], ... */
typedef struct hl_column_fold {
    size_t rows, held_rows, stride;
    const double *x, *held;
} hl_column_fold;

/* The median, and a deviation that a few far values do not change: from the innermost pair of quantiles that differ. `work` has
 * room for `rows` values. A constant column has scale 1. */
void hl_column_scale(size_t rows, const double *x, size_t stride, double *work, double *centre, double *scale);
/* Half the least difference between distinct values if more than 1 % of the values are repetitions, else 0. Uses `work` as above. */
double hl_column_tie_width(size_t rows, const double *x, size_t stride, double *work);

hl_status hl_column_map_create(hl_context *ctx, size_t parts, hl_column_map **map);
void hl_column_map_free(hl_column_map *map); /* takes NULL */
/* Fit a map of `parts` normal distributions to the rows of `data` by EM. No part is narrower than `floor`, in units of x. */
hl_status hl_column_map_fit(hl_context *ctx, const hl_column_fold *data, size_t parts, double floor,
                            hl_column_map **map);
/* The number of parts, at most `most`, with the greatest log-likelihood of the held rows, summed over the folds; more parts only for a
 * gain. */
hl_status hl_column_map_choose(hl_context *ctx, size_t folds, const hl_column_fold *fold, size_t most, double floor,
                               size_t *parts);
/* Are the values ones that a map can have? For maps that come from a file. */
bool hl_column_map_valid(const hl_column_map *map);
/* log of the density of x whose y is a standard normal one: F'(x), between low and high. */
double hl_column_map_logf(const hl_column_map *map, double x);
/* y, and log dy/dx if `log_slope` is not NULL. NaN where x is not finite. */
double hl_column_map_forward(const hl_column_map *map, double x, double *log_slope);
/* The same, and the derivative of log dy/dx. */
double hl_column_map_curve(const hl_column_map *map, double x, double *log_slope, double *curve);
/* x from y, by bracketing and Newton's method. */
double hl_column_map_inverse(const hl_column_map *map, double y);

#endif
