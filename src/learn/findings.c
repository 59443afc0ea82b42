/* findings.c - what hl_density_fit found and how it ended, in words. Options are named as "option dequantize", for programs and bindings to
 * show as their users write them. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "hollow/density_fit.h"
#include "learn/column_form.h"

#define NAME(names, k) ((size_t)(k) < sizeof names / sizeof *names ? names[k] : NULL)

const char *hl_finding_name(hl_finding_kind kind)
{
    static const char *const names[] = { "constant", "scale",  "integer",    "tied", "far", "dependent",
                                         "repeated", "copies", "duplicates", "edge", "atom" };
    return NAME(names, kind);
}

const char *hl_density_verdict_name(hl_density_verdict verdict)
{
    static const char *const names[] = { "good", "normal", "normal is better", "failed", "diverged", "not validated" };
    return NAME(names, verdict);
}

const char *hl_density_end_name(hl_density_end end)
{
    static const char *const names[] = { "done", "patience", "time", "stopped", "error", "behind" };
    return NAME(names, end);
}

static void dependent_text(const hl_finding *f, const char *const *names, char *buffer, size_t size)
{
    char list[400];
    hl_text text = hl_text_start(list, sizeof list);
    for (size_t i = 0; i < f->count && i < HL_FINDING_OTHERS; i++)
        hl_text_add(&text, "%s'%.80s'", i ? ", " : "", names[f->others[i]]);
    snprintf(buffer, size,
             "column '%.80s' is a linear function of %s%s: the rows lie in a subspace, so the likelihood is unbounded; "
             "leave one of these columns out",
             names[f->column], list, f->count > HL_FINDING_OTHERS ? " and others" : "");
}

static void edge_text(const hl_finding *f, const char *name, char *buffer, size_t size)
{
    char low[40] = "", high[40] = "";
    if (isfinite(f->low))
        snprintf(low, sizeof low, "%g", f->low);
    if (isfinite(f->high))
        snprintf(high, sizeof high, "%g", f->high);
    snprintf(buffer, size,
             "column '%.80s' has no value %s %g and many near it; option bounds '%.80s=%s:%s' keeps samples in this "
             "range",
             name, isfinite(f->low) ? "below" : "above", f->value, name, low, high);
}

/* Whole numbers, or values that repeat. */
static void steps_text(const hl_finding *f, const char *name, char *buffer, size_t size)
{
    char range[80] = "";
    if (f->count <= HL_FORM_FEW_VALUES)
        snprintf(range, sizeof range, " and kept in %g .. %g", f->low, f->high);
    else if (f->low == 0 || f->low == 1)
        snprintf(range, sizeof range, " and not below %g", f->low);
    if (f->noise)
        snprintf(buffer, size,
                 "column '%.80s' has whole numbers only: it is modelled with uniform noise of one step's width, and "
                 "samples are rounded%s (option keep-steps: without noise)",
                 name, range);
    else
        snprintf(buffer, size,
                 "column '%.80s' %s; the likelihood of such data has no bound: option dequantize adds noise of one "
                 "step's width",
                 name, f->kind == HL_FINDING_INTEGER ? "has whole numbers only" : "repeats its values");
}

const char *hl_finding_text(const hl_finding *f, const char *const *names, char *buffer, size_t size)
{
    if (!buffer || !size)
        return "";
    *buffer = '\0';
    if (!f || !names)
        return buffer;
    const char *name = f->kind == HL_FINDING_COPIES || f->kind == HL_FINDING_DUPLICATES ? "" : names[f->column];
    switch (f->kind) {
    case HL_FINDING_CONSTANT:
        snprintf(buffer, size, "column '%.80s' is constant (%g) and has no density", name, f->value);
        break;
    case HL_FINDING_SCALE:
        snprintf(buffer, size, "column '%.80s' is too %s to compute with: its values are in %g .. %g; rescale it", name,
                 f->value < 1 ? "small" : "large", f->low, f->high);
        break;
    case HL_FINDING_INTEGER:
    case HL_FINDING_TIED:
        steps_text(f, name, buffer, size);
        break;
    case HL_FINDING_FAR:
        snprintf(buffer, size,
                 "column '%.80s': %g is far from the other values, half of which are in %g .. %g%s; what is an error "
                 "should be corrected, and a column with such tails is better modelled as its asinh or logarithm",
                 name, f->value, f->low, f->high, f->count > 1 ? ", and so are others of this column" : "");
        break;
    case HL_FINDING_DEPENDENT:
        dependent_text(f, names, buffer, size);
        break;
    case HL_FINDING_REPEATED:
        snprintf(buffer, size,
                 "column '%.80s' has the value %g in %zu rows, where the likelihood has no bound; leave these rows out "
                 "and count them apart, or add noise as large as the values' errors",
                 name, f->value, f->count);
        break;
    case HL_FINDING_COPIES:
        snprintf(buffer, size,
                 "%zu validation rows, %.3g %%, equal a row of training: validation is better than the model is; "
                 "leave copies out, or give other rows for validation",
                 f->count, 100 * f->value);
        break;
    case HL_FINDING_DUPLICATES:
        snprintf(
            buffer, size,
            "rows that are copies of others: %zu (%.3g %%). Equal rows are used as one row of their total weight, so "
            "that none is both in training and in validation; leave copies out if they are errors",
            f->count, 100 * f->value);
        break;
    case HL_FINDING_EDGE:
        edge_text(f, name, buffer, size);
        break;
    case HL_FINDING_ATOM:
        snprintf(
            buffer, size,
            "column '%.80s' has the value %g in %zu rows: it is an atom, with a probability of its own (option atoms "
            "off: it is not)",
            name, f->value, f->count);
        break;
    }
    return buffer;
}
