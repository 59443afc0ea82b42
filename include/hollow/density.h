/* hollow/density.h - density models of tables.
 *
 *     hl_density_load(ctx, "m.hollow", &model);
 *     hl_density_logp(model, rows, x, NULL, logp);        log-densities in nats, in the units of the data
 *     hl_density_sample(model, seed, 0, rows, NULL, x);   rows drawn from the model, in the same units
 *
 * Results are bitwise reproducible. They do not depend on the other rows of a call or on the number of threads. */
#ifndef HOLLOW_DENSITY_H
#define HOLLOW_DENSITY_H

#include "hollow/fit.h"
#include "hollow/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_density hl_density; /* opaque */

/* ---- columns ---- */

/* A column: x_standard = (x - mean) / deviation. If its range has a form (hl_density_range), x is transformed by it first. The name is
 * UTF-8 of at most 255 bytes. */
typedef struct hl_density_column {
    const char *name;
    double mean, deviation; /* deviation > 0 */
} hl_density_column;

/* Create a model of one flow with all parameters 0. `columns` holds the dim columns, then those of the context. Copies. */
HL_API hl_status hl_density_create(hl_context *context, const hl_flow_spec *flow, const hl_density_column *columns,
                                   hl_density **model);
HL_API void hl_density_free(hl_density *model); /* takes NULL */
HL_API size_t hl_density_dim(const hl_density *model);
HL_API size_t hl_density_context(const hl_density *model);
/* A column of x or, if index >= dim, of the context. Borrowed until the model is freed. */
HL_API hl_density_column hl_density_get_column(const hl_density *model, size_t index);
/* The support of a column, kept in the model file. */
typedef struct hl_density_range {
    /* Transformation of the column: "none"; with bounds "log", "soft" (logarithmic at the bound, linear far from it) or "logit"; "asinh"
     * for a column with extreme values. Mean and deviation of the column are those of the transformed values. */
    const char *form;
    /* Bounds, or infinities. log p is -infinity outside, and samples stay inside. */
    double low, high;
    /* Samples are rounded to multiples of this. 0: no rounding. */
    double step;
    /* Limits of rounded samples, or infinities; log p does not depend on them. For an integer column with at most 20 distinct values they
     * are the range of the training rows; for another integer column whose minimum is 0 or 1, `least` is that minimum. */
    double least, most;
} hl_density_range;
HL_API hl_density_range hl_density_get_range(const hl_density *model, size_t column);
/* Nonzero (default): round samples of columns that have a step. 0: do not round. */
HL_API void hl_density_set_rounding(hl_density *model, int on);
/* A categorical column of the context, encoded as indicator columns: column `column` + k - 1 of the context is 1 for labels[k], k > 0, and
 * its name is, for example, "city=Paris". labels[0] is the reference category and has no column. The model file keeps the encoding, so
 * that programs can encode new texts in the same way. */
typedef struct hl_category {
    const char *name; /* name of the categorical column */
    size_t column;    /* its first indicator column in the context, from 0 */
    size_t count;     /* number of labels, at least 2 */
    const char *const *labels;
} hl_category;
HL_API hl_status hl_density_set_categories(hl_density *model, size_t count, const hl_category *categories); /* copies */
HL_API size_t hl_density_categories(const hl_density *model);
/* Borrowed until the categories are set again or the model is freed. */
HL_API hl_category hl_density_get_category(const hl_density *model, size_t index);
/* Decorrelation: the flow models u with y = L u instead of the standardised columns y. L (dim x dim) is lower triangular with a positive
 * diagonal, such as the Cholesky factor of the correlation matrix. NULL (default): the flow models y. Copies; the upper triangle is not
 * read. */
HL_API hl_status hl_density_set_factor(hl_density *model, const double *factor);
/* L, or NULL. Borrowed until it is set again or the model is freed. */
HL_API const double *hl_density_factor(const hl_density *model);

/* ---- members and atoms ---- */

/* The flow, on standardised or mapped columns; NULL if the model has none. Borrowed until the model is freed. */
HL_API hl_flow *hl_density_flow(const hl_density *model);

/* A model is a weighted sum of members: at most one flow, which comes first, and mixtures of Student's t distributions. A member models the
 * standardised columns, or columns mapped by monotone functions, fitted to each column, that make them nearly normal. */
typedef enum hl_member_kind { HL_MEMBER_FLOW = 0, HL_MEMBER_MIXTURE } hl_member_kind;
typedef struct hl_density_member {
    hl_member_kind kind;
    int mapped;    /* nonzero: models mapped columns */
    double weight; /* the weights of all members add up to 1 */
    size_t parts;  /* number of components of a mixture */
    double nu;     /* degrees of freedom of the components; 0: normal components */
} hl_density_member;
HL_API size_t hl_density_members(const hl_density *model);
HL_API hl_density_member hl_density_get_member(const hl_density *model, size_t index);
/* Atoms are values that a column takes with positive probability, such as the zeros of a zero-inflated column. A model with atoms has no
 * members. The pattern of a row says which of its columns equal their atoms, and log p = log P(pattern) + log p(other columns | pattern).
 * This is a density with respect to the product over columns of Lebesgue measure plus a point mass at the atom.
 *
 * A pattern that occurred in training: */
