/* density.h - a density model from inside: a weighted sum of members over common columns.
 *
 *   p(x | c) = w_flow p_flow(x | c) + sum_k w_k p_k(x | c)
 *
 * The members are at most one flow and mixtures of t distributions. Each sees the columns either standardised or through the
 * model's maps; the flow may see them decorrelated besides. Files: density_file.c. */
#ifndef HL_LEARN_DENSITY_H
#define HL_LEARN_DENSITY_H

#include "flow/flow.h"
#include "hollow/density.h"
#include "learn/column_form.h"
#include "learn/column_map.h"
#include "learn/curve.h"
#include "learn/tmixture.h"

enum { HL_DENSITY_NAME = 256, HL_DENSITY_MIXTURES = 8 /* at most */, HL_DENSITY_CHUNK = 2048 /* rows at a time */ };

typedef struct hl_density_units {
    char name[HL_DENSITY_NAME];
    double mean, deviation;
} hl_density_units;

/* A mixture over the columns of the context, then those of x. */
typedef struct hl_density_mixture {
    hl_tmixture *mixture;
    double weight;
    bool mapped; /* sees the columns through the maps */
} hl_density_mixture;

struct hl_density_atoms;

/* What is known of the training: its course, of the flow, and the rows. */
typedef struct hl_density_training {
    hl_curve curve;
    hl_row_sketch rows;
} hl_density_training;

struct hl_density {
    hl_context *ctx;
    size_t dim, context;
    hl_density_units *column; /* [dim + context] */
    hl_column_form
        *form;           /* [dim + context], or NULL: all are none. Units and maps are of what comes out of the forms */
    bool exact_draws;    /* draws are not rounded to the grids of the forms */
    hl_column_map **map; /* [dim + context], or NULL: no member sees mapped columns */
    struct hl_density_atoms *atoms; /* or NULL; with atoms there are no members, and maps of all columns */
    hl_density_training *training;  /* or NULL: nothing is known */
    hl_category *category;          /* columns of texts in the context */
    size_t categories;
    char *note;
    hl_flow *flow; /* or NULL */
    double flow_weight;
    bool flow_mapped;
    hl_flow_solver solver;
    hl_density_accuracy accuracy; /* of the solver */
    char method[32];              /* of the solver */
    double *factor;               /* L of what the flow sees, dim x dim, or NULL */
    hl_density_mixture mixture[HL_DENSITY_MIXTURES];
    size_t mixtures;
    double *x, *c, *joint,
        *member; /* a chunk: x and context of the flow, all columns of a mixture, log p of a member */
    double *
        formed; /* a chunk of x and of the context behind their forms, and the log slopes of its rows; with forms only */
};

/* A model without members, whose columns are those of x, then those of the context. */
hl_status hl_density_create_columns(hl_context *ctx, size_t dim, size_t context, const hl_density_column *columns,
                                    hl_density **model);
/* Give a model its flow, with weight 1. */
hl_status hl_density_add_flow(hl_density *m, const hl_flow_spec *flow);
void hl_density_drop_flow(hl_density *m);
/* The model owns the mixture, also if this fails. */
hl_status hl_density_add_mixture(hl_density *m, hl_tmixture *mixture, bool mapped, double weight);
/* Give the flow this weight, and the mixtures, whose weights have the sum 1 so far, the rest. Members without weight leave the model, and so
 * do maps that none needs. */
void hl_density_weigh(hl_density *m, double flow_weight);
/* hl_density_calibrate with rows as the flow sees them; nothing for models without a solver or without rows. */
hl_status hl_density_calibrate_seen(hl_density *m, size_t rows, const double *x, const double *context);
/* The model owns the array and its maps. */
void hl_density_set_maps(hl_density *m, hl_column_map **map);
/* Give columns their forms, which are copied; NULL: none. */
hl_status hl_density_set_forms(hl_density *m, const hl_column_form *form);

/* Rows behind their forms. `slope` becomes the log slopes of the rows, -infinity for those outside of the bounds, whose x is that of the means then.
 * Without forms everything stays where it is and `slope` is NULL. */
typedef struct hl_density_formed {
    const double *x, *context, *slope;
} hl_density_formed;
/* At most HL_DENSITY_CHUNK rows; x or context may be NULL. Borrowed until the next call. */
hl_density_formed hl_density_form_rows(hl_density *m, size_t rows, const double *x, const double *context);
/* hl_density_member_logp and hl_density_standardise of rows, at most a chunk, that are behind their forms. */
hl_status hl_density_member_formed(hl_density *m, size_t member, size_t rows, const double *x, const double *context,
                                   double *logp);
void hl_density_see(const hl_density *m, size_t rows, double *x, double *context);

/* In files: density_categories.c. The caller frees the text; HL_ERR_FORMAT if the categories are wrong. */
char *hl_density_categories_text(const hl_density *m);
hl_status hl_density_categories_read(hl_density *m, const hl_json *root);
void hl_density_free_categories(hl_density *m);

/* The model's training, made if there is none yet; NULL: no memory. */
hl_density_training *hl_density_add_training(hl_density *m);
/* In files: the metadata "training", {"course": [[100, 3, 8, 1.5, 70, 1.6, 100], ...], "rows": ..., ...}, see curve.c. The caller frees the text. */
char *hl_density_training_text(const hl_density *m);
hl_status hl_density_training_read(hl_density *m, const char *path, const hl_json *j);

/* hl_density_sample from sample 0 on with log p of every draw, to the accuracy of the solver. Draws of the flow are solved once for both, unless
 * they are rounded. Failures as of hl_density_logp. */
hl_status hl_density_draw(hl_density *m, uint64_t seed, size_t rows, const double *context, double *x, double *logp);
/* hl_density_sample of single samples, at most a chunk of them, by their numbers; without a context. */
hl_status hl_density_sample_numbers(hl_density *m, uint64_t seed, size_t rows, const uint64_t *number,
                                    const double *context, double *x);

/* A row of the columns of the context, then of x, behind their forms, as mixtures see them; log |dy/dv| of the columns of x is returned. */
double hl_density_joint_row(const hl_density *m, bool mapped, const double *context, const double *x, double *joint);

/* Of the failures of a call the first is reported; one that leaves a row without a result comes before one that does not. */
typedef struct hl_density_failures {
    hl_status first;
    hl_kept_failure kept;
} hl_density_failures;
/* A status of rows that start at row `start` of the caller's, or, with an index, are index[0], index[1], ... of those. */
void hl_density_note_failure(hl_density *m, hl_status status, size_t start, const size_t *index,
                             hl_density_failures *failures);
/* What the flow's status, which is the context's last failure, means for the log p of a sum: rows without the flow are imprecise, not lost. */
hl_status hl_density_soften(hl_density *m, hl_status status, size_t count, const double *logp);

#endif
