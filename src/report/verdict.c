/* verdict.c - what the numbers of a density model mean, in a sentence.
 *
 * Tests are at the level 0.01, those of columns for all of them together. What is significant may still be small: with thousands of rows
 * every model shows some difference. It counts as wrong from a distance of distribution functions of 0.1, or a share of 0.02 of the largest
 * energy distance. */
#include <math.h>

#include "report/report.h"

static const double LEVEL = 0.01, LARGE_DISTANCE = 0.1, LARGE_SHARE = 0.02, SHIFT = 0.2, SPREAD = 1.25,
                    LARGE_CORRELATION = 0.15, BY_CHANCE = 0.01;
enum { LEAST_CORRELATED = 20 /* rows */ };

/* With fewer rows a column may differ by 0.35 (1.358 / sqrt(15)) within the 95 % band. */
enum { FEW_ROWS = 15 };

/* How the draws of a column differ from its data. */
static void tell_column(const hl_report_column *c, hl_text *t)
{
    double shift = (c->mean[1] - c->mean[0]) / c->deviation[0], spread = c->deviation[1] / c->deviation[0];
    hl_report_separate(t);
    if (c->least[0] == c->largest[0]) {
        hl_text_add(t, "column '%.60s' is constant in the data (%.6g), but not in the samples", c->name, c->mean[0]);
        return;
    }
    hl_text_add(t, "column '%.60s' differs: ", c->name);
    if (fabs(shift) > SHIFT)
        hl_text_add(t, "samples are shifted by %+.2f standard deviations", shift);
    else if (spread > SPREAD || spread < 1 / SPREAD)
        hl_text_add(t, "samples have %.2f times the standard deviation of the data", spread);
    else
        hl_text_add(t, "its distribution has a different shape (distance %.2f)", c->distance);
}

/* Columns whose difference is not by chance; those that are large are told. */
static hl_report_level judge_columns(const hl_density_report *d, hl_text *t)
{
    size_t large = 0, small = 0;
    for (size_t i = 0; i < d->columns; i++) {
        const hl_report_column *c = &d->column[i];
        if (!(c->p * (double)d->columns < LEVEL))
            continue;
        if (c->distance < LARGE_DISTANCE)
            small++;
        else if (++large == 1)
            tell_column(c, t);
    }
    if (large > 1)
        hl_text_add(t, ", and %zu other column%s", large - 1, large > 2 ? "s differ, too" : " differs, too");
    if (!large && small) {
        hl_report_separate(t);
        hl_text_add(t, "%zu of %zu columns differ%s slightly, '%.60s' most (distance %.3f)", small, d->columns,
                    small == 1 ? "s" : "", d->column[0].name, d->column[0].distance);
    }
    return large ? HL_REPORT_WRONG : small ? HL_REPORT_MINOR : HL_REPORT_GOOD;
}

/* Too many rows where the model expects few: it lost a part of the data. Too few: it is spread too widely. */
static hl_report_level judge_ranks(const hl_density_report *d, hl_text *t)
{
    if (!(d->rank_p < LEVEL))
        return HL_REPORT_GOOD;
    hl_report_separate(t);
    if (d->unlikely > 0.03) {
        hl_text_add(t, "%.3g %% of the rows are where the model expects 1 %%: it misses a part of the data",
                    100 * d->unlikely);
        return d->unlikely > 0.05 ? HL_REPORT_WRONG : HL_REPORT_MINOR;
    }
    if (d->logp.value > d->draws_logp.value)
        hl_text_add(t, "rows are more likely than samples: the model is too wide");
    else
        hl_text_add(t, "rows are less likely than samples: the model is overconfident");
    return d->rank_distance > LARGE_DISTANCE ? HL_REPORT_WRONG : HL_REPORT_MINOR;
}

static bool varies(const hl_report *r, size_t column)
{
    const hl_report_column *c = &r->density.column[r->by_column[column]];
    return c->least[0] < c->largest[0] && c->least[1] < c->largest[1];
}

/* The pair of columns whose correlations differ most, of those that vary. */
static double worst_pair(const hl_report *r, size_t pair[2])
{
    const hl_density_report *d = &r->density;
    double most = 0;
    for (size_t i = 0; i < d->columns; i++)
        for (size_t j = 0; j < i && varies(r, i); j++) {
            if (!varies(r, j))
                continue;
            double change = fabs(d->correlation[1][i * d->columns + j] - d->correlation[0][i * d->columns + j]);
            if (change > most) {
                most = change;
                pair[0] = j;
                pair[1] = i;
            }
        }
    return most;
}

/* Correlations differ if Fisher's z does by more than six standard errors: columns with long tails vary more than normal ones. */
static hl_report_level judge_pairs(const hl_report *r, hl_text *t)
{
    const hl_density_report *d = &r->density;
    size_t pair[2] = { 0, 0 };
    if (r->set[0].rows < LEAST_CORRELATED || r->set[1].rows < LEAST_CORRELATED || r->far.rows)
        return HL_REPORT_GOOD;
    double change = worst_pair(r, pair),
           error = sqrt(1 / ((double)r->set[0].rows - 3) + 1 / ((double)r->set[1].rows - 3));
    double data = d->correlation[0][pair[1] * d->columns + pair[0]],
           draws = d->correlation[1][pair[1] * d->columns + pair[0]];
    if (!(change > LARGE_CORRELATION && fabs(atanh(draws * 0.9999) - atanh(data * 0.9999)) > 6 * error))
        return HL_REPORT_GOOD;
    hl_report_separate(t);
    hl_text_add(t, "the correlation of '%.60s' and '%.60s' is %.2f in the data and %.2f in the samples",
                r->name[pair[0]], r->name[pair[1]], data, draws);
    return change > 2 * LARGE_CORRELATION ? HL_REPORT_WRONG : HL_REPORT_MINOR;
}

