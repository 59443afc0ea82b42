/* sde_fit.c - `hollow sde fit`: learn drift and diffusion from observations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sde.h"

static const char *const methods[] = { "fp", "pseudo-ml", NULL };
static const char *const networks[] = { "hollow", "mlp", NULL };
static const char *const densities[] = { "mixture", "flow", NULL };
static const char *const curvatures[] = { "exact", "projected", "propagated", NULL };
static const char *const penalties[] = { "l1", "l2", "huber", NULL };
static const char *const dtypes[] = { "f32", "f64", NULL };

typedef struct settings {
    sde_source source;
    uint64_t threads, seed, hidden, components, flows, iterations, batch;
    double lambda, lr, floor, save_every, between;
    const char *out, *method, *network, *density, *curvature, *penalty, *dtype, *log, *plot, *known_drift,
        *known_diffusion;
    bool time, diagonal, density_form, stop, pointwise, resume, anyway;
} settings;

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "o", CLI_TEXT, AT(out), "MODEL", "the model's file; needed", 0, 0, NULL },
    { "method", CLI_CHOICE, AT(method), "NAME", "fp (Fokker-Planck matching, default) or pseudo-ml (Euler steps)", 0, 0,
      methods },
    { "columns", CLI_TEXT, AT(source.columns), "LIST", "the columns of x, such as 'a,b' or 2-3; default all others", 0,
      0, NULL },
    SDE_SOURCE_OPTIONS(settings, source),
    { "known-drift", CLI_TEXT, AT(known_drift), "LIST", "such as 'x1=x2;x2=-2*x1+0.5': not learned but taken so", 0, 0,
      NULL },
    { "known-diffusion", CLI_TEXT, AT(known_diffusion), "LIST", "such as 'x1=0;x2=0.2'", 0, 0, NULL },
    { "time-dependent", CLI_FLAG, AT(time), NULL, "drift and diffusion may change with time", 0, 0, NULL },
    { "network", CLI_CHOICE, AT(network), "NAME", "hollow (default) or mlp", 0, 0, networks },
    { "hidden", CLI_INTEGER, AT(hidden), "N", "units of its layers; default 32 up to 3 columns, else 64", 1, 100000,
      NULL },
    { "density", CLI_CHOICE, AT(density), "NAME", "p(t, x): mixture of Gaussians (default) or normalizing flow", 0, 0,
      densities },
    { "components", CLI_INTEGER, AT(components), "N",
      "mixture: Gaussians; default 1, 2, 5 or 10, as held-out rows choose", 1, 1000, NULL },
    { "diagonal", CLI_FLAG, AT(diagonal), NULL, "mixture: diagonal covariances", 0, 0, NULL },
    { "flows", CLI_INTEGER, AT(flows), "N", "flow: networks one after the other; default 3", 1, 64, NULL },
    { "curvature", CLI_CHOICE, AT(curvature), "NAME",
      "flow: second derivatives exact (default to 10 columns), projected, propagated", 0, 0, curvatures },
    { "lambda", CLI_REAL, AT(lambda), "X", "fp: how much the density follows the equation, falling to 0; default 0.1",
      0, 1e6, NULL },
    { "between", CLI_REAL, AT(between), "X",
      "fp: share of the residual at draws between the times; default 1, with --pointwise and 20 times or more 0", 0, 1,
      NULL },
    { "pointwise", CLI_FLAG, AT(pointwise), NULL,
      "fp: f and g see the residual at each point, not averaged over neighbours", 0, 0, NULL },
    { "penalty", CLI_CHOICE, AT(penalty), "NAME", "fp: of the residual: l1 (default), l2, huber", 0, 0, penalties },
    { "p-form", CLI_FLAG, AT(density_form), NULL, "fp: penalise p R instead of R", 0, 0, NULL },
    { "stop-gradient", CLI_FLAG, AT(stop), NULL, "fp: the density does not follow the equation", 0, 0, NULL },
    { "variance-floor", CLI_REAL, AT(floor), "X", "pseudo-ml: added to the variance of a step; default 1e-6", 1e-300, 1,
      NULL },
    { "iters", CLI_INTEGER, AT(iterations), "N", "iterations; default 2000", 1, 1e12, NULL },
    { "batch", CLI_INTEGER, AT(batch), "N", "observations of a batch; default 256", 1, 1000000, NULL },
    { "lr", CLI_REAL, AT(lr), "X", "largest learning rate; default 2e-3", 1e-12, 10, NULL },
    { "seed", CLI_INTEGER, AT(seed), "N", "of everything random; default 0", 0, 9e15, NULL },
    { "dtype", CLI_CHOICE, AT(dtype), "f32|f64", "precision of the networks; default f32", 0, 0, dtypes },
    { "anyway", CLI_FLAG, AT(anyway), NULL, "fp: train on data that cannot tell drift from diffusion, too", 0, 0,
      NULL },
    { "resume", CLI_FLAG, AT(resume), NULL, "go on from MODEL.ckpt, to the same bits", 0, 0, NULL },
    { "save-every", CLI_REAL, AT(save_every), "SECONDS", "between checkpoints in MODEL.ckpt; default 20", 0, 1e6,
      NULL },
    { "log", CLI_TEXT, AT(log), "FILE", "one line of JSON for each iteration", 0, 0, NULL },
    { "plot", CLI_TEXT, AT(plot), "DIR", "pictures: curves, drift and diffusion, marginals", 0, 0, NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "default 1, as there is little to share; changes no bit", 1, 256,
      NULL },
    { 0 },
};

static const char text[] =
    "Learns dx_i = f_i(t, x) dt + g_i(t, x) dW_i from the rows (trajectory, t, x1, x2, ...) of DATA (csv,\n"
    "npy, npz, or - for stdin). Times and columns are standardised inside; results are in the units of\n"
    "the data, and dates are years.\n"
    "fp fits a density p(t, x) to all rows, and f and g to its Fokker-Planck equation. It needs no\n"
    "trajectories and takes no notice of the steps between observations, but the density must move:\n"
    "from data that look the same at all times nobody can tell f from g, and this is said instead.\n"
    "pseudo-ml takes each step of a trajectory for one of Euler's, which must be short.\n"
    "At the end simulations of the model are compared with the data; a density that does not follow\n"
    "them is a failure, however small the residual is. Ctrl-C writes MODEL.ckpt.\n";

static int run(int argc, char **argv);
const cli_command sde_command_fit = { "sde fit",
                                      "DATA -o MODEL [--method fp|pseudo-ml] [--option VALUE ...]",
                                      "learn drift and diffusion from observations",
                                      text,
                                      options,
                                      1,
                                      1,
                                      run };
static const cli_command *const me = &sde_command_fit;

static const double turned = 0.5; /* of the mean speed along trajectories */
static const double weak = 0.03;  /* movement: below it, drift and diffusion of an OU process were off by 20 % */

