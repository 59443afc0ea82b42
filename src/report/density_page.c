/* density_page.c - the page of a density model. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/report.h"

enum { SHOWN_FIRST = 9, SHOWN_FIGURES = 60, SHOWN_COLUMNS = 300, SHOWN_ROWS = 15 };

/* ---- the head ---- */

static void tile(hl_page *p, const char *what)
{
    hl_page_add(p, "</b><span>%s</span></div>\n", what);
}

/* Digits of a value whose error has two. */
static int digits_of(hl_report_mean mean)
{
    double digits = floor(log10(fabs(mean.value))) - floor(log10(mean.error)) + 2;
    return digits > -20 && digits < 12 ? (int)fmax(digits, 1) : 4;
}

void hl_report_tile(hl_page *p, hl_report_mean mean, const char *what)
{
    hl_page_put(p, "<div class=\"tile\"><b>");
    hl_page_number(p, mean.value, digits_of(mean));
    if (isfinite(mean.error)) {
        hl_page_put(p, " <small>\xc2\xb1\xc2\xa0");
        hl_page_number(p, mean.error, 2);
        hl_page_put(p, "</small>");
    }
    tile(p, what);
}

static void put_gain(hl_page *p, hl_report_mean gain, const char *what)
{
    if (isfinite(gain.value))
        hl_report_tile(p, gain, what);
}

static void put_tiles(const hl_density_report *d, hl_page *p)
{
    hl_page_put(p, "<div class=\"tiles\">\n");
    if (d->rows) {
        hl_report_tile(p, d->logp, "mean log p of the rows, in nats");
        put_gain(p, d->over_independent, "nats per row above independent normal columns");
        put_gain(p, d->over_normal, "nats per row above a multivariate normal distribution");
        put_gain(p, d->over_mixture,
                 d->mixture_member ? "nats per row above the best mixture in the model"
                                   : "nats per row above a mixture");
        hl_page_put(p, "<div class=\"tile\"><b>");
        hl_page_p_value(p, d->distance.p);
        tile(p, "p-value of equal distributions of data and samples");
    } else {
        hl_report_tile(p, d->draws_logp, "mean log p of the samples, in nats");
    }
    hl_page_put(p, "</div>\n");
}

void hl_density_page_head(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    put_tiles(d, p);
    hl_page_put(
        p,
        "<nav><a href=\"#columns\">Columns</a> <a href=\"#pairs\">Pairs</a> <a href=\"#calibration\">Calibration</a> "
        "<a href=\"#rows\">Rows</a> ");
    hl_page_put(p, "<a href=\"#training\">Training</a> <a href=\"#model\">Model</a></nav>\n");
}

/* ---- columns ---- */

static void column_figure(const hl_report_column *c, bool data, hl_page *p)
{
    double most = 0, height[2][HL_REPORT_BINS], width = (c->high - c->low) / HL_REPORT_BINS;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < HL_REPORT_BINS; i++) {
            height[k][i] = c->bin[k][i] / width;
            most = fmax(most, height[k][i]);
        }
    hl_plot plot = {
        .page = p, .title = c->name, .y_label = "density", .low = { c->low, 0 }, .high = { c->high, 1.05 * most }
    };
    hl_plot_open(&plot);
    if (data)
        hl_plot_bars(&plot, "bars", HL_REPORT_BINS, c->low, c->high, height[0]);
    hl_plot_steps(&plot, "model", HL_REPORT_BINS, c->low, c->high, height[1]);
    hl_plot_close(&plot);
}

void hl_report_cell_of(hl_page *p, double value, int digits)
{
    hl_page_put(p, "<td>");
    hl_page_number(p, value, digits);
    hl_page_put(p, "</td>");
}

