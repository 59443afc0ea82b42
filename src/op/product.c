/* product.c - matrix products.
 *
 * linear(x, w)[n] = sum_k w[n][k] x[k], linear_t(y, w)[k] = sum_n w[n][k] y[n] and outer(y, x)[n][k] = sum y[n] x[k] (over
 * the rows and all axes between the groups and the last) are each other's derivatives. attr.i[0] is the number of leading
 * axes that w shares (groups), attr.mask an interval mask or NULL. matmul multiplies row by row; attr.i[0], attr.i[1] say
 * which factor is transposed. */
#include "op/op.h"

/* x [G.., M.., size], w shared [G.., out, in]: does x fit w, with its last axis equal to w's axis `w_axis`? */
static bool weights_fit(hl_graph *g, const char *what, const hl_shape *x, const hl_shape *w, int groups, int w_axis)
{
    bool fits =
        !w->batched && w->rank == groups + 2 && x->rank > groups && x->dim[x->rank - 1] == w->dim[groups + w_axis];
    for (int i = 0; fits && i < groups; i++)
        fits = x->dim[i] == w->dim[i];
    if (!fits) {
        char a[120], b[120];
        hl_graph_fail(g, HL_ERR_SHAPE, "%s: values %s do not fit weights %s", what, hl_shape_text(x, a, sizeof a),
                      hl_shape_text(w, b, sizeof b));
    }
    return fits;
}

static bool mask_fits(hl_graph *g, const hl_mask *m, const hl_shape *w)
{
    if (m && (m->out != w->dim[w->rank - 2] || m->in != w->dim[w->rank - 1]))
        return hl_graph_fail(g, HL_ERR_SHAPE, "mask: %zu x %zu does not fit the weights", m->out, m->in), false;
    return true;
}

static bool linear_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *x = hl_shape_of(g, in[0]), *w = hl_shape_of(g, in[1]);
    (void)inputs;
    if (!weights_fit(g, "linear", x, w, attr->i[0], 1) || !mask_fits(g, attr->mask, w))
        return false;
    *out = *x;
    out->dim[x->rank - 1] = w->dim[attr->i[0]];
    return true;
}

static bool linear_t_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *x = hl_shape_of(g, in[0]), *w = hl_shape_of(g, in[1]);
    (void)inputs;
    if (!weights_fit(g, "linear_t", x, w, attr->i[0], 0) || !mask_fits(g, attr->mask, w))
        return false;
    *out = *x;
    out->dim[x->rank - 1] = w->dim[attr->i[0] + 1];
    return true;
}

static bool outer_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *y = hl_shape_of(g, in[0]), *x = hl_shape_of(g, in[1]);
    int groups = attr->i[0];
    bool fits = y->rank == x->rank && y->batched == x->batched && y->rank > groups;
    (void)inputs;
    for (int i = 0; fits && i < y->rank - 1; i++)
        fits = y->dim[i] == x->dim[i];
    if (!fits)
        return hl_graph_fail(g, HL_ERR_SHAPE, "outer: the factors' shapes do not fit"), false;
    *out = (hl_shape){ .rank = groups + 2 };
    for (int i = 0; i < groups; i++)
        out->dim[i] = y->dim[i];
    out->dim[groups] = y->dim[y->rank - 1];
    out->dim[groups + 1] = x->dim[x->rank - 1];
    return mask_fits(g, attr->mask, out);
}

/* The three products with the attributes of node `like`. */
static hl_node like_linear(hl_graph *g, const hl_op *op, const hl_attr *attr, hl_node a, hl_node b)
{
    return hl_graph_add(g, op, 2, (hl_node[]){ a, b }, attr);
}

static hl_node like_outer(hl_graph *g, const hl_attr *attr, hl_node y, hl_node x)
{
    if (!hl_graph_node(g, y) || !hl_graph_node(g, x))
        return HL_BAD;
    hl_shape sy = *hl_shape_of(g, y), sx = *hl_shape_of(g, x);
    sy.batched = sx.batched = sy.batched || sx.batched;
    return like_linear(g, &hl_op_outer, attr, hl_broadcast_shape(g, y, &sy), hl_broadcast_shape(g, x, &sx));
}

/* Weights that are to be used under a mask; zero outside it. */
static hl_node under_mask(hl_graph *g, hl_node w, const hl_mask *mask)
{
    return mask ? hl_graph_add(g, &hl_op_masked, 1, &w, &(hl_attr){ .mask = mask }) : w;
}

static void linear_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    const hl_attr attr = hl_graph_node(g, y)->attr;
    gx[0] = like_linear(g, &hl_op_linear_t, &attr, gy, x[1]);
    gx[1] = like_outer(g, &attr, gy, x[0]);
}

static void linear_t_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    const hl_attr attr = hl_graph_node(g, y)->attr;
    gx[0] = like_linear(g, &hl_op_linear, &attr, gy, x[1]);
    gx[1] = like_outer(g, &attr, x[0], gy);
}