typedef struct job {
    const settings *set;
    hl_context *ctx;
    sde_rows rows;
    hl_sde *sde;
    hl_sde_fit *fit;
    hl_sde_fit_options options;
    hl_sde_known *known;
    double *linear;
    char *checkpoint, *settings;
    hl_judge *judge;
    FILE *log;
    sde_curves curves;
    double start, saved;
    bool terminal, resume;
} job;

static bool matching(const job *j)
{
    return j->options.method == HL_SDE_FOKKER_PLANCK;
}

/* ---- data ---- */

static int check_columns(const job *j)
{
    const sde_rows *d = &j->rows;
    for (size_t i = 0; i < d->dim; i++) {
        double top = 0, mean = 0, square = 0;
        for (size_t r = 0; r < d->rows; r++)
            top = fmax(top, fabs(d->x[r * d->dim + i]));
        for (size_t r = 0; r < d->rows && top > 0; r++)
            mean += d->x[r * d->dim + i] / top / (double)d->rows;
        for (size_t r = 0; r < d->rows && top > 0; r++) {
            double gap = d->x[r * d->dim + i] / top - mean;
            square += gap * gap / (double)d->rows;
        }
        if (!(sqrt(square) > 1e-12))
            return cli_fail(me, CLI_WRONG, "%s: column '%s' is constant (%g): leave it out by --columns",
                            j->set->source.path, d->name[i], d->x[i]);
    }
    return CLI_OK;
}