typedef struct hl_density_pattern {
    double probability;
    size_t atoms;           /* number of columns at their atoms */
    const hl_density *rest; /* density of the other columns; NULL: they are independent, or there are none */
} hl_density_pattern;
HL_API size_t hl_density_patterns(const hl_density *model); /* 0: no atoms */
HL_API hl_density_pattern hl_density_get_pattern(const hl_density *model, size_t index);
/* Nonzero if the column has an atom. If value is not NULL, *value receives it. */
HL_API int hl_density_get_atom(const hl_density *model, size_t column, double *value);

/* ---- solver ---- */

/* Solver settings for log p and samples, kept in the model file. NULL: the defaults. The trace is always exact. */
HL_API hl_status hl_density_set_solver(hl_density *model, const hl_flow_solver *solver);
HL_API hl_flow_solver hl_density_solver(const hl_density *model);

/* The solver error of log p, as measured by hl_density_calibrate. The model file keeps it until the solver is set again. All 0: not
 * measured. */
typedef struct hl_density_accuracy {
    double typical;     /* nats; the error of 99 % of the rows is smaller */
    double worst;       /* largest error of all rows, including some at ten standard deviations */
    double evaluations; /* evaluations of the network per row */
} hl_density_accuracy;
HL_API hl_density_accuracy hl_density_get_accuracy(const hl_density *model);
/* Choose the solver: the method, tolerance and number of even steps with the fewest evaluations for which 99 % of the rows are within
 * `accuracy` nats (0: 5e-4) of the exact log p and no row is farther than 20 times that. Uses at most 256 of the rows, and 16 more with one
 * value ten standard deviations away. The choice does not depend on the machine.
 *
 * Returns HL_IMPRECISE if no solver is accurate enough; the solver is then unchanged. Returns HL_ERR_UNSUPPORTED unless the model has a
 * continuous flow. */
HL_API hl_status hl_density_calibrate(hl_density *model, size_t rows, const double *x, const double *context,
                                      double accuracy);

/* ---- files ---- */

/* The training history of the flow, in the units of the data, as recorded by hl_density_fit and kept in the model file. *count receives the
 * number of points; NULL and 0 if no flow was trained or the history is unknown. With atoms: that of the most frequent pattern that has a
 * flow. Borrowed from the model. */
HL_API const hl_training_point *hl_density_course(const hl_density *model, size_t *count);
/* An arbitrary text, kept in the model file; initially "". Copied. */
HL_API hl_status hl_density_set_note(hl_density *model, const char *note);
HL_API const char *hl_density_note(const hl_density *model);

/* Model files in safetensors format, with everything except tensors in the metadata. Files are replaced atomically. */
HL_API hl_status hl_density_save(const hl_density *model, const char *path);
HL_API hl_status hl_density_load(hl_context *context, const char *path, hl_density **model);
/* Write the contents of the model file to memory. *size receives the number of bytes. If `capacity` is less than that, nothing is
 * written and `bytes` may be NULL. */
HL_API hl_status hl_density_write(const hl_density *model, void *bytes, size_t capacity, size_t *size);
/* Create a model from these bytes. Copies. */
HL_API hl_status hl_density_read(hl_context *context, const void *bytes, size_t size, hl_density **model);

/* ---- evaluation ---- */

/* Log-density of each row. x is rows x dim, context is rows x context (NULL if there is none).
 *
 * A row that is not finite gets NaN. So does a row that cannot be solved, if the model is a flow only. The status is then that of the first
 * such row. If the flow cannot be solved but other members are finite, as happens far from all data, log p is that of the other
 * members; if nothing else failed, the status is HL_IMPRECISE and the message names the first such row. HL_IMPRECISE without a row means that
 * the solver's tolerance is too fine for float32 (see hl_flow_logp). Outside of declared bounds log p is -infinity, which is not an error. */
HL_API hl_status hl_density_logp(hl_density *model, size_t rows, const double *x, const double *context, double *logp);
/* Log-density of one member, without its weight. The responsibility of a member for a row is weight . p_member / p. */
HL_API hl_status hl_density_member_logp(hl_density *model, size_t member, size_t rows, const double *x,
                                        const double *context, double *logp);
/* Gradient of log p with respect to x (rows x dim) and context (rows x context; may be NULL), in the units of the data. logp may be
 * NULL. A flow is solved a second time for the gradient. The gradient is 0 for columns at their atoms. Failures as in hl_density_logp. */
HL_API hl_status hl_density_logp_gradient(hl_density *model, size_t rows, const double *x, const double *context,
                                          double *logp, double *gradient, double *context_gradient);
/* Draw samples number first .. first + rows - 1 of this seed. A sample does not depend on which others are drawn. Failures as in
 * hl_density_logp. */
HL_API hl_status hl_density_sample(hl_density *model, uint64_t seed, size_t first, size_t rows, const double *context,
                                   double *x);
/* Convert from the units of the data to the input of the flow, in place. x or context may be NULL. */
HL_API void hl_density_standardise(const hl_density *model, size_t rows, double *x, double *context);
/* Convert x back to the units of the data. */
HL_API void hl_density_unstandardise(const hl_density *model, size_t rows, double *x);

/* Checkpoints of hl_fit: its state and a text of settings. Loading fails if the settings differ. */
HL_API hl_status hl_fit_save(const hl_fit *fit, const char *settings, const char *path);
HL_API hl_status hl_fit_load(hl_fit *fit, const char *settings, const char *path);

#ifdef __cplusplus
}
#endif

#endif
