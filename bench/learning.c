/* learning.c - `hollow bench learning`: how well each conditioner learns with the same number of parameters.
 *
 * Data with a known density: an image of 16 x 16 pixels in which every pixel depends on its left and upper neighbours,
 *
 *   x = 0.48 (left + up) + s e,   s = 0.25 + 0.5 / (1 + 4 (left - up)^2),   e ~ N(0, 1)
 *
 * so that -log p of a row is known exactly: its mean over the test rows is what a perfect model reaches. The *ordered* set
 * has the pixels in raster order, the *shuffled* one in a random order. Continuous flows are trained alike on both, and
 * what counts is how far the test rows' mean -log p is above the perfect one, the *gap*. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"

enum { SIDE = 16, D = SIDE * SIDE, TRAIN = 20000, VALID = 500, TEST = 1000, ROWS = TRAIN + VALID + TEST };

typedef struct contestant {
    const char *label, *conditioner;
    bool ordered;  /* columns ordered by correlation */
    bool shuffled; /* columns shuffled for the conditioner */
} contestant;

static const contestant contestants[] = {
    { "made", "made", false, false },
    { "made, columns shuffled", "made", false, true },
    { "sum", "sum", false, false },
    { "tree", "tree", false, false },
    { "tree, columns by correlation", "tree", true, false },
    { "conv", "conv", false, false },
    { "attention", "attention", false, false },
};
enum { CONTESTANTS = sizeof contestants / sizeof *contestants };

typedef struct set {
    const char *name;
    double *x;      /* [ROWS][D], standardised by the training rows */
    double perfect; /* mean -log p of the test rows in these units */
    size_t by_correlation[D], shuffle[D];
} set;

typedef struct outcome {
    size_t hidden, parameters;
    double gap, seconds, per_iteration;
} outcome;

/* ---- data ---- */

/* Row r in raster order; returns -log p of it. */
static double make_row(size_t r, double *x)
{
    double nll = 0;
    for (size_t i = 0; i < D; i++) {
        double left = i % SIDE ? x[i - 1] : 0, up = i >= SIDE ? x[i - SIDE] : 0, gap = left - up;
        double s = 0.25 + 0.5 / (1 + 4 * gap * gap), e = hl_random_normal(77, 0, r * D + i);
        x[i] = 0.48 * (left + up) + s * e;
        nll += 0.5 * e * e + log(s) + 0.5 * log(2 * 3.14159265358979323846);
    }
    return nll;
}

/* The first of `count` columns in a random order. */
static void random_order(uint64_t seed, size_t *order)
{
    for (size_t i = 0; i < D; i++)
        order[i] = i;
    for (size_t i = D; i > 1; i--) {
        size_t k = (size_t)(fabs(hl_random_normal(seed, 0, i)) * 1e6) % i, swap = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swap;
    }
}

static void standardise(set *s)
{
    for (size_t c = 0; c < D; c++) {
        double mean = 0, square = 0;
        for (size_t r = 0; r < TRAIN; r++)
            mean += s->x[r * D + c] / TRAIN;
        for (size_t r = 0; r < TRAIN; r++)
            square += (s->x[r * D + c] - mean) * (s->x[r * D + c] - mean) / TRAIN;
        for (size_t r = 0; r < ROWS; r++)
            s->x[r * D + c] = (s->x[r * D + c] - mean) / sqrt(square);
        s->perfect -= 0.5 * log(square);
    }
}

static hl_status make_set(hl_context *ctx, set *s, const char *name, bool shuffled)
{
    size_t order[D];
    double row[D];
    s->name = name;
    s->perfect = 0;
    random_order(5, order);
    for (size_t r = 0; r < ROWS; r++) {
        double nll = make_row(r, row);
        s->perfect += r >= TRAIN + VALID ? nll / TEST : 0;
        for (size_t i = 0; i < D; i++)
            s->x[r * D + i] = row[shuffled ? order[i] : i];
    }
    standardise(s);
    random_order(6, s->shuffle);
    return hl_order_columns(ctx, 2000, D, s->x, s->by_correlation);
}

