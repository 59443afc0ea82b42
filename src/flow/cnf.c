/* cnf.c - continuous flows: dx/dt = f(t, x) with the base at t = 0 and the data at t = 1, integrated together with its trace.
 *
 * The state of a row is (x, l) with dl/dt = Tr df/dx. From data to base time runs from 1 to 0, and l becomes
 * log |det dz/dx|; from base to data it runs from 0 to 1, and l becomes log |det dx/dz|. Networks one after the other go
 * on with the same l. All three ways to the trace are one plan of f and a number per row: the divergence, or e' J e with an
 * input e, random or each unit vector in turn (d copies of the row, whose numbers are added). */
#include <math.h>
#include <string.h>

#include "flow/flow.h"
#include "ode/ode.h"

enum { CHUNK = HL_FLOW_CHUNK, SLOTS = 256, GRADIENT_ROWS = 512, COPIES = 4096 /* rows of a call by copies */ };

/* One network as a system of rows (x, l). */
typedef struct field {
    hl_flow *flow;
    const hl_net *net;
    hl_trace trace;
    bool gaussian;
    uint64_t seed;
    size_t stream;         /* makes the random e of each network its own */
    size_t first;          /* row 0 of the solve is this row of the user's call */
    const double *context; /* of the rows of the solve */
    hl_plan *value;        /* x, t, context, e: f, trace */
    hl_plan *slope;        /* x, t, context: f, trace, D f; exact trace only */
    hl_plan *jvp;          /* x, t, context, v: J v of f and of the trace; exact trace only */
    hl_plan *gradient;     /* x, t, context, e, cotangents: gradients of x and the parameters */
    const void **param;
    void **result;                                           /* of gradient */
    size_t rows, copies;                                     /* rows of one call to a plan; copies of each row */
    char *x, *t, *c, *e, *f, *l, *gf, *gl, *gx, *d, *pieces; /* in the network's precision */
    size_t values;                                           /* of all parameters */
    double *row;                                             /* one row's scratch: [dim + context] */
    hl_ode *solve, *train; /* train records steps, which takes memory: made when the first gradient asks for it */
    hl_flow_solver solver; /* that they are made by */
    char method[32];       /* of the solver */
} field;

typedef struct continuous {
    field *field;    /* one for each network */
    double *state;   /* [CHUNK][dim + 1] */
    double *time;    /* [CHUNK] */
    hl_ode_row *row; /* [CHUNK] */
    bool *failed;    /* [CHUNK] */
} continuous;

/* ---- plans ---- */

typedef struct field_graph {
    hl_graph *g;
    hl_net_nodes n;
    hl_node d, e, l;
} field_graph;

static hl_status build(const field *f, field_graph *b)
{
    const hl_net *net = f->net;
    bool exact = f->trace == HL_TRACE_EXACT;
    b->n.x = hl_input(b->g, "x", 1, &net->dim);
    b->n.t = hl_input(b->g, "t", 0, NULL);
    b->n.context = net->context ? hl_input(b->g, "context", 1, &net->context) : HL_NONE;
    b->n.d = exact && !hl_net_turned(net) ? &b->d : NULL;
    hl_status status = hl_net_build(net, b->g, exact, HL_TAYLOR, &b->n);
    b->l = b->n.divergence;
    if (status != HL_OK || exact)
        return status;
    hl_node je = HL_NONE;
    b->e = hl_input(b->g, "e", 1, &net->dim);
    status = hl_jet(b->g, 1, 1, &b->n.x, &b->e, NULL, 1, &b->n.f, &je);
    b->l = je == HL_NONE ? hl_const(b->g, 0) : hl_sum(b->g, hl_mul(b->g, b->e, je), 0);
    return status;
}

/* Parameters' gradients, and those of x, as nodes after the parameters' own. */
static hl_status compile_gradient(field *f, field_graph *b, const hl_plan_options *options)
{
    const hl_net *net = f->net;
    size_t count = net->params + 1;
    hl_node y[] = { b->n.f, b->l }, gy[] = { hl_input(b->g, "gf", 1, &net->dim), hl_input(b->g, "gl", 0, NULL) };
    hl_node *of = hl_calloc(net->ctx, count, 2 * sizeof *of);
    if (!of)
        return HL_ERR_NOMEM;
    of[0] = b->n.x;
    memcpy(of + 1, b->n.param, net->params * sizeof *of);
    hl_status status = hl_vjp(b->g, 2, y, gy, count, of, NULL, of + count);
    if (status == HL_OK)
        status = hl_plan_create(net->ctx, b->g, count, of + count, options, &f->gradient);
    hl_free(net->ctx, of);
    return status;
}

