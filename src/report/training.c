/* training.c - the course of a training as figures, and whether the rows of a report are those that trained the model. */
#include <math.h>

#include "report/report.h"

static const double MANY = 0.5; /* of the rows that can be told from training rows */

hl_status hl_report_copy_course(hl_report *r, size_t points, const hl_training_point *from,
                                const hl_training_point **to)
{
    hl_training_point *course = hl_report_room(r, points, sizeof *course);
    if (!course)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < points; i++)
        course[i] = from[i];
    *to = course;
    return HL_OK;
}

hl_status hl_density_study_training(hl_density *m, hl_report *r)
{
    hl_density_report *d = &r->density;
    const hl_report_set *data = &r->set[0];
    size_t count;
    const hl_training_point *from = hl_density_course(m, &count);
    hl_status status = hl_report_copy_course(r, count, from, &d->course);
    if (status != HL_OK)
        return status;
    d->courses = count;
    for (size_t i = 0; i < data->rows; i++) {
        uint64_t hash = hl_row_hash(m->dim, data->x + i * m->dim, m->context, data->c + i * m->context);
        int among = m->training ? hl_row_sketch_has(&m->training->rows, hash) : -1;
        d->hash += hash;
        d->known += among >= 0;
        d->trained += among > 0;
    }
    d->train_rows = m->training ? m->training->rows.rows : 0;
    return HL_OK;
}

void hl_report_tell_training(size_t known, size_t trained, hl_text *t)
{
    double share = known ? (double)trained / (double)known : 0;
    if (trained && trained == known)
        hl_text_add(t, ". These rows were used to train the model; new rows may fit worse");
    else if (share > MANY)
        hl_text_add(t, ". About %.0f %% of these rows were used to train the model; new rows may fit worse",
                    100 * share);
}

/* ---- the page ---- */

enum { LINES = 2 };

typedef struct curves {
    const char *title, *label;
    const char *line[LINES]; /* what they are; NULL: no such line */
    double *x[LINES], *y[LINES];
} curves;

static bool has_finite(size_t n, const double *values)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            return true;
    return false;
}

/* One or two lines over the iterations, and their key. The first twentieth does not decide the range of y, as losses fall steeply there. */
static void course_figure(const curves *c, size_t n, hl_page *p)
{
    static const char *const style[LINES] = { "mark", "model" }, *const key[LINES] = { "ko", "km" };
    double low[LINES], high[LINES];
    hl_plot plot = { .page = p, .title = c->title, .x_label = "iteration", .y_label = c->label };
    plot.low[0] = 0;
    plot.low[1] = INFINITY;
    plot.high[0] = plot.high[1] = -INFINITY;
    for (size_t k = 0; k < LINES && c->line[k]; k++) {
        for (size_t i = 0; i < n; i++)
            plot.high[0] = fmax(plot.high[0], c->x[k][i]);
        hl_plot_range(n - n / 20, c->y[k] + n / 20, &low[k], &high[k]);
        if (low[k] <= high[k]) {
            plot.low[1] = fmin(plot.low[1], low[k]);
            plot.high[1] = fmax(plot.high[1], high[k]);
        }
    }
    hl_page_put(p, "<div>");
    hl_plot_open(&plot);
    for (size_t k = 0; k < LINES && c->line[k]; k++) { /* what is not finite is left out, and does not break a line */
        double kept_x[HL_CURVE_POINTS], kept_y[HL_CURVE_POINTS];
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (isfinite(c->y[k][i])) {
                kept_x[kept] = c->x[k][i];
                kept_y[kept++] = c->y[k][i];
            }
        hl_plot_line(&plot, style[k], kept, kept_x, kept_y);
    }
    hl_plot_close(&plot);
    hl_page_put(p, "<p class=\"key\">");
    for (size_t k = 0; k < LINES && c->line[k]; k++)
        if (has_finite(n, c->y[k]))
            hl_page_add(p, "<i class=\"%s\"></i>%s", key[k], c->line[k]);
    hl_page_put(p, "</p></div>\n");
}

static void put_no_course(hl_page *p)
{
    hl_page_put(p, "<section id=\"training\"><h2>Training</h2>\n"
                   "<p class=\"soft\">The model file contains no training history.</p></section>\n");
}

/* `doubled`: how often the steps of the solver were. */
static void open_section(size_t iterations, size_t doubled, hl_page *p)
{
    hl_page_put(p, "<section id=\"training\"><h2>Training</h2>\n"
                   "<p class=\"soft\">Means over intervals of iterations. ");
    hl_page_count(p, iterations);
    hl_page_put(p, " iterations");
    if (doubled)
        hl_page_add(p, "; the solver's steps were doubled %zu time%s", doubled, doubled > 1 ? "s" : "");
    hl_page_put(p, ".</p>\n");
}