/* ---- one contestant ---- */

static hl_net_spec spec_of(const contestant *c, const set *s, size_t hidden)
{
    hl_net_spec spec = { .dim = D, .conditioner = c->conditioner, .hidden = hidden, .features = 8, .width = 24 };
    if (strcmp(c->conditioner, "conv") == 0) {
        spec.image[0] = 1;
        spec.image[1] = spec.image[2] = SIDE;
        spec.kernel = 5;
    }
    spec.order = c->ordered ? s->by_correlation : c->shuffled ? s->shuffle : NULL;
    spec.activation = "swish";
    spec.time = 1;
    return spec;
}

/* The number of hidden units with which a network has about as many parameters as wanted. */
static hl_status fit_size(hl_context *ctx, const contestant *c, const set *s, size_t wanted, outcome *o)
{
    size_t low = 1, high = 4096;
    while (low < high) { /* the most units that do not exceed it */
        size_t middle = (low + high + 1) / 2;
        hl_net_spec spec = spec_of(c, s, middle);
        hl_net *net;
        hl_status status = hl_net_create(ctx, &spec, &net);
        if (status != HL_OK)
            return status;
        size_t size = hl_net_size(net);
        hl_net_free(net);
        if (size <= wanted) {
            low = middle;
            o->parameters = size;
        } else {
            high = middle - 1;
        }
    }
    o->hidden = low;
    return HL_OK;
}

static hl_status learn(hl_flow *flow, const set *s, const bench_learning_options *o, outcome *out)
{
    hl_fit *fit;
    hl_fit_data train = { TRAIN, s->x, NULL, NULL }, valid = { VALID, s->x + (size_t)TRAIN * D, NULL, NULL };
    hl_fit_options options = { .iterations = o->iterations,
                               .batch = 128,
                               .train_steps = 2,
                               .validate_every = o->iterations / 5 ? o->iterations / 5 : 1,
                               .loss = HL_LOSS_FLOW_MATCHING,
                               .solver = { .rtol = 1e-4, .atol = 1e-4 } };
    hl_status status = hl_fit_create(flow, &train, &valid, &options, &fit);
    double start = cli_now();
    hl_fit_report report;
    while (status == HL_OK && (status = hl_fit_step(fit, &report)) == HL_OK) {
        if (report.validated)
            fprintf(stderr, "    %5zu of %zu  %-13s  gap on validation rows %.2f\n", report.iteration,
                    report.iterations, hl_fit_phase_name(report.phase), report.validation - s->perfect);
        if (cli_interrupted())
            break;
    }
    out->seconds = cli_now() - start;
    out->per_iteration = out->seconds / (double)o->iterations;
    if (status == HL_STOPPED)
        status = hl_fit_finish(fit);
    hl_fit_free(fit);
    return cli_interrupted() ? HL_STOPPED : status;
}

static hl_status evaluate(hl_context *ctx, const contestant *c, const set *s, const bench_learning_options *o,
                          outcome *out)
{
    static double logp[TEST];
    hl_flow *flow;
    hl_flow_spec spec = { .net = spec_of(c, s, out->hidden) };
    hl_status status = hl_flow_create(ctx, &spec, &flow);
    if (status == HL_OK)
        status = hl_flow_init(flow, 1);
    if (status == HL_OK)
        status = learn(flow, s, o, out);
    if (status == HL_OK)
        status = hl_flow_logp(flow, TEST, s->x + (size_t)(TRAIN + VALID) * D, NULL, logp);
    out->gap = -s->perfect;
    for (size_t r = 0; r < TEST; r++)
        out->gap -= logp[r] / TEST;
    hl_flow_free(flow);
    return status < 0 || status == HL_STOPPED ? status : HL_OK;
}

/* ---- results ---- */

