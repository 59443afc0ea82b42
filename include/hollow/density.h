/* hollow/density.h - density models of tables: a flow, and the units of its columns.
 *
 *     hl_density_load(ctx, "m.hollow", &model);
 *     hl_density_logp(model, rows, x, NULL, logp);        log-densities in nats, in the units of the data
 *     hl_density_sample(model, seed, 0, rows, NULL, x);   rows from the model, in these units
 *
 * Results are the same bits whatever rows are beside a row, for any number of threads, and run after run. */
#ifndef HOLLOW_DENSITY_H
#define HOLLOW_DENSITY_H

#include "hollow/fit.h"
#include "hollow/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_density hl_density; /* opaque */

/* A column: x_standard = (x - mean) / deviation, x being mapped before if its range has a form (hl_density_range). Its name is UTF-8 of at most 255 bytes. */
typedef struct hl_density_column {
    const char *name;
    double mean, deviation; /* deviation > 0 */
} hl_density_column;

/* A model with the flow's parameters zero; `columns` holds dim columns, then the context's. Copies all. */
HL_API hl_status hl_density_create(hl_context *context, const hl_flow_spec *flow, const hl_density_column *columns,
                                   hl_density **model);
HL_API void hl_density_free(hl_density *model); /* takes NULL */
HL_API size_t hl_density_dim(const hl_density *model);
HL_API size_t hl_density_context(const hl_density *model);
/* A column of x, or, from dim on, of the context. Borrowed until the model is freed. */
HL_API hl_density_column hl_density_get_column(const hl_density *model, size_t index);
/* The support of a column, kept in the model's file. */
typedef struct hl_density_range {
    /* The map in front of everything else: "none"; with bounds "log", "soft" (logarithmic at the bound, linear far away) or "logit"; "asinh" for a
     * column with very far values. Mean and deviation of the column are those of the mapped values. */
    const char *form;
    double low, high; /* bounds, or infinities: log p is -infinity outside, and draws never leave them */
    double step;      /* draws are rounded to multiples of this; 0: they are not */
    /* Limits of rounded draws, or infinities; log p does not know them. Whole numbers of at most 20 different values are drawn in the range of the
     * training rows, others whose least value is 0 or 1 not below it. */
    double least, most;
} hl_density_range;
HL_API hl_density_range hl_density_get_range(const hl_density *model, size_t column);
/* 0: draws are not rounded; nonzero, as at first: they are, where columns have a step. */
HL_API void hl_density_set_rounding(hl_density *model, int on);
/* Columns of texts in the context are columns of 0 and 1: labels[k], k > 0, is 1 in column `column` + k - 1 of the context, which is called
 * "city=Paris"; labels[0] has none. A model keeps this in its file for those who make rows of the context from texts. */
typedef struct hl_category {
    const char *name; /* of the column of texts */
    size_t column;    /* the first of its columns of the context, from 0 on */
    size_t count;     /* of the labels, at least 2 */
    const char *const *labels;
} hl_category;
HL_API hl_status hl_density_set_categories(hl_density *model, size_t count, const hl_category *categories); /* copies */
HL_API size_t hl_density_categories(const hl_density *model);
HL_API hl_category hl_density_get_category(const hl_density *model,
                                           size_t index); /* borrowed until they are set or freed */
/* The flow sees not the standardised columns y but u with y = L u: L, dim x dim, is lower triangular with a positive diagonal,
 * as Cholesky's factor of their correlations. NULL: y itself, as at first. Copies; the upper triangle is not read. */
HL_API hl_status hl_density_set_factor(hl_density *model, const double *factor);
HL_API const double *hl_density_factor(const hl_density *model); /* or NULL. Borrowed until it is set or freed */
/* The flow between standardised (or mapped) columns and the base; NULL if the model has none. Borrowed until the model is freed. */
HL_API hl_flow *hl_density_flow(const hl_density *model);

/* A model is a weighted sum of members: at most one flow, which comes first, and mixtures of Student's t distributions. A member sees the
 * columns standardised, or through monotone maps, fitted to each column, that make them nearly normal. */
typedef enum hl_member_kind { HL_MEMBER_FLOW = 0, HL_MEMBER_MIXTURE } hl_member_kind;
typedef struct hl_density_member {
    hl_member_kind kind;
    int mapped;    /* nonzero: sees mapped columns */
    double weight; /* all weights have the sum 1 */
    size_t parts;  /* of a mixture */
    double nu;     /* degrees of freedom of its parts; 0: normal distributions */
} hl_density_member;
HL_API size_t hl_density_members(const hl_density *model);
HL_API hl_density_member hl_density_get_member(const hl_density *model, size_t index);
/* Atoms: values that single columns have with positive probability, as the zeros of a zero-inflated one. Then there are no members, and log p is
 * log P(pattern) + log p(other columns | pattern), where the pattern says which columns are at their atoms: a density with respect to the
 * product of Lebesgue measure plus a point mass at every atom. Patterns that were seen in training: */
