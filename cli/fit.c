/* fit.c - `hollow fit`: train a density model on a table. */
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = { "cnf", "nice", "realnvp", "maf", "iaf", "naf", NULL };
static const char *const conditioners[] = { "made", "conv", "attention", "tree", "sum", NULL };
static const char *const activations[] = { "tanh", "softplus", "swish", "elu", "sigmoid", NULL };
static const char *const traces[] = { "exact", "hutchinson", "brute", NULL };
static const char *const losses[] = { "default", "nll", "flow-matching", "score", NULL };
static const char *const dtypes[] = { "f32", "f64", NULL };
static const char *const optimizers[] = { "adamw", "adam", "adamax", "sgd", NULL };
static const char *const switches[] = { "on", "off", NULL };

#define AT(member) offsetof(fit_settings, member)
static const cli_option options[] = {
    { "o", CLI_TEXT, AT(out), "MODEL", "the model's file; needed", 0, 0, NULL },
    { "valid", CLI_TEXT, AT(valid), "FILE", "rows for validation; default a tenth of DATA", 0, 0, NULL },
    { "columns", CLI_TEXT, AT(columns), "LIST", "use these columns of DATA only, such as 'a,b' or 1-5", 0, 0, NULL },
    { "context", CLI_TEXT, AT(context), "LIST", "columns that the density of the others depends on", 0, 0, NULL },
    { "model", CLI_CHOICE, AT(kind), "NAME", "cnf (default), nice, realnvp, maf, iaf, naf", 0, 0, kinds },
    { "conditioner", CLI_CHOICE, AT(conditioner), "NAME",
      "made (default to 512 columns), tree (above), sum, conv, attention", 0, 0, conditioners },
    { "image", CLI_TEXT, AT(image), "HxW", "shape of a row for conditioner conv: HxW or CxHxW", 0, 0, NULL },
    { "flows", CLI_INTEGER, AT(flows), "N", "networks one after the other", 1, 1000, NULL },
    { "hidden", CLI_INTEGER, AT(hidden), "N", "units of the conditioner's layers", 1, 1 << 20, NULL },
    { "hidden-layers", CLI_INTEGER, AT(hidden_layers), "N", "layers of the conditioner", 1, 64, NULL },
    { "features", CLI_INTEGER, AT(features), "N", "values of each h_i", 2, 65536, NULL },
    { "width", CLI_INTEGER, AT(width), "N", "units of the transformer's layers", 1, 1 << 20, NULL },
    { "layers", CLI_INTEGER, AT(layers), "N", "layers of the transformer", 1, 64, NULL },
    { "activation", CLI_CHOICE, AT(activation), "NAME", "tanh, softplus, swish, elu, sigmoid", 0, 0, activations },
    { "trace", CLI_CHOICE, AT(trace), "NAME", "of training: exact (default), hutchinson, brute", 0, 0, traces },
    { "loss", CLI_CHOICE, AT(loss), "NAME", "nll, flow-matching, score; default: flow-matching, then nll", 0, 0,
      losses },
    { "transport", CLI_CHOICE, AT(transport), "on|off",
      "flow matching pairs by optimal transport; default on to 8 columns", 0, 0, switches },
    { "decorrelate", CLI_CHOICE, AT(decorrelate), "on|off",
      "take linear correlations out before; default where they are strong, to 512 columns", 0, 0, switches },
    { "solver", CLI_TEXT, AT(solver), "NAME",
      "of the density and, without --ode-steps, of training: dopri5, tsit5, adams-jacobi, auto, ...", 0, 0, NULL },
    { "rtol", CLI_REAL, AT(rtol), "X", "relative tolerance of the density; default 1e-5", 1e-16, 1, NULL },
    { "atol", CLI_REAL, AT(atol), "X", "absolute tolerance; default 1e-5", 1e-100, 1, NULL },
    { "ode-steps", CLI_INTEGER, AT(ode_steps), "N",
      "steps of rk4 in training, doubled when too few; default 8 to 3 columns, else 4", 1, 256, NULL },
    { "iters", CLI_INTEGER, AT(iterations), "N", "iterations; default 4000 to 3 columns, else 2000", 1, 1e12, NULL },
    { "minutes", CLI_REAL, AT(minutes), "M", "stop after this time (then runs do not repeat)", 0, 1e6, NULL },
    { "batch", CLI_INTEGER, AT(batch), "N", "rows of a batch; default 512 to 3 columns, 128 above 512, else 256", 1,
      1000000, NULL },
    { "optimizer", CLI_CHOICE, AT(optimizer), "NAME", "adamw (default), adam, adamax, sgd", 0, 0, optimizers },
    { "lr", CLI_REAL, AT(lr), "X", "largest learning rate; default 1e-2 to 3 columns, else 5e-3", 1e-12, 10, NULL },
    { "weight-decay", CLI_REAL, AT(weight_decay), "X", "default 0 with many rows, more with few", 0, 10, NULL },
    { "jitter", CLI_REAL, AT(jitter), "X",
      "noise on rows of training, in deviations, falls from this to 0; default 0 with many rows, 0.3 with few", 0, 10,
      NULL },
    { "warmup", CLI_INTEGER, AT(warmup), "N", "iterations in which the rate rises; default a fiftieth", 1, 1e12, NULL },
    { "last-lr", CLI_REAL, AT(last_lr), "X", "share of the rate at the end of its cosine; default 0.01", 1e-12, 1,
      NULL },
    { "clip", CLI_REAL, AT(clip), "X", "largest norm of a gradient; default 10", 1e-12, 1e300, NULL },
    { "average", CLI_REAL, AT(average), "X", "decay of the average of the weights; default 0.99", 1e-12, 0.999999,
      NULL },
    { "patience", CLI_INTEGER, AT(patience), "N", "stop after N validations without a better one; default 8", 1, 100000,
      NULL },
    { "seed", CLI_INTEGER, AT(seed), "N", "of everything random; default 0", 0, 9e15, NULL },
    { "dtype", CLI_CHOICE, AT(dtype), "f32|f64", "precision of the network; default f32", 0, 0, dtypes },
    { "dequantize", CLI_FLAG, AT(dequantize), NULL, "add noise to whole-numbered and tied columns", 0, 0, NULL },
    { "drop-missing", CLI_FLAG, AT(drop), NULL, "leave rows with missing values out", 0, 0, NULL },
    { "array", CLI_TEXT, AT(array), "NAME", "npz: the array to read", 0, 0, NULL },
    { "resume", CLI_FLAG, AT(resume), NULL, "go on from MODEL.ckpt, to the same bits", 0, 0, NULL },
    { "save-every", CLI_REAL, AT(save_every), "SECONDS", "between checkpoints in MODEL.ckpt; default 20", 0, 1e6,
      NULL },
    { "log", CLI_TEXT, AT(log), "FILE", "one line of JSON for each iteration", 0, 0, NULL },
    { "plot", CLI_TEXT, AT(plot), "DIR", "pictures: curves, density and samples", 0, 0, NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "default: all of the machine; changes no bit", 1, 256, NULL },
    { 0 },
};

