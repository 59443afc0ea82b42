/* stepper.c - one step of dx = f dt + g dW, diagonal noise, by each of the methods.
 *
 *   euler     x + f h + g dW
 *   milstein  the same + g dg (dW^2 - h) / 2
 *   heun      y = x + f h + g dW,  x + (f(x) + f(y)) h / 2 + (g(x) + g(y)) dW / 2
 *   srk, sra  Roessler's stochastic Runge-Kutta methods: I11 = (dW^2 - h) / 2, I111 = (dW^3 - 3 h dW) / 6, I10 = dz,
 *     H0_i = x + sum_j A0_ij f(t + c0_j h, H0_j) h + sum_j B0_ij g(t + c1_j h, H1_j) I10 / h
 *     H1_i = x + sum_j A1_ij f(t + c0_j h, H0_j) h + sum_j B1_ij g(t + c1_j h, H1_j) sqrt(h)
 *     x + sum_i a_i f(.., H0_i) h + sum_i (b1_i dW + b2_i I11 / sqrt(h) + b3_i I10 / h + b4_i I111 / h) g(.., H1_i) */
#include <math.h>
#include <string.h>

#include "sde/sde.h"

enum { STAGES = 4 };

typedef struct hl_srk {
    int stages;
    double c0[STAGES], c1[STAGES], a0[STAGES][STAGES], a1[STAGES][STAGES], b0[STAGES][STAGES], b1[STAGES][STAGES];
    double a[STAGES], b[4][STAGES];
} hl_srk;

/* Roessler, "Runge-Kutta methods for the strong approximation of solutions of stochastic differential equations"
 * (2010): SRI1W1 and SRA1. */
static const hl_srk sri1w1 = { .stages = 4,
                               .c0 = { 0, 0.75, 0, 0 },
                               .c1 = { 0, 0.25, 1, 0.25 },
                               .a0 = { { 0 }, { 0.75 } },
                               .a1 = { { 0 }, { 0.25 }, { 1 }, { 0, 0, 0.25 } },
                               .b0 = { { 0 }, { 1.5 } },
                               .b1 = { { 0 }, { 0.5 }, { -1 }, { -5, 3, 0.5 } },
                               .a = { 1. / 3, 2. / 3 },
                               .b = { { -1, 4. / 3, 2. / 3, 0 },
                                      { -1, 4. / 3, -1. / 3, 0 },
                                      { 2, -4. / 3, -2. / 3, 0 },
                                      { -2, 5. / 3, -2. / 3, 1 } } };
static const hl_srk sra1 = { .stages = 2,
                             .c0 = { 0, 0.75 },
                             .c1 = { 1, 0 },
                             .a0 = { { 0 }, { 0.75 } },
                             .b0 = { { 0 }, { 1.5 } },
                             .a = { 1. / 3, 2. / 3 },
                             .b = { { 1, 0 }, { 0 }, { -1, 1 } } };

/* Arrays of the scratch: rows x n each, the last the rows' times. */
static double *part(const hl_stride *s, size_t number)
{
    return s->scratch + number * s->rows * s->system->n;
}

/* f, g and dg (each may be NULL) at y and t + c h, the drift in the sense of the method. */
static int evaluate(const hl_stepper *m, const hl_stride *s, double c, const double *y, double *f, double *g,
                    double *dg)
{
    const hl_noise_system *system = s->system;
    size_t count = s->rows * system->n;
    double *time = part(s, HL_STEPPER_SCRATCH), *own_g = part(s, HL_STEPPER_SCRATCH - 1),
           *own_dg = part(s, HL_STEPPER_SCRATCH - 2);
    bool correct = f && m->stratonovich != (system->stratonovich != 0);
    double sign = m->stratonovich ? -0.5 : 0.5;
    if (correct && !g)
        g = own_g;
    if (correct && !dg)
        dg = own_dg;
    for (size_t r = 0; r < s->rows; r++)
        time[r] = s->t[r] + c * s->h;
    int result = system->coefficients(system->user, &(hl_rows){ s->rows, s->index, time, y }, f, g, dg);
    for (size_t k = 0; correct && k < count; k++)
        f[k] += sign * g[k] * dg[k];
    return result;
}

static int euler_step(const hl_stepper *m, const hl_stride *s)
{
    double *f = part(s, 0), *g = part(s, 1);
    int result = evaluate(m, s, 0, s->y, f, g, NULL);
    for (size_t k = 0; k < s->rows * s->system->n; k++)
        s->y[k] += f[k] * s->h + g[k] * s->dw[k];
    return result;
}

static int milstein_step(const hl_stepper *m, const hl_stride *s)
{
    double *f = part(s, 0), *g = part(s, 1), *dg = part(s, 2);
    int result = evaluate(m, s, 0, s->y, f, g, dg);
    for (size_t k = 0; k < s->rows * s->system->n; k++)
        s->y[k] += f[k] * s->h + g[k] * (s->dw[k] + 0.5 * dg[k] * (s->dw[k] * s->dw[k] - s->h));
    return result;
}