typedef struct hl_density_pattern {
    double probability;
    size_t atoms;           /* columns that are at their atoms */
    const hl_density *rest; /* the density of the other columns; NULL: they are independent, or there are none */
} hl_density_pattern;
HL_API size_t hl_density_patterns(const hl_density *model); /* 0: no atoms */
HL_API hl_density_pattern hl_density_get_pattern(const hl_density *model, size_t index);
/* Nonzero if a column has an atom, the value of which is written unless it is NULL. */
HL_API int hl_density_get_atom(const hl_density *model, size_t column, double *value);
/* How log p and samples are solved; kept in the model's file. NULL: the defaults. The trace is always exact. */
HL_API hl_status hl_density_set_solver(hl_density *model, const hl_flow_solver *solver);
HL_API hl_flow_solver hl_density_solver(const hl_density *model);

/* How near log p comes to the exact solution of the flow's equation, as hl_density_calibrate measured it; kept in the model's
 * file until the solver is set again. All 0: not measured. */
typedef struct hl_density_accuracy {
    double typical;     /* nats; 99 % of the rows are nearer */
    double worst;       /* of all rows, some ten deviations away among them */
    double evaluations; /* of the network, for a row */
} hl_density_accuracy;
HL_API hl_density_accuracy hl_density_get_accuracy(const hl_density *model);
/* Set the solver to the method, the tolerance and the number of even steps, if any, that take the fewest evaluations of the
 * network for 99 % of the rows within `accuracy` nats (0: 5e-4) of the exact log p of the model, and none farther than 20 times that. At most 256 of the rows are looked at, and
 * 16 more with one value ten deviations away. HL_IMPRECISE: none gets there, and the solver is as before. The choice does not
 * depend on the machine. For continuous flows only: HL_ERR_UNSUPPORTED. */
HL_API hl_status hl_density_calibrate(hl_density *model, size_t rows, const double *x, const double *context,
                                      double accuracy);
/* The course of the flow's training, in the units of the data, as hl_density_fit left it and the model's file keeps it: *count points, or NULL
 * and 0 if it is not known or no flow was trained. With atoms, that of the most frequent pattern that has a flow. Borrowed from the model. */
HL_API const hl_training_point *hl_density_course(const hl_density *model, size_t *count);
/* Any text about the model, kept in its file; "" at first. Copied. */
HL_API hl_status hl_density_set_note(hl_density *model, const char *note);
HL_API const char *hl_density_note(const hl_density *model);

/* Model files: safetensors, with everything but the values in the header's metadata. Written atomically. */
HL_API hl_status hl_density_save(const hl_density *model, const char *path);
HL_API hl_status hl_density_load(hl_context *context, const char *path, hl_density **model);
/* The bytes of the model's file in memory. *size receives their number; they are written if `capacity` is at least that,
 * otherwise nothing is, and `bytes` may be NULL. */
HL_API hl_status hl_density_write(const hl_density *model, void *bytes, size_t capacity, size_t *size);
/* A model from these bytes, which are copied. */
HL_API hl_status hl_density_read(hl_context *context, const void *bytes, size_t size, hl_density **model);

/* Log-density of each row: x is rows x dim, context rows x context (NULL if there is none). A row that is not finite, or that a model of a
 * flow alone cannot solve, gets NaN, and the status says why the first of them failed. Where the flow cannot be solved but other members are
 * finite, as far from all data, log p is that of the others; HL_IMPRECISE then, if there is no failure, names the first such row. It is
 * also the status if the solver's tolerance is too fine for float32 (hl_flow_logp), of no row in particular. Outside of declared bounds log p is
 * -infinity, which is no failure. */
HL_API hl_status hl_density_logp(hl_density *model, size_t rows, const double *x, const double *context, double *logp);
/* The same of one member by itself, without its weight: its responsibility for a row is weight . p_member / p. */
HL_API hl_status hl_density_member_logp(hl_density *model, size_t member, size_t rows, const double *x,
                                        const double *context, double *logp);
/* The gradient of log p with respect to x, rows x dim, and, unless it is NULL, to the context, in the units of the data; log p as well,
 * unless it is NULL. A flow is solved once more for it. 0 along columns that are at their atoms. Failures as above. */
HL_API hl_status hl_density_logp_gradient(hl_density *model, size_t rows, const double *x, const double *context,
                                          double *logp, double *gradient, double *context_gradient);
/* Rows first .. first + rows - 1 of the samples with this seed, to x, each by itself: which others are drawn makes no
 * difference. Failures as above. */
HL_API hl_status hl_density_sample(hl_density *model, uint64_t seed, size_t first, size_t rows, const double *context,
                                   double *x);
/* From the units of the data to what the flow sees, in place; x or context may be NULL. */
HL_API void hl_density_standardise(const hl_density *model, size_t rows, double *x, double *context);
/* And back, of x alone. */
HL_API void hl_density_unstandardise(const hl_density *model, size_t rows, double *x);

/* A checkpoint of a fit: its state, and a text of settings that must be the same when it is read. */
HL_API hl_status hl_fit_save(const hl_fit *fit, const char *settings, const char *path);
HL_API hl_status hl_fit_load(hl_fit *fit, const char *settings, const char *path);

#ifdef __cplusplus
}
#endif

#endif