static const char text[] = "Trains a density model on the rows of DATA (csv, npy, npz, or - for stdin). Columns\n"
                           "are standardised inside; log-densities and samples are in the units of the data.\n"
                           "The defaults should do; what they are depends on the number of columns and rows.\n"
                           "Ctrl-C writes MODEL.ckpt, from which --resume goes on. Few training steps of the\n"
                           "ODE solver can be exploited by training, so each validation compares them with the\n"
                           "adaptive solver and doubles them when they differ.\n";

static int run(int argc, char **argv);
const cli_command cli_fit = {
    "fit", "DATA -o MODEL [--option VALUE ...]", "train a density model on a table", text, options, 1, 1, run
};

enum { TREE_COLUMNS = 512, SHUFFLE_COLUMNS = 8, ORDER_ROWS = 2000, WIDE_ROWS = 100 /* of a validation */ };

typedef struct job {
    const fit_settings *set;
    hl_context *ctx;
    fit_data data;
    hl_density *model;
    hl_fit *fit;
    hl_fit_options options;
    char *checkpoint, *settings;
    FILE *log;
    fit_curves curves;
    double start, saved, scale; /* scale: from the standardised loss to the units of the data */
    double recent;              /* likelihood's loss of late, in these units */
    bool terminal, resume;
    struct {
        hl_fit_phase phase;
        size_t count;         /* iterations of this phase */
        double last, seconds; /* when the last was done; of one, of late */
    } pace;
} job;

