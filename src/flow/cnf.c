/* cnf.c - continuous flows: dx/dt = f(t, x) with the base at t = 0 and the data at t = 1, integrated together with its trace.
 *
 * The state of a row is (x, l) with dl/dt = Tr df/dx. From data to base time runs from 1 to 0, and l becomes
 * log |det dz/dx|; from base to data it runs from 0 to 1, and l becomes log |det dx/dz|. Networks one after the other go
 * on with the same l. Where no log-determinant is asked for the state is x alone.
 *
 * With several threads each has plans and solvers of its own, a *worker*, and takes rows as it gets done with others; few rows
 * go through the flow's own plans, which share each call. Calls of a few hundred rows are dealt out as long as that pays, as plans are shared: where
 * another program has a processor, a thread that waits for it would take longer than all of the rows. No row's bits depend on who solves it. */
#include <math.h>
#include <string.h>

#include "flow/cnf.h"

enum { SHARE_ROWS = 16 /* for each thread, or rows are not dealt out */ };

typedef struct worker {
    struct continuous *of;
    hl_context *ctx;      /* a branch of the flow's */
    hl_cnf_field **field; /* one for each network */
    bool asks;            /* runs on the caller's thread, and may ask the user whether to stop */
    hl_status status;     /* of the solve at hand */
    double seconds;       /* that it took */
} worker;

typedef struct continuous {
    hl_context *ctx;
    hl_flow_solver solver;
    char method[64];      /* of the solver */
    hl_cnf_field **field; /* one for each network */
    hl_ode **fresh;       /* likewise: solvers in the making */
    double *state;        /* [chunk][dim + 1] */
    double *time;         /* [chunk] */
    hl_ode_row *row;      /* [chunk] */
    bool *failed;         /* [chunk] */
    worker *worker;       /* as many as threads; made when the first call has rows enough */
    size_t workers, nets;
    hl_sharing sharing; /* of calls with few rows */
    atomic_bool stop;
} continuous;

/* ---- creation ---- */

static void free_workers(continuous *s)
{
    for (size_t w = 0; s->worker && w < s->workers; w++) {
        for (size_t k = 0; s->worker[w].field && k < s->nets; k++)
            hl_cnf_field_free(s->worker[w].field[k]);
        hl_free(s->ctx, s->worker[w].field);
        hl_context_free(s->worker[w].ctx);
    }
    hl_free(s->ctx, s->worker);
    s->worker = NULL;
}

/* One thread asks the user; the others follow. */
static int wants_stop(void *user)
{
    const worker *w = user;
    if (w->asks && hl_check_stop(w->of->ctx) != HL_OK)
        atomic_store_explicit(&w->of->stop, true, memory_order_relaxed);
    return atomic_load_explicit(&w->of->stop, memory_order_relaxed);
}

static hl_status make_workers(hl_flow *flow)
{
    continuous *s = flow->state;
    s->workers = (size_t)hl_team_size(flow->ctx->team);
    s->worker = hl_calloc(s->ctx, s->workers, sizeof *s->worker);
    hl_status status = s->worker ? HL_OK : HL_ERR_NOMEM;
    for (size_t w = 0; w < s->workers && status == HL_OK; w++) {
        worker *one = &s->worker[w];
        *one = (worker){ .of = s, .asks = w == 0 };
        one->field = hl_calloc(s->ctx, s->nets, sizeof *one->field);
        status = one->field ? hl_context_branch(s->ctx, wants_stop, one, &one->ctx) : HL_ERR_NOMEM;
        for (size_t k = 0; k < s->nets && status == HL_OK; k++)
            status = hl_cnf_field_create(one->ctx, flow, &s->solver, k, &one->field[k]);
    }
    if (status != HL_OK)
        free_workers(s);
    return status;
}

static hl_status cnf_set_solver(hl_flow *flow, const hl_flow_solver *solver);

