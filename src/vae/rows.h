/* rows.h - rows of data, and pairs of a row and a sample on their way through the plans. */
#ifndef HL_VAE_ROWS_H
#define HL_VAE_ROWS_H

#include "hollow/ode.h"
#include "vae/vae.h"

/* A number that depends on the row's contents alone. */
uint64_t hl_vae_row_key(const hl_vae *vae, const hl_vae_rows *rows, size_t row);
/* The same with all bits mixed, for hl_row_sketch. */
uint64_t hl_vae_row_hash(const hl_vae *v, const hl_vae_rows *rows, size_t row);
/* key[rows]: that number for the first row of these contents, others for the second, third, ... of the same contents. */
hl_status hl_vae_row_keys(const hl_vae *vae, const hl_vae_rows *rows, uint64_t *key);
/* Rows that the autoencoder can take: bytes or values, and what they may be. */
hl_status hl_vae_check_rows(const hl_vae *vae, const hl_vae_rows *rows);
/* The first half of this, without a look at the values; and the second, for rows the first of which is row `first` of all. */
hl_status hl_vae_check_kind(const hl_vae *vae, const hl_vae_rows *rows);
hl_status hl_vae_check_part(const hl_vae *vae, const hl_vae_rows *rows, size_t first);
/* `count` rows from `first` on, or those of index[first..], as doubles. Gray values are drawn with this key. */
void hl_vae_fetch(const hl_vae *vae, const hl_vae_rows *rows, uint64_t key, size_t first, size_t count,
                  const size_t *index, double *to);

/* Value `at` of rows x dim, a gray one as its probability. */
double hl_vae_value(const hl_vae_rows *rows, size_t at);

/* Shift and scale from mean and deviation of the columns of real-valued rows (columns.c). Adds the number of constant columns to *constants, unless
 * rows are images, and gives the first one. */
hl_status hl_vae_choose_columns(hl_vae *vae, const hl_vae_rows *rows, size_t *constants, size_t *first);

/* Rows first, first + step, ... */
typedef struct hl_vae_part_of {
    const hl_vae_rows *rows;
    size_t first, step;
} hl_vae_part_of;
/* Mean log p of rows if columns are independent, Bernoulli or normal, with frequencies or moments from others. */
double hl_vae_independent(const hl_vae *vae, const hl_vae_part_of *from, const hl_vae_part_of *judged);
/* The same, or of a normal distribution with all covariances, if the likelihood is Gaussian and that is better. */
hl_status hl_vae_simple(const hl_vae *vae, const hl_vae_rows *from, const hl_vae_rows *judged, double *log_p);

/* Buffers for blocks of rows and chunks of pairs. */
typedef struct hl_vae_runner {
    hl_vae *vae;
    size_t chunk;                               /* rows of a block, and pairs of a chunk */
    double *x, *piece[HL_VAE_PIECES];           /* of a block of rows: chunk x size */
    uint64_t *key;                              /* of these rows */
    const uint64_t *all_keys;                   /* of all rows of the data, borrowed; NULL: by contents alone */
    size_t *row;                                /* of the pairs: the row of the block */
    double *noise, *probe, *z;                  /* chunk x latent */
    double *log_q0, *log_det, *log_px, *log_pz; /* chunk */
    /* of a continuous posterior */
    hl_ode *ode;
    double *state, *time; /* chunk x (latent + 1), chunk */
    hl_ode_row *info;
    size_t *stage_row;
    double evaluations, solved; /* of the network, for so many pairs, since the solver was set */
} hl_vae_runner;

hl_status hl_vae_runner_create(hl_vae *vae, size_t chunk, hl_vae_runner **runner);
void hl_vae_runner_free(hl_vae_runner *runner); /* takes NULL */
/* How a continuous flow is solved: `steps` steps of RK4, or, if that is 0, steps that adapt to the tolerance. To be called before
 * hl_vae_runner_flow. */
hl_status hl_vae_runner_set_solver(hl_vae_runner *r, size_t steps, double tolerance);
/* Encode a block: rows first .. first + count of the data, count <= chunk. */
void hl_vae_runner_encode(hl_vae_runner *r, const hl_vae_rows *rows, size_t first, size_t count);
/* Which pairs: pair p is row p / samples of the block and sample p % samples of it. */
typedef struct hl_vae_pairs {
    size_t first, count, samples;
} hl_vae_pairs;
/* Give the chunk its rows, and noise and probe from (seed, key of the row, sample). */
void hl_vae_runner_choose(hl_vae_runner *r, const hl_vae_pairs *p, uint64_t seed, uint64_t probe_seed);
/* From noise to z, log q0 and log |det|. */
hl_status hl_vae_runner_flow(hl_vae_runner *r, size_t count);
/* log p(x | z) and log p(z) of the chunk. */
void hl_vae_runner_decode(hl_vae_runner *r, size_t count);

#endif
