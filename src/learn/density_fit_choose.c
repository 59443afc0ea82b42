/* density_fit_choose.c - defaults of settings that are not given: sizes of networks and training, by the number of columns and rows.
 *
 * The table of size classes is the only place where these numbers stand; docs/density.md prints it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "flow/flow.h"
#include "learn/density_fit.h"
#include "learn/fit.h"

typedef struct size_class {
    size_t columns;          /* at most */
    const char *conditioner; /* of continuous flows, as all but the last three */
    size_t hidden_made;      /* units of the conditioner's layers: of made and separate */
    size_t hidden;           /* of other conditioners */
    int hidden_layers;
    size_t features, width; /* of h_i; of the transformer's layers */
    int layers;             /* of the transformer */
    const char *activation;
    hl_loss loss;
    double matching;        /* share of the iterations by flow matching, where likelihood follows */
    size_t validation_rows; /* at most */
    size_t discrete_hidden; /* units of the conditioner of discrete flows */
    size_t iterations, batch;
    double rate;
} size_class;

/* clang-format off */
static const size_class classes[] = {
/*  columns   conditioner  made other layers features width layers activation loss                matching valid discrete iters batch rate */
    { 2,        "separate", 64,  64,   1,     16,      64,   3,    "tanh",  HL_LOSS_DEFAULT,       2. / 3, 2000,   64,   4000,  512, 1e-2 },
    { 3,        "made",     64,  64,   1,     16,      64,   3,    "tanh",  HL_LOSS_DEFAULT,       2. / 3, 2000,   64,   4000,  256, 1e-2 },
    { 512,      "made",    128,  32,   2,     16,      32,   2,    "swish", HL_LOSS_DEFAULT,       1. / 3, 2000,  128,   2000,  256, 5e-3 },
    { SIZE_MAX, "tree",    128,  32,   2,     16,      32,   2,    "swish", HL_LOSS_FLOW_MATCHING, 1. / 3,  100,  128,   2000,  128, 5e-3 },
};
/* clang-format on */
enum { RECIPE_FAST = 1, EXTENSIONS = 2 };
enum { DISCRETE_LAYERS = 2, SHUFFLE_COLUMNS = 8, ORDER_COLUMNS = 8192, ORDER_ROWS = 2000, STREAM_ORDER = 43 };

/* Few rows: noise on the rows, and decay of the weights, from these at FEW rows and less down to 0. */
static const double REACH = 0.5,
                    REACH_COLUMN = 0.05; /* nats behind the mixtures at which a flow adds nothing any more */
static const double FEW = 2000, JITTER = 0.3, JITTER_ROWS = 5000, DECAY = 0.1, DECAY_ROWS = 20000;

/* Up to FEW rows of up to 512 columns, beside mixtures: less to overfit with, in a fifth of the time or less. */
enum { FEW_NARROW_WIDTH = 32, FEW_NARROW_LAYERS = 2, FEW_BATCH = 256 /* of up to three columns */ };
enum { SMALLER_COLUMNS = 512 /* the class of these */, FEW_HIDDEN = 32, FEW_FEATURES = 8, FEW_WIDTH = 16 };

/* One column without context, beside mixtures. */
enum { ONE_HIDDEN = 16, ONE_FEATURES = 4, ONE_WIDTH = 32, ONE_LAYERS = 2, ONE_ITERATIONS = 500, ONE_BATCH = 256 };

static const size_class *find_class(size_t columns)
{
    const size_class *c = classes;
    while (columns > c->columns)
        c++;
    return c;
}

bool hl_fit_is_dense(const char *conditioner)
{
    return !conditioner || strcmp(conditioner, "made") == 0 || strcmp(conditioner, "separate") == 0;
}

void hl_fit_default_training(size_t columns, hl_fit_options *o)
{
    const size_class *c = find_class(columns);
    o->iterations = o->iterations ? o->iterations : c->iterations;
    o->batch = o->batch ? o->batch : c->batch;
    if (o->optimizer.rate == 0)
        o->optimizer.rate = c->rate;
    o->matching = o->matching ? o->matching : (size_t)round(3 * c->matching) * o->iterations / 3;
    o->validation_rows = o->validation_rows ? o->validation_rows : c->validation_rows;
}

