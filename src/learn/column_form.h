/* column_form.h - the outermost map of a column, from its values to all real numbers, and the grid of its values.
 *
 *   none    v = x
 *   log     v = log(x - low), or -log(high - x)
 *   soft    v = log(e^u - 1), u = (x - low) / scale, or the negative of that with u = (high - x) / scale: linear far from the bound
 *   logit   v = log((x - low) / (high - x))
 *   asinh   v = asinh((x - centre) / scale)
 *
 * Bounds belong to the interval: a value that equals one is taken for the value at the distance `edge` from it, so that it has a finite v. */
#ifndef HL_LEARN_COLUMN_FORM_H
#define HL_LEARN_COLUMN_FORM_H

#include "base/base.h"

typedef enum hl_form_kind { HL_FORM_NONE = 0, HL_FORM_LOG, HL_FORM_SOFT, HL_FORM_LOGIT, HL_FORM_ASINH } hl_form_kind;
extern const char *const hl_form_names[]; /* by kind; ends with NULL */

typedef struct hl_column_form {
    hl_form_kind kind;
    double low, high;     /* bounds, or infinities */
    double centre, scale; /* of soft and asinh */
    double edge;          /* > 0 with bounds */
    double origin, step;  /* values are origin + k step; step 0: any. Draws are rounded to these */
    double least, most;   /* rounded draws are not beyond these, though log p is finite there; or infinities */
} hl_column_form;

/* A form that leaves values as they are. */
hl_column_form hl_column_form_none(void);
/* Are the values ones that a form can have? For forms that come from a file. */
bool hl_column_form_valid(const hl_column_form *form);
bool hl_column_form_is_none(const hl_column_form *form);
/* v, log dv/dx and the derivative of that, the last two unless they are NULL. Outside of the bounds v is NaN and the log slope -infinity; where x
 * is not finite all are NaN. */
double hl_column_form_forward(const hl_column_form *form, double x, double *log_slope, double *curve);
/* x from v, inside the bounds. */
double hl_column_form_inverse(const hl_column_form *form, double v);
/* The value of the grid, inside the bounds, that is nearest to x. */
double hl_column_form_round(const hl_column_form *form, double x);

/* Samples of columns on a grid, such as ratings, stay in the range of the data if they have at most this many distinct values. */
enum { HL_FORM_FEW_VALUES = 20 };
/* Limits of samples: of few values on a grid, or of few whole numbers, both; of other whole numbers the lower one if the least value is 0 or 1. Origin and step of a column's grid, where more than 1 % of the values are repetitions: the largest 1, 2 or 5 times a power of ten of which all
 * values are multiples, or the least distance of two values if that is more and all distances are multiples of it. Step 0: no grid. Uses `work`, which has
 * room for all values. */
hl_column_form hl_column_grid(size_t rows, const double *x, size_t stride, double *work);

/* Choose a form for the values of training rows, which are inside `bounds` (low and high; the rest is ignored): by the density of one half of the
 * rows for the other. Without bounds, asinh if a value is more than 1000 deviations, by quartiles, away; else none. */

hl_status hl_column_form_choose(hl_context *ctx, size_t rows, const double *x, size_t stride, double low, double high,
                                hl_column_form *form);

#endif
