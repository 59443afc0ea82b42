/* sde_page.c - the page of a stochastic equation, its verdict and its JSON text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

enum { SHOWN = 12 };

/* ---- the verdict ---- */

static const double LEVEL = 0.001, WRONG_NOISE = 0.1, WRONG_DRIFT = 0.25;

/* What the steps say: the noise of a column, and its drift. */
static bool judge_steps(const hl_sde_report *s, hl_text *t)
{
    bool wrong = false;
    for (size_t i = 0; i < s->columns; i++) {
        const hl_report_equation *e = &s->column[i];
        double ratio = fabs(log(e->noise));
        if (ratio > WRONG_NOISE && ratio > 5 * e->noise_error) {
            hl_report_separate(t);
            hl_text_add(t, "the noise of '%.60s' is %.2f times that of the model", e->name, e->noise);
            wrong = true;
        }
        if (e->drift_p * (double)s->columns < LEVEL && e->drift_left > WRONG_DRIFT) {
            hl_report_separate(t);
            hl_text_add(t, "the drift of '%.60s' leaves %.0f %% of the mean steps unexplained", e->name,
                        100 * fmin(e->drift_left, 9.99));
            wrong = true;
        }
    }
    return wrong;
}

static const struct {
    uint32_t reason;
    const char *text;
} reasons[] = {
    { HL_REASON_DENSITY, "the density does not move as the observations do" },
    { HL_REASON_SIMULATIONS, "simulations do not move as the observations do" },
    { HL_REASON_UNEXPLAINED, "drift and diffusion leave much of the density's change unexplained" },
    { HL_REASON_SPEED, "the drift leaves most of the mean speed along the trajectories unexplained" },
    { HL_REASON_MEANS, "the means of the observations do not change as the equation predicts" },
};
static const struct {
    uint32_t reason;
    const char *text;
} limits[] = {
    { HL_REASON_FEW_TRAJECTORIES, "there are fewer than 10 trajectories" },
    { HL_REASON_STATIONARY_DATA, "the observations have the same distribution at all times" },
    { HL_REASON_TIME_DEPENDENT, "drift and diffusion both depend on time" },
    { HL_REASON_FEW_STEPS, "there are fewer than 100 steps" },
    { HL_REASON_WIDE_BAND, "the data determine drift or diffusion only roughly" },
    { HL_REASON_REGRESSION, "a regression gives a different drift or diffusion" },
};
static const char *const tests[HL_RESIDUAL_TESTS] = { "the drift is wrong at some states",
                                                      "the diffusion is wrong at some states",
                                                      "the drift is wrong at some times",
                                                      "the diffusion is wrong at some times",
                                                      "the noise of different columns is correlated",
                                                      "consecutive steps are correlated",
                                                      "steps have rare large values, such as jumps" };

static void judge_reasons(const hl_verdict *v, hl_text *t)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (v->reasons & reasons[i].reason) {
            hl_report_separate(t);
            hl_text_add(t, "%s", reasons[i].text);
        }
    for (size_t i = 0; i < HL_RESIDUAL_TESTS; i++)
        if (v->test[i].failed) {
            hl_report_separate(t);
            hl_text_add(t, "%s", tests[i]);
        }
}

void hl_sde_report_judge(hl_report *r)
{
    const hl_sde_report *s = &r->sde;
    char what[480] = "";
    hl_text found = hl_text_start(what, sizeof what), t = hl_text_start(r->verdict, sizeof r->verdict);
    bool wrong = judge_steps(s, &found);
    if (s->verdict.answer == HL_CONTRADICTED)
        judge_reasons(&s->verdict, &found);
    if (wrong || s->verdict.answer == HL_CONTRADICTED) {
        r->level = HL_REPORT_WRONG;
        hl_text_add(&t, "The observations contradict the equation: %s",
                    found.used ? what : "simulations and data differ");
        return;
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits && s->verdict.answer == HL_NOT_DETERMINED; i++)
        if (s->verdict.reasons & limits[i].reason) {
            hl_report_separate(&found);
            hl_text_add(&found, "%s", limits[i].text);
        }
    r->level = s->verdict.answer == HL_NOT_DETERMINED ? HL_REPORT_MINOR : HL_REPORT_GOOD;
    if (r->level == HL_REPORT_GOOD)
        hl_text_add(&t, "No test finds a difference between the observations and the equation, and they determine it");
    else
        hl_text_add(&t, "No test contradicts the equation, but other equations would fit as well: %s", what);
}

