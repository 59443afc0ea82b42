/* iteration.c - solving the equation of an implicit step; integrator.h has the formulas.
 *
 * All iterations but the functional one are CVODE's Newton iteration over one linear solver of ours, which divides by
 * the diagonal, runs GMRES or solves with LU factors. So `auto` changes from one to another between two iterates, without a
 * restart. CVODE decides when D and J are computed anew (`linear_system`), as it does for its own solvers. */
#include <cvodes/cvodes.h>
#include <cvodes/cvodes_ls.h>
#include <math.h>
#include <string.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>
#include <sunnonlinsol/sunnonlinsol_newton.h>

#include "ode/integrator_state.h"

enum { KRYLOV = 20 };                              /* vectors of GMRES */
enum { SMALL_BLOCK = 16 };                         /* auto: blocks of newton from the start */
enum { JACOBIAN_STEPS = 10, DIAGONAL_STEPS = 51 }; /* that use one J or D at most */
static const double MAX_RATE = 0.35;  /* auto: jacobi must reduce the error of the linear equation at least by this */
static const double MIN_DIVISOR = .1; /* jacobi-fresh: |1 - gamma D| is not taken to be less */

/* What a callback returned, as a linear solver says it: x = 0, x > 0 retry, x < 0 stop. */
static int solver_flag(int value)
{
    return value == 0 ? 0 : value > 0 ? SUNLS_PACKAGE_FAIL_REC : SUNLS_ATIMES_FAIL_UNREC;
}

/* auto's stronger iteration. */
static hl_iteration strong(const hl_integrator *in)
{
    return in->options.block <= HL_AUTO_NEWTON_BLOCK ? HL_NEWTON : HL_GMRES;
}

static bool uses_gmres(const hl_integrator *in)
{
    return in->options.iteration == HL_GMRES || (in->options.iteration == HL_AUTO && strong(in) == HL_GMRES);
}

/* ---- the diagonal ---- */

static double divisor(double gamma, double d)
{
    return fmax(1, 1 - gamma * d);
}

static double fresh_divisor(double gamma, double d)
{
    double w = 1 - gamma * d;
    return fabs(w) >= MIN_DIVISOR ? w : copysign(MIN_DIVISOR, w);
}

static int update_diagonal(hl_integrator *in, double t, const double *y)
{
    int value = in->problem.diagonal(in->problem.user, t, y, in->linear.diagonal);
    in->linear.have_diagonal = value == 0;
    return value;
}

static void divide(const hl_integrator *in, const double *b, double *x)
{
    const hl_linear_state *l = &in->linear;
    for (size_t i = 0; i < in->problem.size; i++)
        x[i] = l->have_diagonal ? b[i] / divisor(l->gamma, l->diagonal[i]) : b[i];
}

static int solve_fresh(hl_integrator *in, const double *b, double *x)
{
    const hl_linear_state *l = &in->linear;
    int value = update_diagonal(in, l->t, l->y);
    for (size_t i = 0; value == 0 && i < in->problem.size; i++)
        x[i] = b[i] / fresh_divisor(l->gamma, l->diagonal[i]);
    return value;
}

/* How much jacobi reduces the error of the linear equation: |x1| / |x0|, where x0 = b / w and x1 = (b - (I - gamma J) x0) / w
 * is what the next iterate would add. CVODE's own estimate is of no use for this: it tends to stop after one iterate, and
 * where jacobi hardly contracts at all (linear invariants: y7 + y8 of HIRES) that looks like convergence. */
static int measure_rate(hl_integrator *in, const double *b, const double *x, double *rate)
{
    hl_linear_state *l = &in->linear;
    const double *weights = N_VGetArrayPointer(l->weights);
    double before = 0, after = 0;
    int value = in->problem.apply(in->problem.user, l->t, l->y, x, l->product);
    for (size_t i = 0; value == 0 && i < in->problem.size; i++) {
        double rest = (b[i] - x[i] + l->gamma * l->product[i]) / divisor(l->gamma, l->diagonal[i]);
        before += x[i] * weights[i] * x[i] * weights[i];
        after += rest * weights[i] * rest * weights[i];
    }
    *rate = before > 0 ? sqrt(after / before) : 0;
    return value;
}

