/* solvers.c - `hollow bench solvers`: what the solvers cost and how right they are.
 *
 *     stiff       the Bari / CWI test set
 *     honest      33 problems by all methods: whether those that report success were right (honest_problem.h)
 *     network     stiff hollow networks (stiff_net.h), 8 rows of 32 values as one system, T = 1, tolerances 1e-5, against dopri5
 *     gradient    adjoints at tolerances 1e-6 against the gradient of the steps of dopri8 at 1e-10
 *     inversion   residual networks (residual_net.h) to 1e-10 */
#include "solvers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problems/numbers.h"
#include "problems/residual_net.h"
#include "problems/stiff_problem.h"

/* ---- results ---- */

solver_result solver_result_empty(const char *section, const char *method)
{
    return (solver_result){ .section = section,
                            .method = method,
                            .kappa = NAN,
                            .coupling = NAN,
                            .lipschitz = NAN,
                            .sign = NAN,
                            .rtol = NAN,
                            .f = NAN,
                            .f_low = NAN,
                            .f_high = NAN,
                            .diagonal = NAN,
                            .jvp = NAN,
                            .vjp = NAN,
                            .steps = NAN,
                            .ratio = NAN,
                            .ratio_low = NAN,
                            .ratio_high = NAN,
                            .ratio_tenth = NAN,
                            .ratio_quarter = NAN,
                            .ratio_three_quarters = NAN,
                            .ratio_nine_tenths = NAN,
                            .error = NAN,
                            .drift = NAN,
                            .amplification = NAN,
                            .trusted = NAN,
                            .runs = NAN,
                            .good = NAN,
                            .dishonest = NAN,
                            .found = NAN,
                            .seconds = NAN };
}

typedef struct member {
    const char *key;
    size_t offset;
} member;

#define MEMBER(key, field)                                                                                             \
    {                                                                                                                  \
        key, offsetof(solver_result, field)                                                                            \
    }
static const member texts[] = { MEMBER("section", section), MEMBER("problem", problem), MEMBER("method", method),
                                MEMBER("adjoint", adjoint) };
static const member numbers[] = { MEMBER("kappa", kappa),
                                  MEMBER("coupling", coupling),
                                  MEMBER("lipschitz", lipschitz),
                                  MEMBER("sign", sign),
                                  MEMBER("rtol", rtol),
                                  MEMBER("f", f),
                                  MEMBER("f_low", f_low),
                                  MEMBER("f_high", f_high),
                                  MEMBER("D", diagonal),
                                  MEMBER("jvp", jvp),
                                  MEMBER("vjp", vjp),
                                  MEMBER("steps", steps),
                                  MEMBER("ratio", ratio),
                                  MEMBER("ratio_low", ratio_low),
                                  MEMBER("ratio_high", ratio_high),
                                  MEMBER("ratio_q10", ratio_tenth),
                                  MEMBER("ratio_q25", ratio_quarter),
                                  MEMBER("ratio_q75", ratio_three_quarters),
                                  MEMBER("ratio_q90", ratio_nine_tenths),
                                  MEMBER("error", error),
                                  MEMBER("drift", drift),
                                  MEMBER("amplification", amplification),
                                  MEMBER("trusted", trusted),
                                  MEMBER("runs", runs),
                                  MEMBER("good", good),
                                  MEMBER("dishonest", dishonest),
                                  MEMBER("found", found),
                                  MEMBER("seconds", seconds) };
#undef MEMBER
enum { TEXTS = sizeof texts / sizeof *texts, NUMBERS = sizeof numbers / sizeof *numbers };

static const char *text_of(const solver_result *r, size_t k)
{
    return *(const char *const *)((const char *)r + texts[k].offset);
}

static double number_of(const solver_result *r, size_t k)
{
    return *(const double *)((const char *)r + numbers[k].offset);
}

static void print_json(const solver_result *r)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "solvers");
    for (size_t k = 0; k < TEXTS; k++)
        if (text_of(r, k))
            cli_json_text(&json, texts[k].key, text_of(r, k));
    for (size_t k = 0; k < NUMBERS; k++)
        if (!isnan(number_of(r, k)))
            cli_json_real(&json, numbers[k].key, number_of(r, k));
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
}