static hl_report_level judge_distance(const hl_density_report *d, hl_text *t)
{
    if (!(d->distance.p < LEVEL))
        return HL_REPORT_GOOD;
    bool large = d->distance.share > LARGE_SHARE;
    if (!t->used)
        hl_text_add(t, "the joint distribution differs%s, although no single column does", large ? "" : " a little");
    return large ? HL_REPORT_WRONG : HL_REPORT_MINOR;
}

static hl_report_level judge_far(const hl_report *r, hl_text *t)
{
    if (!r->far.rows)
        return HL_REPORT_GOOD;
    hl_report_separate(t);
    hl_text_add(t, "row %zu is far from all samples: column '%.60s' is %.6g", r->far.number + 1, r->name[r->far.column],
                r->far.value);
    if (r->far.rows > 1)
        hl_text_add(t, "; so %s %zu other%s", r->far.rows > 2 ? "are" : "is", r->far.rows - 1,
                    r->far.rows > 2 ? "s" : "");
    return HL_REPORT_WRONG;
}

/* Rows outside of the bounds, at atoms in a pattern that was never seen, or too far away. */
static hl_report_level judge_impossible(const hl_report *r, hl_text *t)
{
    size_t count = 0, first = 0;
    for (size_t i = r->set[0].rows; i-- > 0;)
        if (isinf(r->set[0].logp[i])) {
            count++;
            first = r->set[0].number[i] + 1;
        }
    if (!count)
        return HL_REPORT_GOOD;
    hl_report_separate(t);
    hl_text_add(t, "%zu of %zu rows, such as row %zu, are impossible under the model: their log p is -inf", count,
                r->density.rows, first);
    return HL_REPORT_WRONG;
}

static hl_report_level judge_memory(const hl_density_report *d, hl_text *t)
{
    if (!(d->memorised_p < LEVEL * 0.1 && d->memorised > 2 * BY_CHANCE))
        return HL_REPORT_GOOD;
    hl_report_separate(t);
    hl_text_add(t,
                "%.3g %% of the samples nearly repeat a row of the data (1 %% by chance): the model has memorised rows",
                100 * d->memorised);
    return HL_REPORT_WRONG;
}

/* A gain in log p, or that there is none beyond its standard error. */
static void tell_gain(hl_text *t, hl_report_mean gain, const char *over)
{
    if (fabs(gain.value) < 0.005 || fabs(gain.value) < gain.error)
        hl_text_add(t, "equal to %s within %.2g nats", over, fmax(2 * gain.error, 0.005));
    else
        hl_text_add(t, "%.2f nats per row %s %s", fabs(gain.value), gain.value > 0 ? "above" : "below", over);
}

/* What the model gains over simple ones. */
static void tell_gains(const hl_report *r, hl_text *t)
{
    const hl_density_report *d = &r->density;
    if (*r->no_gains)
        hl_text_add(t, ". Gains in log p over simple densities are not shown: %s", r->no_gains);
    if (isnan(d->over_normal.value))
        return;
    hl_text_add(t, ". log p is ");
    tell_gain(t, d->over_normal, "that of a normal distribution");
    if (!isfinite(d->over_mixture.value))
        return;
    hl_text_add(t, " and ");
    tell_gain(t, d->over_mixture, d->mixture_member ? "that of its best mixture" : "that of a mixture");
}

void hl_density_judge(hl_report *r)
{
    const hl_density_report *d = &r->density;
    char what[480] = "";
    hl_text found = hl_text_start(what, sizeof what), t = hl_text_start(r->verdict, sizeof r->verdict);
    if (!r->set[0].rows || !r->set[1].rows) {
        hl_text_add(&t, d->rows
                            ? "No row could be compared: the model gives no log-density or no samples for these rows"
                            : "No data were given; this page describes the model only");
        r->level = d->rows ? HL_REPORT_WRONG : HL_REPORT_MINOR;
        return;
    }
    hl_report_level level[8] = { HL_REPORT_GOOD };
    if (d->failed) {
        hl_text_add(&found, "%zu of %zu rows have no log-density", d->failed, d->rows);
        level[0] = HL_REPORT_WRONG;
    }
    level[7] = judge_impossible(r, &found);
    level[6] = judge_far(r, &found);
    level[1] = judge_columns(d, &found);
    level[2] = judge_ranks(d, &found);
    level[5] = level[1] == HL_REPORT_WRONG ? HL_REPORT_GOOD : judge_pairs(r, &found);
    level[3] = judge_distance(d, &found);
    level[4] = judge_memory(d, &found);
    for (size_t i = 0; i < 8; i++)
        r->level = level[i] > r->level ? level[i] : r->level;
    if (r->level == HL_REPORT_WRONG)
        hl_text_add(&t, "The model does not describe these data: %s", what);
    else if (r->level == HL_REPORT_MINOR)
        hl_text_add(&t, "The model describes these data with small differences: %s",
                    found.used ? what : "their distance is significant");
    else
        hl_text_add(&t, "No test finds a difference between these data and samples from the model%s",
                    d->rows < FEW_ROWS ? ", but with so few rows only a large difference would be detected" : "");
    hl_report_tell_training(r->density.known, r->density.trained, &t);
    tell_gains(r, &t);
}