static void note_rate(hl_integrator *in, double rate)
{
    in->linear.rate = rate;
    in->linear.rate_gamma = in->linear.gamma;
    in->worst_rate = fmax(in->worst_rate, rate);
}

/* ---- newton: LU of each block ---- */

/* Factor the n x n matrix a in place, rows exchanged as `pivots` says. Nonzero if it is singular. */
static int factor_block(size_t n, double *a, size_t *pivots)
{
    for (size_t k = 0; k < n; k++) {
        size_t p = k;
        for (size_t i = k + 1; i < n; i++)
            p = fabs(a[i * n + k]) > fabs(a[p * n + k]) ? i : p;
        pivots[k] = p;
        if (!(fabs(a[p * n + k]) > 0))
            return 1;
        for (size_t j = 0; p != k && j < n; j++) {
            double swap = a[k * n + j];
            a[k * n + j] = a[p * n + j];
            a[p * n + j] = swap;
        }
        for (size_t i = k + 1; i < n; i++) {
            double m = a[i * n + k] /= a[k * n + k];
            for (size_t j = k + 1; m != 0 && j < n; j++)
                a[i * n + j] -= m * a[k * n + j];
        }
    }
    return 0;
}

static void solve_block(size_t n, const double *a, const size_t *pivots, double *x)
{
    for (size_t k = 0; k < n; k++) {
        double swap = x[k];
        x[k] = x[pivots[k]];
        x[pivots[k]] = swap;
    }
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < k; j++)
            x[k] -= a[k * n + j] * x[j];
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; j++)
            x[k] -= a[k * n + j] * x[j];
        x[k] /= a[k * n + k];
    }
}

/* Column j of all blocks at once: J times a vector that is 1 in place j of every block. */
static int update_jacobian(hl_integrator *in, double t, const double *y)
{
    hl_linear_state *l = &in->linear;
    size_t n = in->problem.block;
    l->have_jacobian = false;
    l->factored = NAN;
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < in->problem.size; i++)
            l->unit[i] = i % n == j;
        int value = in->problem.apply(in->problem.user, t, y, l->unit, l->product);
        if (value)
            return value;
        for (size_t i = 0; i < in->problem.size; i++)
            l->jacobian[i * n + j] = l->product[i];
    }
    l->have_jacobian = true;
    return 0;
}

static int factor(hl_integrator *in, double gamma)
{
    hl_linear_state *l = &in->linear;
    l->factored = NAN;
    size_t n = in->problem.block;
    for (size_t i = 0; i < in->problem.size * n; i++)
        l->factors[i] = (i / n % n == i % n) - gamma * l->jacobian[i];
    for (size_t i = 0; i < in->problem.size; i += n)
        if (factor_block(n, l->factors + i * n, l->pivots + i))
            return 1;
    l->factored = gamma;
    return 0;
}

static int solve_newton(hl_integrator *in, const double *b, double *x)
{
    hl_linear_state *l = &in->linear;
    size_t n = in->problem.block;
    int value = 0;
    if (!l->have_jacobian) /* auto has just come here */
        value = update_jacobian(in, l->t, l->y);
    /* Factoring costs no evaluation, so it is done for every new gamma. CVODE's own way, to keep the factors and scale
     * x, would break linear invariants. */
    if (value == 0 && l->factored != l->gamma)
        value = factor(in, l->gamma);
    if (value)
        return value;
    memcpy(x, b, in->problem.size * sizeof *x);
    for (size_t i = 0; i < in->problem.size; i += n)
        solve_block(n, l->factors + i * n, l->pivots + i, x + i);
    return 0;
}

/* ---- gmres ---- */

static int krylov_product(void *user, N_Vector v, N_Vector z)
{
    hl_integrator *in = user;
    const double *from = N_VGetArrayPointer(v);
    double *to = N_VGetArrayPointer(z);
    int value = in->problem.apply(in->problem.user, in->linear.t, in->linear.y, from, to);
    for (size_t i = 0; value == 0 && i < in->problem.size; i++)
        to[i] = from[i] - in->linear.gamma * to[i];
    return value;
}