/* What implicit methods need: the diagonal and the product with the Jacobian. */
static hl_status compile_implicit(field *f, field_graph *b, const hl_plan_options *options)
{
    const hl_net *net = f->net;
    hl_node y[] = { b->n.f, b->l }, jv[2], v = hl_input(b->g, "v", 1, &net->dim);
    hl_status status = hl_plan_create(net->ctx, b->g, 3, (hl_node[]){ b->n.f, b->l, b->d }, options, &f->slope);
    if (status == HL_OK)
        status = hl_jet(b->g, 1, 1, &b->n.x, &v, NULL, 2, y, jv);
    for (int i = 0; i < 2 && status == HL_OK; i++)
        if (jv[i] == HL_NONE)
            jv[i] = hl_scale(b->g, 0, y[i]);
    return status == HL_OK ? hl_plan_create(net->ctx, b->g, 2, jv, options, &f->jvp) : status;
}

static hl_status compile(field *f)
{
    const hl_net *net = f->net;
    hl_plan_options options = { .dtype = net->dtype };
    field_graph b = { .n.param = hl_calloc(net->ctx, net->params + 1, sizeof *b.n.param) };
    hl_status status = b.n.param ? hl_graph_create(net->ctx, &b.g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = build(f, &b);
    if (status == HL_OK)
        status = hl_plan_create(net->ctx, b.g, 2, (hl_node[]){ b.n.f, b.l }, &options, &f->value);
    if (status == HL_OK && b.n.d)
        status = compile_implicit(f, &b, &options);
    hl_graph_free(b.g);
    b.g = NULL;
    if (status == HL_OK)
        status = hl_graph_create(net->ctx, &b.g);
    if (status == HL_OK)
        status = build(f, &b);
    if (status == HL_OK)
        status = compile_gradient(f, &b, &options);
    hl_graph_free(b.g);
    hl_free(net->ctx, b.n.param);
    return status;
}

static void free_plans(field *f)
{
    hl_plan_free(f->value);
    hl_plan_free(f->slope);
    hl_plan_free(f->jvp);
    hl_plan_free(f->gradient);
    f->value = f->slope = f->jvp = f->gradient = NULL;
    hl_ode_free(f->solve);
    hl_ode_free(f->train);
    f->solve = f->train = NULL;
}

/* ---- creation ---- */

static void free_buffers(hl_context *ctx, field *f)
{
    char **const all[] = { &f->t, &f->l, &f->gl, &f->c, &f->x, &f->e, &f->f, &f->gf, &f->gx, &f->d };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        hl_free(ctx, *all[i]);
        *all[i] = NULL;
    }
}

/* Room for one call: GRADIENT_ROWS rows, or with brute force all copies of one, which may be many more. */
static hl_status make_buffers(field *f)
{
    const hl_net *net = f->net;
    size_t dim = net->dim, element = hl_dtype_size(net->dtype), rows = GRADIENT_ROWS;
    if (f->copies > 1) {
        size_t whole = COPIES / dim * dim;
        rows = dim > COPIES ? dim : whole > rows ? whole : rows;
    }
    const struct {
        char **place;
        size_t width;
    } all[] = { { &f->t, 1 },    { &f->l, 1 },   { &f->gl, 1 },  { &f->c, net->context + 1 },
                { &f->x, dim },  { &f->e, dim }, { &f->f, dim }, { &f->gf, dim },
                { &f->gx, dim }, { &f->d, dim } };
    free_buffers(f->flow->ctx, f);
    f->rows = rows;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(*all[i].place = hl_calloc(f->flow->ctx, hl_size_mul(rows, all[i].width), element)))
            return HL_ERR_NOMEM;
    return HL_OK;
}

