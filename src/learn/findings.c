/* findings.c - findings and outcomes of hl_density_fit as sentences. Options are named as "option dequantize", for programs and bindings to
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
             "drop one of these columns",
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
             "column '%.80s' has no value %s %g but many close to it; if it is bounded, option bounds '%.80s=%s:%s' "
             "keeps samples in this range",
             name, isfinite(f->low) ? "below" : "above", f->value, name, low, high);
}

/* Is a column with this value modelled through asinh (hl_column_form_choose)? From 1000 deviations on, 1.349 of which are
 * between the quartiles. */
static bool is_asinh(const hl_finding *f)
{
    double middle = 0.5 * (f->low + f->high);
    return fabs(f->value - middle) > 743 * (f->high - f->low);
}

/* Whole numbers, or values that repeat. */
static void steps_text(const hl_finding *f, const char *name, char *buffer, size_t size)
{
    char range[80] = "", values[80] = "integer values";
    bool whole = f->kind == HL_FINDING_INTEGER;
    if (!whole)
        snprintf(values, sizeof values, "only %zu distinct values, on a grid", f->count);
    if (whole && f->count <= HL_FORM_FEW_VALUES)
        snprintf(range, sizeof range, " and limited to %g .. %g", f->low, f->high);
    else if (whole && (f->low == 0 || f->low == 1))
        snprintf(range, sizeof range, " and limited to at least %g", f->low);
    if (f->noise > 0)
        snprintf(buffer, size,
                 "column '%.80s' has %s: uniform noise of width one step is added, and samples are "
                 "rounded%s (option keep-steps: no noise)",
                 name, values, range);
    else if (f->noise < 0)
        snprintf(buffer, size,
                 "column '%.80s' has %s, so the likelihood is unbounded; without option keep-steps uniform noise of "
                 "width one step is added",
                 name, values);
    else
        snprintf(buffer, size,
                 "column '%.80s' has many repeated values, so the likelihood is unbounded; option dequantize (without "
                 "option keep-steps) adds uniform noise of width one step",
                 name);
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
        snprintf(buffer, size, "column '%.80s' is too %s: its values are in %g .. %g; rescale it", name,
                 f->value < 1 ? "small" : "large", f->low, f->high);
        break;
    case HL_FINDING_INTEGER:
    case HL_FINDING_TIED:
        steps_text(f, name, buffer, size);
        break;
    case HL_FINDING_FAR:
        snprintf(buffer, size,
                 "column '%.80s': %g is far from the other values, half of which are in %g .. %g%s; correct it if it "
                 "is an error%s",
                 name, f->value, f->low, f->high, f->count > 1 ? ", as are other values of this column" : "",
                 is_asinh(f) ? "; the column is modelled through asinh"
                             : "; otherwise transform the column by asinh or log");
        break;
    case HL_FINDING_DEPENDENT:
        dependent_text(f, names, buffer, size);
        break;
    case HL_FINDING_REPEATED:
        snprintf(buffer, size,
                 "column '%.80s' has the value %g in %zu rows, so the likelihood is unbounded; model these rows "
                 "separately, or add noise of the size of the measurement error",
                 name, f->value, f->count);
        break;
    case HL_FINDING_COPIES:
        snprintf(buffer, size,
                 "%zu validation rows (%.3g %%) equal a training row, so validation is too optimistic; remove "
                 "duplicates or use other validation rows",
                 f->count, 100 * f->value);
        break;
    case HL_FINDING_DUPLICATES:
        snprintf(buffer, size,
                 "duplicate rows: %zu (%.3g %%). Equal rows are treated as one row with their total weight and are "
                 "never split between training and validation; remove duplicates if they are errors",
                 f->count, 100 * f->value);
        break;
    case HL_FINDING_EDGE:
        edge_text(f, name, buffer, size);
        break;
    case HL_FINDING_ATOM:
        snprintf(buffer, size,
                 "column '%.80s' has the value %g in %zu rows: it is modelled as an atom with its own probability "
                 "(option atoms off disables this)",
                 name, f->value, f->count);
        break;
    }
    return buffer;
}
