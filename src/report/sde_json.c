/* sde_json.c - the numbers of hl_sde_report as JSON. */
#include "report/report.h"

static void put_equation(hl_json_writer *w, const hl_report_equation *e)
{
    hl_json_open(w, NULL, '{');
    hl_json_put_text(w, "name", e->name);
    hl_report_put_real(w, "noise", e->noise);
    hl_report_put_real(w, "noise_error", e->noise_error);
    hl_report_put_real(w, "drift_left", e->drift_left);
    hl_report_put_real(w, "drift_p", e->drift_p);
    hl_json_open(w, "cells", '[');
    for (size_t k = 0; k < e->cells; k++) {
        const hl_report_cell *c = &e->cell[k];
        hl_json_open(w, NULL, '{');
        hl_report_put_real(w, "x", c->x);
        hl_report_put_count(w, "steps", c->steps);
        hl_report_put_array(w, "measured", 2, c->measured);
        hl_report_put_array(w, "error", 2, c->error);
        hl_report_put_array(w, "made", 2, c->made);
        hl_report_put_array(w, "model", 2, c->model);
        hl_json_close(w, '}');
    }
    hl_json_close(w, ']');
    hl_json_close(w, '}');
}

void hl_sde_put_json(const hl_report *r, hl_json_writer *w)
{
    const hl_sde_report *s = &r->sde;
    size_t quantiles = s->dim * HL_REPORT_QUANTILES;
    hl_report_put_count(w, "rows", s->rows);
    hl_report_put_count(w, "dim", s->dim);
    hl_report_put_count(w, "trajectories", s->trajectories);
    hl_report_put_count(w, "steps", s->steps);
    hl_report_put_mean(w, "logp", s->logp);
    hl_json_put_text(w, "answer", hl_answer_name(s->verdict.answer));
    hl_report_put_real(w, "density", s->verdict.density);
    hl_report_put_real(w, "simulated", s->verdict.simulated);
    hl_report_put_real(w, "unexplained", s->verdict.unexplained);
    hl_report_put_real(w, "speed", s->verdict.speed);
    hl_json_open(w, "tests", '{');
    for (size_t i = 0; i < HL_RESIDUAL_TESTS && s->verdict.steps; i++) {
        hl_json_open(w, hl_residual_name((hl_residual)i), '{');
        hl_report_put_real(w, "effect", s->verdict.test[i].effect);
        hl_report_put_real(w, "sigma", s->verdict.test[i].sigma);
        hl_json_put_boolean(w, "failed", s->verdict.test[i].failed);
        hl_json_close(w, '}');
    }
    hl_json_close(w, '}');
    hl_json_open(w, "columns", '[');
    for (size_t i = 0; i < s->columns; i++)
        put_equation(w, &s->column[i]);
    hl_json_close(w, ']');
    hl_json_open(w, "times", '[');
    for (size_t k = 0; k < s->times; k++) {
        const hl_report_time *t = &s->time[k];
        hl_json_open(w, NULL, '{');
        hl_report_put_real(w, "t", t->t);
        hl_report_put_count(w, "rows", t->rows);
        hl_report_put_real(w, "travelled", t->travelled);
        hl_report_put_real(w, "noise", t->noise);
        hl_report_put_real(w, "density", t->density);
        hl_report_put_real(w, "simulated", t->simulated);
        hl_report_put_array(w, "data_quantiles", quantiles, t->data_quantiles);
        hl_report_put_array(w, "simulated_quantiles", quantiles, t->simulated_quantiles);
        hl_json_close(w, '}');
    }
    hl_json_close(w, ']');
    hl_report_put_training(s->courses[HL_SDE_COURSE_LOSS], s->course[HL_SDE_COURSE_LOSS], "training", w);
    hl_report_put_training(s->courses[HL_SDE_COURSE_DENSITY], s->course[HL_SDE_COURSE_DENSITY], "training_density", w);
}