static int krylov_precondition(void *user, N_Vector r, N_Vector z, sunrealtype tolerance, int side)
{
    (void)tolerance, (void)side;
    divide(user, N_VGetArrayPointer(r), N_VGetArrayPointer(z));
    return 0;
}

static int solve_gmres(hl_integrator *in, N_Vector b, N_Vector x, double tolerance)
{
    SUNLinearSolver g = in->gmres;
    SUNLinSolSetScalingVectors(g, in->linear.weights, in->linear.weights);
    SUNLinSolSetZeroGuess(g, SUNTRUE);
    N_VConst(0, x);
    int flag = SUNLinSolSetup(g, NULL);
    return flag ? flag : SUNLinSolSolve(g, NULL, x, b, tolerance);
}

/* ---- the linear solver that CVODE sees ---- */

/* CVODE gives an iterative solver a tolerance, but also takes a small b for x, which is wrong for all but gmres. */
static SUNLinearSolver_Type solver_type(SUNLinearSolver s)
{
    return uses_gmres(s->content) ? SUNLINEARSOLVER_MATRIX_ITERATIVE : SUNLINEARSOLVER_DIRECT;
}

static SUNLinearSolver_ID solver_id(SUNLinearSolver s)
{
    (void)s;
    return SUNLINEARSOLVER_CUSTOM;
}

static int solver_weights(SUNLinearSolver s, N_Vector left, N_Vector right)
{
    hl_integrator *in = s->content;
    (void)right;
    in->linear.weights = left;
    return 0;
}

static int solver_setup(SUNLinearSolver s, SUNMatrix a)
{
    (void)s, (void)a; /* linear_system has done it */
    return 0;
}

static int solver_solve(SUNLinearSolver s, SUNMatrix a, N_Vector x, N_Vector b, sunrealtype tolerance)
{
    hl_integrator *in = s->content;
    hl_linear_state *l = &in->linear;
    N_Vector predicted, y, f, z;
    sunrealtype t, gamma, r;
    void *user;
    double *to = N_VGetArrayPointer(x), rate = 0;
    const double *from = N_VGetArrayPointer(b);
    int value = CVodeGetNonlinearSystemData(in->cvode, &t, &predicted, &y, &f, &gamma, &r, &z, &user);
    (void)a;
    if (value)
        return SUNLS_ATIMES_FAIL_UNREC;
    l->t = t;
    l->gamma = gamma;
    l->y = N_VGetArrayPointer(y);
    if (l->now == HL_JACOBI) {
        divide(in, from, to);
        if (!l->check)
            return 0;
        l->check = false;
        value = measure_rate(in, from, to, &rate);
        note_rate(in, value ? 0 : rate);
        if (value || rate <= MAX_RATE || !hl_iteration_strengthen(in))
            return solver_flag(value);
    }
    if (l->now == HL_GMRES)
        return solve_gmres(in, b, x, tolerance);
    if (l->now == HL_NEWTON)
        return solver_flag(solve_newton(in, from, to));
    value = solve_fresh(in, from, to);
    if (value == 0 && l->check)
        value = measure_rate(in, from, to, &rate);
    if (l->check)
        note_rate(in, value ? 0 : rate);
    l->check = false;
    return solver_flag(value);
}

static int solver_free(SUNLinearSolver s)
{
    SUNLinSolFreeEmpty(s);
    return 0;
}

/* CVODE's call for I - gamma J. `old` says that the J of before will do. */
static int linear_system(sunrealtype t, N_Vector y, N_Vector f, SUNMatrix a, sunbooleantype old, sunbooleantype *is_new,
                         sunrealtype gamma, void *user, N_Vector t1, N_Vector t2, N_Vector t3)
{
    hl_integrator *in = user;
    hl_linear_state *l = &in->linear;
    const double *at = N_VGetArrayPointer(y);
    int value = 0;
    (void)f, (void)a, (void)gamma, (void)t1, (void)t2, (void)t3;
    *is_new = !old;
    in->seen_rate = 1;
    l->check = in->options.iteration == HL_AUTO || (in->problem.apply && !old); /* jacobi by itself: with every new D */
    if (l->now == HL_NEWTON)
        return old && l->have_jacobian ? 0 : update_jacobian(in, t, at);
    if (in->problem.diagonal && l->now != HL_JACOBI_FRESH && (!old || !l->have_diagonal))
        value = update_diagonal(in, t, at);
    return value;
}