static int check_times(const job *j)
{
    const sde_rows *d = &j->rows;
    const char *path = j->set->source.path;
    double first = d->t[0], last = d->t[0];
    size_t pairs = 0;
    char place[400];
    for (size_t r = 0; r < d->rows; r++) {
        first = fmin(first, d->t[r]);
        last = fmax(last, d->t[r]);
        pairs += r > 0 && d->trajectory[r] == d->trajectory[r - 1];
    }
    if (!(last > first))
        return cli_fail(me, CLI_WRONG, "%s: column '%s': all observations have the same time %g: nothing changes", path,
                        d->name[d->dim], first);
    if (matching(j) || pairs)
        return CLI_OK;
    for (size_t r = 1; r < d->rows && !d->paired; r++)
        if (!(d->t[r] > d->t[r - 1]))
            return cli_fail(
                me, CLI_WRONG,
                "%s: time %.10g does not come after %.10g; pseudo-ml needs trajectories: times that rise, or a "
                "column 'trajectory' (--trajectory COL)",
                sde_place(d, r, d->dim, place, sizeof place), d->t[r], d->t[r - 1]);
    return cli_fail(me, CLI_WRONG,
                    "%s: every trajectory has one observation; pseudo-ml needs steps between two, --method fp does not",
                    path);
}

/* Is there a column of which both drift and diffusion must be learned? */
static bool both_open(const job *j)
{
    for (size_t i = 0; i < j->rows.dim; i++)
        if (!j->known || (!j->known[i].drift && !j->known[i].diffusion))
            return true;
    return false;
}

/* Do the data say enough for Fokker-Planck matching? */
static int check_movement(job *j)
{
    const sde_rows *d = &j->rows;
    hl_sde_data data = { d->rows, d->t, d->x, d->paired ? d->trajectory : NULL };
    hl_status status = hl_judge_create(j->ctx, d->dim, &data, NULL, &j->judge);
    if (status != HL_OK)
        return cli_fail_library(me, j->ctx, status);
    hl_verdict v = hl_judge_verdict(j->judge);
    if (!matching(j))
        return CLI_OK;
    if (v.kind != HL_VERDICT_FEW && v.kind != HL_VERDICT_STILL) {
        if (v.movement < weak && both_open(j))
            cli_say(
                me,
                "warning: the density of x moves by only %.2g of its spread: drift and diffusion will be known less "
                "well than where it moves more",
                v.movement);
        return CLI_OK;
    }
    bool fatal = both_open(j) && !j->set->anyway;
    if (v.kind == HL_VERDICT_FEW)
        cli_say(
            me,
            "%s%s: %zu trajector%s. Fokker-Planck matching sees drift and diffusion in how the density of x changes "
            "with time, and a time that is seen %s does not show its density",
            fatal ? "" : "warning: ", j->set->source.path, v.trajectories, v.trajectories == 1 ? "y" : "ies",
            v.trajectories == 1 ? "once" : "a few times");
    else
        cli_say(me,
                "%s%s: the observations look much the same at all times: the density of x moves by %.2g of its spread "
                "(chance alone makes %.2g; 0.01 is needed)",
                fatal ? "" : "warning: ", j->set->source.path, v.movement, v.noise);
    cli_say(
        me,
        "what cannot be identified: for every diffusion g there is a drift f = (g^2 p)' / (2 p) under which a density "
        "p stands still, so f and g are known only together%s",
        v.kind == HL_VERDICT_FEW ? ", and a path that has settled shows no more than p" : "");
    if (!fatal)
        return CLI_OK;
    return cli_fail(
        me, CLI_FAILED,
        "not trained. %s--known-diffusion gives the drift that belongs to a diffusion; --anyway trains all the "
        "same",
        d->paired ? "--method pseudo-ml looks at the steps of trajectories instead; " : "");
}

/* ---- model ---- */

