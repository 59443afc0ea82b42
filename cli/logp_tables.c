/* logp_tables.c - what `hollow logp` prints instead of all rows: the least likely ones, or what the tolerance changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "logp.h"

/* ---- --worst ---- */

/* Without a log-density, then the lowest, then the first. */
static int order(const void *a, const void *b)
{
    const logp_row *p = a, *q = b;
    if (isnan(p->logp) != isnan(q->logp))
        return isnan(q->logp) ? 1 : -1;
    if (p->logp < q->logp || p->logp > q->logp)
        return p->logp < q->logp ? -1 : 1;
    return p->row < q->row ? -1 : 1;
}

void logp_keep_worst(logp_job *j, size_t start, size_t count)
{
    for (size_t r = 0; r < count; r++)
        j->worst[j->worst_count + r] = (logp_row){ j->logp[r], start + r };
    j->worst_count += count;
    qsort(j->worst, j->worst_count, sizeof *j->worst, order);
    j->worst_count = j->worst_count < j->most_worst ? j->worst_count : j->most_worst;
}

static void print_number(double value)
{
    char text[32];
    hl_number_text(value, 0, text);
    fputs(text, stdout);
}

/* The text of a value, if its column contains texts; else NULL. */
static const char *text_of(const logp_job *j, size_t column, double value)
{
    return hl_table_kind(j->table, column) == HL_COLUMN_LABELS ? hl_table_label(j->table, (size_t)value) : NULL;
}

/* In quotes, if a csv file would need them. */
static void print_text(const char *text)
{
    bool quote = strpbrk(text, ",;\t\"\r\n") != NULL;
    if (quote)
        putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    if (quote)
        putchar('"');
}

static void print_worst_csv(const logp_job *j, const double *values, size_t columns)
{
    printf("row,logp");
    for (size_t i = 0; i < j->columns; i++)
        printf(",%s", hl_table_name(j->table, i));
    for (size_t k = 0; k < j->worst_count; k++) {
        printf("\n%zu,", j->worst[k].row + 1);
        print_number(j->worst[k].logp);
        for (size_t i = 0; i < j->columns; i++) {
            const char *text = text_of(j, i, values[k * columns + i]);
            putchar(',');
            if (text)
                print_text(text);
            else
                print_number(values[k * columns + i]);
        }
    }
    putchar('\n');
}

static void print_worst_json(logp_job *j, const double *values, size_t columns)
{
    cli_json_open(&j->json, "worst", '[');
    for (size_t k = 0; k < j->worst_count; k++) {
        cli_json_open(&j->json, NULL, '{');
        cli_json_count(&j->json, "row", j->worst[k].row + 1);
        cli_json_exact(&j->json, "logp", j->worst[k].logp);
        for (size_t i = 0; i < j->columns; i++) {
            const char *text = text_of(j, i, values[k * columns + i]);
            if (text)
                cli_json_text(&j->json, hl_table_name(j->table, i), text);
            else
                cli_json_exact(&j->json, hl_table_name(j->table, i), values[k * columns + i]);
        }
        cli_json_close(&j->json, '}');
    }
    cli_json_close(&j->json, ']');
}

int logp_print_worst(logp_job *j)
{
    size_t columns = hl_table_columns(j->table);
    double *values = calloc(j->worst_count + 1, columns * sizeof *values);
    hl_status status = values ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < j->worst_count && status == HL_OK; k++)
        status = hl_table_read_rows(j->table, j->worst[k].row, 1, values + k * columns);
    if (status == HL_OK && cli_json_wanted())
        print_worst_json(j, values, columns);
    else if (status == HL_OK)
        print_worst_csv(j, values, columns);
    free(values);
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_logp, j->ctx, status);
}

/* ---- --calibrate ---- */

enum { CALIBRATION_ROWS = 1000, TOLERANCES = 5 };
static const double rtols[TOLERANCES] = { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6 };

static void print_calibration(const double *logp, size_t rows, const double *evaluations)
{
    bool as_json = cli_json_wanted();
    cli_json json = { .file = stdout };
    if (as_json) {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "calibration", '[');
    } else {
        printf("tolerance  mean log p       largest change  mean change   evaluations per row\n");
    }
    for (size_t k = 0; k < TOLERANCES; k++) {
        double mean = 0, largest = 0, change = 0;
        for (size_t r = 0; r < rows; r++) {
            double d = fabs(logp[k * rows + r] - logp[(TOLERANCES - 1) * rows + r]);
            mean += logp[k * rows + r] / (double)rows;
            change += d / (double)rows;
            largest = fmax(largest, d);
        }
        if (!as_json) {
            printf("%-9g  %-15.8g  %-14.3g  %-12.3g  %.1f\n", rtols[k], mean, largest, change, evaluations[k]);
            continue;
        }
        cli_json_open(&json, NULL, '{');
        cli_json_real(&json, "tolerance", rtols[k]);
        cli_json_exact(&json, "mean_logp", mean);
        cli_json_real(&json, "largest_change", largest);
        cli_json_real(&json, "mean_change", change);
        cli_json_real(&json, "evaluations", evaluations[k]);
        cli_json_close(&json, '}');
    }
    if (as_json) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        putchar('\n');
    }
}

int logp_calibrate(logp_job *j)
{
    size_t rows = j->rows < CALIBRATION_ROWS ? j->rows : CALIBRATION_ROWS;
    hl_flow_solver solver = hl_density_solver(j->model);
    double *logp = calloc(rows, TOLERANCES * sizeof *logp), evaluations[TOLERANCES];
    hl_status status = logp ? logp_read(j, j->first, rows) : HL_ERR_NOMEM;
    for (size_t k = 0; k < TOLERANCES && status == HL_OK; k++) {
        solver.rtol = solver.atol = rtols[k];
        solver.even_steps = 0;
        solver.divided = 0;
        status = hl_density_set_solver(j->model, &solver);
        hl_flow_reset(hl_density_flow(j->model));
        if (status == HL_OK)
            hl_density_logp(j->model, rows, j->x, j->c, logp + k * rows);
        if (cli_interrupted())
            status = HL_STOPPED;
        evaluations[k] = (double)hl_flow_report(hl_density_flow(j->model)).forward.f / (double)rows;
    }
    if (status == HL_OK)
        print_calibration(logp, rows, evaluations);
    free(logp);
    if (status == HL_STOPPED)
        return cli_fail(&cli_logp, CLI_STOPPED, "stopped");
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_logp, j->ctx, status);
}