static void column_row(const hl_density_report *d, const hl_report_column *c, hl_page *p)
{
    bool bad = c->p * (double)d->columns < 0.01;
    hl_page_add(p, "<tr%s><td class=\"name\">", bad ? " class=\"bad\"" : "");
    hl_page_text(p, c->name);
    hl_page_put(p, "</td>");
    hl_report_cell_of(p, c->distance, 3);
    hl_page_put(p, "<td>");
    hl_page_p_value(p, c->p);
    hl_page_put(p, "</td>");
    hl_report_cell_of(p, c->wasserstein, 3);
    for (size_t k = 0; k < 2; k++)
        hl_report_cell_of(p, c->mean[k], 4);
    for (size_t k = 0; k < 2; k++)
        hl_report_cell_of(p, c->deviation[k], 4);
    hl_page_put(p, "<td>");
    hl_page_percent(p, c->outside);
    hl_page_put(p, "</td><td>");
    hl_page_percent(p, c->tied);
    hl_page_put(p, "</td></tr>\n");
}

static void put_columns(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    size_t figures = d->columns < SHOWN_FIGURES ? d->columns : SHOWN_FIGURES;
    size_t rows = d->columns < SHOWN_COLUMNS ? d->columns : SHOWN_COLUMNS;
    hl_page_put(
        p, "<section id=\"columns\"><h2>Columns</h2>\n"
           "<p class=\"soft\">Histograms of data and samples; columns with the largest difference come first.</p>\n"
           "<p class=\"key\"><i class=\"kd\"></i>data<i class=\"km\"></i>samples from the model</p>\n"
           "<div class=\"figures\">\n");
    for (size_t i = 0; i < figures; i++) {
        if (i == SHOWN_FIRST)
            hl_page_add(p, "</div>\n<details><summary>%zu more columns</summary><div class=\"figures\">\n",
                        figures - i);
        column_figure(&d->column[i], r->set[0].rows > 0, p);
        hl_page_put(p, "\n");
    }
    hl_page_put(p, figures > SHOWN_FIRST ? "</div></details>\n" : "</div>\n");
    if (r->set[0].rows) {
        hl_page_put(
            p,
            "<div class=\"scroll\"><table><tr><th "
            "class=\"name\">column</th><th>Kolmogorov&ndash;Smirnov<br>distance</th><th>p</"
            "th><th>Wasserstein<br>distance</th><th>mean<br>data</th><th>mean<br>samples</th><th>std<br>data</"
            "th><th>std<br>samples</th><th>samples outside<br>the data's range</th><th>repeated<br>values</th></tr>\n");
        for (size_t i = 0; i < rows; i++) {
            if (i == SHOWN_ROWS)
                hl_page_add(
                    p, "</table></div>\n<details><summary>%zu more columns</summary><div class=\"scroll\"><table>\n",
                    rows - i);
            column_row(d, &d->column[i], p);
        }
        hl_page_put(p, rows > SHOWN_ROWS ? "</table></div></details>\n" : "</table></div>\n");
        hl_page_put(p,
                    "\n"
                    "<p class=\"soft\">p-values are for single columns. Bold: significant at the level 0.01, corrected "
                    "for the number of columns. The Wasserstein distance is in the units of the column.</p>\n");
    }
    if (rows < d->columns)
        hl_page_add(p, "<p class=\"soft\">The %zu columns with the smallest differences are not shown.</p>\n",
                    d->columns - rows);
    hl_page_put(p, "</section>\n");
}

/* ---- calibration ---- */

