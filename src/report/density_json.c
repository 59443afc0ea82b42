/* density_json.c - the numbers of hl_density_report as JSON, under the names of its members. */
#include <math.h>

#include "report/report.h"

void hl_report_put_real(hl_json_writer *w, const char *key, double value)
{
    if (isfinite(value))
        hl_json_put_real(w, key, value);
    else
        hl_json_put_null(w, key);
}

void hl_report_put_count(hl_json_writer *w, const char *key, size_t value)
{
    hl_json_put_integer(w, key, (int64_t)value);
}

void hl_report_put_mean(hl_json_writer *w, const char *key, hl_report_mean mean)
{
    hl_json_open(w, key, '{');
    hl_report_put_real(w, "value", mean.value);
    hl_report_put_real(w, "error", mean.error);
    hl_json_close(w, '}');
}

void hl_report_put_array(hl_json_writer *w, const char *key, size_t count, const double *values)
{
    hl_json_open(w, key, '[');
    for (size_t i = 0; i < count; i++)
        hl_report_put_real(w, NULL, values[i]);
    hl_json_close(w, ']');
}

static void put_column(hl_json_writer *w, const hl_report_column *c)
{
    hl_json_open(w, NULL, '{');
    hl_json_put_text(w, "name", c->name);
    hl_report_put_count(w, "column", c->column);
    hl_report_put_real(w, "distance", c->distance);
    hl_report_put_real(w, "p", c->p);
    hl_report_put_real(w, "wasserstein", c->wasserstein);
    hl_report_put_array(w, "mean", 2, c->mean);
    hl_report_put_array(w, "deviation", 2, c->deviation);
    hl_report_put_array(w, "least", 2, c->least);
    hl_report_put_array(w, "largest", 2, c->largest);
    hl_report_put_real(w, "outside", c->outside);
    hl_report_put_real(w, "tied", c->tied);
    hl_report_put_real(w, "low", c->low);
    hl_report_put_real(w, "high", c->high);
    hl_report_put_array(w, "data", HL_REPORT_BINS, c->bin[0]);
    hl_report_put_array(w, "draws", HL_REPORT_BINS, c->bin[1]);
    hl_json_close(w, '}');
}

static void put_row(hl_json_writer *w, const hl_report *r, const hl_report_row *row)
{
    hl_json_open(w, NULL, '{');
    hl_report_put_count(w, "row", row->row + 1);
    hl_report_put_real(w, "logp", row->logp);
    hl_json_open(w, "causes", '[');
    for (size_t k = 0; k < row->causes; k++) {
        hl_json_open(w, NULL, '{');
        hl_json_put_text(w, "column", r->name[row->column[k]]);
        hl_report_put_real(w, "gain", row->gain[k]);
        hl_report_put_real(w, "expected", row->expected[k]);
        hl_report_put_real(w, "slope", row->slope[k]);
        hl_json_close(w, '}');
    }
    hl_json_close(w, ']');
    hl_json_close(w, '}');
}

static void put_members(hl_json_writer *w, const hl_report *r)
{
    hl_json_open(w, "members", '[');
    for (size_t i = 0; i < r->members; i++) {
        const hl_density_member *m = &r->member[i];
        hl_json_open(w, NULL, '{');
        hl_json_put_text(w, "kind", m->kind == HL_MEMBER_FLOW ? "flow" : "mixture");
        hl_report_put_real(w, "weight", m->weight);
        hl_json_put_boolean(w, "mapped", m->mapped);
        hl_report_put_count(w, "parts", m->parts);
        hl_report_put_real(w, "nu", m->nu);
        hl_json_close(w, '}');
    }
    hl_json_close(w, ']');
}

