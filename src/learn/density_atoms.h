/* density_atoms.h - density models with atoms: values that single columns have with positive probability, as the zeros of a zero-inflated one.
 *
 *   log p(x) = log P(pattern) + log p(rest | pattern)
 *
 * A pattern says which of the columns with an atom are at it; the rest are all other columns. With n rows of a pattern among N,
 * P = (n + q) / (N + 1), where q is the product of the columns' own shares, so that all patterns, unseen ones too, have probabilities of the
 * sum 1. The rest has a density model of its own, which may have a context of one column, the same for all rows of the pattern: it was fitted to
 * rows of other patterns, too, for which this column is 0, and is 1 for those of the pattern. In the rarest patterns, without a model, the columns are independent,
 * each with the density of its map. */
#ifndef HL_LEARN_DENSITY_ATOMS_H
#define HL_LEARN_DENSITY_ATOMS_H

#include "io/json.h"
#include "io/safetensors.h"
#include "learn/density.h"

enum { HL_ATOMS = 16 /* columns with an atom, at most */, HL_ATOMS_OWN = 1 /* the context of a pattern's own rows */ };

typedef struct hl_atom_pattern {
    uint32_t mask; /* bit a: column a of the atoms is at its atom */
    double rows;
    hl_density *rest; /* or NULL: independent columns, or none */
    double *packed;   /* `bytes` of the file of rest, while the model is written */
    size_t bytes;
} hl_atom_pattern;

struct hl_density_atoms {
    size_t count;
    size_t column[HL_ATOMS]; /* ascending */
    double value[HL_ATOMS], share[HL_ATOMS];
    double rows;
    size_t patterns;
    hl_atom_pattern *pattern;
};

/* The columns' shares and the number of rows, from the patterns. */
void hl_atoms_prepare(struct hl_density_atoms *atoms);
void hl_atoms_free(hl_context *ctx, struct hl_density_atoms *atoms); /* takes NULL */
uint32_t hl_atoms_mask(const struct hl_density_atoms *atoms, const double *row);
/* The place of a pattern, or `patterns`. */
size_t hl_atoms_find(const struct hl_density_atoms *atoms, uint32_t mask);
double hl_atoms_probability(const struct hl_density_atoms *atoms, uint32_t mask);
/* Columns that are not at an atom, in their order; returns how many. */
size_t hl_atoms_rest(const hl_density *m, uint32_t mask, size_t *columns);
/* The log-density of the columns that are not at an atom, if they are independent. */
double hl_atoms_independent(const hl_density *m, uint32_t mask, const double *row);

/* As the functions of hl_density. The gradient, or NULL, is 0 along columns that are at their atoms. */
hl_status hl_atoms_logp(hl_density *m, size_t rows, const double *x, double *logp, double *gradient);
hl_status hl_atoms_sample(hl_density *m, uint64_t seed, size_t first, size_t rows, double *x);

/* Metadata and tensors of the atoms, and back; *taken grows by the tensors that were read. */
hl_status hl_atoms_gather(const hl_density *m, hl_tensors *t);
hl_status hl_atoms_read(hl_density *m, const char *path, const hl_tensors *t, const hl_json *atoms, size_t *taken);

#endif
