/* fig1.c - `hollow paper fig1`: compute everything, then write the files. */
#include <string.h>

#include "paper.h"

static int run(const paper_settings *set);
const paper_item paper_fig1 = { "fig1",
                                "the Jacobian of a hollow network, and the cost of D f compared with brute force",
                                run };

typedef struct fig1 {
    const paper_settings *set;
    hl_context *ctx;
    hl_net *net;
    fig1_jacobian jacobian;
    fig1_time time;
} fig1;

/* ---- the files ---- */

static int write_jacobian(FILE *out, const void *figure)
{
    const fig1 *a = figure;
    const fig1_jacobian *j = &a->jacobian;
    fprintf(out, "i,j,df_dx,dtau_dx,hollow\n");
    for (size_t at = 0; at < j->dim * j->dim; at++)
        fprintf(out, "%zu,%zu,%.17g,%.17g,%.17g\n", at / j->dim + 1, at % j->dim + 1, j->total[at], j->direct[at],
                j->hollow[at]);
    return 0;
}

static void write_matrix(FILE *out, const char *name, const double *m, size_t rows, size_t columns)
{
    for (size_t at = 0; at < rows * columns; at++)
        fprintf(out, "%s,%zu,%zu,%.17g\n", name, at / columns + 1, at % columns + 1, m[at]);
}

static int write_factors(FILE *out, const void *figure)
{
    const fig1 *a = figure;
    const fig1_jacobian *j = &a->jacobian;
    size_t n = j->dim * FIG1_FEATURES;
    fprintf(out, "matrix,row,column,value\n");
    write_matrix(out, "dtau_dh", j->by_h, j->dim, n);
    write_matrix(out, "dh_dx", j->h_by_x, n, j->dim);
    return 0;
}

static int write_times(FILE *out, const void *figure)
{
    const fig1 *a = figure;
    const fig1_time *t = &a->time;
    fprintf(out, "d,f_s,fd_s,brute_s,fd_over_f,brute_over_f\n");
    for (size_t i = 0; i < t->count; i++)
        fprintf(out, "%zu,%.6g,%.6g,%.6g,%.4g,%.4g\n", t->dim[i], t->f[i], t->fd[i], t->brute[i], t->fd[i] / t->f[i],
                t->brute[i] / t->f[i]);
    return 0;
}

static int write_json(FILE *out, const void *figure)
{
    const fig1 *a = figure;
    const fig1_jacobian *j = &a->jacobian;
    const fig1_time *t = &a->time;
    cli_json json = { .file = out };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "paper", "fig1");
    cli_json_count(&json, "d", j->dim);
    cli_json_count(&json, "features", FIG1_FEATURES);
    cli_json_count(&json, "seed", a->set->seed);
    cli_json_bool(&json, "quick", a->set->quick);
    cli_json_real(&json, "diagonal_error", j->diagonal_error);
    cli_json_real(&json, "sum_error", j->sum_error);
    cli_json_real(&json, "product_error", j->product_error);
    cli_json_real(&json, "hollow_diagonal", j->hollow_diagonal);
    cli_json_real(&json, "direct_off_diagonal", j->direct_off_diagonal);
    cli_json_open(&json, "time", '[');
    for (size_t i = 0; i < t->count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_count(&json, "d", t->dim[i]);
        cli_json_real(&json, "f_s", t->f[i]);
        cli_json_real(&json, "fd_s", t->fd[i]);
        cli_json_real(&json, "brute_s", t->brute[i]);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    fputc('\n', out);
    return 0;
}

static int draw_jacobian(FILE *gnuplot, const void *figure)
{
    return fig1_draw_jacobian(gnuplot, &((const fig1 *)figure)->jacobian);
}

static int draw_time(FILE *gnuplot, const void *figure)
{
    return fig1_draw_time(gnuplot, &((const fig1 *)figure)->time);
}

static const paper_file files[] = { { "fig1_jacobian.csv", write_jacobian, 0, 0 },
                                    { "fig1_factors.csv", write_factors, 0, 0 },
                                    { "fig1_time.csv", write_times, 0, 0 },
                                    { "fig1.json", write_json, 0, 0 },
                                    { "fig1_jacobian.png", draw_jacobian, FIG1_WIDTH, FIG1_JACOBIAN_HEIGHT },
                                    { "fig1_time.png", draw_time, FIG1_WIDTH, FIG1_TIME_HEIGHT } };

