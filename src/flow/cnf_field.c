/* cnf_field.c - one network of a continuous flow as a system of rows: f and, if it is asked for, the trace of its Jacobian.
 *
 * All three ways to the trace are one plan of f and a number per row: the divergence, or e' J e with an input e, random or each
 * unit vector in turn (dim copies of the row, whose numbers are added). Rows are read from and written to the solver's arrays.
 *
 * For straight paths gradients are those of -log p + W E, where E is the integral of |f|^2 / dim from t = 0 to 1. As l is integrated from 1
 * to 0 and log p has + l, this is the trace with + W |f|^2 / dim. */
#include <string.h>

#include "flow/cnf.h"

enum { COPIES = 4096 /* rows of a call by copies */ };

/* ---- plans ---- */

typedef struct field_graph {
    hl_graph *g;
    hl_net_nodes n;
    hl_node d, e, l;
} field_graph;

/* f, and its trace if asked for. */
static hl_status build(const hl_cnf_field *f, field_graph *b, bool with_trace)
{
    const hl_net *net = f->net;
    bool exact = with_trace && f->trace == HL_TRACE_EXACT;
    b->n.x = hl_input(b->g, "x", 1, &net->dim);
    b->n.t = hl_input(b->g, "t", 0, NULL);
    b->n.context = net->context ? hl_input(b->g, "context", 1, &net->context) : HL_NONE;
    b->n.d = exact && !hl_net_turned(net) ? &b->d : NULL;
    hl_status status = hl_net_build(net, b->g, exact, HL_TAYLOR, &b->n);
    b->l = b->n.divergence;
    if (status != HL_OK || exact || !with_trace)
        return status;
    hl_node je = HL_NONE;
    b->e = hl_input(b->g, "e", 1, &net->dim);
    status = hl_jet(b->g, 1, 1, &b->n.x, &b->e, NULL, 1, &b->n.f, &je);
    b->l = je == HL_NONE ? hl_const(b->g, 0) : hl_sum(b->g, hl_mul(b->g, b->e, je), 0);
    return status;
}

/* The same with the term for straight paths in l; copies of a row share it. */
static hl_status build_straightened(const hl_cnf_field *f, field_graph *b)
{
    hl_status status = build(f, b, true);
    if (status != HL_OK || !(f->straight > 0))
        return status;
    hl_node squares = hl_sum(b->g, hl_mul(b->g, b->n.f, b->n.f), 0);
    b->l = hl_add(b->g, b->l, hl_scale(b->g, f->straight / (double)(f->net->dim * f->copies), squares));
    return status;
}

/* Parameters' gradients, and those of x, as nodes after the parameters' own. */
static hl_status compile_gradient(hl_cnf_field *f, field_graph *b, const hl_plan_options *options)
{
    const hl_net *net = f->net;
    size_t count = net->params + 1;
    hl_node y[] = { b->n.f, b->l }, gy[] = { hl_input(b->g, "gf", 1, &net->dim), hl_input(b->g, "gl", 0, NULL) };
    hl_node *of = hl_calloc(f->ctx, count, 2 * sizeof *of);
    if (!of)
        return HL_ERR_NOMEM;
    of[0] = b->n.x;
    memcpy(of + 1, b->n.param, net->params * sizeof *of);
    hl_status status = hl_vjp(b->g, 2, y, gy, count, of, NULL, of + count);
    if (status == HL_OK)
        status = hl_plan_create(f->ctx, b->g, count, of + count, options, &f->gradient);
    hl_free(f->ctx, of);
    return status;
}

