/* conv.c - two-dimensional convolution with a shared kernel, its transpose, and the kernel's gradient.
 *
 *   conv(x, w)[o][i][j]      = sum_{c,a,b} w[o][c][a][b] x[c][i sh + a - ph][j sw + b - pw]
 *   conv_t(y, w)[c][p][q]    = sum of w[o][c][a][b] y[o][i][j] over all o, a, b, i, j with p = i sh + a - ph, q = ...
 *   conv_w(y, x)[o][c][a][b] = sum over rows, i, j of y[o][i][j] x[c][i sh + a - ph][j sw + b - pw]
 *
 * They are each other's derivatives. attr.i = stride and padding; attr.list = the taps (a, b) that exist, or empty for all;
 * attr.shape = the shape that cannot be inferred: [c, h, w] for conv_t, [o, c, kh, kw] for conv_w. */
#include <string.h>

#include "op/op.h"

static bool out_size(size_t size, size_t kernel, int stride, int pad, size_t *out)
{
    size_t padded = size + 2 * (size_t)pad;
    if (padded < kernel)
        return false;
    *out = (padded - kernel) / (size_t)stride + 1;
    return true;
}

/* The shape [o, h', w'] that the convolution of x [c, h, w] with k [o, c, kh, kw] has. */
static bool result_shape(hl_graph *g, const hl_shape *x, const hl_shape *k, const hl_attr *attr, hl_shape *out)
{
    bool fits = x->rank == 3 && k->rank == 4 && !k->batched && x->dim[0] == k->dim[1];
    *out = (hl_shape){ .rank = 3, .batched = x->batched };
    if (!fits || !out_size(x->dim[1], k->dim[2], attr->i[0], attr->i[2], &out->dim[1]) ||
        !out_size(x->dim[2], k->dim[3], attr->i[1], attr->i[3], &out->dim[2])) {
        char a[120], b[120];
        hl_graph_fail(g, HL_ERR_SHAPE, "conv: an image %s does not fit a kernel %s", hl_shape_text(x, a, sizeof a),
                      hl_shape_text(k, b, sizeof b));
        return false;
    }
    out->dim[0] = k->dim[0];
    return true;
}

static bool conv_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)inputs;
    return result_shape(g, hl_shape_of(g, in[0]), hl_shape_of(g, in[1]), attr, out);
}

static bool conv_t_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    hl_shape image;
    (void)inputs;
    *out = attr->shape;
    out->batched = hl_shape_of(g, in[0])->batched;
    if (!result_shape(g, out, hl_shape_of(g, in[1]), attr, &image))
        return false;
    if (!hl_shape_equal(&image, hl_shape_of(g, in[0])))
        return hl_graph_fail(g, HL_ERR_SHAPE, "conv_transpose: height and width do not match the image"), false;
    return true;
}

static bool conv_w_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    hl_shape image;
    (void)inputs;
    *out = attr->shape;
    if (!result_shape(g, hl_shape_of(g, in[1]), out, attr, &image))
        return false;
    if (!hl_shape_equal(&image, hl_shape_of(g, in[0])) || image.batched != hl_shape_of(g, in[0])->batched)
        return hl_graph_fail(g, HL_ERR_SHAPE, "conv_w: the factors' shapes do not fit"), false;
    return true;
}

static hl_node conv_like(hl_graph *g, const hl_op *op, hl_node y, hl_node a, hl_node b, const hl_shape *shape)
{
    hl_attr attr = hl_graph_node(g, y)->attr;
    attr.shape = shape ? *shape : (hl_shape){ 0 };
    attr.shape.batched = false;
    return hl_graph_add(g, op, 2, (hl_node[]){ a, b }, &attr);
}

static void conv_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    hl_shape image = *hl_shape_of(g, x[0]), kernel = *hl_shape_of(g, x[1]);
    gx[0] = conv_like(g, &hl_op_conv_t, y, gy, x[1], &image);
    gx[1] = conv_like(g, &hl_op_conv_w, y, gy, x[0], &kernel);
}