static int read_known(job *j)
{
    const settings *s = j->set;
    size_t d = j->rows.dim;
    if (!s->known_drift && !s->known_diffusion)
        return CLI_OK;
    j->known = calloc(d, sizeof *j->known);
    j->linear = calloc(d * d, sizeof *j->linear);
    int result = j->known && j->linear ? CLI_OK : cli_fail(me, CLI_FAILED, "out of memory");
    if (result == CLI_OK && s->known_drift)
        result = sde_read_known(me, "known-drift", s->known_drift, true, d, j->rows.name, j->known, j->linear);
    if (result == CLI_OK && s->known_diffusion)
        result = sde_read_known(me, "known-diffusion", s->known_diffusion, false, d, j->rows.name, j->known, j->linear);
    return result;
}

static void choose_training(job *j)
{
    const settings *s = j->set;
    j->options = (hl_sde_fit_options){
        .method = s->method && strcmp(s->method, "pseudo-ml") == 0 ? HL_SDE_PSEUDO_LIKELIHOOD : HL_SDE_FOKKER_PLANCK,
        .penalty = !s->penalty || strcmp(s->penalty, "l1") == 0 ? HL_SDE_L1
                   : strcmp(s->penalty, "l2") == 0              ? HL_SDE_L2
                                                                : HL_SDE_HUBER,
        .density_form = s->density_form,
        .stop_gradient = s->stop,
        .lambda = s->lambda == 0  ? -1
                  : s->lambda < 0 ? 0
                                  : s->lambda, /* there 0 is the default, and < 0 none */
        .between = s->between == 0  ? -1
                   : s->between < 0 ? 0
                                    : s->between,
        .smooth = s->pointwise ? -1 : 0,
        .iterations = s->iterations ? (size_t)s->iterations : 2000,
        .batch = s->batch ? (size_t)s->batch : 256,
        .optimizer = { .rate = s->lr > 0 ? s->lr : 2e-3 },
        .variance_floor = s->floor > 0 ? s->floor : 1e-6,
        .seed = s->seed,
    };
}

/* All that decides the bits of the result, in one line. */
static int describe_settings(job *j)
{
    const hl_sde_fit_options *o = &j->options;
    const settings *s = j->set;
    hl_sde_spec p = hl_sde_describe(j->sde);
    const char *drift = s->known_drift ? s->known_drift : "-", *noise = s->known_diffusion ? s->known_diffusion : "-";
    size_t room = 800 + strlen(drift) + strlen(noise);
    j->settings = malloc(room);
    if (!j->settings)
        return cli_fail(me, CLI_FAILED, "out of memory");
    snprintf(
        j->settings, room,
        "method %s iters %zu batch %zu seed %llu network %s hidden %zu time %d density %s components %zu diagonal %d "
        "flows %zu curvature %s dtype %s "
        "lr %.17g lambda %.17g between %.17g penalty %d p-form %d pointwise %d stop-gradient %d floor %.17g "
        "known-drift %s "
        "known-diffusion %s "
        "rows %zu data %016llx",
        matching(j) ? "fp" : "pseudo-ml", o->iterations, o->batch, (unsigned long long)o->seed, p.network,
        strcmp(p.network, "hollow") == 0 ? p.net.hidden : p.hidden, p.time, p.density, p.components, p.diagonal,
        p.flows, p.curvature, hl_dtype_name(p.dtype), o->optimizer.rate, o->lambda, o->between, (int)o->penalty,
        o->density_form, s->pointwise, o->stop_gradient, o->variance_floor, drift, noise, j->rows.rows,
        (unsigned long long)j->rows.hash);
    return CLI_OK;
}

/* What would have no effect is refused. */
static int check_density(const settings *s)
{
    bool flow = s->density && strcmp(s->density, "flow") == 0;
    const char *wrong = flow && s->components   ? "components"
                        : flow && s->diagonal   ? "diagonal"
                        : !flow && s->flows     ? "flows"
                        : !flow && s->curvature ? "curvature"
                                                : NULL;
    if (wrong)
        return cli_fail(me, CLI_WRONG, "--%s is for --density %s", wrong, flow ? "mixture" : "flow");
    bool steps = s->method && strcmp(s->method, "pseudo-ml") == 0;
    wrong = !steps && s->floor > 0 ? "variance-floor"
            : !steps               ? NULL
            : s->lambda >= 0       ? "lambda"
            : s->between >= 0      ? "between"
            : s->penalty           ? "penalty"
            : s->density_form      ? "p-form"
            : s->stop              ? "stop-gradient"
            : s->pointwise         ? "pointwise"
            : s->anyway            ? "anyway"
                                   : NULL;
    return wrong ? cli_fail(me, CLI_WRONG, "--%s is for --method %s", wrong, steps ? "fp" : "pseudo-ml") : CLI_OK;
}