/* The same for people: what the line is, then its numbers. */
static void print_row(const solver_result *r, bool head)
{
    if (head)
        fprintf(stderr, "\n%s\n", r->section);
    for (size_t k = 1; k < TEXTS; k++)
        if (text_of(r, k))
            fprintf(stderr, "%-*s ", k == 1 ? 9 : 17, text_of(r, k));
    for (size_t k = 0; k < NUMBERS; k++)
        if (!isnan(number_of(r, k)))
            fprintf(stderr, " %s %.4g", numbers[k].key, number_of(r, k));
    fputc('\n', stderr);
}

void solver_bench_add(solver_bench *b, const solver_result *r)
{
    bool head = b->count == 0 || strcmp(b->result[b->count - 1].section, r->section) != 0;
    if (b->count < SOLVER_RESULTS)
        b->result[b->count++] = *r;
    print_row(r, head);
    print_json(r);
}

static int write_csv(const solver_bench *b, const char *out)
{
    cli_file file;
    int error = cli_file_open(&file, out, "solvers.csv");
    if (error)
        return error;
    for (size_t k = 0; k < TEXTS; k++)
        fprintf(file.stream, "%s,", texts[k].key);
    for (size_t k = 0; k < NUMBERS; k++)
        fprintf(file.stream, "%s%s", numbers[k].key, k + 1 < NUMBERS ? "," : "\n");
    for (size_t i = 0; i < b->count; i++) {
        for (size_t k = 0; k < TEXTS; k++)
            fprintf(file.stream, "%s,", text_of(&b->result[i], k) ? text_of(&b->result[i], k) : "");
        for (size_t k = 0; k < NUMBERS; k++) {
            double v = number_of(&b->result[i], k);
            if (!isnan(v))
                fprintf(file.stream, "%.6g", v);
            fputc(k + 1 < NUMBERS ? ',' : '\n', file.stream);
        }
    }
    return cli_file_keep(&file);
}

static int draw(const solver_bench *b, const char *out)
{
    cli_file file;
    if (!cli_have_gnuplot()) {
        cli_say(&bench_command, "no picture: gnuplot is not installed");
        return 0;
    }
    int error = cli_plot_open(&file, out, "solvers.png", SOLVER_WIDTH, SOLVER_HEIGHT);
    if (error)
        return error;
    solver_bench_draw(file.stream, b);
    return cli_plot_keep(&file);
}

/* ---- the stiff test set ---- */

static hl_status run_stiff(solver_bench *b, const stiff_problem *p, const char *method, double rtol,
                           const double *answer)
{
    double y[STIFF_MAX], start = cli_now();
    hl_ode_counts c = { 0 };
    solver_result r = solver_result_empty("stiff", method);
    hl_status status = stiff_problem_solve(b->ctx, p, method, rtol, y, &c);
    r.seconds = cli_now() - start;
    r.problem = p->name;
    r.rtol = rtol;
    r.f = (double)c.f_calls;
    r.diagonal = (double)c.diagonal_calls;
    r.jvp = (double)c.jvp_calls;
    r.vjp = (double)c.vjp_calls;
    r.steps = (double)c.steps;
    r.error = status >= 0 ? stiff_problem_error(p, y, answer, rtol) : INFINITY;
    solver_bench_add(b, &r);
    return status == HL_ERR_NOMEM ? status : cli_interrupted() ? HL_STOPPED : HL_OK;
}

static hl_status stiff_set(solver_bench *b)
{
    static const char *const methods[] = { "auto", "bdf-gmres", "bdf-newton", "bdf-jacobi" };
    double answer[STIFF_MAX];
    hl_status status = HL_OK;
    for (const stiff_problem *p = stiff_problems; p->name && status == HL_OK; p++) {
        status = stiff_problem_answer(b->ctx, p, answer);
        for (int k = 0; k < 2; k++)
            for (size_t m = 0; m < (b->quick ? 2 : 4) && status == HL_OK; m++)
                if ((k ? 1e-6 : 1e-3) >= p->finest && (m == 0 || m == 2 || p->gmres))
                    status = run_stiff(b, p, methods[m], k ? 1e-6 : 1e-3, answer);
    }
    return status;
}