static hl_status make_field(hl_flow *flow, field *f, size_t index)
{
    const hl_net *net = flow->net[index];
    hl_context *ctx = flow->ctx;
    size_t element = hl_dtype_size(net->dtype);
    *f = (field){ .flow = flow, .net = net, .stream = index };
    for (size_t p = 0; p < net->params; p++)
        f->values += hl_shape_size(&net->param[p].shape);
    f->param = hl_calloc(ctx, net->params + 1, sizeof *f->param);
    f->result = hl_calloc(ctx, net->params + 1, sizeof *f->result);
    f->row = hl_calloc(ctx, net->dim + net->context + 1, sizeof *f->row);
    f->pieces = hl_calloc(ctx, f->values + 1, element);
    if (!f->param || !f->result || !f->row || !f->pieces)
        return HL_ERR_NOMEM;
    char *piece = f->pieces;
    for (size_t p = 0; p < net->params; p++) {
        f->param[p] = (const char *)net->values + net->param[p].offset * element;
        f->result[p + 1] = piece;
        piece += hl_shape_size(&net->param[p].shape) * element;
    }
    return HL_OK;
}

static hl_status cnf_set_solver(hl_flow *flow, const hl_flow_solver *solver);

static hl_status cnf_create(hl_flow *flow)
{
    static const hl_flow_solver defaults;
    continuous *s = flow->state = hl_calloc(flow->ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    s->field = hl_calloc(flow->ctx, flow->nets, sizeof *s->field);
    s->state = hl_calloc(flow->ctx, hl_size_mul(CHUNK, flow->dim + 1), sizeof *s->state);
    s->time = hl_calloc(flow->ctx, CHUNK, sizeof *s->time);
    s->row = hl_calloc(flow->ctx, CHUNK, sizeof *s->row);
    s->failed = hl_calloc(flow->ctx, CHUNK, sizeof *s->failed);
    hl_status status = s->field && s->state && s->time && s->row && s->failed ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < flow->nets && status == HL_OK; i++)
        status = make_field(flow, &s->field[i], i);
    return status == HL_OK ? cnf_set_solver(flow, &defaults) : status;
}

static void cnf_free(hl_flow *flow)
{
    continuous *s = flow->state;
    if (!s)
        return;
    for (size_t i = 0; s->field && i < flow->nets; i++) {
        field *f = &s->field[i];
        void *const blocks[] = { (void *)f->param, f->result, f->row, f->pieces };
        free_plans(f);
        free_buffers(flow->ctx, f);
        for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
            hl_free(flow->ctx, blocks[k]);
    }
    hl_free(flow->ctx, s->field);
    hl_free(flow->ctx, s->state);
    hl_free(flow->ctx, s->time);
    hl_free(flow->ctx, s->row);
    hl_free(flow->ctx, s->failed);
    hl_free(flow->ctx, s);
}

/* ---- the system ---- */

/* The e of copy k of a row: random signs or normals of the row, or a unit vector. */
static void fill_probe(const field *f, size_t row, size_t k, double *e)
{
    size_t d = f->net->dim;
    uint64_t stream = f->flow->draw * 1000 + f->stream;
    for (size_t i = 0; i < d; i++)
        if (f->trace == HL_TRACE_BRUTE)
            e[i] = i == k;
        else if (f->gaussian)
            e[i] = hl_random_normal(f->seed, stream, row * d + i);
        else
            e[i] = hl_random_bits(f->seed, stream, row * d + i) & 1 ? 1 : -1;
}

/* Rows first .. of a call to the buffers, with all their copies; returns how many rows of the call. */
static size_t load(const field *f, const hl_rows *at, size_t first)
{
    const hl_net *net = f->net;
    size_t d = net->dim, element = hl_dtype_size(net->dtype), most = f->rows / f->copies;
    size_t count = at->count - first < most ? at->count - first : most;
    for (size_t r = 0; r < count; r++)
        for (size_t k = 0; k < f->copies; k++) {
            size_t to = r * f->copies + k, row = at->index[first + r];
            hl_to_precision(net->dtype, d, at->y + (first + r) * (d + 1), f->x + to * d * element);
            hl_to_precision(net->dtype, 1, at->t + first + r, f->t + to * element);
            if (net->context)
                hl_to_precision(net->dtype, net->context, f->context + row * net->context,
                                f->c + to * net->context * element);
            if (f->trace != HL_TRACE_EXACT) {
                fill_probe(f, f->first + row, k, f->row);
                hl_to_precision(net->dtype, d, f->row, f->e + to * d * element);
            }
        }
    return count;
}

/* x, t, context and e in the order of a plan's inputs; returns how many. */
static size_t inputs(const field *f, const void **input)
{
    size_t n = 0;
    input[n++] = f->x;
    input[n++] = f->t;
    if (f->net->context)
        input[n++] = f->c;
    if (f->trace != HL_TRACE_EXACT)
        input[n++] = f->e;
    return n;
}