/* ---- defaults ---- */

static size_t pick(uint64_t given, size_t otherwise)
{
    return given ? (size_t)given : otherwise;
}

/* An order of columns: shuffled for made, which then sees related columns from far; by correlation for the tree. */
static int choose_order(job *j, const char *conditioner)
{
    fit_data *d = &j->data;
    bool tree = strcmp(conditioner, "tree") == 0;
    if (!(tree && d->dim <= 8192) && !(strcmp(conditioner, "made") == 0 && d->dim > SHUFFLE_COLUMNS))
        return CLI_OK;
    d->order = calloc(d->dim, sizeof *d->order);
    if (!d->order)
        return cli_fail(&cli_fit, CLI_FAILED, "out of memory");
    if (tree) {
        size_t rows = d->train.rows < ORDER_ROWS ? d->train.rows : ORDER_ROWS;
        hl_status status = hl_order_columns(j->ctx, rows, d->dim, d->train.x, d->order);
        return status == HL_OK ? CLI_OK : cli_fail_library(&cli_fit, j->ctx, status);
    }
    for (size_t i = 0; i < d->dim; i++)
        d->order[i] = i;
    for (size_t i = d->dim; i > 1; i--) {
        size_t k = (size_t)(fabs(cli_normal(j->set->seed + 23, i)) * 1e9) % i, keep = d->order[i - 1];
        d->order[i - 1] = d->order[k];
        d->order[k] = keep;
    }
    return CLI_OK;
}

/* "28x28" or "3x32x32": channels, height and width; zeros if there is none. */
static int read_image(const fit_settings *s, size_t image[3])
{
    int used = 0;
    memset(image, 0, 3 * sizeof *image);
    if (!s->image)
        return CLI_OK;
    if (sscanf(s->image, "%7zux%7zux%7zu%n", &image[0], &image[1], &image[2], &used) == 3 && !s->image[used])
        return CLI_OK;
    image[0] = 1;
    used = 0;
    if (sscanf(s->image, "%7zux%7zu%n", &image[1], &image[2], &used) == 2 && !s->image[used])
        return CLI_OK;
    return cli_fail(&cli_fit, CLI_WRONG, "--image: '%s' is not HEIGHTxWIDTH or CHANNELSxHEIGHTxWIDTH", s->image);
}

static hl_flow_spec flow_spec(const job *j, const char *conditioner)
{
    const fit_settings *s = j->set;
    size_t dim = j->data.dim;
    bool small = dim <= 3, made = strcmp(conditioner, "made") == 0, cnf = !s->kind || strcmp(s->kind, "cnf") == 0;
    hl_flow_spec spec = { .kind = s->kind, .flows = s->flows };
    spec.net = (hl_net_spec){ .dim = dim,
                              .context = j->data.context,
                              .dtype = s->dtype && strcmp(s->dtype, "f64") == 0 ? HL_F64 : HL_F32,
                              .hidden = pick(s->hidden, small          ? 64
                                                        : made || !cnf ? 128
                                                                       : 32),
                              .hidden_layers = (int)pick(s->hidden_layers, small && cnf ? 1 : 2),
                              .features = pick(s->features, cnf ? 16 : 0),
                              .width = pick(s->width, !cnf    ? 0
                                                      : small ? 64
                                                              : 32),
                              .layers = (int)pick(s->layers, !cnf    ? 0
                                                             : small ? 3
                                                                     : 2),
                              .activation = s->activation   ? s->activation
                                            : small || !cnf ? "tanh"
                                                            : "swish" };
    if (cnf) {
        spec.net.conditioner = conditioner;
        spec.net.order = j->data.order;
    }
    return spec;
}