static void outer_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    const hl_attr attr = hl_graph_node(g, y)->attr;
    hl_node w = under_mask(g, gy, attr.mask);
    gx[0] = like_linear(g, &hl_op_linear, &attr, x[1], w);
    gx[1] = like_linear(g, &hl_op_linear_t, &attr, x[0], w);
}

/* In a coefficient of a masked product the weights' own coefficient may not be zero outside the mask. */
static hl_node linear_jet(hl_graph *g, hl_node node, int k, const hl_node *const *x, const hl_node *y)
{
    const hl_op *op = hl_graph_node(g, node)->op;
    const hl_attr attr = hl_graph_node(g, node)->attr;
    hl_node sum = HL_NONE;
    (void)y;
    for (int j = 0; j <= k; j++) {
        hl_node a = x[0][j], w = x[1][k - j];
        if (a != HL_NONE && w != HL_NONE)
            sum = hl_accumulate(g, sum, like_linear(g, op, &attr, a, j < k ? under_mask(g, w, attr.mask) : w));
    }
    return sum;
}

/* Two coefficients that all rows share still count once per row if the factors are batched. */
static hl_node outer_jet(hl_graph *g, hl_node node, int k, const hl_node *const *x, const hl_node *y)
{
    const hl_attr attr = hl_graph_node(g, node)->attr;
    hl_shape shape = *hl_shape_of(g, x[0][0]);
    hl_node sum = HL_NONE;
    (void)y;
    for (int j = 0; j <= k; j++)
        if (x[0][j] != HL_NONE && x[1][k - j] != HL_NONE)
            sum = hl_accumulate(g, sum, like_outer(g, &attr, hl_broadcast_shape(g, x[0][j], &shape), x[1][k - j]));
    return sum;
}

/* Pairs of a unit and an input of the weights [.., n, k]. */
static double pairs_of(const hl_work *w, const hl_shape *weights)
{
    const hl_mask *m = w->dense ? NULL : w->node->attr.mask;
    double pairs = 0;
    for (size_t n = 0; m && n < m->out; n++)
        pairs += m->hi[n] - m->lo[n];
    return m ? pairs : (double)weights->dim[weights->rank - 2] * (double)weights->dim[weights->rank - 1];
}

static double linear_work(const hl_work *w)
{
    return 2 * pairs_of(w, w->w) * (double)hl_shape_size(w->x) / (double)w->x->dim[w->x->rank - 1];
}

static double outer_work(const hl_work *w)
{
    const hl_shape *y = &w->node->shape;
    return 2 * pairs_of(w, y) * (double)hl_shape_size(w->x) / (double)y->dim[y->rank - 2];
}

static bool outer_local(const hl_node_data *d, int rank)
{
    return rank >= 2 && d->attr.i[0] == 0;
}

const hl_op hl_op_linear = { .name = "linear",
                             .arity = 2,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_LINEAR,
                             .bend = HL_BEND_BILINEAR,
                             .work = linear_work,
                             .local = hl_local_matrix,
                             .shape = linear_shape,
                             .vjp = linear_vjp,
                             .jet = linear_jet,
                             .domain = { -2, 2 } };
const hl_op hl_op_linear_t = { .name = "linear_t",
                               .arity = 2,
                               .kind = HL_KIND_OTHER,
                               .code = HL_DO_LINEAR_T,
                               .bend = HL_BEND_BILINEAR,
                               .work = linear_work,
                               .local = hl_local_matrix,
                               .shape = linear_t_shape,
                               .vjp = linear_t_vjp,
                               .jet = linear_jet,
                               .domain = { -2, 2 } };
const hl_op hl_op_outer = { .name = "outer",
                            .arity = 2,
                            .kind = HL_KIND_OTHER,
                            .code = HL_DO_OUTER,
                            .bend = HL_BEND_BILINEAR,
                            .work = outer_work,
                            .local = outer_local,
                            .over_rows = true,
                            .shape = outer_shape,
                            .vjp = outer_vjp,
                            .jet = outer_jet,
                            .domain = { -2, 2 } };

hl_node hl_linear(hl_graph *g, hl_node x, hl_node w)
{
    return like_linear(g, &hl_op_linear, NULL, x, w);
}

hl_node hl_linear_grouped(hl_graph *g, hl_node x, hl_node w)
{
    return like_linear(g, &hl_op_linear, &(hl_attr){ .i = { 1 } }, x, w);
}

hl_node hl_linear_trusted(hl_graph *g, hl_node x, hl_node w, const hl_mask *mask)
{
    return like_linear(g, &hl_op_linear, &(hl_attr){ .mask = mask }, x, w);
}

