/* invert_residual.c - the inverse of an invertible residual network y = x + g(x), g hollow, by hl_root.
 *
 * The fixed-point iteration x <- y - g(x) needs a Lipschitz constant below 1 and is slow near it. Dividing by the exact diagonal
 * 1 + D g, which a hollow network has almost for free, needs a few evaluations only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <hollow/hollow.h>

enum { ROWS = 50, D = 8 };

static hl_context *ctx;

static void must(hl_status status)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", hl_status_text(status), hl_context_message(ctx));
        exit(1);
    }
}

typedef struct residual {
    hl_operator *g;
    const double *y; /* ROWS x D */
} residual;

/* F(x) = x + g(x) - y and its diagonal. Row r of a call is row index[r] of the solve, and that has its own y. */
static int diagonal(void *user, const hl_rows *at, double *f, double *df)
{
    const residual *p = user;
    if (hl_operator_eval(p->g, at->count, at->y, NULL, NULL, f, df ? (void *[]){ df } : NULL, NULL))
        return -1;
    for (size_t r = 0; r < at->count; r++)
        for (size_t i = 0; i < D; i++) {
            if (f)
                f[r * D + i] += at->y[r * D + i] - p->y[at->index[r] * D + i];
            if (df)
                df[r * D + i] += 1;
        }
    return 0;
}

static int rhs(void *user, const hl_rows *at, double *f)
{
    return diagonal(user, at, f, NULL);
}

int main(void)
{
    static const char *const methods[] = { "fixed-point", "jacobi", "anderson" };
    double x[ROWS * D], y[ROWS * D], found[ROWS * D], error = 0;
    hl_net_spec spec = { .dim = D, .hidden = 16, .width = 16, .layers = 1, .dtype = HL_F64 };
    hl_net *net;
    residual p = { .y = y };
    must(hl_context_create(NULL, &ctx));
    must(hl_net_create(ctx, &spec, &net));
    must(hl_net_init(net, 3));
    must(hl_operator_create(net, &(hl_operator_options){ .order = 1 }, &p.g));

    /* y = x + g(x) for some x; then find x again from y alone. */
    for (int i = 0; i < ROWS * D; i++)
        x[i] = 2 * sin(1 + i * i);
    must(hl_operator_eval(p.g, ROWS, x, NULL, NULL, y, NULL, NULL));
    for (int i = 0; i < ROWS * D; i++)
        y[i] += x[i];

    for (size_t m = 0; m < 3; m++) {
        hl_system system = { .n = D, .rhs = rhs, .diagonal = diagonal, .user = &p };
        hl_root_options options = { .method = methods[m], .rows = ROWS, .tolerance = 1e-10 };
        hl_root_row info[ROWS];
        hl_root *root;
        size_t most = 0;
        must(hl_root_create(ctx, &system, &options, &root));
        for (int i = 0; i < ROWS * D; i++)
            found[i] = y[i];
        hl_status status = hl_root_solve(root, ROWS, NULL, found, info);
        for (size_t r = 0; r < ROWS; r++)
            most = info[r].evaluations > most ? info[r].evaluations : most;
        error = 0;
        for (int i = 0; i < ROWS * D; i++)
            error = fmax(error, fabs(found[i] - x[i]));
        printf("%-12s %s, at most %zu evaluations a row, largest error %.1e\n", methods[m], hl_status_text(status),
               most, error);
        hl_root_free(root);
    }
    hl_operator_free(p.g);
    hl_net_free(net);
    hl_context_free(ctx);
    return error < 1e-9 ? 0 : 1;
}