/* ---- the head ---- */

static void share_tile(hl_page *p, double share, const char *what)
{
    hl_page_put(p, "<div class=\"tile\"><b>");
    hl_page_percent(p, share);
    hl_page_add(p, "</b><span>%s</span></div>\n", what);
}

void hl_sde_page_head(const hl_report *r, hl_page *p)
{
    const hl_sde_report *s = &r->sde;
    double noise = NAN, left = NAN;
    for (size_t i = 0; i < s->columns; i++) {
        const hl_report_equation *e = &s->column[i];
        if (isfinite(e->noise) && !(fabs(log(e->noise)) <= fabs(log(noise))))
            noise = e->noise;
        left = fmax(left, e->drift_left);
    }
    hl_page_put(p, "<div class=\"tiles\">\n<div class=\"tile\"><b>");
    hl_page_put(p, hl_answer_name(s->verdict.answer));
    hl_page_put(p, "</b><span>observations and equation</span></div>\n");
    hl_report_tile(p, s->logp, "mean log p of the observations, in nats");
    if (isfinite(noise)) {
        hl_page_put(p, "<div class=\"tile\"><b>");
        hl_page_number(p, noise, 3);
        hl_page_put(p, "</b><span>noise of the steps relative to the model, worst column; 1 is correct</span></div>\n");
    }
    if (isfinite(left))
        share_tile(p, left, "of the mean steps not explained by the drift, worst column");
    if (isfinite(s->verdict.simulated))
        share_tile(p, s->verdict.simulated, "of the movement missed by simulations");
    hl_page_put(p, "</div>\n<nav><a href=\"#equation\">Drift and diffusion</a> <a href=\"#time\">Over time</a> <a "
                   "href=\"#tests\">Tests</a> <a href=\"#training\">Training</a> "
                   "<a href=\"#model\">Model</a></nav>\n");
}

/* ---- drift and diffusion ---- */

static void coefficient_figure(const hl_report_equation *e, int which, hl_page *p)
{
    double x[HL_REPORT_CELLS], y[HL_REPORT_CELLS], model[HL_REPORT_CELLS], made[HL_REPORT_CELLS];
    double values[4 * HL_REPORT_CELLS];
    char title[320];
    size_t n = e->cells;
    for (size_t k = 0; k < n; k++) {
        x[k] = e->cell[k].x;
        y[k] = e->cell[k].measured[which];
        model[k] = e->cell[k].model[which];
        made[k] = e->cell[k].made[which];
        values[4 * k] = y[k] - 2 * e->cell[k].error[which];
        values[4 * k + 1] = y[k] + 2 * e->cell[k].error[which];
        values[4 * k + 2] = model[k];
        values[4 * k + 3] = made[k];
    }
    snprintf(title, sizeof title, "%s of %.255s", which ? "Diffusion" : "Drift", e->name);
    hl_plot plot = { .page = p, .title = title, .x_label = e->name, .y_label = which ? "g" : "f" };
    hl_plot_range(n, x, &plot.low[0], &plot.high[0]);
    hl_plot_range(4 * n, values, &plot.low[1], &plot.high[1]);
    if (which)
        plot.low[1] = fmin(plot.low[1], 0);
    hl_plot_open(&plot);
    for (size_t k = 0; k < n; k++)
        hl_plot_line(&plot, "data", 2, (const double[]){ x[k], x[k] }, values + 4 * k);
    hl_plot_dots(&plot, "dots d big", n, 1, x, y);
    hl_plot_line(&plot, "mark fine", n, x, made);
    hl_plot_line(&plot, "model", n, x, model);
    for (size_t k = 0; k < n; k++) /* the data as a rug: a stroke for each cell */
        hl_plot_line(&plot, "thin", 2, (const double[]){ x[k], x[k] },
                     (const double[]){ plot.low[1], plot.low[1] + 0.03 * (plot.high[1] - plot.low[1]) });
    hl_plot_close(&plot);
    hl_page_put(p, "\n");
}