/* The difference of shares from what they should be, with the band that they stay in by chance. */
static void level_figure(const char *title, const char *label, double band, size_t lines, const double *const *level,
                         hl_page *p)
{
    double x[HL_REPORT_GRID], y[HL_REPORT_GRID], low[HL_REPORT_GRID], high[HL_REPORT_GRID], most = band;
    for (size_t k = 0; k < HL_REPORT_GRID; k++) {
        x[k] = (double)(k + 1) / (HL_REPORT_GRID + 1);
        low[k] = -band;
        high[k] = band;
        for (size_t i = 0; i < lines; i++)
            most = fmax(most, fabs(level[i][k] - x[k]));
    }
    hl_plot plot = { .page = p,
                     .title = title,
                     .x_label = label,
                     .y_label = "fraction of rows \xe2\x88\x92 expected",
                     .low = { 0, -1.15 * most },
                     .high = { 1, 1.15 * most } };
    hl_plot_open(&plot);
    hl_plot_band(&plot, "band", HL_REPORT_GRID, x, low, high);
    hl_plot_line(&plot, "rule", 2, (const double[]){ 0, 1 }, (const double[]){ 0, 0 });
    for (size_t i = lines; i-- > 0;) {
        for (size_t k = 0; k < HL_REPORT_GRID; k++)
            y[k] = level[i][k] - x[k];
        hl_plot_line(&plot, i ? "thin" : "mark", HL_REPORT_GRID, x, y);
    }
    hl_plot_close(&plot);
}

static void test_row(hl_page *p, const char *name, double value, double p_value, const char *meaning)
{
    hl_page_add(p, "<tr%s><td class=\"what\">%s</td>", p_value < 0.01 ? " class=\"bad\"" : "", name);
    hl_report_cell_of(p, value, 3);
    hl_page_put(p, "<td>");
    hl_page_p_value(p, p_value);
    hl_page_add(p, "</td><td class=\"wrap\">%s</td></tr>\n", meaning);
}

static void put_tests(const hl_density_report *d, hl_page *p)
{
    hl_page_put(p, "<div class=\"scroll\"><table><tr><th class=\"name\">test</th><th>value</th><th>p</th><th "
                   "class=\"name\">meaning</th></tr>\n");
    test_row(p, "ranks of log p", d->rank_distance, d->rank_p,
             "largest deviation from uniform ranks of log p of the rows among samples");
    test_row(p, "energy distance of data and samples", d->distance.distance, d->distance.p,
             "expected value 0 for equal distributions; p by permutation");
    test_row(p, "energy distance of two halves of the data", d->distance.halves, NAN, "value expected by chance");
    if (isfinite(d->memorised))
        test_row(p, "samples that nearly repeat a row", d->memorised, d->memorised_p,
                 "fraction of samples closer to a row than 99 % of the rows are to each other, 0.01 by chance; p by "
                 "permutation of the shortest distances");
    if (d->base_rows)
        test_row(p, "base variable z of the flow, worst column", d->base_distance, d->base_p,
                 "distance from the normal distribution, for the flow only; p corrected for the number of columns");
    hl_page_put(p, "</table></div>\n");
}

static void put_calibration(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    const double *level[24], *rank = d->rank, *radius = d->base_radius;
    size_t lines = d->columns < 24 ? d->columns : 24;
    for (size_t i = 0; i < lines; i++)
        level[i] = d->column[i].level;
    hl_page_put(p, "<section id=\"calibration\"><h2>Calibration</h2>\n"
                   "<p class=\"soft\">If the model is right, rows and samples have the same distribution, and so do "
                   "their log p. Each line stays within the band with probability 0.95.</p>\n"
                   "<p class=\"key\"><i class=\"kb\"></i>95 % band<i class=\"ko\"></i>rows, or worst column</p>\n"
                   "<div class=\"figures\">\n");
    level_figure("Rank of log p among samples", "fraction of samples with lower log p", d->band, 1, &rank, p);
    level_figure("Columns", "fraction of samples with a lower value", d->band, lines, level, p);
    if (d->base_rows)
        level_figure("|z|\xc2\xb2 of the flow's base", "level of the chi-squared distribution",
                     1.358 / sqrt((double)d->base_rows), 1, &radius, p);
    hl_page_put(p, "</div>\n<p>");
    hl_page_percent(p, d->unlikely);
    hl_page_put(p, " of the rows are less likely than 99 % of the samples, and ");
    hl_page_percent(p, d->unseen);
    hl_page_put(p, " less likely than all samples; 1 % and 0 % are expected. Mean log p is ");
    hl_page_number(p, d->logp.value, 5);
    hl_page_put(p, " for rows and ");
    hl_page_number(p, d->draws_logp.value, 5);
    hl_page_put(p, " for samples.</p>\n");
    put_tests(d, p);
    hl_page_put(p, "</section>\n");
}