static SUNMatrix_ID matrix_id(SUNMatrix a)
{
    (void)a;
    return SUNMATRIX_CUSTOM;
}

/* ---- the paper's convergence test ---- */

/* |y_(k-1) - y_k| / sqrt(d) <= atol + rtol |y_0|_inf, y_0 being the prediction. An iteration whose changes grow has failed. */
static int paper_test(SUNNonlinearSolver s, N_Vector y, N_Vector change, sunrealtype tolerance, N_Vector weights,
                      void *user)
{
    hl_integrator *in = user;
    N_Vector predicted, current, f, z;
    sunrealtype t, gamma, r;
    void *data;
    int iterate = 0;
    (void)y, (void)tolerance, (void)weights;
    if (CVodeGetNonlinearSystemData(in->cvode, &t, &predicted, &current, &f, &gamma, &r, &z, &data))
        return SUN_NLS_CONV_RECVR;
    SUNNonlinSolGetCurIter(s, &iterate);
    double size = sqrt(N_VDotProd(change, change) / (double)in->problem.size);
    if (size <= in->options.atol + in->options.rtol * N_VMaxNorm(predicted))
        return 0;
    if (iterate > 0 && size > 2 * in->last_change)
        return SUN_NLS_CONV_RECVR;
    in->last_change = size;
    return SUN_NLS_CONTINUE;
}

/* ---- jacobi's convergence test ---- */

/* CVODE's own test estimates the error that is left by change * rate, where the rate is the smallest of late: one lucky pair of iterates, and steps are
 * accepted after one iterate for a long time. What is left then goes the same way in every step: B4 of DETEST, a rotation, ended 313
 * tolerances off. The rate here is at least the one that was measured, in proportion to gamma. */
static int jacobi_test(SUNNonlinearSolver s, N_Vector y, N_Vector change, sunrealtype tolerance, N_Vector weights,
                       void *user)
{
    hl_integrator *in = user;
    const hl_linear_state *l = &in->linear;
    int iterate = 0;
    (void)y;
    SUNNonlinSolGetCurIter(s, &iterate);
    double size = N_VWrmsNorm(change, weights);
    if (iterate > 0)
        in->seen_rate = fmax(0.3 * in->seen_rate, size / in->last_change);
    double measured = l->rate * fmax(1, fabs(l->gamma / l->rate_gamma));
    if (size * fmin(1, fmax(in->seen_rate, measured)) <= tolerance)
        return 0;
    if (iterate > 0 && size > 2 * in->last_change)
        return SUN_NLS_CONV_RECVR;
    in->last_change = size;
    return SUN_NLS_CONTINUE;
}

/* ---- attaching ---- */

static hl_status make_solver(hl_integrator *in)
{
    in->matrix = SUNMatNewEmpty(in->sun);
    in->solver = SUNLinSolNewEmpty(in->sun);
    if (!in->matrix || !in->solver)
        return HL_ERR_NOMEM;
    in->matrix->ops->getid = matrix_id;
    in->solver->content = in;
    in->solver->ops->gettype = solver_type;
    in->solver->ops->getid = solver_id;
    in->solver->ops->setscalingvectors = solver_weights;
    in->solver->ops->setup = solver_setup;
    in->solver->ops->solve = solver_solve;
    in->solver->ops->free = solver_free;
    if (uses_gmres(in)) {
        int vectors = in->problem.size < KRYLOV ? (int)in->problem.size : KRYLOV;
        in->gmres = SUNLinSol_SPGMR(in->y, SUN_PREC_RIGHT, vectors, in->sun);
        if (!in->gmres || SUNLinSolSetATimes(in->gmres, in, krylov_product) ||
            SUNLinSolSetPreconditioner(in->gmres, in, NULL, krylov_precondition))
            return HL_ERR_NOMEM;
        if (SUNLinSolInitialize(in->gmres)) { /* which has freed it */
            in->gmres = NULL;
            return HL_ERR_NOMEM;
        }
    }
    if (CVodeSetLinearSolver(in->cvode, in->solver, in->matrix) || CVodeSetLinSysFn(in->cvode, linear_system) ||
        (in->options.bdf && CVodeSetLinearSolutionScaling(in->cvode, SUNFALSE)))
        return HL_ERR_NOMEM;
    return HL_OK;
}