/* Over a long time of a fast equation, drift and diffusion are large in standardised units: start where the steps say.
 * With q the mean square of a step by its time, g is sqrt(q), and a column of variance 1 is held by a drift of q / 2. */
static void choose_speed(const job *j, hl_sde_spec *spec)
{
    const sde_rows *d = &j->rows;
    double first = d->t[0], last = d->t[0], q = 0;
    for (size_t r = 0; r < d->rows; r++) {
        first = fmin(first, d->t[r]);
        last = fmax(last, d->t[r]);
    }
    for (size_t i = 0; i < d->dim; i++) {
        double mean = 0, square = 0, steps = 0, time = 0;
        for (size_t r = 0; r < d->rows; r++)
            mean += d->x[r * d->dim + i] / (double)d->rows;
        for (size_t r = 0; r < d->rows; r++) {
            double gap = d->x[r * d->dim + i] - mean;
            square += gap * gap / (double)d->rows;
            if (r + 1 == d->rows || d->trajectory[r] != d->trajectory[r + 1])
                continue;
            double step = d->x[(r + 1) * d->dim + i] - d->x[r * d->dim + i];
            steps += step * step;
            time += (d->t[r + 1] - d->t[r]) / (last - first) * 5; /* as the library standardises it */
        }
        q += steps / square / time / (double)d->dim;
    }
    if (!(q > 2) || !isfinite(q))
        return;
    spec->diffusion_start = sqrt(q);
    spec->drift_scale = q / 2;
}

static int create(job *j)
{
    const settings *s = j->set;
    const sde_rows *d = &j->rows;
    hl_sde_spec spec = { .dim = d->dim,
                         .network = s->network,
                         .time = s->time,
                         .hidden = (size_t)s->hidden,
                         .net = { .hidden = (size_t)s->hidden, .width = (size_t)s->hidden },
                         .density = s->density,
                         .components = (size_t)s->components,
                         .diagonal = s->diagonal,
                         .flows = (size_t)s->flows,
                         .curvature = s->curvature,
                         .known = j->known,
                         .dtype = s->dtype && strcmp(s->dtype, "f64") == 0 ? HL_F64 : HL_F32 };
    hl_sde_data data = { d->rows, d->t, d->x, d->paired ? d->trajectory : NULL };
    if (!matching(j))
        choose_speed(j, &spec);
    hl_status status = HL_OK;
    if (matching(j) && !spec.components && !(s->density && strcmp(s->density, "flow") == 0)) {
        status = hl_sde_choose_components(j->ctx, &spec, &data, &j->options, &spec.components);
        if (status == HL_OK && spec.components)
            fprintf(stderr, "%zu Gaussian%s (--components), as held-out rows choose\n", spec.components,
                    spec.components == 1 ? "" : "s");
    }
    if (status == HL_OK)
        status = hl_sde_create(j->ctx, &spec, &j->sde);
    if (status == HL_OK)
        status = hl_sde_init(j->sde, s->seed + 1);
    for (size_t i = 0; i <= d->dim && status == HL_OK; i++)
        status = hl_sde_set_name(j->sde, i, d->name[i]);
    if (status == HL_OK)
        status = hl_sde_fit_create(j->sde, &data, &j->options, &j->fit);
    if (status != HL_OK)
        return cli_fail_library(me, j->ctx, status);
    int result = describe_settings(j);
    if (result == CLI_OK && j->resume && (status = hl_sde_fit_load(j->fit, j->settings, j->checkpoint)) != HL_OK)
        return cli_fail_library(me, j->ctx, status);
    return result;
}