static size_class class_of(const hl_fit_table *t, const hl_settings *s)
{
    size_class c = *find_class(t->dim);
    bool alone = hl_settings_choice(s, "members", 0) == HL_FIT_FLOW_ONLY;
    bool few = !alone && (double)t->train.rows <= FEW;
    if (few && find_class(t->dim)->columns == SMALLER_COLUMNS) {
        c.hidden_made = FEW_HIDDEN;
        c.features = FEW_FEATURES;
        c.width = FEW_WIDTH;
        return c;
    }
    const char *kind = hl_settings_text(s, "model");
    bool cnf = !kind || strcmp(kind, "cnf") == 0;
    if (few && cnf && find_class(t->dim)->columns < SMALLER_COLUMNS) {
        c.hidden_made = FEW_HIDDEN;
        c.features = FEW_FEATURES;
        c.width = FEW_NARROW_WIDTH;
        c.layers = FEW_NARROW_LAYERS;
        c.batch = FEW_BATCH;
        c.iterations /= 2;
    }
    if (!alone) /* what the flow lacks after half of the iterations, the mixtures make up for */
        c.iterations /= 2;
    if (!alone && t->dim + t->context == 1) { /* mixtures of one column leave little to gain */
        c.hidden_made = ONE_HIDDEN;
        c.features = ONE_FEATURES;
        c.width = ONE_WIDTH;
        c.layers = ONE_LAYERS;
        c.iterations = ONE_ITERATIONS;
        c.batch = ONE_BATCH;
    }
    return c;
}

static const char *text_or(const hl_settings *s, const char *name, const char *otherwise)
{
    const char *text = hl_settings_text(s, name);
    return text ? text : otherwise;
}

static size_t size_or(const hl_settings *s, const char *name, size_t otherwise)
{
    return (size_t)hl_settings_integer(s, name, otherwise);
}

/* ---- networks ---- */

/* An order of columns: shuffled for made, which then sees related columns from far; by correlation for the tree. */
static hl_status choose_order(const hl_fit_table *t, const char *conditioner, uint64_t seed, size_t **out)
{
    bool tree = strcmp(conditioner, "tree") == 0;
    if (!(tree && t->dim <= ORDER_COLUMNS) && !(strcmp(conditioner, "made") == 0 && t->dim > SHUFFLE_COLUMNS))
        return HL_OK;
    size_t *order = *out = hl_calloc(t->ctx, t->dim, sizeof *order);
    if (!order)
        return HL_ERR_NOMEM;
    if (tree)
        return hl_order_columns(t->ctx, t->train.rows < ORDER_ROWS ? t->train.rows : ORDER_ROWS, t->dim, t->train.x,
                                order);
    for (size_t i = 0; i < t->dim; i++)
        order[i] = i;
    for (size_t i = t->dim; i > 1; i--) {
        size_t k = (size_t)(hl_random_uniform(seed, STREAM_ORDER, i) * (double)i), keep = order[i - 1];
        order[i - 1] = order[k];
        order[k] = keep;
    }
    return HL_OK;
}

/* "28x28" or "3x32x32": channels, height and width; zeros if there is none. */
static hl_status read_image(hl_context *ctx, const char *text, size_t image[3])
{
    int used = 0;
    memset(image, 0, 3 * sizeof *image);
    if (!text || (sscanf(text, "%7zux%7zux%7zu%n", &image[0], &image[1], &image[2], &used) == 3 && !text[used]))
        return HL_OK;
    image[0] = 1;
    used = 0;
    if (sscanf(text, "%7zux%7zu%n", &image[1], &image[2], &used) == 2 && !text[used])
        return HL_OK;
    return hl_fail(ctx, HL_ERR_INVALID, "image: '%.40s' is not of the form HEIGHTxWIDTH or CHANNELSxHEIGHTxWIDTH",
                   text);
}