/* Arrows of the drift, their length by the root of the speed. */
static void field_figure(const hl_report *r, hl_page *p)
{
    const hl_report_field *field = &r->field;
    size_t n = field->side;
    double most = 0, size[2];
    for (size_t i = 0; i < 2; i++)
        size[i] = (field->high[i] - field->low[i]) / (double)n;
    for (size_t k = 0; k < n * n; k++)
        most = fmax(most, hypot(field->f[2 * k] / size[0], field->f[2 * k + 1] / size[1]));
    hl_plot plot = { .page = p,
                     .title = "Vector field of the drift, and observations",
                     .x_label = r->name[0],
                     .y_label = r->name[1],
                     .low = { field->low[0], field->low[1] },
                     .high = { field->high[0], field->high[1] } };
    hl_plot_open(&plot);
    hl_plot_dots(&plot, "dots d faint", field->points, 2, field->point, field->point + 1);
    for (size_t k = 0; k < n * n; k++) {
        double u = field->f[2 * k] / size[0], v = field->f[2 * k + 1] / size[1], speed = hypot(u, v);
        double length = speed > 0 && isfinite(most) ? 0.9 * sqrt(speed / most) / speed : 0;
        double x = field->low[0] + ((double)(k % n) + 0.5) * size[0],
               y = field->low[1] + ((double)(k / n) + 0.5) * size[1];
        double dx = u * length * size[0] / 2, dy = v * length * size[1] / 2;
        double hx = -0.35 * (u + 0.6 * v) * length * size[0], hy = -0.35 * (v - 0.6 * u) * length * size[1];
        double kx = -0.35 * (u - 0.6 * v) * length * size[0], ky = -0.35 * (v + 0.6 * u) * length * size[1];
        hl_plot_line(&plot, "arrow", 5, (const double[]){ x - dx, x + dx, x + dx + hx, x + dx, x + dx + kx },
                     (const double[]){ y - dy, y + dy, y + dy + hy, y + dy, y + dy + ky });
    }
    hl_plot_close(&plot);
    hl_page_put(p, "\n");
}

static void put_equation(const hl_report *r, hl_page *p)
{
    const hl_sde_report *s = &r->sde;
    size_t shown = s->columns < SHOWN ? s->columns : SHOWN;
    hl_page_put(p, "<section id=\"equation\"><h2>Drift and diffusion</h2>\n");
    if (s->steps)
        hl_page_put(p,
                    "<p class=\"soft\">Steps of the trajectories, grouped by where they begin. Drift: mean step over "
                    "its time. Diffusion: deviation of the steps about the model's drift, over the root of the time. "
                    "Bars are two standard errors. If the equation is right, the orange line follows the "
                    "points for steps of any length; the blue line, f and g at the same points, does so for short "
                    "steps.</p>\n"
                    "<p class=\"key\"><i class=\"kc\"></i>steps of the data<i class=\"ko\"></i>steps that the "
                    "equation makes from the same points<i class=\"km\"></i>f and g of the equation</p>\n");
    else
        hl_page_put(p, "<p class=\"soft\">The observations have fewer than 100 steps along trajectories, so drift and "
                       "diffusion cannot be measured directly.</p>\n");
    hl_page_put(p, "<div class=\"figures\">\n");
    for (size_t i = 0; i < shown && s->steps; i++)
        for (int which = 0; which < 2; which++)
            coefficient_figure(&s->column[i], which, p);
    if (r->field.side)
        field_figure(r, p);
    hl_page_put(p, "</div>\n");
    if (s->steps) {
        hl_page_put(
            p,
            "<div class=\"scroll\"><table><tr><th class=\"name\">column</th><th>noise: data / model</th><th>relative "
            "error</th><th>mean steps not<br>explained by the drift</th><th>p of the drift</th></tr>\n");
        for (size_t i = 0; i < s->columns; i++) {
            const hl_report_equation *e = &s->column[i];
            hl_page_put(p, "<tr><td class=\"name\">");
            hl_page_text(p, e->name);
            hl_page_put(p, "</td>");
            hl_report_cell_of(p, e->noise, 4);
            hl_report_cell_of(p, e->noise_error, 2);
            hl_page_put(p, "<td>");
            hl_page_percent(p, e->drift_left);
            hl_page_put(p, "</td><td>");
            hl_page_p_value(p, e->drift_p);
            hl_page_put(p, "</td></tr>\n");
        }
        hl_page_put(p, "</table></div>\n");
    }
    hl_page_put(p, "</section>\n");
}