/* ---- talk ---- */

static void progress(const job *j, const hl_sde_fit_report *r, size_t first)
{
    double begin, end; /* the loss is standardised: time runs from 0 to 5 */
    hl_sde_get_scale(j->sde, &begin, &end, NULL, NULL);
    bool plain = matching(j) && j->options.penalty == HL_SDE_L1 && !j->options.density_form &&
                 strcmp(hl_sde_describe(j->sde).curvature, "exact") == 0;
    double seconds = cli_now() - j->start, done = (double)(r->iteration - first);
    double rate = done > 0 ? seconds / done : 0, left = rate * (double)(r->iterations - r->iteration);
    size_t every = j->terminal ? 10 : r->iterations / 20 ? r->iterations / 20 : 1;
    if (r->iteration % every != 0 && r->iteration != r->iterations)
        return;
    fprintf(stderr, "%s%6zu/%zu  %s %9.4g  -log p %9.4f  %6.0f rows/s  ETA %2.0f:%02.0f %s", j->terminal ? "\r" : "",
            r->iteration, r->iterations,
            plain         ? "mean |residual|"
            : matching(j) ? "penalty"
                          : "step",
            plain ? r->loss / ((end - begin) / 5) : r->loss, r->nll, rate > 0 ? (double)j->options.batch / rate : 0,
            floor(left / 60), floor(fmod(left, 60)), j->terminal ? "" : "\n");
}

static void log_line(job *j, const hl_sde_fit_report *r)
{
    sde_curves_add(&j->curves, (double)r->iteration, r->loss, r->nll);
    if (!j->log)
        return;
    cli_json json = { j->log, false };
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "iteration", r->iteration);
    cli_json_real(&json, "loss", r->loss);
    cli_json_real(&json, "nll", r->nll);
    cli_json_real(&json, "lambda", r->lambda);
    cli_json_real(&json, "drift_gradient", r->gradient_norm[0]);
    cli_json_real(&json, "diffusion_gradient", r->gradient_norm[1]);
    cli_json_real(&json, "density_gradient", r->gradient_norm[2]);
    cli_json_real(&json, "seconds", cli_now() - j->start);
    cli_json_close(&json, '}');
    fputc('\n', j->log);
    fflush(j->log);
}

/* ---- the loop ---- */

static int save_checkpoint(job *j)
{
    hl_status status = hl_sde_fit_save(j->fit, j->settings, j->checkpoint);
    j->saved = cli_now();
    return status == HL_OK ? CLI_OK : cli_fail_library(me, j->ctx, status);
}

static int stop(job *j)
{
    int result = save_checkpoint(j);
    if (j->terminal)
        fputc('\n', stderr);
    return result != CLI_OK
               ? result
               : cli_fail(me, CLI_STOPPED, "stopped; %s is written, and the same call with --resume goes on",
                          j->checkpoint);
}

static int keep_model(job *j)
{
    hl_status status = hl_sde_fit_finish(j->fit);
    if (status == HL_OK)
        status = hl_sde_set_note(j->sde, j->settings);
    if (status == HL_OK)
        status = hl_sde_save(j->sde, j->set->out);
    if (status != HL_OK)
        return cli_fail_library(me, j->ctx, status);
    unlink(j->checkpoint);
    return CLI_OK;
}

/* The mean -log likelihood of a step for constant drift and diffusion, which any training of pseudo-ml should beat; as its loss
 * is, standardised and without constants. */
static double constant_loss(const job *j, double *scale)
{
    const sde_rows *d = &j->rows;
    double first, last, sum = 0, floor = j->options.variance_floor;
    hl_sde_get_scale(j->sde, &first, &last, scale, scale + d->dim);
    double unit = (last - first) / 5;
    for (size_t i = 0; i < d->dim; i++) {
        double way = 0, time = 0, square = 0, loss = 0, steps = 0;
        for (int pass = 0; pass < 3; pass++) /* mean speed, variance of a unit of time, loss */
            for (size_t r = 1; r < d->rows; r++) {
                if (d->trajectory[r] != d->trajectory[r - 1])
                    continue;
                double dt = (d->t[r] - d->t[r - 1]) / unit;
                double dx = (d->x[r * d->dim + i] - d->x[(r - 1) * d->dim + i]) / scale[d->dim + i];
                double gap = pass ? dx - way / time * dt : 0, v = pass == 2 ? square / steps * dt + floor : 1;
                if (pass == 0) {
                    way += dx;
                    time += dt;
                    steps++;
                } else if (pass == 1) {
                    square += gap * gap / dt;
                } else {
                    loss += 0.5 * (gap * gap / v + log(v)) / steps;
                }
            }
        sum += loss;
    }
    return sum;
}