static hl_status choose_flow(const hl_fit_table *t, const hl_settings *s, const size_class *c, hl_fit_plan *plan)
{
    const char *kind = hl_settings_text(s, "model"), *conditioner = text_or(s, "conditioner", c->conditioner);
    bool dense = hl_fit_is_dense(conditioner), cnf = !kind || strcmp(kind, "cnf") == 0;
    hl_net_spec *net = &plan->flow.net;
    plan->flow = (hl_flow_spec){ .kind = kind, .flows = size_or(s, "flows", 0) };
    *net = (hl_net_spec){
        .dim = t->dim,
        .context = t->context,
        .dtype = hl_settings_choice(s, "dtype", 0) == 1 ? HL_F64 : HL_F32,
        .hidden = size_or(s, "hidden",
                          !cnf    ? c->discrete_hidden
                          : dense ? c->hidden_made
                                  : c->hidden),
        .hidden_layers = (int)size_or(s, "hidden-layers", cnf ? (size_t)c->hidden_layers : DISCRETE_LAYERS),
        .features = size_or(s, "features", cnf ? c->features : 0),
        .width = size_or(s, "width", cnf ? c->width : 0),
        .layers = (int)size_or(s, "layers", cnf ? (size_t)c->layers : 0),
        .activation = text_or(s, "activation", cnf ? c->activation : "tanh"),
    };
    hl_status status = choose_order(t, conditioner, hl_settings_integer(s, "seed", 0), &plan->order);
    if (cnf) {
        net->conditioner = conditioner;
        net->order = plan->order;
    }
    return status == HL_OK ? read_image(t->ctx, hl_settings_text(s, "image"), net->image) : status;
}

/* ---- training ---- */

static hl_loss choose_loss(const hl_settings *s, const size_class *c)
{
    static const hl_loss losses[] = { HL_LOSS_DEFAULT, HL_LOSS_LIKELIHOOD, HL_LOSS_FLOW_MATCHING, HL_LOSS_SCORE };
    size_t choice = hl_settings_choice(s, "loss", 0);
    return choice ? losses[choice] : c->loss;
}

static hl_trace choose_trace(const hl_settings *s)
{
    static const hl_trace traces[] = { HL_TRACE_EXACT, HL_TRACE_HUTCHINSON, HL_TRACE_BRUTE };
    return traces[hl_settings_choice(s, "trace", 0)];
}

/* With few rows, less than `until`: in proportion to their lack. */
static double for_few(double rows, double until, double most)
{
    return rows < until ? fmin(FEW / rows, 1) * most : 0;
}

/* In options of the library 0 is the default, and negative is none. */
static double or_none(const hl_settings *s, const char *name)
{
    double value = hl_settings_real(s, name, 0);
    return hl_settings_given(s, name) && value == 0 ? -1 : value;
}

static size_t iterations(const hl_settings *s, const size_class *c)
{
    static const double shares[] = { 1, [RECIPE_FAST] = 0.1, 5 }; /* default, fast, best */
    return (size_t)(shares[hl_settings_choice(s, "recipe", 0)] * (double)c->iterations);
}

/* How often a schedule may be extended: those that the program chose, unless little time was asked for. */
static size_t extensions(const hl_settings *s)
{
    bool chosen = !hl_settings_given(s, "iters") && hl_settings_choice(s, "recipe", 0) != RECIPE_FAST;
    return size_or(s, "extensions", chosen ? EXTENSIONS : 0);
}