/* What implicit methods need: the diagonal and the product with the Jacobian. */
static hl_status compile_implicit(hl_cnf_field *f, field_graph *b, const hl_plan_options *options)
{
    const hl_net *net = f->net;
    hl_node y[] = { b->n.f, b->l }, jv[2], v = hl_input(b->g, "v", 1, &net->dim);
    hl_status status = hl_plan_create(f->ctx, b->g, 3, (hl_node[]){ b->n.f, b->l, b->d }, options, &f->slope);
    if (status == HL_OK)
        status = hl_jet(b->g, 1, 1, &b->n.x, &v, NULL, 2, y, jv);
    for (int i = 0; i < 2 && status == HL_OK; i++)
        if (jv[i] == HL_NONE)
            jv[i] = hl_scale(b->g, 0, y[i]);
    return status == HL_OK ? hl_plan_create(f->ctx, b->g, 2, jv, options, &f->jvp) : status;
}

static hl_status compile_value(hl_cnf_field *f, field_graph *b, const hl_plan_options *options)
{
    hl_status status = build(f, b, true);
    if (status == HL_OK)
        status = hl_plan_create(f->ctx, b->g, 2, (hl_node[]){ b->n.f, b->l }, options, &f->value);
    return status == HL_OK && b->n.d ? compile_implicit(f, b, options) : status;
}

static hl_status compile_plain(hl_cnf_field *f, field_graph *b, const hl_plan_options *options)
{
    hl_status status = build(f, b, false);
    return status == HL_OK ? hl_plan_create(f->ctx, b->g, 1, &b->n.f, options, &f->plain) : status;
}

static hl_status compile_backward(hl_cnf_field *f, field_graph *b, const hl_plan_options *options)
{
    hl_status status = build_straightened(f, b);
    if (status == HL_OK && f->straight > 0)
        status = hl_plan_create(f->ctx, b->g, 2, (hl_node[]){ b->n.f, b->l }, options, &f->straightened);
    return status == HL_OK ? compile_gradient(f, b, options) : status;
}

/* Each in a graph of its own, which is freed before the next is made. */
static hl_status compile(hl_cnf_field *f, bool with_gradient)
{
    hl_status (*const parts[])(hl_cnf_field *, field_graph *, const hl_plan_options *) = { compile_value, compile_plain,
                                                                                           compile_backward };
    hl_plan_options options = { .dtype = f->net->dtype };
    field_graph b = { .n.param = hl_calloc(f->ctx, f->net->params + 1, sizeof *b.n.param) };
    hl_status status = b.n.param ? HL_OK : HL_ERR_NOMEM;
    for (int i = 0; i < 2 + with_gradient && status == HL_OK; i++) {
        status = hl_graph_create(f->ctx, &b.g);
        if (status == HL_OK)
            status = parts[i](f, &b, &options);
        hl_graph_free(b.g);
        b.g = NULL;
    }
    hl_free(f->ctx, b.n.param);
    return status;
}

static void free_plans(hl_cnf_field *f)
{
    hl_plan **const plans[] = { &f->value, &f->straightened, &f->plain, &f->slope, &f->jvp, &f->gradient };
    hl_ode **const solvers[] = { &f->both.ode, &f->alone.ode, &f->train.ode };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        hl_plan_free(*plans[i]);
        *plans[i] = NULL;
    }
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        hl_ode_free(*solvers[i]);
        *solvers[i] = NULL;
    }
}

/* ---- creation ---- */

static void free_buffers(hl_cnf_field *f)
{
    hl_free(f->ctx, f->e);
    hl_free(f->ctx, f->row_of);
    f->e = NULL;
    f->row_of = NULL;
}

/* Room for the e of a call: HL_CNF_GRADIENT_ROWS rows, or with brute force all copies of one, which may be many more, and what
 * is not the sum over copies. */
static hl_status make_buffers(hl_cnf_field *f)
{
    size_t dim = f->net->dim, rows = HL_CNF_GRADIENT_ROWS, whole = COPIES / dim * dim;
    bool brute = f->trace == HL_TRACE_BRUTE;
    free_buffers(f);
    f->copies = brute ? dim : 1;
    if (brute)
        rows = dim > COPIES ? dim : whole > rows ? whole : rows;
    f->rows = rows;
    if (f->trace == HL_TRACE_EXACT)
        return HL_OK;
    size_t block = hl_size_mul(rows, dim);
    f->e = hl_calloc(f->ctx, brute ? hl_size_add(hl_size_mul(4, block), 2 * rows) : block, sizeof *f->e);
    f->row_of = hl_calloc(f->ctx, rows, 2 * sizeof *f->row_of);
    if (!f->e || !f->row_of)
        return HL_ERR_NOMEM;
    f->index = f->row_of + rows;
    if (brute) {
        f->f = f->e + block;
        f->gf = f->f + block;
        f->gx = f->gf + block;
        f->l = f->gx + block;
        f->gl = f->l + rows;
    }
    return HL_OK;
}

