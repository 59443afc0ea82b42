/* root_krylov.c - F(y) = 0 by KINSOL: Newton's method with a line search, the linear equations by GMRES with exact products
 * J v, preconditioned from the right by F's diagonal. All rows of a block are one system. */
#include <kinsol/kinsol.h>
#include <kinsol/kinsol_ls.h>
#include <math.h>
#include <string.h>

#include "ode/root_state.h"
#include "ode/vector.h"

enum { KRYLOV = 20 };

struct hl_root_krylov {
    size_t rows; /* for which the objects are made; 0 none */
    SUNContext sun;
    void *kinsol;
    hl_vectors vectors;
    N_Vector y, ones;
    SUNLinearSolver gmres;
    size_t spent, left; /* evaluations of this solve, and how many more it may make */
    bool stopped;       /* a callback said so */
};

static hl_rows rows_at(hl_root *root, N_Vector y)
{
    return (hl_rows){ .count = root->krylov->rows, .index = root->index, .t = root->t, .y = N_VGetArrayPointer(y) };
}

/* < 0 if the budget is used up. */
static int spend(hl_root_krylov *k)
{
    if (!k->left)
        return -1;
    k->left--;
    k->spent++;
    return 0;
}

static int result(hl_root_krylov *k, int value)
{
    k->stopped = k->stopped || value < 0;
    return value;
}

static int kinsol_f(N_Vector y, N_Vector f, void *user)
{
    hl_root *root = user;
    hl_rows at = rows_at(root, y);
    return spend(root->krylov) ? -1 : result(root->krylov, hl_call_rhs(&root->calls, &at, N_VGetArrayPointer(f), NULL));
}

static int kinsol_product(N_Vector v, N_Vector jv, N_Vector y, sunbooleantype *is_new, void *user)
{
    hl_root *root = user;
    hl_rows at = rows_at(root, y);
    *is_new = SUNFALSE;
    return spend(root->krylov) ? -1
                               : result(root->krylov, hl_call_jvp(&root->calls, &at, N_VGetArrayPointer(v),
                                                                  N_VGetArrayPointer(jv), NULL));
}

static int kinsol_prepare(N_Vector y, N_Vector y_scale, N_Vector f, N_Vector f_scale, void *user)
{
    hl_root *root = user;
    hl_rows at = rows_at(root, y);
    (void)y_scale, (void)f, (void)f_scale;
    return result(root->krylov, hl_call_diagonal(&root->calls, &at, NULL, root->diagonal, NULL));
}

static int kinsol_precondition(N_Vector y, N_Vector y_scale, N_Vector f, N_Vector f_scale, N_Vector v, void *user)
{
    hl_root *root = user;
    double *x = N_VGetArrayPointer(v);
    (void)y, (void)y_scale, (void)f, (void)f_scale;
    for (size_t i = 0; i < root->krylov->rows * root->calls.system.n; i++)
        x[i] /= hl_root_divisor(root->diagonal[i]);
    return 0;
}

/* ---- KINSOL's objects ---- */

static void demolish(hl_root_krylov *k)
{
    if (k->kinsol)
        KINFree(&k->kinsol);
    if (k->gmres)
        SUNLinSolFree(k->gmres);
    N_VDestroy(k->y);
    N_VDestroy(k->ones);
    hl_vectors_free(&k->vectors);
    if (k->sun)
        SUNContext_Free(&k->sun);
    *k = (hl_root_krylov){ 0 };
}

#if SUNDIALS_VERSION_MAJOR < 7
static void silent_info(const char *module, const char *function, char *text, void *user)
{
    (void)module, (void)function, (void)text, (void)user;
}
#endif