static void choose_training(job *j)
{
    const fit_settings *s = j->set;
    bool small = j->data.dim <= 3, wide = j->data.dim > TREE_COLUMNS;
    double rows = (double)j->data.train.rows;
    j->options = (hl_fit_options){
        .loss = !s->loss || strcmp(s->loss, "default") == 0 ? wide ? HL_LOSS_FLOW_MATCHING : HL_LOSS_DEFAULT
                : strcmp(s->loss, "nll") == 0               ? HL_LOSS_LIKELIHOOD
                : strcmp(s->loss, "score") == 0             ? HL_LOSS_SCORE
                                                            : HL_LOSS_FLOW_MATCHING,
        .transport = !s->transport                     ? 0
                     : strcmp(s->transport, "on") == 0 ? 1
                                                       : -1,
        .iterations = pick(s->iterations, small ? 4000 : 2000),
        .batch = pick(s->batch, small  ? 512
                                : wide ? 128
                                       : 256),
        .jitter = s->jitter >= 0 ? s->jitter
                  : rows < 5000  ? fmin(2000 / rows, 1) * 0.3
                                 : 0,
        .warmup = (size_t)s->warmup,
        .last_rate = s->last_lr,
        .train_steps = s->solver && !s->ode_steps ? SIZE_MAX : s->ode_steps, /* SIZE_MAX: adaptive */
        .train_trace = !s->trace || strcmp(s->trace, "exact") == 0 ? HL_TRACE_EXACT
                       : strcmp(s->trace, "brute") == 0            ? HL_TRACE_BRUTE
                                                                   : HL_TRACE_HUTCHINSON,
        .solver = { .method = s->solver, .rtol = s->rtol, .atol = s->atol },
        .validation_rows = wide ? WIDE_ROWS : 0,
        .patience = pick(s->patience, 8),
        .seed = s->seed,
    };
    j->options.matching = small ? 2 * j->options.iterations / 3 : j->options.iterations / 3;
    j->options.optimizer = (hl_optimizer_options){
        .method = s->optimizer,
        .rate = s->lr > 0 ? s->lr
                : small   ? 1e-2
                          : 5e-3,
        .weight_decay = s->weight_decay >= 0 ? s->weight_decay
                        : rows < 20000       ? fmin(2000 / rows, 1) * 0.1
                                             : 0,
        .clip = s->clip,
        .average = s->average,
    };
}

/* All that decides the bits of the result, in one line. */
static int describe_settings(job *j)
{
    const hl_fit_options *o = &j->options;
    hl_flow_spec f = hl_flow_describe(hl_density_flow(j->model));
    j->settings = malloc(1000);
    if (!j->settings)
        return cli_fail(&cli_fit, CLI_FAILED, "out of memory");
    snprintf(j->settings, 1000,
             "iters %zu batch %zu seed %llu model %s flows %zu conditioner %s hidden %zux%d features %zu "
             "transformer %zux%d activation %s image %zux%zux%zu dtype %s trace %d loss %d steps %zu solver %s rtol "
             "%.17g atol %.17g lr "
             "%.17g decay %.17g "
             "optimizer %s warmup %zu last %.17g clip %.17g average %.17g jitter %.17g transport %d decorrelated %d "
             "patience %zu rows %zu+%zu data %016llx",
             o->iterations, o->batch, (unsigned long long)o->seed, f.kind, f.flows, f.net.conditioner, f.net.hidden,
             f.net.hidden_layers, f.net.features, f.net.width, f.net.layers, f.net.activation, f.net.image[0],
             f.net.image[1], f.net.image[2], hl_dtype_name(f.net.dtype), (int)o->train_trace, (int)o->loss,
             o->train_steps, o->solver.method ? o->solver.method : "dopri5", o->solver.rtol, o->solver.atol,
             o->optimizer.rate, o->optimizer.weight_decay, o->optimizer.method ? o->optimizer.method : "adamw",
             o->warmup, o->last_rate, o->optimizer.clip, o->optimizer.average, o->jitter, o->transport,
             j->data.factor != NULL, o->patience, j->data.train.rows, j->data.valid.rows,
             (unsigned long long)j->data.hash);
    return CLI_OK;
}