static void print(const contestant *c, const set *s, const outcome *o, const bench_learning_options *options)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "learning");
    cli_json_text(&json, "set", s->name);
    cli_json_text(&json, "contestant", c->label);
    cli_json_text(&json, "conditioner", c->conditioner);
    cli_json_count(&json, "d", D);
    cli_json_count(&json, "hidden", o->hidden);
    cli_json_count(&json, "parameters", o->parameters);
    cli_json_count(&json, "iterations", options->iterations);
    cli_json_real(&json, "perfect_nll", s->perfect);
    cli_json_real(&json, "gap", o->gap);
    cli_json_real(&json, "seconds_per_iteration", o->per_iteration);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
    fprintf(stderr, "%-30s %-9s %7zu parameters  gap %8.2f nats  %6.3f s an iteration\n", c->label, s->name,
            o->parameters, o->gap, o->per_iteration);
}

static int write_table(const bench_learning_options *o, const set s[2], outcome result[CONTESTANTS][2])
{
    cli_file file;
    int error = cli_file_open(&file, o->out, "learning.md");
    if (error)
        return cli_fail(&bench_command, CLI_WRONG, "%s: %s", o->out, strerror(error));
    fprintf(file.stream,
            "Written by `hollow bench learning --iterations %zu --parameters %zu`. Images of 16 x 16 pixels, each of "
            "which\n"
            "depends on its left and upper neighbours; %d training rows; continuous flows with at most %zu parameters, "
            "the\n"
            "same training for all. The gap is what the mean -log p of %d test rows is above that of the true density\n"
            "(%.2f nats, %.2f nats shuffled); smaller is better.\n\n"
            "| conditioner | hidden | parameters | gap, ordered | gap, shuffled | s an iteration |\n"
            "|---|---|---|---|---|---|\n",
            o->iterations, o->parameters, TRAIN, o->parameters, TEST, s[0].perfect, s[1].perfect);
    for (size_t i = 0; i < CONTESTANTS; i++)
        fprintf(file.stream, "| %s | %zu | %zu | %.1f | %.1f | %.2f |\n", contestants[i].label, result[i][0].hidden,
                result[i][0].parameters, result[i][0].gap, result[i][1].gap, result[i][0].per_iteration);
    error = cli_file_keep(&file);
    return error ? cli_fail(&bench_command, CLI_WRONG, "%s/learning.md: %s", o->out, strerror(error)) : CLI_OK;
}

static int compete(hl_context *ctx, const bench_learning_options *o, set s[2])
{
    outcome result[CONTESTANTS][2] = { { { 0 } } };
    hl_status status = make_set(ctx, &s[0], "ordered", false);
    if (status == HL_OK)
        status = make_set(ctx, &s[1], "shuffled", true);
    for (size_t i = 0; i < CONTESTANTS && status == HL_OK; i++)
        for (size_t k = 0; k < 2 && status == HL_OK; k++) {
            fprintf(stderr, "%s, %s\n", contestants[i].label, s[k].name);
            status = fit_size(ctx, &contestants[i], &s[k], o->parameters, &result[i][k]);
            if (status == HL_OK)
                status = evaluate(ctx, &contestants[i], &s[k], o, &result[i][k]);
            if (status == HL_OK)
                print(&contestants[i], &s[k], &result[i][k], o);
        }
    if (status == HL_STOPPED)
        return CLI_STOPPED;
    if (status != HL_OK)
        return cli_fail_library(&bench_command, ctx, status);
    return o->out ? write_table(o, s, result) : CLI_OK;
}

int bench_learning(const bench_learning_options *o)
{
    hl_context *ctx = NULL;
    set *s = calloc(2, sizeof *s);
    double *x = calloc((size_t)ROWS * D, 2 * sizeof *x);
    int result = CLI_FAILED, error = o->out ? cli_make_directory(o->out) : 0;
    if (error)
        result = cli_fail(&bench_command, CLI_WRONG, "%s: %s", o->out, strerror(error));
    else if (!s || !x)
        result = cli_no_memory(&bench_command);
    else if (hl_context_create(&(hl_context_options){ .threads = o->threads }, &ctx) == HL_OK) {
        s[0].x = x;
        s[1].x = x + (size_t)ROWS * D;
        result = compete(ctx, o, s);
    }
    hl_context_free(ctx);
    free(s);
    free(x);
    return result;
}