/* Results f and l of `count` rows: the x of the first copy, the sum of all copies' l. */
static void store(const field *f, size_t count, double *dy)
{
    size_t d = f->net->dim, element = hl_dtype_size(f->net->dtype);
    for (size_t r = 0; r < count; r++, dy += d + 1) {
        hl_from_precision(f->net->dtype, d, f->f + r * f->copies * d * element, dy);
        dy[d] = 0;
        for (size_t k = 0; k < f->copies; k++)
            hl_add_from_precision(f->net->dtype, 1, f->l + (r * f->copies + k) * element, &dy[d]);
    }
}

static int cnf_rhs(void *user, const hl_rows *at, double *dy)
{
    field *f = user;
    size_t count;
    for (size_t first = 0; first < at->count; first += count) {
        const void *input[8];
        count = load(f, at, first);
        inputs(f, input);
        hl_execute(f->value, count * f->copies, input, f->param, (void *[]){ f->f, f->l });
        store(f, count, dy + first * (f->net->dim + 1));
    }
    return 0;
}

/* The exact trace only. l has no part in its own derivative. */
static int cnf_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    field *f = user;
    size_t d = f->net->dim, element = hl_dtype_size(f->net->dtype), count;
    for (size_t first = 0; first < at->count; first += count) {
        const void *input[8];
        count = load(f, at, first);
        inputs(f, input);
        hl_execute(f->slope, count, input, f->param, (void *[]){ f->f, f->l, f->d });
        if (dy)
            store(f, count, dy + first * (d + 1));
        for (size_t r = 0; r < count; r++) {
            hl_from_precision(f->net->dtype, d, f->d + r * d * element, diagonal + (first + r) * (d + 1));
            diagonal[(first + r) * (d + 1) + d] = 0;
        }
    }
    return 0;
}

static int cnf_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    field *f = user;
    size_t d = f->net->dim, element = hl_dtype_size(f->net->dtype), count;
    for (size_t first = 0; first < at->count; first += count) {
        const void *input[8];
        count = load(f, at, first);
        size_t n = inputs(f, input);
        for (size_t r = 0; r < count; r++)
            hl_to_precision(f->net->dtype, d, v + (first + r) * (d + 1), f->gf + r * d * element);
        input[n] = f->gf;
        hl_execute(f->jvp, count, input, f->param, (void *[]){ f->f, f->l });
        store(f, count, jv + first * (d + 1));
    }
    return 0;
}

/* Cotangents of `count` rows: that of f goes to the first copy, that of the trace to all. */
static void load_cotangents(const field *f, size_t count, const double *w)
{
    size_t d = f->net->dim, element = hl_dtype_size(f->net->dtype);
    memset(f->gf, 0, count * f->copies * d * element);
    for (size_t r = 0; r < count; r++, w += d + 1) {
        hl_to_precision(f->net->dtype, d, w, f->gf + r * f->copies * d * element);
        for (size_t k = 0; k < f->copies; k++)
            hl_to_precision(f->net->dtype, 1, &w[d], f->gl + (r * f->copies + k) * element);
    }
}

static int cnf_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    field *f = user;
    size_t d = f->net->dim, element = hl_dtype_size(f->net->dtype), count;
    for (size_t first = 0; first < at->count; first += count) {
        const void *input[8];
        count = load(f, at, first);
        size_t n = inputs(f, input);
        load_cotangents(f, count, w + first * (d + 1));
        input[n++] = f->gf;
        input[n] = f->gl;
        f->result[0] = f->gx;
        hl_execute(f->gradient, count * f->copies, input, f->param, f->result);
        double *to = gy + first * (d + 1);
        memset(to, 0, count * (d + 1) * sizeof *to);
        for (size_t r = 0; r < count * f->copies; r++)
            hl_add_from_precision(f->net->dtype, d, f->gx + r * d * element, to + r / f->copies * (d + 1));
        if (gparam)
            hl_add_from_precision(f->net->dtype, f->values, f->pieces, gparam);
    }
    return 0;
}

/* ---- solvers ---- */

/* Does the method solve all rows as one system? Then rows go one at a time, to be independent of each other. */
static bool is_one_system(const char *method)
{
    return hl_ode_family_of(method) == &hl_ode_multistep;
}