/* ---- talk ---- */

/* The time of an iteration with its share of a validation, averaged over about as many as there are between two validations.
 * Phases differ by a factor of ten and more, so that one says nothing about the other. */
static void keep_pace(job *j, const hl_fit_report *r)
{
    double now = cli_now(), window = fmax((double)r->iterations / 20, 10);
    if (r->phase != j->pace.phase)
        j->pace.count = 0;
    j->pace.phase = r->phase;
    j->pace.count++;
    j->pace.seconds += (now - j->pace.last - j->pace.seconds) / fmin((double)j->pace.count, window);
    j->pace.last = now;
}

static void progress(const job *j, const hl_fit_report *r)
{
    bool first = r->phase == HL_FIT_FLOW_MATCHING && j->options.loss == HL_LOSS_DEFAULT; /* of two phases */
    size_t end = first ? j->options.matching : r->iterations;
    double rate = j->pace.seconds, left = rate * (double)(end - r->iteration);
    double shift = r->phase == HL_FIT_LIKELIHOOD ? j->scale : 0;
    if (!j->terminal && !r->validated)
        return;
    fprintf(stderr, "%s%6zu/%zu  %-13s  loss %9.4f", j->terminal ? "\r" : "", r->iteration, r->iterations,
            hl_fit_phase_name(r->phase), r->loss + shift);
    if (isfinite(r->best))
        fprintf(stderr, "  valid %9.4f  best %9.4f", (r->validated ? r->validation : r->best) + j->scale,
                r->best + j->scale);
    fprintf(stderr, "  NFE %3.0f  %6.0f rows/s  ETA %2.0f:%02.0f%s ", r->evaluations,
            rate > 0 ? (double)j->options.batch / rate : 0, floor(left / 60), floor(fmod(left, 60)),
            first ? " + likelihood" : "");
    if (r->steps_doubled)
        fprintf(stderr, "%s(the training steps differ from the adaptive solver, %.3f and %.3f nats: doubled)",
                j->terminal ? "\n" : "", r->validation_fixed + j->scale, r->validation + j->scale);
    if (!j->terminal || r->steps_doubled)
        fputc('\n', stderr);
}

static void log_line(job *j, const hl_fit_report *r)
{
    double shift = r->phase == HL_FIT_LIKELIHOOD ? j->scale : 0;
    double point[5] = { (double)r->iteration, r->phase == HL_FIT_LIKELIHOOD ? r->loss + shift : NAN,
                        r->validated ? r->validation + j->scale : NAN, r->evaluations, r->phase == HL_FIT_LIKELIHOOD };
    fit_curves_add(&j->curves, point);
    if (!j->log)
        return;
    cli_json json = { j->log, false };
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "iteration", r->iteration);
    cli_json_text(&json, "phase", hl_fit_phase_name(r->phase));
    cli_json_real(&json, "loss", r->loss + shift);
    cli_json_real(&json, "gradient_norm", r->gradient_norm);
    cli_json_real(&json, "evaluations", r->evaluations);
    cli_json_real(&json, "backward", r->backward);
    cli_json_count(&json, "ode_steps", r->ode_steps);
    cli_json_real(&json, "seconds", cli_now() - j->start);
    if (r->validated) {
        cli_json_real(&json, "validation", r->validation + j->scale);
        cli_json_real(&json, "validation_fixed", r->validation_fixed + j->scale);
        cli_json_real(&json, "best", r->best + j->scale);
    }
    cli_json_close(&json, '}');
    fputc('\n', j->log);
    fflush(j->log);
}

/* ---- the loop ---- */

static int save_checkpoint(job *j)
{
    hl_status status = hl_fit_save(j->fit, j->settings, j->checkpoint);
    j->saved = cli_now();
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_fit, j->ctx, status);
}