static int write_network(const fig1 *a)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/fig1.hollow", a->set->out) >= sizeof path)
        return cli_fail(&paper_command, CLI_WRONG, "the name of the directory is too long");
    hl_status status = hl_net_save(a->net, path);
    if (status != HL_OK)
        return cli_fail_library(&paper_command, a->ctx, status);
    printf("%s\n", path);
    return CLI_OK;
}

/* ---- the work ---- */

/* Say what was found; 1e-12 of a Jacobian whose entries are of order one. */
static int judge(const fig1 *a)
{
    const fig1_jacobian *j = &a->jacobian;
    fprintf(stderr,
            "Jacobian of a random hollow network, d = %zu, float64; largest differences:\n"
            "  its diagonal, and D f with h held               %.1e\n"
            "  all of it, and diagonal + hollow part           %.1e\n"
            "  the hollow part, and dtau/dh times dh/dx        %.1e\n"
            "  the diagonal of the hollow part, and zero       %g\n"
            "  dtau/dx off its diagonal, and zero              %g\n",
            j->dim, j->diagonal_error, j->sum_error, j->product_error, j->hollow_diagonal, j->direct_off_diagonal);
    bool good = j->diagonal_error <= 1e-12 && j->sum_error <= 1e-12 && j->product_error <= 1e-12 &&
                j->hollow_diagonal == 0 && j->direct_off_diagonal == 0;
    return good ? CLI_OK : cli_fail(&paper_command, CLI_FAILED, "fig1: the parts of the Jacobian do not add up");
}

static void print_times(const fig1_time *t)
{
    fprintf(stderr, "Microseconds per row, one thread, float32:\n     d        f  f and D f  brute force\n");
    for (size_t i = 0; i < t->count; i++)
        fprintf(stderr, "%6zu %8.2f %6.2f (%.2f f) %9.1f (%.0f f)\n", t->dim[i], 1e6 * t->f[i], 1e6 * t->fd[i],
                t->fd[i] / t->f[i], 1e6 * t->brute[i], t->brute[i] / t->f[i]);
    fputc('\n', stderr);
}

static int compute(fig1 *a)
{
    const paper_settings *set = a->set;
    hl_net_spec spec = { .dim = (size_t)set->dim,
                         .features = FIG1_FEATURES,
                         .hidden = 64,
                         .width = 32,
                         .transformer = "per-dimension",
                         .dtype = HL_F64 };
    hl_status status = hl_context_create(NULL, &a->ctx);
    if (status == HL_OK)
        status = hl_net_create(a->ctx, &spec, &a->net);
    if (status == HL_OK)
        status = hl_net_init(a->net, set->seed);
    if (status == HL_OK)
        status = fig1_jacobian_compute(&a->jacobian, a->net, a->ctx, set->seed);
    if (status != HL_OK)
        return cli_fail_library(&paper_command, a->ctx, status);
    int result = judge(a);
    if (result != CLI_OK)
        return result;
    fprintf(stderr, "\nTiming f, f with D f, and brute force in 2 to %d dimensions\n", set->quick ? 64 : 512);
    status = fig1_time_measure(&a->time, a->ctx, set->quick, set->seed);
    if (status == HL_STOPPED)
        return CLI_STOPPED;
    if (status != HL_OK)
        return cli_fail_library(&paper_command, a->ctx, status);
    print_times(&a->time);
    return CLI_OK;
}

static int run(const paper_settings *set)
{
    fig1 a = { .set = set };
    int error = cli_make_directory(set->out);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "cannot write to %s: %s", set->out, strerror(error));
    int result = compute(&a);
    if (result == CLI_OK)
        result = write_network(&a);
    if (result == CLI_OK)
        result = paper_write(set, sizeof files / sizeof *files, files, &a);
    if (result == CLI_STOPPED)
        cli_say(&paper_command, "stopped");
    fig1_jacobian_free(&a.jacobian);
    hl_net_free(a.net);
    hl_context_free(a.ctx);
    return result;
}