static hl_status make_solver(hl_flow *flow, field *f, const hl_flow_solver *solver, bool train, hl_ode **ode)
{
    bool exact = f->slope != NULL, single = flow->net[0]->dtype == HL_F32;
    hl_system system = { .n = f->net->dim + 1,
                         .rhs = cnf_rhs,
                         .diagonal = exact ? cnf_diagonal : NULL,
                         .jvp = exact ? cnf_jvp : NULL,
                         .vjp = cnf_vjp,
                         .n_params = f->values,
                         .rounding = single ? 6e-8 : 0,
                         .user = f };
    hl_ode_options options = { .method = solver->method,
                               .rtol = solver->rtol > 0 ? solver->rtol
                                       : single         ? 1e-5
                                                        : 1e-6,
                               .atol = solver->atol > 0 ? solver->atol
                                       : single         ? 1e-5
                                                        : 1e-8,
                               .steps = solver->steps,
                               .max_evaluations = solver->max_evaluations,
                               .rows = train                           ? GRADIENT_ROWS
                                       : is_one_system(solver->method) ? 1
                                                                       : SLOTS };
    if (solver->rtol < 0 || solver->atol < 0)
        options.rtol = -1; /* for the message */
    if (train)
        options.gradient = solver->adjoint || is_one_system(solver->method) ? HL_ADJOINT : HL_REPLAY;
    return hl_ode_create(flow->ctx, &system, &options, ode);
}

/* A new one, or, if it cannot be made, the old ones. */
static hl_status replace_solvers(hl_flow *flow, field *f, const hl_flow_solver *solver)
{
    hl_ode *solve = NULL;
    hl_status status = make_solver(flow, f, solver, false, &solve);
    if (status != HL_OK)
        return status;
    hl_ode_free(f->solve);
    hl_ode_free(f->train);
    f->solve = solve;
    f->train = NULL;
    f->seed = solver->seed;
    f->gaussian = solver->gaussian != 0;
    f->solver = *solver;
    if (solver->method)
        f->solver.method = strncpy(f->method, solver->method, sizeof f->method - 1); /* known names are shorter */
    return HL_OK;
}

static hl_status cnf_set_solver(hl_flow *flow, const hl_flow_solver *solver)
{
    continuous *s = flow->state;
    if (solver->trace < HL_TRACE_EXACT || solver->trace > HL_TRACE_BRUTE)
        return hl_fail(flow->ctx, HL_ERR_INVALID, "unknown kind of trace %d", (int)solver->trace);
    hl_status status = HL_OK;
    for (size_t i = 0; i < flow->nets && status == HL_OK; i++) {
        field *f = &s->field[i];
        if (f->trace != solver->trace || !f->gradient) {
            free_plans(f);
            f->trace = solver->trace;
            f->copies = f->trace == HL_TRACE_BRUTE ? f->net->dim : 1;
            status = make_buffers(f);
            if (status == HL_OK)
                status = compile(f);
        }
        if (status == HL_OK)
            status = replace_solvers(flow, f, solver);
    }
    return status;
}

/* ---- running ---- */

static void add_counts(hl_ode_counts *to, const hl_ode_counts *from)
{
    to->f_calls += from->f_calls;
    to->diagonal_calls += from->diagonal_calls;
    to->jvp_calls += from->jvp_calls;
    to->vjp_calls += from->vjp_calls;
    to->f += from->f;
    to->diagonal += from->diagonal;
    to->jvp += from->jvp;
    to->vjp += from->vjp;
    to->steps += from->steps;
    to->rejected += from->rejected;
    to->iterations += from->iterations;
    to->convergence_failures += from->convergence_failures;
    to->switches += from->switches;
}

static void collect(hl_flow *flow, hl_ode *ode)
{
    hl_ode_summary report = hl_ode_report(ode);
    add_counts(&flow->report.forward, &report.forward);
    add_counts(&flow->report.backward, &report.backward);
    hl_ode_reset(ode);
}

/* Between values (rows x dim) with logdet (rows) and the state (rows x (dim + 1)). */
static void to_state(const hl_flow *flow, size_t rows, const double *values, double *state)
{
    size_t d = flow->dim;
    for (size_t r = 0; r < rows; r++) {
        memcpy(state + r * (d + 1), values + r * d, d * sizeof *state);
        state[r * (d + 1) + d] = 0;
    }
}

static void from_state(const hl_flow *flow, size_t rows, const double *state, double *values, double *logdet)
{
    size_t d = flow->dim;
    for (size_t r = 0; r < rows; r++) {
        memcpy(values + r * d, state + r * (d + 1), d * sizeof *values);
        logdet[r] = state[r * (d + 1) + d];
    }
}