static int stop(job *j)
{
    int result = save_checkpoint(j);
    if (j->terminal)
        fputc('\n', stderr);
    return result != CLI_OK
               ? result
               : cli_fail(&cli_fit, CLI_STOPPED, "stopped; %s is written, and the same call with --resume goes on",
                          j->checkpoint);
}

/* Mean -log p of the validation rows for normal columns, correlated if so standardised, which any training should beat. */
static double normal_nll(const job *j)
{
    size_t most = j->options.validation_rows ? j->options.validation_rows : 2000; /* as hl_fit has it */
    size_t rows = j->data.valid.rows < most ? j->data.valid.rows : most;
    double sum = 0;
    for (size_t i = 0; i < rows * j->data.dim; i++)
        sum += 0.5 * j->data.valid.x[i] * j->data.valid.x[i] / (double)rows;
    return sum + 0.5 * (double)j->data.dim * log(2 * 3.14159265358979323846) + j->scale;
}

/* By how much training may miss it: less is what few rows are to blame for, more is a failure. */
static double slack(const job *j)
{
    return 0.2 + 0.05 * (double)j->data.dim;
}

static bool is_continuous(const job *j)
{
    return !j->set->kind || strcmp(j->set->kind, "cnf") == 0;
}

/* Nothing that training found is better: of few rows a flow learns more than is there. */
static bool normal_is_best(const job *j, const hl_fit_report *r)
{
    double over = r->best + j->scale - normal_nll(j);
    return is_continuous(j) && isfinite(r->best) && over > 0 && over <= slack(j);
}

/* A flow without parameters leaves rows where they are. */
static void make_normal(const job *j)
{
    hl_flow *flow = hl_density_flow(j->model);
    for (size_t i = 0; i < hl_flow_nets(flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++) {
            hl_net_param q;
            hl_net_param_get(hl_flow_net(flow, i), p, &q);
            memset(q.values, 0, q.size * hl_dtype_size(hl_net_describe(hl_flow_net(flow, i)).dtype));
        }
}

/* The best so far becomes the model. */
static int keep_model(job *j, const hl_fit_report *r)
{
    char note[1400];
    hl_status status = hl_fit_finish(j->fit);
    bool normal = normal_is_best(j, r);
    if (status == HL_OK && normal)
        make_normal(j);
    if (status == HL_OK)
        status = hl_density_set_solver(j->model, &j->options.solver);
    snprintf(note, sizeof note, "%s; best iteration %zu%s", j->settings, r->best_iteration,
             normal ? ", but a normal distribution is better" : "");
    if (status == HL_OK)
        status = hl_density_set_note(j->model, note);
    if (status == HL_OK)
        status = hl_density_save(j->model, j->set->out);
    if (status != HL_OK)
        return cli_fail_library(&cli_fit, j->ctx, status);
    unlink(j->checkpoint);
    return CLI_OK;
}

static int diverged(job *j, const hl_fit_report *r)
{
    char why[480];
    snprintf(why, sizeof why, "%s", hl_context_message(j->ctx));
    if (j->terminal)
        fputc('\n', stderr);
    cli_say(&cli_fit, "iteration %zu failed: %s", r->iteration + !r->validated, why); /* a validation is part of it */
    if (!isfinite(r->best))
        return cli_fail(&cli_fit, CLI_FAILED, "no model is written; try a smaller --lr or more --ode-steps");
    int result = keep_model(j, r);
    return result != CLI_OK ? result
                            : cli_fail(&cli_fit, CLI_FAILED,
                                       "%s holds the best model so far, of iteration %zu; try a smaller --lr or more "
                                       "--ode-steps",
                                       j->set->out, r->best_iteration);
}

/* What came of it. */
static int conclude(const job *j, const hl_fit_report *r)
{
    double best = r->best + j->scale, normal = normal_nll(j);
    if (!isfinite(best)) {
        fprintf(stderr, "%s: the model of iteration %zu, before the first validation\n", j->set->out, r->iteration);
        return CLI_OK;
    }
    fprintf(stderr, "%s: validation %.4f nats a row (mean -log p), iteration %zu, %.0f s\n", j->set->out, best,
            r->best_iteration, cli_now() - j->start);
    if (!(best <= normal + slack(j)))
        return cli_fail(&cli_fit, CLI_FAILED,
                        "training failed: even iteration %zu, the best, is worse than normal columns, which "
                        "have %.4f nats; try a smaller --lr or more --iters",
                        r->best_iteration, normal);
    if (j->recent > normal + 10 * slack(j) && r->best_iteration < r->iteration)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "training diverged: at iteration %zu its loss was %.4g nats, where normal columns "
                        "have %.4f; the best model before is kept; try a smaller --lr",
                        r->iteration, j->recent, normal);
    if (!is_continuous(j) && best > normal)
        cli_say(&cli_fit, "warning: a normal distribution, with %.4f nats, is better", normal);
    if (normal_is_best(j, r))
        fprintf(stderr,
                "a normal distribution, with %.4f nats, is better: the model is this; more rows would tell more\n",
                normal);
    if (r->iteration < r->iterations && j->set->minutes <= 0)
        fprintf(stderr, "stopped at iteration %zu: %zu validations in a row were no better (--patience)\n",
                r->iteration, j->options.patience);
    return CLI_OK;
}

