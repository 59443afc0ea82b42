/* networks.c - encoders and decoders: lists of gated layers, y = a * sigmoid(b) with a and b from one product or convolution.
 *
 * Convolutional nets halve the image twice; what is left of it goes through a dense gated layer of CODE units, and the decoder
 * mirrors this. `paper` is the network of the published comparison: 3,067,105 parameters for 28 x 28 pixels and 64 latent values. */
#include <math.h>
#include <stdio.h>

#include "vae/vae.h"

enum { CODE = 256, FC_UNITS = 300, MOST_LAYERS = 8 };

/* A gate keeps about a quarter of the variance, so weights begin larger. */
static const double gain = 1.4142135623730951;

/* ---- gated layers ---- */

/* The two halves of the first axis. */
static hl_node gate(hl_graph *g, hl_node y)
{
    size_t half = hl_node_size(g, y) ? hl_node_dim(g, y, 0) / 2 : 0;
    return hl_mul(g, hl_slice(g, y, 0, 0, half), hl_sigmoid(g, hl_slice(g, y, 0, half, half)));
}

static hl_node gated_dense(hl_vae_builder *b, const char *name, hl_node y, size_t units)
{
    return gate(b->g, hl_vae_dense(b, name, y, 2 * units, gain, 0));
}

/* One layer of a list; stride 0 ends it. In a decoder a stride of 2 doubles the image. */
typedef struct layer {
    size_t channels, kernel, stride;
} layer;

typedef struct image {
    size_t height[3], width[3]; /* as it is, halved, halved again */
} image;

static image image_sizes(const hl_vae *v)
{
    image s = { { v->spec.image[1] }, { v->spec.image[2] } };
    for (int i = 1; i < 3; i++) {
        s.height[i] = (s.height[i - 1] + 1) / 2;
        s.width[i] = (s.width[i - 1] + 1) / 2;
    }
    return s;
}

static hl_node bias(hl_vae_builder *b, const char *name, hl_node y, size_t channels)
{
    char full[64];
    snprintf(full, sizeof full, "%s.bias", name);
    hl_node shift = hl_vae_param(b, full, 1, &channels, 0, 0);
    return hl_add(b->g, y, hl_reshape(b->g, shift, 3, (size_t[]){ channels, 1, 1 }));
}

/* Gated convolution of y [in, h, w]; `level` counts how often the image is halved before it. */
static hl_node gated_conv(hl_vae_builder *b, const char *name, hl_node y, const layer *l, bool up, const image *s,
                          int level)
{
    char full[64];
    size_t in = hl_node_size(b->g, y) ? hl_node_dim(b->g, y, 0) : 1, out = 2 * l->channels, k = l->kernel;
    hl_conv_options o = { .stride = { l->stride, l->stride }, .pad = { k / 2, k / 2 } };
    bool transposed = up && l->stride > 1;
    double seen = (double)(in * k * k) / (transposed ? (double)(l->stride * l->stride) : 1);
    snprintf(full, sizeof full, "%s.weight", name);
    size_t dims[4] = { transposed ? in : out, transposed ? out : in, k, k };
    hl_node w = hl_vae_param(b, full, 4, dims, gain / sqrt(seen), 0);
    y = transposed ? hl_conv_transpose(b->g, y, w, s->height[level - 1], s->width[level - 1], &o)
                   : hl_conv(b->g, y, w, &o);
    return gate(b->g, bias(b, name, y, out));
}

static hl_node encode_layers(hl_vae_builder *b, hl_node x, const layer *l)
{
    image s = image_sizes(b->vae);
    hl_node y = hl_reshape(b->g, x, 3, b->vae->spec.image);
    char name[32];
    int level = 0, i = 0;
    for (; l[i].stride; level += l[i++].stride > 1) {
        snprintf(name, sizeof name, "encoder.%d", i);
        y = gated_conv(b, name, y, &l[i], false, &s, level);
    }
    snprintf(name, sizeof name, "encoder.%d", i);
    size_t size = hl_node_size(b->g, y);
    return gated_dense(b, name, hl_reshape(b->g, y, 1, &size), CODE);
}