/* One network for a chunk. */
static void solve_one(hl_flow *flow, field *f, bool to_base, size_t first, size_t rows, const double *context,
                      hl_status *status)
{
    continuous *s = flow->state;
    size_t d = flow->dim;
    f->context = context;
    f->first = first;
    for (size_t r = 0; r < rows; r++)
        s->time[r] = to_base ? 1 : 0;
    hl_status result = hl_ode_solve(f->solve, rows, s->time, to_base ? 0 : 1, s->state, s->row);
    collect(flow, f->solve);
    if (result == HL_OK || result == HL_IMPRECISE)
        return;
    hl_failure why = hl_context_failure(flow->ctx);
    hl_place place = hl_at(why.row == HL_NOWHERE ? HL_NOWHERE : first + why.row, why.column);
    if (result == HL_STOPPED)
        *status = HL_OK; /* goes before earlier failures */
    hl_flow_note(flow, status, result, place, why.what);
    for (size_t r = 0; r < rows; r++)
        if (s->row[r].status != HL_OK && s->row[r].status != HL_IMPRECISE) {
            memset(s->state + r * (d + 1), 0, (d + 1) * sizeof *s->state); /* so that it can go on to no harm */
            s->failed[r] = true;
        }
}

/* Not if the last change of the trace ran out of memory. */
static bool has_solver(hl_flow *flow)
{
    continuous *s = flow->state;
    bool all = true;
    for (size_t k = 0; k < flow->nets; k++)
        all = all && s->field[k].solve;
    if (!all)
        hl_fail(flow->ctx, HL_ERR_INVALID, "the flow has no solver: hl_flow_set_solver failed");
    return all;
}

static void cnf_run(hl_flow *flow, bool to_base, size_t first, size_t rows, const double *context, double *values,
                    double *logdet, hl_status *status)
{
    continuous *s = flow->state;
    if (!has_solver(flow)) {
        hl_flow_note(flow, status, HL_ERR_INVALID, hl_at(HL_NOWHERE, HL_NOWHERE),
                     "the flow has no solver: hl_flow_set_solver failed");
        return;
    }
    to_state(flow, rows, values, s->state);
    memset(s->failed, 0, rows * sizeof *s->failed);
    for (size_t k = 0; k < flow->nets; k++)
        solve_one(flow, &s->field[to_base ? k : flow->nets - 1 - k], to_base, first, rows, context, status);
    for (size_t i = 0; i < rows * (flow->dim + 1); i++)
        if (s->failed[i / (flow->dim + 1)])
            s->state[i] = NAN;
    from_state(flow, rows, s->state, values, logdet);
}

static hl_status cnf_gradient(hl_flow *flow, size_t first, size_t rows, const double *context, double *values,
                              double *logdet, double *gradient)
{
    continuous *s = flow->state;
    size_t d = flow->dim;
    hl_status status = has_solver(flow) ? HL_OK : HL_ERR_INVALID;
    to_state(flow, rows, values, s->state);
    for (size_t k = 0; k < flow->nets && status == HL_OK; k++)
        if (!s->field[k].train)
            status = make_solver(flow, &s->field[k], &s->field[k].solver, true, &s->field[k].train);
    for (size_t k = 0; k < flow->nets && status >= 0 && status != HL_STOPPED; k++) {
        field *f = &s->field[k];
        f->context = context;
        f->first = first;
        for (size_t r = 0; r < rows; r++)
            s->time[r] = 1;
        status = hl_ode_solve(f->train, rows, s->time, 0, s->state, s->row);
    }
    from_state(flow, rows, s->state, values, logdet);
    for (size_t r = 0; r < rows; r++) /* of |z|^2 / 2 - logdet */
        s->state[r * (d + 1) + d] = -1;
    for (size_t k = flow->nets; k-- > 0 && status >= 0 && status != HL_STOPPED;)
        status = hl_ode_gradient(s->field[k].train, s->state, gradient + flow->offset[k]);
    for (size_t k = 0; k < flow->nets; k++)
        collect(flow, s->field[k].train);
    return status == HL_IMPRECISE ? HL_OK : status < 0 ? hl_fail_offset(flow->ctx, status, first) : status;
}

const hl_flow_engine hl_flow_continuous = { .chunk = CHUNK,
                                            .gradient_chunk = GRADIENT_ROWS,
                                            .create = cnf_create,
                                            .free = cnf_free,
                                            .set_solver = cnf_set_solver,
                                            .run = cnf_run,
                                            .gradient = cnf_gradient };