/* ---- over time ---- */

enum { MOST_TIMES = 200 };

/* Quantiles of simulations as bands, those of the data as lines. */
static void fan_figure(const hl_report *r, size_t column, hl_page *p)
{
    const hl_sde_report *s = &r->sde;
    size_t n = s->times < MOST_TIMES ? s->times : MOST_TIMES, Q = HL_REPORT_QUANTILES, good = 0;
    double t[MOST_TIMES], tt[MOST_TIMES], data[5][MOST_TIMES], made[5][MOST_TIMES], all[10 * MOST_TIMES];
    for (size_t k = 0; k < n; k++) {
        t[k] = s->time[k].t;
        for (size_t q = 0; q < Q; q++) {
            data[q][k] = s->time[k].data_quantiles[column * Q + q];
            all[2 * (k * Q + q)] = data[q][k];
            all[2 * (k * Q + q) + 1] = s->time[k].simulated_quantiles[column * Q + q];
        }
        if (isfinite(s->time[k].simulated_quantiles[column * Q])) {
            for (size_t q = 0; q < Q; q++)
                made[q][good] = s->time[k].simulated_quantiles[column * Q + q];
            tt[good++] = t[k];
        }
    }
    hl_plot plot = { .page = p, .title = r->name[column], .x_label = r->name[s->dim], .y_label = r->name[column] };
    hl_plot_range(n, t, &plot.low[0], &plot.high[0]);
    hl_plot_range(2 * n * Q, all, &plot.low[1], &plot.high[1]);
    hl_plot_open(&plot);
    if (good > 1) {
        hl_plot_band(&plot, "band", good, tt, made[0], made[4]);
        hl_plot_band(&plot, "band", good, tt, made[1], made[3]);
        hl_plot_line(&plot, "model", good, tt, made[2]);
    }
    for (size_t q = 0; q < Q; q++)
        hl_plot_line(&plot, q == 2 ? "data" : "dashed", n, t, data[q]);
    hl_plot_close(&plot);
    hl_page_put(p, "\n");
}

static void distance_figure(const hl_report *r, hl_page *p)
{
    const hl_sde_report *s = &r->sde;
    size_t n = s->times < MOST_TIMES ? s->times : MOST_TIMES;
    double t[MOST_TIMES], y[4][MOST_TIMES];
    static const char *const style[] = { "dashed", "rule", "model", "mark" };
    for (size_t k = 0; k < n; k++) {
        const hl_report_time *at = &s->time[k];
        t[k] = at->t;
        y[0][k] = at->travelled;
        y[1][k] = at->noise;
        y[2][k] = at->density;
        y[3][k] = at->simulated;
    }
    hl_plot plot = {
        .page = p, .title = "Energy distance from the observations", .x_label = r->name[s->dim], .y_label = "distance"
    };
    double low, high;
    hl_plot_range(n, t, &plot.low[0], &plot.high[0]);
    plot.low[1] = INFINITY;
    plot.high[1] = -INFINITY;
    for (size_t k = 0; k < 4; k++) {
        hl_plot_range(n, y[k], &low, &high);
        plot.low[1] = fmin(plot.low[1], low);
        plot.high[1] = fmax(plot.high[1], high);
    }
    hl_plot_open(&plot);
    for (size_t k = 0; k < 4; k++)
        hl_plot_line(&plot, style[k], n, t, y[k]);
    hl_plot_close(&plot);
    hl_page_put(p, "<p class=\"key\"><i class=\"km\"></i>samples from the density<i class=\"ko\"></i>simulations<i "
                   "class=\"kt\"></i>the first observations, not moved<i "
                   "class=\"kr\"></i>two halves of the data</p>\n");
}