/* Did pseudo-ml learn anything? Its loss over the last iterations tells. */
static int check_steps(const job *j)
{
    const sde_curves *c = &j->curves;
    size_t count = c->count / 10 ? c->count / 10 : c->count;
    double *scale = calloc(j->rows.dim, 2 * sizeof *scale), loss = 0;
    if (!scale)
        return cli_fail(me, CLI_FAILED, "out of memory");
    for (size_t i = c->count - count; i < c->count; i++)
        loss += c->point[i][1] / (double)count;
    double constant = constant_loss(j, scale);
    free(scale);
    if (count == 0 || loss <= constant + 0.1 * (double)j->rows.dim)
        return CLI_OK;
    return cli_fail(
        me, CLI_FAILED,
        "training failed: its steps are less likely (%.3f nats) than with constant drift and diffusion (%.3f); "
        "try a smaller --lr or more --iters",
        loss, constant);
}

/* What came of it: do density and simulations move as the data do? */
static int conclude(const job *j)
{
    bool flow = strcmp(hl_sde_describe(j->sde).density, "flow") == 0;
    hl_status status = hl_judge_model(j->judge, j->sde);
    if (status != HL_OK)
        return cli_fail_library(me, j->ctx, status);
    hl_verdict v = hl_judge_verdict(j->judge);
    if (v.kind == HL_VERDICT_FEW || v.kind == HL_VERDICT_STILL)
        fprintf(
            stderr, "%s: mean |residual| %.4g; whether simulations move as the data do cannot be told, as %s; %.0f s\n",
            j->set->out, v.residual,
            v.kind == HL_VERDICT_STILL ? "the data do not move" : "the trajectories are too few", cli_now() - j->start);
    else
        fprintf(stderr,
                "%s: mean |residual| %.4g; of the movement of the data, which is %.2g of their spread, the density "
                "misses %.1f "
                "%%, simulations %.1f %%: %s; %.0f s\n",
                j->set->out, v.residual, v.movement, 100 * v.density, 100 * v.simulated, hl_verdict_name(v.kind),
                cli_now() - j->start);
    if (matching(j) && v.kind == HL_VERDICT_ROUGH)
        cli_say(
            me,
            "warning: drift and diffusion leave %.0f %% of the change of the density unexplained (residual over d log "
            "p/dt), so they are rough; try more --iters%s, --time-dependent, or say what is known",
            100 * v.unexplained, flow ? "" : ", other --components");
    double steps = matching(j) ? sde_steps_missed(j->sde, &j->rows) : NAN;
    if (steps > turned)
        cli_say(me,
                "warning: the drift leaves %.0f %% of the mean speed along the trajectories unexplained: what moves "
                "without changing the density, as a round one that turns, is nothing to matching; --method pseudo-ml "
                "learns from steps",
                100 * steps);
    if (v.kind == HL_VERDICT_FROZEN && matching(j))
        return cli_fail(me, CLI_FAILED,
                        "training failed: the density does not move as the data do, however small the residual is: it "
                        "misses %.0f %% of their movement; try a smaller --lambda, more --iters or more --%s",
                        100 * v.density, flow ? "flows" : "components");
    if (v.kind == HL_VERDICT_ASTRAY && matching(j))
        return cli_fail(me, CLI_FAILED,
                        "training failed: simulations of the equation do not move as the data do: they miss %.0f %% of "
                        "their movement; try more --iters, or --time-dependent",
                        100 * v.simulated);
    if (v.kind == HL_VERDICT_ASTRAY || v.kind == HL_VERDICT_FROZEN)
        cli_say(me,
                "warning: simulations of the equation miss %.0f %% of the movement of the data: the steps between "
                "observations may be too long for pseudo-ml; --method fp takes no notice of them",
                100 * v.simulated);
    return matching(j) ? CLI_OK : check_steps(j);
}