hl_node hl_linear_masked(hl_graph *g, hl_node x, hl_node w, const uint32_t *lo, const uint32_t *hi)
{
    if (!g)
        return HL_BAD;
    if (hl_node_rank(g, w) != 2 || !lo || !hi)
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_linear_masked: the weights are not a matrix, or lo or hi is NULL");
    size_t out = hl_node_dim(g, w, 0), in = hl_node_dim(g, w, 1);
    for (size_t n = 0; n < out; n++)
        if (lo[n] < hi[n] && hi[n] > in)
            return hl_graph_fail(g, HL_ERR_SHAPE, "hl_linear_masked: unit %zu uses inputs up to %u, but there are %zu",
                                 n, (unsigned)hi[n], in);
    const hl_mask *mask = hl_graph_mask(g, out, in, lo, hi);
    return mask ? hl_linear_trusted(g, x, under_mask(g, w, mask), mask) : HL_BAD;
}

/* ---- weights with zeros outside a mask ---- */

static bool masked_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)inputs;
    *out = *hl_shape_of(g, in[0]);
    if (out->rank != 2 || out->batched)
        return hl_graph_fail(g, HL_ERR_SHAPE, "mask: the weights are not a shared matrix"), false;
    return mask_fits(g, attr->mask, out);
}

static void masked_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    (void)x;
    gx[0] = under_mask(g, gy, hl_graph_node(g, y)->attr.mask);
}

const hl_op hl_op_masked = { .name = "masked",
                             .arity = 1,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_MASKED,
                             .jet_kind = HL_JET_LINEAR,
                             .shape = masked_shape,
                             .vjp = masked_vjp,
                             .domain = { -2, 2 } };

/* ---- products of two matrices per row ---- */

static bool matmul_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *a = hl_shape_of(g, in[0]), *b = hl_shape_of(g, in[1]);
    int r = a->rank;
    bool fits = r >= 2 && b->rank == r && a->batched == b->batched;
    (void)inputs;
    for (int i = 0; fits && i < r - 2; i++)
        fits = a->dim[i] == b->dim[i];
    if (!fits || a->dim[attr->i[0] ? r - 2 : r - 1] != b->dim[attr->i[1] ? r - 1 : r - 2]) {
        char ta[120], tb[120];
        hl_graph_fail(g, HL_ERR_SHAPE, "matmul: %s and %s do not fit", hl_shape_text(a, ta, sizeof ta),
                      hl_shape_text(b, tb, sizeof tb));
        return false;
    }
    *out = *a;
    out->dim[r - 2] = a->dim[attr->i[0] ? r - 1 : r - 2];
    out->dim[r - 1] = b->dim[attr->i[1] ? r - 2 : r - 1];
    return true;
}

static hl_node product(hl_graph *g, hl_node a, hl_node b, int ta, int tb)
{
    if (!hl_graph_node(g, a) || !hl_graph_node(g, b))
        return g ? hl_graph_fail(g, HL_ERR_INVALID, "matmul: a factor is not a node of this graph") : HL_BAD;
    hl_shape sa = *hl_shape_of(g, a), sb = *hl_shape_of(g, b);
    sa.batched = sb.batched = sa.batched || sb.batched;
    hl_node in[] = { hl_broadcast_shape(g, a, &sa), hl_broadcast_shape(g, b, &sb) };
    return hl_graph_add(g, &hl_op_matmul, 2, in, &(hl_attr){ .i = { ta, tb } });
}

/* y = op(a) op(b) */
static void matmul_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    int ta = hl_graph_node(g, y)->attr.i[0], tb = hl_graph_node(g, y)->attr.i[1];
    gx[0] = ta ? product(g, x[1], gy, tb, 1) : product(g, gy, x[1], 0, !tb);
    gx[1] = tb ? product(g, gy, x[0], 1, ta) : product(g, x[0], gy, !ta, 0);
}

static hl_node matmul_jet(hl_graph *g, hl_node node, int k, const hl_node *const *x, const hl_node *y)
{
    int ta = hl_graph_node(g, node)->attr.i[0], tb = hl_graph_node(g, node)->attr.i[1];
    hl_node sum = HL_NONE;
    (void)y;
    for (int j = 0; j <= k; j++)
        if (x[0][j] != HL_NONE && x[1][k - j] != HL_NONE)
            sum = hl_accumulate(g, sum, product(g, x[0][j], x[1][k - j], ta, tb));
    return sum;
}

static double matmul_work(const hl_work *w)
{
    const hl_shape *a = w->x;
    return 2.0 * (double)hl_shape_size(&w->node->shape) * (double)a->dim[a->rank - (w->node->attr.i[0] ? 2 : 1)];
}

static bool matmul_local(const hl_node_data *d, int rank)
{
    (void)d;
    return rank >= 3;
}

const hl_op hl_op_matmul = { .name = "matmul",
                             .arity = 2,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_MATMUL,
                             .bend = HL_BEND_BILINEAR,
                             .work = matmul_work,
                             .local = matmul_local,
                             .shape = matmul_shape,
                             .vjp = matmul_vjp,
                             .jet = matmul_jet,
                             .domain = { -2, 2 } };

hl_node hl_matmul(hl_graph *g, hl_node a, hl_node b)
{
    return product(g, a, b, 0, 0);
}