/* ---- rows ---- */

/* The pair view that shows a column best: beside the next one, or the worst other. */
static size_t beside(const hl_density_report *d, const hl_report_row *row, size_t k)
{
    size_t column = row->column[k];
    if (row->causes > 1)
        return row->column[k ? 0 : 1];
    for (size_t i = 0; i < d->columns; i++)
        if (d->column[i].column != column)
            return d->column[i].column;
    return column;
}

static void put_rows(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    hl_page_put(p, "<section id=\"rows\"><h2>Least likely rows</h2>\n"
                   "<p class=\"soft\">Among the evaluated rows. A column is listed if log p increases when its value "
                   "is replaced by the value expected from the other columns; the link shows it in the pair plot.</p>\n"
                   "<div class=\"scroll\"><table><tr><th>row</th><th>log p</th><th class=\"name\">responsible columns: "
                   "value, expected value, gain in log p</th></tr>\n");
    for (size_t i = 0; i < d->worst; i++) {
        const hl_report_row *row = &d->row[i];
        hl_page_add(p, "<tr><td>%zu</td>", row->row + 1);
        hl_report_cell_of(p, row->logp, 6);
        hl_page_put(p, "<td class=\"name\">");
        for (size_t k = 0; k < row->causes; k++) {
            hl_page_add(p, "%s<a href=\"#pairs\" data-x=\"%zu\" data-y=\"%zu\" data-row=\"%zu\">", k ? "; " : "",
                        row->column[k], beside(d, row, k), i);
            hl_page_text(p, r->name[row->column[k]]);
            hl_page_put(p, "</a> ");
            for (size_t s = 0; s < r->set[0].rows; s++)
                if (r->set[0].number[s] == row->row) {
                    hl_page_number(p, r->set[0].x[s * d->dim + row->column[k]], 4);
                    break;
                }
            hl_page_put(p, ", expected ");
            hl_page_number(p, row->expected[k], 4);
            hl_page_put(p, ", +");
            hl_page_number(p, row->gain[k], 3);
        }
        if (!row->causes)
            hl_page_put(p, "no single column");
        hl_page_put(p, "</td></tr>\n");
    }
    hl_page_put(p, "</table></div></section>\n");
}

/* ---- the model ---- */

static void put_members(const hl_report *r, hl_page *p)
{
    hl_page_put(p, "<h3>Members</h3><div class=\"scroll\"><table><tr><th "
                   "class=\"name\">member</th><th>weight</th><th>mean log p of the member</th></tr>\n");
    for (size_t i = 0; i < r->members; i++) {
        const hl_density_member *m = &r->member[i];
        hl_page_put(p, "<tr><td class=\"name\">");
        if (m->kind == HL_MEMBER_FLOW)
            hl_page_add(p, "flow, %s", r->flow_kind ? r->flow_kind : "");
        else
            hl_page_add(p, "mixture of %zu %s", m->parts, m->nu > 0 ? "t distributions" : "normal distributions");
        if (m->nu > 0) {
            hl_page_put(p, " of ");
            hl_page_number(p, m->nu, 3);
            hl_page_put(p, " degrees of freedom");
        }
        hl_page_put(p, m->mapped ? ", on mapped columns</td>" : "</td>");
        hl_report_cell_of(p, m->weight, 4);
        hl_report_cell_of(p, r->set[0].rows ? r->member_logp[i].value : NAN, 5);
        hl_page_put(p, "</tr>\n");
    }
    hl_page_put(p, "</table></div>\n");
}

