/* conv.c - run convolutions: from instructions to kernel calls. */
#include "exec/plan.h"

/* The geometry, from the shapes of image [c, h, w], kernel [o, c, kh, kw] and result [o, h', w']. */
static hl_conv_geometry geometry(const hl_instr *t, const hl_shape *image, const hl_shape *result, size_t kh, size_t kw,
                                 size_t lanes)
{
    return (hl_conv_geometry){ .channels = image->dim[0],
                               .height = image->dim[1],
                               .width = image->dim[2],
                               .out = result->dim[0],
                               .out_height = result->dim[1],
                               .out_width = result->dim[2],
                               .kernel_height = kh,
                               .kernel_width = kw,
                               .stride = { (size_t)t->attr.i[0], (size_t)t->attr.i[1] },
                               .pad = { (size_t)t->attr.i[2], (size_t)t->attr.i[3] },
                               .taps = t->attr.list_len ? t->attr.list : NULL,
                               .lanes = lanes };
}

void hl_conv_panel(const hl_frame *f, const hl_instr *t, size_t q, size_t lanes)
{
    bool forward = t->code == HL_DO_CONV;
    hl_conv_geometry c =
        geometry(t, forward ? &t->in_shape : &t->shape, forward ? &t->shape : &t->in_shape, t->n, t->k, lanes);
    (forward ? f->p->k->conv : f->p->k->conv_t)(&c, hl_address(f, &t->in[0].ref, q), hl_address(f, &t->in[1].ref, q),
                                                hl_address(f, &t->out.ref, q));
}

void hl_conv_weights(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi, size_t lanes, char *value, bool add)
{
    hl_shape image = { .rank = 3, .dim = { t->shape.dim[1], (size_t)t->m, t->groups } };
    hl_conv_geometry c = geometry(t, &image, &t->in_shape, t->shape.dim[2], t->shape.dim[3], lanes);
    size_t full = f->full > f->q1 ? f->q1 : f->full;
    f->p->k->conv_w(&c, lo, hi, f->q1, full, f->tail, hl_address(f, &t->in[0].ref, 0), t->in[0].ref.row_step,
                    hl_address(f, &t->in[1].ref, 0), t->in[1].ref.row_step, value, add);
}