static void conv_t_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    hl_shape kernel = *hl_shape_of(g, x[1]);
    gx[0] = conv_like(g, &hl_op_conv, y, gy, x[1], NULL);
    gx[1] = conv_like(g, &hl_op_conv_w, y, x[0], gy, &kernel);
}

static void conv_w_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    hl_shape image = *hl_shape_of(g, x[1]);
    gx[0] = conv_like(g, &hl_op_conv, y, x[1], gy, NULL);
    gx[1] = conv_like(g, &hl_op_conv_t, y, x[0], gy, &image);
}

/* Every value of the side [o, h', w'] takes part with all of a unit's kernel. */
static double taps_work(const hl_shape *side, const hl_shape *kernel)
{
    return 2.0 * (double)hl_shape_size(side) * (double)hl_shape_size(kernel) / (double)kernel->dim[0];
}

static double conv_work(const hl_work *w)
{
    return taps_work(&w->node->shape, w->w);
}

static double conv_t_work(const hl_work *w)
{
    return taps_work(w->x, w->w);
}

static double conv_w_work(const hl_work *w)
{
    return taps_work(w->x, &w->node->shape);
}

const hl_op hl_op_conv = { .name = "conv",
                           .arity = 2,
                           .kind = HL_KIND_OTHER,
                           .code = HL_DO_CONV,
                           .work = conv_work,
                           .jet_kind = HL_JET_BILINEAR,
                           .shape = conv_shape,
                           .vjp = conv_vjp,
                           .domain = { -2, 2 } };
const hl_op hl_op_conv_t = { .name = "conv_t",
                             .arity = 2,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_CONV_T,
                             .work = conv_t_work,
                             .jet_kind = HL_JET_BILINEAR,
                             .shape = conv_t_shape,
                             .vjp = conv_t_vjp,
                             .domain = { -2, 2 } };
const hl_op hl_op_conv_w = { .name = "conv_w",
                             .arity = 2,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_CONV_W,
                             .work = conv_w_work,
                             .jet_kind = HL_JET_BILINEAR,
                             .over_rows = true,
                             .shape = conv_w_shape,
                             .vjp = conv_w_vjp,
                             .domain = { -2, 2 } };

static bool conv_attr(hl_graph *g, hl_node k, const hl_conv_options *options, hl_attr *attr)
{
    static const hl_conv_options plain;
    const hl_conv_options *o = options ? options : &plain;
    size_t taps = hl_node_dim(g, k, 2) * hl_node_dim(g, k, 3);
    for (int i = 0; i < 2; i++) {
        if (o->stride[i] > 1 << 16 || o->pad[i] > 1 << 16)
            return hl_graph_fail(g, HL_ERR_INVALID, "conv: stride or padding is too large"), false;
        attr->i[i] = o->stride[i] ? (int)o->stride[i] : 1;
        attr->i[2 + i] = (int)o->pad[i];
    }
    if (!o->taps || hl_node_rank(g, k) != 4)
        return true;
    int32_t *list = hl_arena_alloc(&g->arena, hl_size_mul(taps, sizeof *list));
    if (!list)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph"), false;
    for (size_t t = 0; t < taps; t++)
        list[t] = o->taps[t] != 0;
    attr->list = list;
    attr->list_len = taps;
    return true;
}

hl_node hl_conv(hl_graph *g, hl_node x, hl_node k, const hl_conv_options *options)
{
    hl_attr attr = { 0 };
    if (!g || !conv_attr(g, k, options, &attr))
        return HL_BAD;
    return hl_graph_add(g, &hl_op_conv, 2, (hl_node[]){ x, k }, &attr);
}

hl_node hl_conv_transpose(hl_graph *g, hl_node x, hl_node k, size_t height, size_t width,
                          const hl_conv_options *options)
{
    hl_attr attr = { .shape = { .rank = 3, .dim = { hl_node_dim(g, k, 1), height, width } } };
    if (!g || !conv_attr(g, k, options, &attr))
        return HL_BAD;
    return hl_graph_add(g, &hl_op_conv_t, 2, (hl_node[]){ x, k }, &attr);
}