hl_status hl_cnf_field_create(hl_context *ctx, const hl_flow *flow, const hl_flow_solver *solver, size_t index,
                              hl_cnf_field **out)
{
    const hl_net *net = flow->net[index];
    size_t element = hl_dtype_size(net->dtype);
    hl_cnf_field *f = *out = hl_calloc(ctx, 1, sizeof *f);
    if (!f)
        return HL_ERR_NOMEM;
    *f = (hl_cnf_field){ .ctx = ctx, .flow = flow, .net = net, .solver = solver, .stream = index };
    f->both = (hl_cnf_system){ .field = f, .n = net->dim + 1 };
    f->alone = (hl_cnf_system){ .field = f, .n = net->dim };
    f->train = (hl_cnf_system){ .field = f, .n = net->dim + 1 };
    for (size_t p = 0; p < net->params; p++)
        f->values += hl_shape_size(&net->param[p].shape);
    f->param = hl_calloc(ctx, net->params + 1, sizeof *f->param);
    f->result = hl_calloc(ctx, net->params + 1, sizeof *f->result);
    f->pieces = hl_calloc(ctx, f->values + 1, element);
    if (!f->param || !f->result || !f->pieces)
        return HL_ERR_NOMEM;
    char *piece = f->pieces;
    for (size_t p = 0; p < net->params; p++) {
        f->param[p] = (const char *)net->values + net->param[p].offset * element;
        f->result[p + 1].shared = piece;
        piece += hl_shape_size(&net->param[p].shape) * element;
    }
    return HL_OK;
}

void hl_cnf_field_free(hl_cnf_field *f)
{
    if (!f)
        return;
    free_plans(f);
    free_buffers(f);
    hl_free(f->ctx, (void *)f->param);
    hl_free(f->ctx, f->result);
    hl_free(f->ctx, f->pieces);
    hl_free(f->ctx, f);
}

hl_status hl_cnf_field_compile(hl_cnf_field *f, bool with_gradient)
{
    double straight = with_gradient ? f->solver->straight : f->straight;
    if (f->trace == f->solver->trace && f->straight == straight && f->plain && (f->gradient || !with_gradient))
        return HL_OK;
    free_plans(f);
    f->trace = f->solver->trace;
    f->straight = straight;
    hl_status status = make_buffers(f);
    if (status == HL_OK)
        status = compile(f, with_gradient);
    if (status != HL_OK)
        free_plans(f); /* so that the next try makes them all */
    return status;
}

/* ---- the system ---- */

/* The e of copy k of a row: random signs or normals of the row, or a unit vector. */
static void fill_probe(const hl_cnf_field *f, size_t row, size_t k, double *e)
{
    size_t d = f->net->dim;
    uint64_t stream = f->flow->draw * 1000 + f->stream;
    for (size_t i = 0; i < d; i++)
        if (f->trace == HL_TRACE_BRUTE)
            e[i] = i == k;
        else if (f->solver->gaussian)
            e[i] = hl_random_normal(f->solver->seed, stream, row * d + i);
        else
            e[i] = hl_random_bits(f->solver->seed, stream, row * d + i) & 1 ? 1 : -1;
}