static int train(job *j)
{
    hl_sde_fit_report r = { 0 };
    hl_status status;
    size_t first = SIZE_MAX;
    j->start = j->saved = cli_now();
    while ((status = hl_sde_fit_step(j->fit, &r)) == HL_OK) {
        if (first == SIZE_MAX) {
            first = r.iteration - 1;
            if (j->log && j->resume)
                cli_cut_log(j->log, first);
        }
        progress(j, &r, first);
        log_line(j, &r);
        if (cli_interrupted())
            return stop(j);
        if (cli_now() - j->saved > j->set->save_every && save_checkpoint(j) != CLI_OK)
            return CLI_WRONG;
    }
    if (j->terminal)
        fputc('\n', stderr);
    if (status != HL_STOPPED)
        return cli_fail(me, CLI_FAILED, "training failed: %s; no model is written; try a smaller --lr",
                        hl_context_message(j->ctx));
    int result = keep_model(j);
    if (result != CLI_OK)
        return result;
    result = conclude(j); /* pictures are of most use where it failed */
    int drawn = j->set->plot ? sde_plot(j->set->plot, j->sde, &j->rows, j->judge, matching(j), &j->curves) : CLI_OK;
    return result == CLI_OK ? drawn : result;
}

static int fit(job *j)
{
    const settings *s = j->set;
    size_t parameters = 0;
    int result = check_density(s);
    if (result == CLI_OK)
        result = cli_check_outputs(me, j->ctx, s->source.path, s->out, s->plot, &j->checkpoint);
    if (result == CLI_OK)
        result = cli_check_resume(me, s->out, j->checkpoint, &j->resume);
    if (result == CLI_OK)
        result = sde_read(me, j->ctx, &s->source, &j->rows);
    choose_training(j);
    if (result == CLI_OK)
        result = check_columns(j);
    if (result == CLI_OK)
        result = check_times(j);
    if (result == CLI_OK)
        result = read_known(j);
    if (result == CLI_OK)
        result = check_movement(j);
    if (result == CLI_OK)
        result = create(j);
    if (result == CLI_OK)
        result = cli_open_log(me, s->log, s->source.path, s->out, j->resume, &j->log);
    if (result != CLI_OK)
        return result;
    for (size_t i = 0; i < 3; i++)
        parameters += hl_net_size(hl_sde_net(j->sde, i));
    fprintf(stderr, "%zu observations of %zu columns, %zu trajector%s; %zu parameters\n", j->rows.rows, j->rows.dim,
            j->rows.trajectories, j->rows.trajectories == 1 ? "y" : "ies", parameters);
    if (!j->resume && access(j->checkpoint, F_OK) == 0)
        cli_say(me, "warning: %s of an earlier run will be replaced; --resume would go on from it", j->checkpoint);
    return train(j);
}

static int run(int argc, char **argv)
{
    settings set = { .threads = 1, .lambda = -1, .between = -1, .save_every = 20, .source.least = 2 };
    const char *path[2];
    int result = cli_parse(me, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (!set.out)
        return cli_fail(me, CLI_WRONG, "-o MODEL is needed: where the model goes");
    set.source.path = path[0];
    job j = { .set = &set, .terminal = isatty(STDERR_FILENO), .resume = set.resume };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    result = status == HL_OK ? fit(&j) : cli_fail_library(me, NULL, status);
    if (j.log && fclose(j.log) != 0 && result == CLI_OK)
        result = cli_fail(me, CLI_WRONG, "%s: cannot be written", set.log);
    hl_judge_free(j.judge);
    hl_sde_fit_free(j.fit);
    hl_sde_free(j.sde);
    sde_rows_free(&j.rows);
    hl_context_free(j.ctx);
    void *const blocks[] = { j.checkpoint, j.settings, j.curves.point, j.known, j.linear };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    return result;
}