static int train(job *j)
{
    hl_fit_report r = { 0 };
    hl_status status;
    size_t first = SIZE_MAX;
    j->start = j->saved = j->pace.last = cli_now();
    while ((status = hl_fit_step(j->fit, &r)) == HL_OK) {
        if (first == SIZE_MAX) {
            first = r.iteration - 1;
            if (j->log && j->resume)
                cli_cut_log(j->log, first);
        }
        if (r.phase == HL_FIT_LIKELIHOOD)
            j->recent += (r.loss + j->scale - j->recent) * (j->recent == 0 ? 1 : 0.1);
        keep_pace(j, &r);
        progress(j, &r);
        log_line(j, &r);
        if (cli_interrupted())
            return stop(j);
        if (cli_now() - j->saved > j->set->save_every && save_checkpoint(j) != CLI_OK)
            return CLI_WRONG;
        if (j->set->minutes > 0 && cli_now() - j->start > 60 * j->set->minutes)
            break;
    }
    if (status != HL_OK && status != HL_STOPPED)
        return diverged(j, &r);
    if (j->terminal)
        fputc('\n', stderr);
    int result = keep_model(j, &r);
    return result == CLI_OK ? conclude(j, &r) : result;
}

/* ---- from the call to the loop ---- */

/* What would have no effect is refused. */
static int check_options(const fit_settings *s, const char *conditioner)
{
    const struct {
        const char *name;
        bool given;
    } continuous[] = { { "conditioner", s->conditioner != NULL },
                       { "trace", s->trace != NULL },
                       { "solver", s->solver != NULL },
                       { "rtol", s->rtol > 0 },
                       { "atol", s->atol > 0 },
                       { "ode-steps", s->ode_steps > 0 },
                       { "transport", s->transport != NULL } };
    bool cnf = !s->kind || strcmp(s->kind, "cnf") == 0;
    for (size_t i = 0; i < sizeof continuous / sizeof *continuous; i++)
        if (!cnf && continuous[i].given)
            return cli_fail(&cli_fit, CLI_WRONG, "--%s is for --model cnf; a %s has no use for it", continuous[i].name,
                            s->kind);
    if (s->image && (!cnf || strcmp(conditioner, "conv") != 0))
        return cli_fail(&cli_fit, CLI_WRONG, "--image is for --conditioner conv");
    return CLI_OK;
}