/* How many rows of a call go together from `first` on; fills in what their copies need. */
static size_t load(const hl_cnf_field *f, const hl_rows *at, size_t first)
{
    size_t d = f->net->dim, left = at->count - first, most = f->rows / f->copies, count = left < most ? left : most;
    if (f->trace == HL_TRACE_EXACT)
        return left;
    for (size_t to = 0; to < count * f->copies; to++) {
        size_t r = first + to / f->copies;
        f->row_of[to] = r;
        f->index[to] = at->index[r];
        fill_probe(f, f->first + at->index[r], to % f->copies, f->e + to * d);
    }
    return count;
}

/* x, t, context and e of rows first .. in the order of a plan's inputs; returns how many inputs. */
static size_t inputs(const hl_cnf_system *s, const hl_rows *at, size_t first, bool with_e, hl_row_in *in)
{
    const hl_cnf_field *f = s->field;
    bool copied = with_e && f->copies > 1;
    const size_t *rows = copied ? f->row_of : NULL;
    size_t n = 0;
    in[n++] = (hl_row_in){ copied ? at->y : at->y + first * s->n, s->n, rows };
    in[n++] = (hl_row_in){ copied ? at->t : at->t + first, 1, rows };
    if (f->net->context)
        in[n++] = (hl_row_in){ f->context, f->net->context, copied ? f->index : at->index + first };
    if (with_e && f->trace != HL_TRACE_EXACT)
        in[n++] = (hl_row_in){ f->e, f->net->dim, NULL };
    return n;
}

/* f of the first copy of each of `count` rows, and the sum of all copies' traces. */
static void gather_copies(const hl_cnf_field *f, size_t count, double *dy)
{
    size_t d = f->net->dim;
    for (size_t r = 0; r < count; r++, dy += d + 1) {
        memcpy(dy, f->f + r * f->copies * d, d * sizeof *dy);
        dy[d] = 0;
        for (size_t k = 0; k < f->copies; k++)
            dy[d] += f->l[r * f->copies + k];
    }
}

static int alone_rhs(void *user, const hl_rows *at, double *dy)
{
    const hl_cnf_system *s = user;
    hl_row_in in[8];
    inputs(s, at, 0, false, in);
    hl_execute_rows(s->field->plain, at->count, in, s->field->param, &(hl_row_out){ .p = dy, .pitch = s->n });
    return 0;
}

static int both_rhs(void *user, const hl_rows *at, double *dy)
{
    const hl_cnf_system *s = user;
    const hl_cnf_field *f = s->field;
    size_t d = f->net->dim, count;
    for (size_t first = 0; first < at->count; first += count, dy += count * s->n) {
        hl_row_in in[8];
        count = load(f, at, first);
        inputs(s, at, first, true, in);
        hl_row_out to[] = { { .p = dy, .pitch = s->n }, { .p = dy + d, .pitch = s->n } };
        hl_row_out copies[] = { { .p = f->f, .pitch = d }, { .p = f->l, .pitch = 1 } };
        hl_execute_rows(s == &f->train && f->straightened ? f->straightened : f->value, count * f->copies, in, f->param,
                        f->copies > 1 ? copies : to);
        if (f->copies > 1)
            gather_copies(f, count, dy);
    }
    return 0;
}

/* The exact trace only. l has no part in its own derivative. */
static int cnf_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    const hl_cnf_system *s = user;
    size_t d = s->field->net->dim, n = s->n;
    hl_row_in in[8];
    inputs(s, at, 0, false, in);
    hl_row_out to[] = { { .p = dy, .pitch = n },
                        { .p = dy && n > d ? dy + d : NULL, .pitch = n },
                        { diagonal, n, NULL } };
    hl_execute_rows(s->field->slope, at->count, in, s->field->param, to);
    for (size_t r = 0; n > d && r < at->count; r++)
        diagonal[r * n + d] = 0;
    return 0;
}

static int cnf_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    const hl_cnf_system *s = user;
    size_t d = s->field->net->dim, n = s->n;
    hl_row_in in[8];
    in[inputs(s, at, 0, false, in)] = (hl_row_in){ v, n, NULL };
    hl_row_out to[] = { { .p = jv, .pitch = n }, { .p = n > d ? jv + d : NULL, .pitch = n } };
    hl_execute_rows(s->field->jvp, at->count, in, s->field->param, to);
    return 0;
}