static hl_status cnf_create(hl_flow *flow)
{
    static const hl_flow_solver defaults;
    continuous *s = flow->state = hl_calloc(flow->ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    size_t rows = flow->chunk;
    s->ctx = flow->ctx;
    s->nets = flow->nets;
    flow->solver = &s->solver;
    s->field = hl_calloc(flow->ctx, flow->nets, sizeof *s->field);
    s->fresh = hl_calloc(flow->ctx, flow->nets, sizeof *s->fresh);
    s->state = hl_calloc(flow->ctx, hl_size_mul(rows, flow->dim + 1), sizeof *s->state);
    s->time = hl_calloc(flow->ctx, rows, sizeof *s->time);
    s->row = hl_calloc(flow->ctx, rows, sizeof *s->row);
    s->failed = hl_calloc(flow->ctx, rows, sizeof *s->failed);
    hl_status status = s->field && s->fresh && s->state && s->time && s->row && s->failed ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < flow->nets && status == HL_OK; k++)
        status = hl_cnf_field_create(flow->ctx, flow, &s->solver, k, &s->field[k]);
    return status == HL_OK ? cnf_set_solver(flow, &defaults) : status;
}

static void cnf_free(hl_flow *flow)
{
    continuous *s = flow->state;
    if (!s)
        return;
    free_workers(s);
    for (size_t k = 0; s->field && k < flow->nets; k++)
        hl_cnf_field_free(s->field[k]);
    void *const blocks[] = { s->field, s->fresh, s->state, s->time, s->row, s->failed, s };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(flow->ctx, blocks[i]);
}

/* ---- solvers ---- */

static void drop_solvers(hl_cnf_field *f)
{
    hl_ode **const solvers[] = { &f->both.ode, &f->alone.ode, &f->train.ode };
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        hl_ode_free(*solvers[i]);
        *solvers[i] = NULL;
    }
}

static void set_settings(continuous *s, const hl_flow_solver *solver)
{
    char method[sizeof s->method] = ""; /* aside, as the given name may be this one */
    if (solver->method)
        strncpy(method, solver->method, sizeof method - 1); /* known names are shorter */
    s->solver = *solver;
    memcpy(s->method, method, sizeof method);
    if (solver->method)
        s->solver.method = s->method;
}

/* New solvers for all networks or, if one cannot be made, the old ones. */
static hl_status make_fresh(continuous *s)
{
    hl_status status = HL_OK;
    for (size_t k = 0; k < s->nets; k++)
        s->fresh[k] = NULL;
    for (size_t k = 0; k < s->nets && status == HL_OK; k++) {
        status = hl_cnf_field_compile(s->field[k], true);
        if (status == HL_OK)
            status = hl_cnf_field_solver(&s->field[k]->both, &s->fresh[k]);
    }
    for (size_t k = 0; k < s->nets && status != HL_OK; k++)
        hl_ode_free(s->fresh[k]);
    return status;
}

static hl_status cnf_set_solver(hl_flow *flow, const hl_flow_solver *solver)
{
    continuous *s = flow->state, old = *s;
    if (solver->trace < HL_TRACE_EXACT || solver->trace > HL_TRACE_BRUTE)
        return hl_fail(flow->ctx, HL_ERR_INVALID, "unknown kind of trace %d", (int)solver->trace);
    if (!(solver->straight >= 0) || !isfinite(solver->straight))
        return hl_fail(flow->ctx, HL_ERR_INVALID, "straight is %g; it must be >= 0", solver->straight);
    if (solver->straight > 0 && (solver->adjoint || hl_ode_family_of(solver->method) == &hl_ode_multistep))
        return hl_fail(flow->ctx, HL_ERR_UNSUPPORTED, "straight is supported by Runge-Kutta methods, not by %s",
                       solver->adjoint ? "the adjoint" : solver->method);
    set_settings(s, solver);
    hl_status status = make_fresh(s);
    if (status != HL_OK) {
        old.solver.method = old.solver.method ? old.method : NULL;
        set_settings(s, &old.solver);
        return status;
    }
    for (size_t k = 0; k < s->nets; k++) {
        drop_solvers(s->field[k]);
        s->field[k]->both.ode = s->fresh[k];
        for (size_t w = 0; s->worker && w < s->workers; w++)
            drop_solvers(s->worker[w].field[k]);
    }
    return HL_OK;
}

/* The solver of a field, made if this is its first use. */
static hl_status need_solver(hl_cnf_field *f, bool alone)
{
    hl_cnf_system *system = alone ? &f->alone : &f->both;
    hl_status status = hl_cnf_field_compile(f, false);
    return status == HL_OK && !system->ode ? hl_cnf_field_solver(system, &system->ode) : status;
}