static void put_time(const hl_report *r, hl_page *p)
{
    const hl_sde_report *s = &r->sde;
    if (s->times < 2)
        return;
    hl_page_put(p, "<section id=\"time\"><h2>Over time</h2>\n<p class=\"soft\">Simulations that start at the first "
                   "observations: the dark band contains 50 % of them, "
                   "the light band 90 %. Lines are the same quantiles of the data; the median is solid.</p>\n"
                   "<p class=\"key\"><i class=\"kb\"></i>simulations<i class=\"km\"></i>their median<i "
                   "class=\"ks\"></i>median of the data<i class=\"kt\"></i>other quantiles of the data</p>\n<div "
                   "class=\"figures\">\n");
    for (size_t i = 0; i < s->dim && i < SHOWN; i++)
        fan_figure(r, i, p);
    hl_page_put(p, "<div>");
    distance_figure(r, p);
    hl_page_put(p, "</div></div></section>\n");
}

/* ---- tests and the model ---- */

static void put_tests(const hl_verdict *v, hl_page *p)
{
    hl_page_put(p, "<section id=\"tests\"><h2>Tests</h2>\n<div class=\"scroll\"><table><tr><th "
                   "class=\"name\">test</th><th>value</th><th>standard errors</th>"
                   "<th class=\"name\">meaning</th></tr>\n");
    const struct {
        const char *name, *meaning;
        double value;
    } shares[] = { { "density", "fraction of the movement of the data missed by the density", v->density },
                   { "simulations", "fraction of the movement missed by simulations", v->simulated },
                   { "unexplained", "fraction of the density's change not explained by drift and diffusion",
                     v->unexplained },
                   { "speed", "fraction of the mean speed along trajectories not explained by the drift", v->speed } };
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (isnan(shares[i].value))
            continue;
        hl_page_add(p, "<tr><td class=\"what\">%s</td>", shares[i].name);
        hl_report_cell_of(p, shares[i].value, 3);
        hl_page_add(p, "<td></td><td class=\"wrap\">%s</td></tr>\n", shares[i].meaning);
    }
    for (size_t i = 0; i < HL_RESIDUAL_TESTS && v->steps; i++) {
        hl_page_add(p, "<tr%s><td class=\"what\">%s</td>", v->test[i].failed ? " class=\"bad\"" : "",
                    hl_residual_name((hl_residual)i));
        hl_report_cell_of(p, v->test[i].effect, 3);
        hl_report_cell_of(p, v->test[i].sigma, 3);
        hl_page_add(p, "<td class=\"wrap\">fails if %s</td></tr>\n", tests[i]);
    }
    for (size_t i = 0; i < HL_WEAK_TESTS && v->means; i++) {
        hl_page_add(p, "<tr%s><td class=\"name\">%s</td>", v->means_test[i].failed ? " class=\"bad\"" : "",
                    hl_weak_test_name((hl_weak_test)i));
        hl_report_cell_of(p, v->means_test[i].effect, 3);
        hl_report_cell_of(p, v->means_test[i].sigma, 3);
        hl_page_put(p, "<td class=\"wrap\">fails if the means of functions of the state contradict it</td></tr>\n");
    }
    hl_page_put(p, "</table></div></section>\n");
}

void hl_sde_page_body(const hl_report *r, hl_page *p)
{
    const hl_sde_report *s = &r->sde;
    put_equation(r, p);
    put_time(r, p);
    put_tests(&s->verdict, p);
    const hl_report_losses losses[HL_SDE_COURSES] = {
        { "Loss of drift and diffusion", "standardised", s->courses[0], s->course[0] },
        { "\xe2\x88\x92log p of the density", "nats per observation", s->courses[1], s->course[1] }
    };
    hl_report_page_losses(HL_SDE_COURSES, losses, p);
    hl_page_put(p, "<section id=\"model\"><h2>Model</h2>\n");
    hl_report_facts_open(r->data, p);
    hl_page_count(p, s->rows);
    hl_page_put(p, " observations, ");
    hl_page_count(p, s->trajectories);
    hl_page_put(p, s->trajectories == 1 ? " trajectory, " : " trajectories, ");
    hl_page_count(p, s->steps);
    hl_page_put(p, s->steps == 1 ? " step compared" : " steps compared");
    hl_report_fact(p, "Columns");
    hl_page_count(p, s->dim);
    hl_report_facts_close(r, p);
    hl_page_put(p, "</section>\n");
}