static int heun_step(const hl_stepper *m, const hl_stride *s)
{
    double *f = part(s, 0), *g = part(s, 1), *y = part(s, 2), *f1 = part(s, 3), *g1 = part(s, 4);
    size_t count = s->rows * s->system->n;
    int result = evaluate(m, s, 0, s->y, f, g, NULL);
    for (size_t k = 0; k < count; k++)
        y[k] = s->y[k] + f[k] * s->h + g[k] * s->dw[k];
    if (result == 0)
        result = evaluate(m, s, 1, y, f1, g1, NULL);
    for (size_t k = 0; k < count; k++)
        s->y[k] += 0.5 * ((f[k] + f1[k]) * s->h + (g[k] + g1[k]) * s->dw[k]);
    return result;
}

/* ---- Runge-Kutta ---- */

static bool uses_drift(const hl_srk *t, int j)
{
    bool used = t->a[j] != 0;
    for (int i = j + 1; i < t->stages; i++)
        used = used || t->a0[i][j] != 0 || t->a1[i][j] != 0;
    return used;
}

/* to = x + sum_j a_j f_j h + b_j g_j w, where w is I10 / h of each value (dz given) or sqrt(h). */
static void stage_value(const hl_stride *s, int stage, const double *a, const double *b, const double *dz, double *to)
{
    size_t count = s->rows * s->system->n;
    double root = sqrt(s->h);
    memcpy(to, s->y, count * sizeof *to);
    for (int j = 0; j < stage; j++) {
        const double *f = part(s, (size_t)(2 * j)), *g = part(s, (size_t)(2 * j + 1));
        for (size_t k = 0; k < count && a[j] != 0; k++)
            to[k] += a[j] * f[k] * s->h;
        for (size_t k = 0; k < count && b[j] != 0; k++)
            to[k] += b[j] * g[k] * (dz ? dz[k] / s->h : root);
    }
}

static void finish(const hl_srk *t, const hl_stride *s)
{
    double h = s->h, root = sqrt(h);
    for (size_t k = 0; k < s->rows * s->system->n; k++) {
        double w = s->dw[k], i11 = 0.5 * (w * w - h) / root, i10 = s->dz[k] / h, i111 = (w * w * w / h - 3 * w) / 6;
        for (int j = 0; j < t->stages; j++) {
            double noise = t->b[0][j] * w + t->b[1][j] * i11 + t->b[2][j] * i10 + t->b[3][j] * i111;
            if (t->a[j] != 0)
                s->y[k] += t->a[j] * part(s, (size_t)(2 * j))[k] * h;
            s->y[k] += noise * part(s, (size_t)(2 * j + 1))[k];
        }
    }
}

static int srk_step(const hl_stepper *m, const hl_stride *s)
{
    const hl_srk *t = m->tableau;
    double *y = part(s, 2 * STAGES);
    int result = 0;
    for (int i = 0; i < t->stages && result == 0; i++) {
        if (uses_drift(t, i)) {
            stage_value(s, i, t->a0[i], t->b0[i], s->dz, y);
            result = evaluate(m, s, t->c0[i], y, part(s, (size_t)(2 * i)), NULL, NULL);
        }
        stage_value(s, i, t->a1[i], t->b1[i], NULL, y);
        if (result == 0)
            result = evaluate(m, s, t->c1[i], y, NULL, part(s, (size_t)(2 * i + 1)), NULL);
    }
    finish(t, s);
    return result;
}

/* clang-format off */
#define STEPPERS(X)                                                                  \
    X("euler", .strong = 0.5, .weak = 1, .step = euler_step)                         \
    X("milstein", .strong = 1, .weak = 1, .slope = true, .step = milstein_step)      \
    X("heun", .strong = 1, .weak = 1, .weak_additive = 2, .stratonovich = true, .step = heun_step)       \
    X("srk", .strong = 1.5, .weak = 1.5, .weak_additive = 2, .tableau = &sri1w1, .step = srk_step)       \
    X("sra", .strong = 1.5, .weak = 2, .additive_only = true, .tableau = &sra1, .step = srk_step)
#define ROW(name_, ...) { .name = name_, __VA_ARGS__ },
#define NAME(name_, ...) name_,
/* clang-format on */

const hl_stepper hl_steppers[] = { STEPPERS(ROW){ .name = NULL } };
const char *const hl_stepper_names[] = { STEPPERS(NAME) NULL };

const char *const *hl_simulator_methods(void)
{
    return hl_stepper_names;
}

const hl_stepper *hl_stepper_find(const char *name)
{
    size_t i = hl_name_index(hl_stepper_names, name ? name : "srk");
    return hl_stepper_names[i] ? &hl_steppers[i] : NULL;
}