/* Not if the last change of the trace ran out of memory. */
static bool has_solver(hl_flow *flow)
{
    continuous *s = flow->state;
    bool all = true;
    for (size_t k = 0; k < flow->nets; k++)
        all = all && s->field[k]->both.ode;
    if (!all)
        hl_fail(flow->ctx, HL_ERR_INVALID, "the flow has no solver: hl_flow_set_solver failed");
    return all;
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

/* Between values (rows x dim) with logdet (rows, or NULL) and the state (rows x n). */
static void to_state(const hl_flow *flow, size_t rows, size_t n, const double *values, double *state)
{
    size_t d = flow->dim;
    for (size_t r = 0; r < rows; r++) {
        memcpy(state + r * n, values + r * d, d * sizeof *state);
        if (n > d)
            state[r * n + d] = 0;
    }
}

static void from_state(const hl_flow *flow, size_t rows, size_t n, const double *state, double *values, double *logdet)
{
    size_t d = flow->dim;
    for (size_t r = 0; r < rows; r++) {
        memcpy(values + r * d, state + r * n, d * sizeof *values);
        if (logdet)
            logdet[r] = state[r * n + d];
    }
}

/* One network for a chunk. */
typedef struct deal {
    hl_flow *flow;
    size_t net, first, rows;
    const double *context;
    bool to_base, alone;
    atomic_size_t next;
} deal;

static hl_status solve_rows(deal *j, hl_cnf_field *f)
{
    continuous *s = j->flow->state;
    f->context = j->context;
    f->first = j->first;
    return hl_ode_solve_dealt(j->alone ? f->alone.ode : f->both.ode, &j->next, j->rows, s->time, j->to_base ? 0 : 1,
                              s->state, s->row);
}

static void solve_share(void *user, int thread)
{
    deal *j = user;
    continuous *s = j->flow->state;
    worker *w = &s->worker[thread];
    double start = hl_clock();
    w->status = solve_rows(j, w->field[j->net]);
    w->seconds = hl_clock() - start;
}

static bool is_good(hl_status status)
{
    return status == HL_OK || status == HL_IMPRECISE;
}

/* A failure of one solver; that of the least row is kept, and a stop goes before all. */
static void note(const deal *j, const hl_context *ctx, hl_status why, size_t *least, hl_status *status, bool *kept)
{
    hl_failure f = hl_context_failure(ctx);
    if (why == HL_IMPRECISE)
        hl_flow_note(j->flow, status, why, hl_at(HL_NOWHERE, HL_NOWHERE), f.what);
    if (is_good(why) || (!is_good(*status) && !*kept && why != HL_STOPPED) || *status == HL_STOPPED ||
        (*kept && why != HL_STOPPED && f.row >= *least))
        return;
    *status = HL_OK;
    *kept = true;
    *least = f.row;
    hl_flow_note(j->flow, status, why, hl_at(f.row == HL_NOWHERE ? HL_NOWHERE : j->first + f.row, f.column), f.what);
}

/* Solvers, and workers if the rows are to be dealt out. */
static hl_status prepare(const deal *j, bool dealt)
{
    continuous *s = j->flow->state;
    hl_status status = dealt && !s->worker ? make_workers(j->flow) : HL_OK;
    if (status == HL_OK && !dealt)
        return need_solver(s->field[j->net], j->alone);
    for (size_t w = 0; w < s->workers && status == HL_OK; w++)
        status = need_solver(s->worker[w].field[j->net], j->alone);
    return status;
}

/* Solve the rows by the workers: few rows by one of them alone, unless dealing them out has paid of late. */
static void run_workers(deal *j, size_t threads)
{
    continuous *s = j->flow->state;
    hl_team *team = j->flow->ctx->team;
    bool few = j->rows < HL_CNF_SLOTS * threads && !j->flow->ctx->share_all;
    double start = hl_clock(), worked = 0;
    atomic_store(&s->stop, false);
    for (size_t w = 0; w < threads; w++)
        s->worker[w].status = HL_OK;
    if (few && start < s->sharing.alone_until) {
        solve_share(j, 0);
        return;
    }
    hl_team_run(team, solve_share, j);
    double end = hl_clock();
    for (size_t w = 0; w < threads; w++)
        worked += s->worker[w].seconds;
    if (few) /* a thread that began late has waited, too */
        hl_share_learn(&s->sharing, (int)threads, start, end, (double)threads * (end - start) - worked);
}

static void solve_one(deal *j, hl_status *status)
{
    hl_flow *flow = j->flow;
    continuous *s = flow->state;
    size_t threads = (size_t)hl_team_size(flow->ctx->team), least = HL_NOWHERE, n = flow->dim + !j->alone;
    bool dealt = threads > 1 && j->rows >= SHARE_ROWS * threads, kept = false;
    hl_status ready = prepare(j, dealt);
    for (size_t r = 0; r < j->rows; r++) {
        s->time[r] = j->to_base ? 1 : 0;
        s->row[r].status = ready;
    }
    atomic_init(&j->next, 0);
    if (ready != HL_OK) {
        note(j, flow->ctx, ready, &least, status, &kept);
    } else if (dealt) {
        run_workers(j, threads);
        for (size_t w = 0; w < threads; w++) {
            hl_cnf_field *f = s->worker[w].field[j->net];
            collect(flow, j->alone ? f->alone.ode : f->both.ode);
            note(j, s->worker[w].ctx, s->worker[w].status, &least, status, &kept);
        }
    } else {
        hl_cnf_field *f = s->field[j->net];
        hl_status result = solve_rows(j, f);
        collect(flow, j->alone ? f->alone.ode : f->both.ode);
        note(j, flow->ctx, result, &least, status, &kept);
    }
    for (size_t r = 0; r < j->rows; r++)
        if (!is_good(s->row[r].status)) {
            memset(s->state + r * n, 0, n * sizeof *s->state); /* so that it can go on to no harm */
            s->failed[r] = true;
        }
}

static void cnf_run(hl_flow *flow, bool to_base, size_t first, size_t rows, const double *context, double *values,
                    double *logdet, hl_status *status)
{
    continuous *s = flow->state;
    size_t n = flow->dim + (logdet != NULL);
    if (!has_solver(flow)) {
        hl_flow_note(flow, status, HL_ERR_INVALID, hl_at(HL_NOWHERE, HL_NOWHERE),
                     "the flow has no solver: hl_flow_set_solver failed");
        return;
    }
    to_state(flow, rows, n, values, s->state);
    memset(s->failed, 0, rows * sizeof *s->failed);
    for (size_t k = 0; k < flow->nets; k++) {
        deal j = { .flow = flow,
                   .net = to_base ? k : flow->nets - 1 - k,
                   .first = first,
                   .rows = rows,
                   .context = context,
                   .to_base = to_base,
                   .alone = !logdet };
        solve_one(&j, status);
    }
    for (size_t i = 0; i < rows * n; i++)
        if (s->failed[i / n])
            s->state[i] = NAN;
    from_state(flow, rows, n, s->state, values, logdet);
}

static hl_status cnf_gradient(hl_flow *flow, size_t first, size_t rows, const double *context, double *values,
                              double *logdet, double *gradient)
{
    continuous *s = flow->state;
    size_t d = flow->dim, n = d + 1;
    hl_status status = has_solver(flow) ? HL_OK : HL_ERR_INVALID;
    to_state(flow, rows, n, values, s->state);
    for (size_t k = 0; k < flow->nets && status == HL_OK; k++)
        if (!s->field[k]->train.ode)
            status = hl_cnf_field_solver(&s->field[k]->train, &s->field[k]->train.ode);
    for (size_t k = 0; k < flow->nets && is_good(status); k++) {
        hl_cnf_field *f = s->field[k];
        f->context = context;
        f->first = first;
        for (size_t r = 0; r < rows; r++)
            s->time[r] = 1;
        status = hl_ode_solve(f->train.ode, rows, s->time, 0, s->state, s->row);
    }
    from_state(flow, rows, n, s->state, values, logdet);
    for (size_t r = 0; r < rows; r++) /* of |z|^2 / 2 - logdet */
        s->state[r * n + d] = -1;
    for (size_t k = flow->nets; k-- > 0 && is_good(status);)
        status = hl_ode_gradient(s->field[k]->train.ode, s->state, gradient + flow->offset[k]);
    for (size_t k = 0; k < flow->nets; k++)
        collect(flow, s->field[k]->train.ode);
    return is_good(status) ? HL_OK : hl_fail_offset(flow->ctx, status, first);
}

const hl_flow_engine hl_flow_continuous = { .chunk = 2048,
                                            .deals = true,
                                            .gradient_chunk = HL_CNF_GRADIENT_ROWS,
                                            .create = cnf_create,
                                            .free = cnf_free,
                                            .set_solver = cnf_set_solver,
                                            .run = cnf_run,
                                            .gradient = cnf_gradient };