static int create(job *j)
{
    const fit_settings *s = j->set;
    const char *conditioner = s->conditioner ? s->conditioner : j->data.dim > TREE_COLUMNS ? "tree" : "made";
    int result = check_options(s, conditioner);
    if (result == CLI_OK)
        result = choose_order(j, conditioner);
    if (result != CLI_OK)
        return result;
    hl_flow_spec spec = flow_spec(j, conditioner);
    result = read_image(s, spec.net.image);
    if (result != CLI_OK)
        return result;
    hl_status status = hl_density_create(j->ctx, &spec, j->data.columns, &j->model);
    if (status == HL_OK)
        status = hl_flow_init(hl_density_flow(j->model), s->seed + 1);
    if (status == HL_OK)
        status = hl_density_set_factor(j->model, j->data.factor);
    for (size_t i = 0; i < j->data.dim; i++)
        j->scale += log(j->data.columns[i].deviation) + (j->data.factor ? log(j->data.factor[i * j->data.dim + i]) : 0);
    choose_training(j);
    if (status == HL_OK) /* one that there is not is told now, not by the first validation */
        status = hl_density_set_solver(j->model, &j->options.solver);
    hl_fit_data train_rows = { j->data.train.rows, j->data.train.x, j->data.context ? j->data.train.c : NULL };
    hl_fit_data valid_rows = { j->data.valid.rows, j->data.valid.x, j->data.context ? j->data.valid.c : NULL };
    if (status == HL_OK)
        status = hl_fit_create(hl_density_flow(j->model), &train_rows, &valid_rows, &j->options, &j->fit);
    if (status != HL_OK)
        return cli_fail_library(&cli_fit, j->ctx, status);
    result = describe_settings(j);
    if (result == CLI_OK && j->resume && (status = hl_fit_load(j->fit, j->settings, j->checkpoint)) != HL_OK)
        return cli_fail_library(&cli_fit, j->ctx, status);
    return result;
}

static int fit(job *j, const char *path)
{
    size_t parameters = 0;
    int result = cli_check_outputs(&cli_fit, j->ctx, path, j->set->out, j->set->plot, &j->checkpoint);
    if (result == CLI_OK)
        result = cli_check_resume(&cli_fit, j->set->out, j->checkpoint, &j->resume);
    if (result == CLI_OK)
        result = fit_load(j->ctx, path, j->set, &j->data);
    if (result == CLI_OK)
        result = create(j);
    if (result == CLI_OK)
        result = cli_open_log(&cli_fit, j->set->log, path, j->set->out, j->resume, &j->log);
    if (result != CLI_OK)
        return result;
    for (size_t i = 0; i < hl_flow_nets(hl_density_flow(j->model)); i++)
        parameters += hl_net_size(hl_flow_net(hl_density_flow(j->model), i));
    fprintf(stderr, "%zu rows and %zu for validation, %zu columns%s; %zu parameters\n", j->data.train.rows,
            j->data.valid.rows, j->data.dim, j->data.context ? " given the context" : "", parameters);
    if (!j->resume && access(j->checkpoint, F_OK) == 0)
        cli_say(&cli_fit, "warning: %s of an earlier run will be replaced; --resume would go on from it",
                j->checkpoint);
    result = train(j);
    if (result == CLI_OK && j->set->plot)
        result = fit_plot(j->set->plot, j->ctx, j->model, &j->data, &j->curves);
    return result;
}

static int run(int argc, char **argv)
{
    fit_settings set = { .threads = (uint64_t)cli_default_threads(),
                         .weight_decay = -1,
                         .jitter = -1,
                         .save_every = 20,
                         .validation_share = 0.1 };
    const char *path[2];
    int result = cli_parse(&cli_fit, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (!set.out)
        return cli_fail(&cli_fit, CLI_WRONG, "-o MODEL is needed: where the model goes");
    job j = { .set = &set, .terminal = isatty(STDERR_FILENO), .resume = set.resume };
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)set.threads }, &j.ctx);
    result = status == HL_OK ? fit(&j, path[0]) : cli_fail_library(&cli_fit, NULL, status);
    if (j.log && fclose(j.log) != 0 && result == CLI_OK)
        result = cli_fail(&cli_fit, CLI_WRONG, "%s: cannot be written", set.log);
    hl_fit_free(j.fit);
    hl_density_free(j.model);
    fit_data_free(&j.data);
    hl_context_free(j.ctx);
    free(j.checkpoint);
    free(j.settings);
    free(j.curves.point);
    return result;
}