static void put_evaluations(const hl_density_report *d, hl_page *p)
{
    enum { BINS = 20 };
    size_t rows = d->evaluation_rows;
    double bin[BINS] = { 0 }, most = 0, low = rows ? d->evaluations[0] : 0,
           high = rows ? d->evaluations[rows - 1] + 1 : 1;
    for (size_t i = 0; i < rows; i++) {
        size_t k = (size_t)((d->evaluations[i] - low) / (high - low) * BINS);
        most = fmax(most, ++bin[k < BINS ? k : BINS - 1]);
    }
    hl_plot plot = { .page = p,
                     .title = "Evaluations of the network per row",
                     .x_label = "evaluations",
                     .y_label = "rows",
                     .low = { low, 0 },
                     .high = { high, 1.08 * most } };
    hl_page_put(p, "<div class=\"figures\">");
    hl_plot_open(&plot);
    hl_plot_bars(&plot, "bars", BINS, low, high, bin);
    hl_plot_close(&plot);
    hl_page_put(p, "</div>\n");
}

static void put_solver(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    if (!d->tolerances)
        return;
    hl_page_add(p, "<h3>Solver</h3><p class=\"soft\">The flow is solved by %s with the relative tolerance ", r->method);
    hl_page_number(p, r->solver.rtol, 3);
    hl_page_put(p, ". How log p of some rows changes with the tolerance:</p><div "
                   "class=\"scroll\"><table><tr><th>tolerance</th><th>mean log p</th><th>mean change</th><th>largest "
                   "change</th><th>evaluations per row</th></tr>\n");
    for (size_t k = 0; k < d->tolerances; k++) {
        hl_page_put(p, "<tr>");
        hl_report_cell_of(p, d->tolerance[k].rtol, 3);
        hl_report_cell_of(p, d->tolerance[k].logp, 8);
        hl_report_cell_of(p, d->tolerance[k].change, 2);
        hl_report_cell_of(p, d->tolerance[k].largest, 2);
        hl_report_cell_of(p, d->tolerance[k].evaluations, 3);
        hl_page_put(p, "</tr>\n");
    }
    hl_page_put(p, "</table></div>\n");
    put_evaluations(d, p);
}

static void put_facts(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    hl_report_facts_open(d->rows ? r->data : NULL, p);
    if (d->rows) {
        hl_page_count(p, d->rows);
        hl_page_put(p, " of ");
        hl_page_count(p, d->total);
        hl_page_put(p, " rows evaluated, ");
        hl_page_count(p, d->failed);
        hl_page_put(p, " without log p; ");
        hl_page_add(p, "hash of the rows evaluated %016" PRIx64, d->hash);
        if (d->train_rows) {
            hl_report_fact(p, "Training rows");
            hl_page_count(p, d->train_rows);
            hl_page_add(p, "; of %zu evaluated rows that can be identified by their hash, %zu are training rows",
                        d->known, d->trained);
        }
    }
    hl_report_fact(p, "Samples");
    hl_page_count(p, d->draws);
    hl_report_fact(p, "Columns");
    hl_page_count(p, d->dim);
    if (d->context)
        hl_page_add(p, ", given %zu of context", d->context);
    hl_report_fact(p, "Parameters");
    hl_page_count(p, d->parameters);
    hl_report_facts_close(r, p);
}

void hl_density_page_body(const hl_report *r, hl_page *p)
{
    if (r->density.columns && r->set[1].rows) {
        put_columns(r, p);
        hl_density_page_pairs(r, p);
    }
    if (r->set[0].rows && r->set[1].rows)
        put_calibration(r, p);
    if (r->density.worst)
        put_rows(r, p);
    hl_report_page_training(r->density.courses, r->density.course, p);
    hl_page_put(p, "<section id=\"model\"><h2>Model</h2>\n");
    put_facts(r, p);
    put_members(r, p);
    put_solver(r, p);
    hl_page_put(p, "</section>\n");
}
