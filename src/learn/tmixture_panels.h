/* tmixture_panels.h - what the densities of mixtures and EM share: densities of parts for panels of rows, and clusters. */
#ifndef HL_LEARN_TMIXTURE_PANELS_H
#define HL_LEARN_TMIXTURE_PANELS_H

#include "kernel/kernel.h"
#include "learn/tmixture.h"

/* Part j on `panels` panels of x, of whose first `columns` columns (all, or the given ones) the density is: q and the weighted
 * log-density, a value per row, and z [panels][columns] entries. */
void hl_tmixture_part(const hl_tmixture *m, const hl_kernels *k, size_t j, size_t columns, size_t panels,
                      const double *x, size_t x_panel, double *z, double *q, double *density);
/* One panel: the parts' weighted log-densities, part j at density + j pitch, become their shares; `total` gets the log of their sum.
 * `work` has `parts` entries. */
void hl_tmixture_normalise(const hl_kernels *k, size_t parts, double *density, size_t pitch, double *work,
                           double *total);

/* Cholesky's factor l of s [d][d], of which the lower triangle is read; false if s is not positive definite. */
bool hl_tmixture_cholesky(size_t d, const double *s, double *l);
/* An order of rows, x + r stride being row r, in which every `leaf` rows are near each other: medians of the widest columns divide them. */
void hl_tmixture_arrange(size_t rows, size_t dim, const double *x, size_t stride, size_t leaf, uint32_t *order);
/* Clusters of rows by k-means: the cluster of each row, to `nearest`. x [rows][dim] is overwritten. */
hl_status hl_tmixture_cluster(hl_context *ctx, size_t rows, size_t dim, double *x, size_t parts,
                              hl_tmixture_start start, uint64_t seed, uint32_t *nearest);

#endif