static void put_rows_as_a_whole(hl_json_writer *w, const hl_density_report *d)
{
    hl_json_open(w, "distance", '{');
    hl_report_put_count(w, "rows", d->distance.rows);
    hl_report_put_real(w, "distance", d->distance.distance);
    hl_report_put_real(w, "halves", d->distance.halves);
    hl_report_put_real(w, "share", d->distance.share);
    hl_report_put_real(w, "p", d->distance.p);
    hl_json_close(w, '}');
    hl_json_open(w, "rank", '{');
    hl_report_put_real(w, "distance", d->rank_distance);
    hl_report_put_real(w, "p", d->rank_p);
    hl_report_put_real(w, "band", d->band);
    hl_report_put_real(w, "unlikely", d->unlikely);
    hl_report_put_real(w, "unseen", d->unseen);
    if (isfinite(d->rank_distance))
        hl_report_put_array(w, "level", HL_REPORT_GRID, d->rank);
    hl_json_close(w, '}');
    hl_report_put_real(w, "memorised", d->memorised);
    hl_report_put_real(w, "memorised_p", d->memorised_p);
    if (!d->base_rows)
        return;
    hl_json_open(w, "base", '{');
    hl_report_put_count(w, "rows", d->base_rows);
    hl_report_put_real(w, "distance", d->base_distance);
    hl_report_put_real(w, "p", d->base_p);
    hl_report_put_count(w, "column", d->base_column);
    hl_json_close(w, '}');
}

static void put_solver(hl_json_writer *w, const hl_density_report *d)
{
    hl_json_open(w, "tolerances", '[');
    for (size_t k = 0; k < d->tolerances; k++) {
        const hl_report_tolerance *t = &d->tolerance[k];
        hl_json_open(w, NULL, '{');
        hl_report_put_real(w, "rtol", t->rtol);
        hl_report_put_real(w, "logp", t->logp);
        hl_report_put_real(w, "change", t->change);
        hl_report_put_real(w, "largest", t->largest);
        hl_report_put_real(w, "evaluations", t->evaluations);
        hl_json_close(w, '}');
    }
    hl_json_close(w, ']');
    hl_report_put_array(w, "evaluations", d->evaluation_rows, d->evaluations);
}

void hl_density_put_json(const hl_report *r, hl_json_writer *w)
{
    const hl_density_report *d = &r->density;
    hl_report_put_count(w, "total", d->total);
    hl_report_put_count(w, "rows", d->rows);
    hl_report_put_count(w, "failed", d->failed);
    hl_report_put_count(w, "draws", d->draws);
    hl_report_put_count(w, "failed_draws", d->failed_draws);
    hl_report_put_count(w, "dim", d->dim);
    hl_report_put_count(w, "context", d->context);
    hl_report_put_count(w, "parameters", d->parameters);
    hl_report_put_mean(w, "logp", d->logp);
    hl_report_put_mean(w, "draws_logp", d->draws_logp);
    hl_report_put_mean(w, "over_independent", d->over_independent);
    hl_report_put_mean(w, "over_normal", d->over_normal);
    hl_report_put_mean(w, "over_mixture", d->over_mixture);
    hl_json_put_boolean(w, "mixture_member", d->mixture_member);
    put_members(w, r);
    put_rows_as_a_whole(w, d);
    hl_json_open(w, "columns", '[');
    for (size_t i = 0; i < d->columns; i++)
        put_column(w, &d->column[i]);
    hl_json_close(w, ']');
    for (size_t k = 0; k < 2; k++)
        hl_report_put_array(w, k ? "correlation_draws" : "correlation_data", d->columns * d->columns,
                            d->correlation[k]);
    hl_json_open(w, "worst", '[');
    for (size_t k = 0; k < d->worst; k++)
        put_row(w, r, &d->row[k]);
    hl_json_close(w, ']');
    put_solver(w, d);
    hl_report_put_count(w, "known", d->known);
    hl_report_put_count(w, "trained", d->trained);
    hl_report_put_count(w, "train_rows", d->train_rows);
    hl_report_put_training(d->courses, d->course, "training", w);
}