/* Cotangents of copies: that of f goes to the first, that of the trace to all. */
static void spread_cotangents(const hl_cnf_field *f, size_t count, const double *w)
{
    size_t d = f->net->dim;
    memset(f->gf, 0, count * f->copies * d * sizeof *f->gf);
    for (size_t r = 0; r < count; r++, w += d + 1) {
        memcpy(f->gf + r * f->copies * d, w, d * sizeof *w);
        for (size_t k = 0; k < f->copies; k++)
            f->gl[r * f->copies + k] = w[d];
    }
}

/* gx of all copies added up. */
static void gather_gradients(const hl_cnf_field *f, size_t count, double *gy)
{
    size_t d = f->net->dim;
    memset(gy, 0, count * (d + 1) * sizeof *gy);
    for (size_t to = 0; to < count * f->copies; to++)
        for (size_t i = 0; i < d; i++)
            gy[to / f->copies * (d + 1) + i] += f->gx[to * d + i];
}

static int both_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    const hl_cnf_system *s = user;
    hl_cnf_field *f = s->field;
    size_t d = f->net->dim, count;
    bool copied = f->copies > 1;
    for (size_t first = 0; first < at->count; first += count, w += count * s->n, gy += count * s->n) {
        hl_row_in in[8];
        count = load(f, at, first);
        size_t n = inputs(s, at, first, true, in);
        if (copied)
            spread_cotangents(f, count, w);
        in[n++] = copied ? (hl_row_in){ f->gf, d, NULL } : (hl_row_in){ w, s->n, NULL };
        in[n] = copied ? (hl_row_in){ f->gl, 1, NULL } : (hl_row_in){ w + d, s->n, NULL };
        f->result[0] = copied ? (hl_row_out){ .p = f->gx, .pitch = d } : (hl_row_out){ .p = gy, .pitch = s->n };
        hl_execute_rows(f->gradient, count * f->copies, in, f->param, f->result);
        if (copied)
            gather_gradients(f, count, gy);
        for (size_t r = 0; !copied && r < count; r++)
            gy[r * s->n + d] = 0;
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

hl_status hl_cnf_field_solver(hl_cnf_system *s, hl_ode **ode)
{
    hl_cnf_field *f = s->field;
    const hl_flow_solver *solver = f->solver;
    bool exact = f->slope != NULL, single = f->net->dtype == HL_F32, both = s->n > f->net->dim, train = s == &f->train;
    hl_system system = { .n = s->n,
                         .rhs = both ? both_rhs : alone_rhs,
                         .diagonal = exact ? cnf_diagonal : NULL,
                         .jvp = exact ? cnf_jvp : NULL,
                         .vjp = train ? both_vjp : NULL,
                         .n_params = f->values,
                         .rounding = single ? 6e-8 : 0,
                         .user = s };
    hl_ode_options options = { .method = solver->method,
                               .rtol = solver->rtol > 0 ? solver->rtol
                                       : single         ? 1e-5
                                                        : 1e-6,
                               .atol = solver->atol > 0 ? solver->atol
                                       : single         ? 1e-5
                                                        : 1e-8,
                               .steps = solver->steps,
                               .start_error = solver->start_error,
                               .even_steps = train ? 0 : solver->even_steps,
                               .divided = train ? 0 : solver->divided,
                               .max_evaluations = solver->max_evaluations,
                               .rows = train                           ? HL_CNF_GRADIENT_ROWS
                                       : is_one_system(solver->method) ? 1
                                                                       : HL_CNF_SLOTS };
    if (solver->rtol < 0 || solver->atol < 0)
        options.rtol = -1; /* for the message */
    if (train)
        options.gradient = solver->adjoint || is_one_system(solver->method) ? HL_ADJOINT : HL_REPLAY;
    return hl_ode_create(f->ctx, &system, &options, ode);
}