static void choose_training(const hl_fit_table *t, const hl_settings *s, const size_class *c, double rate,
                            hl_fit_plan *plan)
{
    double rows = (double)t->train.rows;
    hl_fit_options *o = &plan->options;
    *o = (hl_fit_options){
        .loss = choose_loss(s, c),
        .transport = !hl_settings_given(s, "transport")           ? 0
                     : hl_settings_choice(s, "transport", 0) == 0 ? 1
                                                                  : -1,
        .iterations = size_or(s, "iters", iterations(s, c)),
        .batch = size_or(s, "batch", c->batch),
        .jitter = hl_settings_real(s, "jitter", for_few(rows, JITTER_ROWS, JITTER)),
        .straight = hl_settings_real(s, "straight", 0),
        .warmup = size_or(s, "warmup", 0),
        .last_rate = hl_settings_real(s, "last-lr", 0),
        .train_steps = hl_settings_given(s, "solver") && !hl_settings_given(s, "ode-steps")
                           ? SIZE_MAX /* adaptive */
                           : size_or(s, "ode-steps", 0),
        .train_trace = choose_trace(s),
        .solver = { .method = hl_settings_text(s, "solver"),
                    .rtol = hl_settings_real(s, "rtol", 0),
                    .atol = hl_settings_real(s, "atol", 0) },
        .validation_rows = c->validation_rows,
        .patience = size_or(s, "patience", (size_t)hl_option_number(hl_density_fit_options(), "patience")),
        .extensions = extensions(s),
        .seed = hl_settings_integer(s, "seed", 0),
    };
    o->matching = (size_t)round(3 * c->matching) * o->iterations / 3;
    o->optimizer = (hl_optimizer_options){
        .method = hl_settings_text(s, "optimizer"),
        .rate = hl_settings_real(s, "lr", rate * c->rate),
        .weight_decay = hl_settings_real(s, "weight-decay", for_few(rows, DECAY_ROWS, DECAY)),
        .clip = or_none(s, "clip"),
        .average = or_none(s, "average"),
        .beta1 = or_none(s, "beta1"),
    };
    plan->minutes = hl_settings_real(s, "minutes", 0);
    /* Of few rows the noise on them hides until late what a flow can do, and it takes seconds. */
    plan->reach = rows > FEW ? REACH + REACH_COLUMN * (double)t->dim : INFINITY;
}

hl_status hl_fit_choose(const hl_fit_table *t, const hl_settings *settings, const hl_fit_variant *variant,
                        hl_fit_plan *plan)
{
    const size_class c = class_of(t, settings);
    hl_status status = choose_flow(t, settings, &c, plan);
    choose_training(t, settings, &c, variant->rate, plan);
    return status;
}

void hl_fit_plan_free(hl_context *ctx, hl_fit_plan *plan)
{
    hl_free(ctx, plan->order);
}

int hl_fit_describe(const hl_fit_table *t, const hl_fit_plan *plan, const hl_flow *flow, char *to, size_t size)
{
    const hl_fit_options *o = &plan->options;
    hl_flow_spec f = hl_flow_describe(flow);
    int length = snprintf(
        to, size,
        "iters %zu batch %zu seed %llu model %s flows %zu conditioner %s hidden %zux%d features %zu "
        "transformer %zux%d activation %s image %zux%zux%zu dtype %s trace %d loss %d steps %zu solver %s rtol "
        "%.17g atol %.17g lr %.17g decay %.17g optimizer %s warmup %zu last %.17g clip %.17g average %.17g "
        "jitter %.17g transport %d decorrelated %d patience %zu rows %zu+%zu data %016llx",
        o->iterations, o->batch, (unsigned long long)o->seed, f.kind, f.flows, f.net.conditioner, f.net.hidden,
        f.net.hidden_layers, f.net.features, f.net.width, f.net.layers, f.net.activation, f.net.image[0],
        f.net.image[1], f.net.image[2], hl_dtype_name(f.net.dtype), (int)o->train_trace, (int)o->loss, o->train_steps,
        o->solver.method ? o->solver.method : "dopri5", o->solver.rtol, o->solver.atol, o->optimizer.rate,
        o->optimizer.weight_decay, o->optimizer.method ? o->optimizer.method : "adamw", o->warmup, o->last_rate,
        o->optimizer.clip, o->optimizer.average, o->jitter, o->transport, t->factor != NULL, o->patience, t->train.rows,
        t->valid.rows, (unsigned long long)t->hash);
    if (o->extensions && length >= 0 && (size_t)length < size)
        length += snprintf(to + length, size - (size_t)length, " extensions %zu", o->extensions);
    if (o->straight > 0 && length >= 0 && (size_t)length < size)
        length += snprintf(to + length, size - (size_t)length, " straight %.17g", o->straight);
    if (t->stream && length >= 0 && (size_t)length < size)
        length += snprintf(to + length, size - (size_t)length, " streamed %zu", hl_fit_stream_rows(t->stream));
    return length;
}