/* The first layer of the list is dense, to an image halved twice; the last is a convolution of 1 x 1 to the logits. */
static hl_node decode_layers(hl_vae_builder *b, hl_node z, const layer *l)
{
    image s = image_sizes(b->vae);
    size_t first[3] = { 2 * l->channels, s.height[2], s.width[2] }, channels = b->vae->spec.image[0];
    size_t size = first[0] * first[1] * first[2], in = b->vae->spec.latent;
    hl_node w = hl_vae_param(b, "decoder.0.weight", 2, (size_t[]){ size, in }, gain / sqrt((double)in), 0);
    hl_node y = gate(b->g, bias(b, "decoder.0", hl_reshape(b->g, hl_linear(b->g, z, w), 3, first), first[0]));
    char name[32];
    int level = 2, i = 1;
    for (; l[i].stride; level -= l[i++].stride > 1) {
        snprintf(name, sizeof name, "decoder.%d", i);
        y = gated_conv(b, name, y, &l[i], true, &s, level);
    }
    in = l[i - 1].channels;
    snprintf(name, sizeof name, "decoder.%d.weight", i);
    w = hl_vae_param(b, name, 4, (size_t[]){ channels, in, 1, 1 }, 1 / sqrt((double)in), 0);
    snprintf(name, sizeof name, "decoder.%d", i);
    y = bias(b, name, hl_conv(b->g, y, w, NULL), channels);
    return hl_reshape(b->g, y, 1, &b->vae->dim);
}

/* ---- the networks ---- */

static const layer small_encoder[] = { { 16, 5, 2 }, { 32, 5, 2 }, { 32, 3, 1 }, { 0 } };
static const layer small_decoder[] = { { 32, 0, 1 }, { 32, 3, 1 }, { 16, 5, 2 }, { 16, 5, 2 }, { 0 } };
static const layer mid_encoder[] = { { 32, 5, 2 }, { 32, 5, 1 }, { 64, 5, 2 }, { 64, 3, 1 }, { 0 } };
static const layer mid_decoder[] = { { 64, 0, 1 }, { 64, 3, 1 }, { 32, 5, 2 }, { 32, 5, 1 }, { 32, 5, 2 }, { 0 } };
static const layer paper_encoder[] = { { 32, 5, 1 }, { 32, 5, 2 }, { 64, 5, 1 }, { 64, 5, 2 }, { 64, 5, 1 }, { 0 } };
static const layer paper_decoder[] = { { 64, 0, 1 }, { 64, 5, 1 }, { 32, 5, 2 }, { 32, 5, 1 },
                                       { 32, 5, 2 }, { 32, 5, 1 }, { 0 } };

static hl_node small_encode(hl_vae_builder *b, hl_node x)
{
    return encode_layers(b, x, small_encoder);
}

static hl_node small_decode(hl_vae_builder *b, hl_node z)
{
    return decode_layers(b, z, small_decoder);
}

static hl_node mid_encode(hl_vae_builder *b, hl_node x)
{
    return encode_layers(b, x, mid_encoder);
}

static hl_node mid_decode(hl_vae_builder *b, hl_node z)
{
    return decode_layers(b, z, mid_decoder);
}

static hl_node paper_encode(hl_vae_builder *b, hl_node x)
{
    return encode_layers(b, x, paper_encoder);
}

static hl_node paper_decode(hl_vae_builder *b, hl_node z)
{
    return decode_layers(b, z, paper_decoder);
}

static hl_node fc_encode(hl_vae_builder *b, hl_node x)
{
    return gated_dense(b, "encoder.1", gated_dense(b, "encoder.0", x, FC_UNITS), FC_UNITS);
}

static hl_node fc_decode(hl_vae_builder *b, hl_node z)
{
    hl_node y = gated_dense(b, "decoder.1", gated_dense(b, "decoder.0", z, FC_UNITS), FC_UNITS);
    return hl_vae_dense(b, "decoder.2", y, b->vae->dim, 1, 0);
}

static hl_node linear_encode(hl_vae_builder *b, hl_node x)
{
    (void)b;
    return x;
}

static hl_node linear_decode(hl_vae_builder *b, hl_node z)
{
    return hl_vae_dense(b, "decoder.0", z, b->vae->dim, 1, 0);
}

const hl_vae_net hl_vae_net_list[] = {
    { .name = "fc", .encode = fc_encode, .decode = fc_decode },
    { .name = "small", .images = true, .encode = small_encode, .decode = small_decode },
    { .name = "mid", .images = true, .encode = mid_encode, .decode = mid_decode },
    { .name = "paper", .images = true, .encode = paper_encode, .decode = paper_decode },
    { .name = "linear", .encode = linear_encode, .decode = linear_decode },
    { 0 },
};