hl_status hl_iteration_attach(hl_integrator *in)
{
    bool functional = in->options.iteration == HL_FUNCTIONAL;
    in->nonlinear = functional ? SUNNonlinSol_FixedPoint(in->y, 0, in->sun) : SUNNonlinSol_Newton(in->y, in->sun);
    bool jacobi = in->options.iteration == HL_JACOBI || in->options.iteration == HL_JACOBI_FRESH;
    if (!in->nonlinear || CVodeSetNonlinearSolver(in->cvode, in->nonlinear) ||
        (in->options.paper_test && SUNNonlinSolSetConvTestFn(in->nonlinear, paper_test, in)) ||
        (jacobi && !in->options.paper_test && SUNNonlinSolSetConvTestFn(in->nonlinear, jacobi_test, in)))
        return HL_ERR_NOMEM;
    return functional ? HL_OK : make_solver(in);
}

void hl_iteration_detach(hl_integrator *in)
{
    if (in->nonlinear)
        SUNNonlinSolFree(in->nonlinear);
    if (in->solver)
        SUNLinSolFree(in->solver);
    if (in->gmres)
        SUNLinSolFree(in->gmres);
    if (in->matrix)
        SUNMatFreeEmpty(in->matrix);
    in->nonlinear = NULL;
    in->solver = in->gmres = NULL;
    in->matrix = NULL;
}

/* ---- auto ---- */

/* How far below the tolerance of a step its equation is solved, and gmres' part of that. An error of a diagonal or of an old
 * J is not random: it goes the same way in every step, and is mistaken for curvature; and what is left of the error of a
 * stiff component makes the method unstable. CVODE's 0.1 then costs more steps than it saves iterations. OREGO, rtol 1e-6,
 * newton: 3882 evaluations and an error of 278 tolerances with 0.1, 3510 and 18 with 0.01. Hollow networks with kappa = 1000 and
 * c = 0.5, adams-jacobi: 498 evaluations with 0.2, 124 with 0.01 (medians). Errors of gmres break linear invariants
 * (HIRES), so it gets a smaller part than CVODE's 0.05. (E5, whose values fall by 20 orders
 * of magnitude, needs its invariant to the last bit: neither a part of 1e-14 nor adding the residual to x gave gmres that.) */
static void set_strictness(hl_integrator *in)
{
    hl_iteration now = in->linear.now;
    CVodeSetNonlinConvCoef(in->cvode, now == HL_FUNCTIONAL ? 0.1 : now == HL_GMRES ? 0.2 : 0.01);
    if (now == HL_GMRES)
        CVodeSetEpsLin(in->cvode, 0.01);
    if (now != HL_FUNCTIONAL)
        CVodeSetJacEvalFrequency(in->cvode, now == HL_NEWTON ? JACOBIAN_STEPS : DIAGONAL_STEPS);
}

void hl_iteration_reset(hl_integrator *in)
{
    hl_linear_state *l = &in->linear;
    l->have_diagonal = l->have_jacobian = l->check = false;
    l->factored = NAN;
    l->rate = 0;
    l->rate_gamma = 1;
    in->seen_rate = 1;
    l->now = in->options.iteration;
    if (l->now == HL_AUTO) /* a small system's J costs so little that a detour does not pay */
        l->now = in->problem.diagonal && in->options.block > SMALL_BLOCK ? HL_JACOBI : strong(in);
    set_strictness(in);
}

bool hl_iteration_strengthen(hl_integrator *in)
{
    if (in->options.iteration != HL_AUTO || in->linear.now == strong(in))
        return false;
    in->linear.now = strong(in);
    in->counts.switches++;
    set_strictness(in);
    return true;
}