void hl_report_page_training(size_t points, const hl_training_point *course, hl_page *p)
{
    double at[HL_CURVE_POINTS], when[HL_CURVE_POINTS], matching[HL_CURVE_POINTS], loss[HL_CURVE_POINTS],
        valid[HL_CURVE_POINTS], work[HL_CURVE_POINTS], steps[HL_CURVE_POINTS];
    size_t n = points < HL_CURVE_POINTS ? points : HL_CURVE_POINTS, doubled = 0;
    for (size_t i = 0; i < n; i++) {
        const hl_training_point *c = &course[i];
        bool matches = c->phase == HL_FIT_FLOW_MATCHING || c->phase == HL_FIT_SCORE_MATCHING;
        at[i] = (double)c->iteration;
        when[i] = c->validated ? (double)c->validated : at[i];
        matching[i] = matches ? c->loss : NAN;
        loss[i] = matches ? NAN : c->loss;
        valid[i] = c->validation;
        work[i] = c->evaluations;
        steps[i] = c->steps ? (double)c->steps : NAN;
        doubled += i && c->steps > course[i - 1].steps;
    }
    if (n < 2) {
        put_no_course(p);
        return;
    }
    open_section(course[n - 1].iteration, doubled, p);
    hl_page_put(p, "<div class=\"figures\">\n");
    const curves figure[] = {
        { "Loss of matching", "loss", { "training" }, { at }, { matching } },
        { "\xe2\x88\x92log p of the flow", "nats a row", { "training", "validation" }, { at, when }, { loss, valid } },
        { "Work of an iteration", "a row", { "evaluations of f", "steps of the solver" }, { at, at }, { work, steps } }
    };
    for (size_t k = has_finite(n, matching) ? 0 : 1; k < sizeof figure / sizeof *figure; k++)
        course_figure(&figure[k], n, p);
    hl_page_put(p, "</div></section>\n");
}

/* A loss that is 0 all the time was not trained. */
static bool has_loss(const hl_report_losses *l)
{
    for (size_t i = 0; i < l->points; i++)
        if (l->course[i].loss != 0)
            return l->points > 1;
    return false;
}

void hl_report_page_losses(size_t figures, const hl_report_losses *losses, hl_page *p)
{
    double at[HL_CURVE_POINTS], when[HL_CURVE_POINTS], loss[HL_CURVE_POINTS], valid[HL_CURVE_POINTS];
    bool any = false;
    for (size_t k = 0; k < figures; k++) {
        const hl_report_losses *l = &losses[k];
        size_t n = l->points < HL_CURVE_POINTS ? l->points : HL_CURVE_POINTS, doubled = 0;
        if (!has_loss(l))
            continue;
        for (size_t i = 0; i < n; i++) {
            const hl_training_point *c = &l->course[i];
            at[i] = (double)c->iteration;
            when[i] = c->validated ? (double)c->validated : at[i];
            loss[i] = c->loss;
            valid[i] = c->validation;
            doubled += i && c->steps > l->course[i - 1].steps;
        }
        if (!any) {
            open_section(l->course[n - 1].iteration, doubled, p);
            hl_page_put(p, "<div class=\"figures\">\n");
        }
        any = true;
        course_figure(&(curves){ l->title, l->label, { "training", "validation" }, { at, when }, { loss, valid } }, n,
                      p);
    }
    if (any)
        hl_page_put(p, "</div></section>\n");
    else
        put_no_course(p);
}

void hl_report_put_training(size_t points, const hl_training_point *course, const char *key, hl_json_writer *w)
{
    hl_json_open(w, key, '[');
    for (size_t i = 0; i < points; i++) {
        const char *phase = hl_fit_phase_name((hl_fit_phase)course[i].phase);
        hl_json_open(w, NULL, '{');
        hl_report_put_count(w, "iteration", course[i].iteration);
        hl_json_put_text(w, "phase", phase ? phase : "");
        hl_report_put_count(w, "steps", course[i].steps);
        hl_report_put_real(w, "loss", course[i].loss);
        hl_report_put_real(w, "evaluations", course[i].evaluations);
        hl_report_put_real(w, "validation", course[i].validation);
        hl_report_put_count(w, "validated", course[i].validated);
        hl_json_close(w, '}');
    }
    hl_json_close(w, ']');
}