static int set_up(hl_root *root)
{
    hl_root_krylov *k = root->krylov;
    bool right = root->calls.system.diagonal != NULL;
#if SUNDIALS_VERSION_MAJOR < 7
    if (KINSetErrHandlerFn(k->kinsol, hl_sun_silent, NULL) || KINSetInfoHandlerFn(k->kinsol, silent_info, NULL))
        return 1;
#endif
    k->gmres = SUNLinSol_SPGMR(k->y, right ? SUN_PREC_RIGHT : SUN_PREC_NONE, KRYLOV, k->sun);
    return !k->gmres || KINInit(k->kinsol, kinsol_f, k->y) || KINSetUserData(k->kinsol, root) ||
           KINSetFuncNormTol(k->kinsol, root->options.tolerance) || KINSetScaledStepTol(k->kinsol, 1e-15) ||
           KINSetNumMaxIters(k->kinsol, (long)root->options.max_evaluations) ||
           KINSetLinearSolver(k->kinsol, k->gmres, NULL) || KINSetJacTimesVecFn(k->kinsol, kinsol_product) ||
           (right && KINSetPreconditioner(k->kinsol, kinsol_prepare, kinsol_precondition));
}

static hl_status build(hl_root *root, size_t rows)
{
    hl_root_krylov *k = root->krylov;
    size_t size = rows * root->calls.system.n;
    demolish(k);
    k->sun = hl_sun_context();
    if (k->sun) {
        k->y = hl_vector_create(&k->vectors, size, k->sun);
        k->ones = hl_vector_create(&k->vectors, size, k->sun);
        k->kinsol = KINCreate(k->sun);
    }
    if (!k->y || !k->ones || !k->kinsol || set_up(root) || k->vectors.failed) {
        demolish(k);
        return hl_fail(root->calls.ctx, HL_ERR_NOMEM, "out of memory while KINSOL is set up for %zu rows", rows);
    }
    N_VConst(1, k->ones);
    k->rows = rows;
    return HL_OK;
}

hl_status hl_root_krylov_create(hl_root *root)
{
    root->krylov = hl_calloc(root->calls.ctx, 1, sizeof *root->krylov);
    return root->krylov ? HL_OK : HL_ERR_NOMEM;
}

void hl_root_krylov_free(hl_root *root)
{
    if (!root->krylov)
        return;
    demolish(root->krylov);
    hl_free(root->calls.ctx, root->krylov);
    root->krylov = NULL;
}

/* ---- solving ---- */

/* max |F| at y, outside of the budget; infinite where F cannot be had. */
static double residual_at(hl_root *root, const double *y)
{
    hl_rows at = { .count = root->krylov->rows, .index = root->index, .t = root->t, .y = y };
    double largest = 0;
    if (result(root->krylov, hl_call_rhs(&root->calls, &at, root->f, NULL)))
        return INFINITY;
    for (size_t i = 0; i < root->krylov->rows * root->calls.system.n; i++)
        largest = fmax(largest, fabs(root->f[i]));
    return largest;
}

hl_status hl_root_krylov_solve(hl_root *root, size_t rows, size_t first, double *y, hl_root_row *info)
{
    hl_root_krylov *k = root->krylov;
    size_t size = rows * root->calls.system.n;
    hl_status status = k->rows == rows ? HL_OK : build(root, rows);
    if (status != HL_OK)
        return status;
    for (size_t r = 0; r < rows; r++)
        root->index[r] = first + r;
    k->spent = 0;
    k->left = root->options.max_evaluations;
    k->stopped = false;
    double before = residual_at(root, y), after = before;
    memcpy(N_VGetArrayPointer(k->y), y, size * sizeof *y);
    if (before > root->options.tolerance && !k->stopped && isfinite(before)) {
        KINSol(k->kinsol, k->y, KIN_LINESEARCH, k->ones, k->ones);
        if (!k->stopped)
            after = residual_at(root, N_VGetArrayPointer(k->y));
    }
    if (k->stopped)
        return hl_ode_stopped(&root->calls);
    if (after < before)
        memcpy(y, N_VGetArrayPointer(k->y), size * sizeof *y);
    after = fmin(after, before);
    *info = (hl_root_row){ .status = after <= root->options.tolerance ? HL_OK : HL_ERR_NO_SOLUTION,
                           .evaluations = k->spent + 2,
                           .residual = after };
    return HL_OK;
}
