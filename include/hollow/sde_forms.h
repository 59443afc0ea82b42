/* hollow/sde_forms.h - drift and diffusion as expressions with unknown constants.
 *
 *     hl_sde_forms_parse(ctx, 1, NULL, "x1 = kappa*(theta - x1)", "x1 = sigma*sqrt(x1)", &forms);
 *     hl_sde_forms_fit(forms, &(hl_sde_data){ .rows = n, .t = t, .x = x, .trajectory = id }, NULL);
 *     constant = hl_sde_forms_constant(forms, 0);      name, estimate and standard error of kappa
 *     hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .forms = forms }, &sde);
 *
 *   list   = item {";" item}              item  = column "=" sum
 *   sum    = term {("+" | "-") term}      term  = factor {("*" | "/") factor}
 *   factor = ("+" | "-") factor | primary ["^" factor]
 *   primary = number | column | time | pi | constant | function "(" sum ")" | "(" sum ")"
 *
 * Functions are exp, log, sqrt, sin, cos, tan, tanh and abs. Any other name is an unknown constant. */
#ifndef HOLLOW_SDE_FORMS_H
#define HOLLOW_SDE_FORMS_H

#include "hollow/sde_regress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parse expressions. Either text may be NULL. `names` are the names of the columns, then of time (dim + 1); NULL: x1, x2, ..., t. Returns
 * HL_ERR_INVALID for a syntax error; the message contains its position and what was expected. */
HL_API hl_status hl_sde_forms_parse(hl_context *context, size_t dim, const char *const *names, const char *drift,
                                    const char *diffusion, hl_sde_forms **forms);
HL_API void hl_sde_forms_free(hl_sde_forms *forms);              /* takes NULL */
HL_API size_t hl_sde_forms_constants(const hl_sde_forms *forms); /* number of constants; takes NULL */
/* Nonzero if drift (part 0) or diffusion (part 1) of a column has an expression. */
HL_API int hl_sde_forms_has(const hl_sde_forms *forms, int part, size_t column);

/* The text of drift (part 0) or diffusion (part 1), or NULL. Borrowed until the forms are freed. */
HL_API const char *hl_sde_forms_source(const hl_sde_forms *forms, int part);

typedef struct hl_sde_constant {
    const char *name; /* borrowed until the forms are freed */
    double value;     /* initially 1 */
    double error;     /* standard error; 0: not estimated */
} hl_sde_constant;
/* A constant by its number, from 0; all zeros if there is no such constant. */
HL_API hl_sde_constant hl_sde_forms_constant(const hl_sde_forms *forms, size_t number);
HL_API hl_status hl_sde_forms_set(hl_sde_forms *forms, size_t number, double value);

/* Evaluate f and g in the user's units (rows x dim; either may be NULL). Columns without expression are NaN. */
HL_API hl_status hl_sde_forms_eval(const hl_sde_forms *forms, size_t rows, const double *t, const double *x, double *f,
                                   double *g);

/* Estimate the constants by Gauss-Newton steps on the conditions of hl_sde_regress. Parts without expression are estimated together with them,
 * in the dictionary chosen by the options. Standard errors are computed from the variation of the conditions between groups of trajectories
 * (rows of snapshots, blocks of time); they are valid if the expressions are right. HL_ERR_NO_SOLUTION if the constants are not
 * identifiable. */
HL_API hl_status hl_sde_forms_fit(hl_sde_forms *forms, const hl_sde_data *data, const hl_sde_regress_options *options);

#ifdef __cplusplus
}
#endif

#endif
