/* conv.c - conditioner "conv": for images, features of the pixels before and after a pixel in raster order.
 *
 * Each direction has two stacks of masked convolutions, so that there is no blind spot. The vertical stack V of the forward
 * direction sees the rows above, the horizontal stack S the pixels to the left in the same row and, through V, the rows above:
 *
 *   V_0 = taps of rows above (x)                      V_l = act(taps of rows above and the own row (V_{l-1}))
 *   S_0 = taps to the left in the own row (x) + V_0   S_l = act(taps to the left and the own (S_{l-1})) + P V_l
 *
 * The backward direction is the mirror image. The channels of one pixel share what is seen of other pixels, each with its own
 * output weights; they do not see each other. */
#include <stdio.h>

#include "nn/net.h"

typedef struct stack {
    hl_builder *b;
    bool backward;
    size_t channels, kernel, units; /* of the image; size of the kernel; channels of the stacks */
} stack;

static hl_status conv_check(hl_context *ctx, const hl_net_spec *s)
{
    if (s->image[0] == 0 || s->image[1] == 0 || s->image[2] == 0 ||
        hl_size_mul(hl_size_mul(s->image[0], s->image[1]), s->image[2]) != s->dim)
        return hl_fail(
            ctx, HL_ERR_INVALID,
            "conditioner conv needs an image of channels x height x width = dim; it is %zu x %zu x %zu, dim is %zu",
            s->image[0], s->image[1], s->image[2], s->dim);
    if (s->features % 2)
        return hl_fail(ctx, HL_ERR_INVALID,
                       "features is %zu; conditioner conv needs an even number, half per direction", s->features);
    if (s->kernel % 2 == 0 || s->kernel > 31)
        return hl_fail(ctx, HL_ERR_INVALID, "kernel is %zu; it must be odd and at most 31", s->kernel);
    if (s->hidden_layers < 1)
        return hl_fail(ctx, HL_ERR_INVALID, "conditioner conv needs at least one hidden layer");
    return HL_OK;
}

/* Taps of a kernel: whole rows before row `rows`, and in that row the columns before `columns`. Backward: mirrored. */
static hl_node masked_conv(const stack *t, const char *name, hl_node y, size_t in, size_t first_row, size_t rows,
                           size_t columns)
{
    unsigned char taps[31 * 31];
    size_t k = t->kernel;
    for (size_t a = 0; a < k; a++)
        for (size_t b = 0; b < k; b++) {
            bool seen = a >= first_row && (a < rows || (a == rows && b < columns));
            taps[t->backward ? (k - 1 - a) * k + (k - 1 - b) : a * k + b] = seen;
        }
    return hl_builder_conv(t->b, name, y, t->units, in, k, taps);
}

/* A convolution of 1 x 1. */
static hl_node pointwise(const stack *t, const char *name, hl_node y, size_t out, size_t in)
{
    return hl_builder_conv(t->b, name, y, out, in, 1, NULL);
}

/* One value per channel, for all pixels: [units, 1, 1] */
static hl_node offset(const stack *t, const char *name)
{
    const hl_net_spec *s = &t->b->term->spec;
    hl_node z = hl_builder_offset(t->b, name, t->units, false, s->context + (size_t)s->time);
    return hl_reshape(t->b->g, z, 3, (size_t[]){ t->units, 1, 1 });
}

/* One direction: [channels * features / 2, height, width] */
static hl_node direction(stack *t, hl_node image)
{
    const hl_net_spec *s = &t->b->term->spec;
    hl_graph *g = t->b->g;
    const char *way = t->backward ? "backward" : "forward";
    size_t middle = t->kernel / 2, half = s->features / 2;
    hl_node v = HL_NONE, h = HL_NONE;
    char name[48];
    for (int l = 0; l < s->hidden_layers; l++) {
        size_t in = l ? t->units : t->channels;
        snprintf(name, sizeof name, "conditioner.%s.vertical.%d", way, l);
        /* whole rows: above the own in the first layer, the own as well in the others */
        v = masked_conv(t, name, l ? v : image, in, 0, l ? middle + 1 : middle, 0);
        v = t->b->term->activation(g, hl_add(g, v, offset(t, name)));
        snprintf(name, sizeof name, "conditioner.%s.horizontal.%d", way, l);
        hl_node z = masked_conv(t, name, l ? h : image, in, middle, middle, l ? middle + 1 : middle);
        snprintf(name, sizeof name, "conditioner.%s.cross.%d", way, l);
        z = hl_add(g, hl_add(g, z, pointwise(t, name, v, t->units, t->units)), offset(t, name));
        h = t->b->term->activation(g, z);
    }
    snprintf(name, sizeof name, "conditioner.%s.out", way);
    return pointwise(t, name, h, t->channels * half, t->units);
}

static hl_node conv_build(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    hl_graph *g = b->g;
    size_t half = s->features / 2;
    hl_node image = hl_reshape(g, b->x, 3, s->image), part[2];
    for (int way = 0; way < 2; way++) {
        stack t = { b, way == 1, s->image[0], s->kernel, s->hidden };
        hl_node z = hl_reshape(g, direction(&t, image), 4, (size_t[]){ s->image[0], half, s->image[1], s->image[2] });
        part[way] = hl_reshape(g, hl_permute(g, z, (int[]){ 0, 2, 3, 1 }), 2, (size_t[]){ s->dim, half });
    }
    hl_node h = hl_concat(g, 2, part, 1);
    return hl_add(g, h, hl_builder_place(b, "conditioner.out.place", s->features, 0));
}

const hl_conditioner hl_conditioner_conv = { .check = conv_check, .build = conv_build, .image = true };