/* ---- inversion ---- */

static hl_status invert(solver_bench *b, residual_net *net, const char *method, solver_result r)
{
    static double x[RESIDUAL_SIZE];
    hl_root_row info[RESIDUAL_ROWS];
    hl_root *root;
    double counts[RESIDUAL_ROWS], found = 0, start = cli_now();
    hl_status status = hl_root_create(b->ctx, &net->system, &(hl_root_options){ .method = method }, &root);
    if (status != HL_OK)
        return status;
    memcpy(x, net->target, sizeof x);
    status = hl_root_solve(root, RESIDUAL_ROWS, NULL, x, info);
    hl_root_free(root);
    r.method = method;
    r.seconds = cli_now() - start;
    r.error = r.lipschitz < 1 || r.sign > 0
                  ? 0
                  : NAN; /* else there may be other solutions than the one that y was made from */
    for (size_t i = 0; i < RESIDUAL_ROWS; i++) {
        counts[i] = (double)info[i].evaluations;
        found += info[i].status == HL_OK;
    }
    for (size_t i = 0; i < RESIDUAL_SIZE; i++)
        if (info[i / STIFF_NET_DIM].status == HL_OK && !isnan(r.error))
            r.error = fmax(r.error, fabs(x[i] - net->answer[i]) / 1e-10);
    r.f = numbers_median(counts, RESIDUAL_ROWS);
    r.f_low = counts[0];
    r.f_high = counts[RESIDUAL_ROWS - 1];
    r.found = found / RESIDUAL_ROWS;
    solver_bench_add(b, &r);
    return status == HL_ERR_NO_SOLUTION ? HL_OK : status;
}

static hl_status inversion(solver_bench *b)
{
    static const char *const methods[] = { "fixed-point", "jacobi", "anderson", "newton-krylov" };
    static const double constants[] = { .5, .9, .99, 5 }, couplings[] = { .1, .3 };
    static residual_net net;
    hl_status status = HL_OK;
    for (size_t k = 0; k < 16 && status == HL_OK; k += b->quick ? 5 : 1) {
        solver_result r = solver_result_empty("inversion", NULL);
        r.lipschitz = constants[k / 2 % 4];
        r.sign = k % 2 ? -1 : 1;
        r.coupling = couplings[k / 8];
        status = residual_net_create(&net, b->ctx, r.lipschitz, r.sign, r.coupling, 1);
        for (size_t m = 0; m < 4 && status == HL_OK; m++)
            status = cli_interrupted() ? HL_STOPPED : invert(b, &net, methods[m], r);
        residual_net_free(&net);
    }
    return status;
}

/* ---- the command ---- */

static int run(solver_bench *b, const char *out)
{
    hl_status status = stiff_set(b);
    if (status == HL_OK)
        status = solver_bench_honest(b);
    if (status == HL_OK)
        status = solver_bench_networks(b);
    if (status == HL_OK)
        status = solver_bench_gradients(b);
    if (status == HL_OK)
        status = inversion(b);
    if (status == HL_STOPPED)
        return CLI_STOPPED;
    if (status != HL_OK)
        return cli_fail_library(&bench_command, b->ctx, status);
    int error = out ? write_csv(b, out) : 0;
    if (out && !error)
        error = draw(b, out);
    return error ? cli_fail(&bench_command, CLI_WRONG, "%s: %s", out, error < 0 ? "gnuplot failed" : strerror(error))
                 : CLI_OK;
}

int bench_solvers(bool quick, int threads, const char *out)
{
    solver_bench *b = calloc(1, sizeof *b);
    int error = out ? cli_make_directory(out) : 0, result = CLI_FAILED;
    if (error)
        result = cli_fail(&bench_command, CLI_WRONG, "%s: %s", out, strerror(error));
    else if (!b || hl_context_create(&(hl_context_options){ .threads = threads }, &b->ctx) != HL_OK)
        result = cli_no_memory(&bench_command);
    else {
        b->quick = quick;
        b->seeds = quick ? 2 : 40;
        result = run(b, out);
        hl_context_free(b->ctx);
    }
    free(b);
    return result;
}
