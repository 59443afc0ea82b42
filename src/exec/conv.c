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

/* Elements from an operand's first panel to its second. */
static size_t step_of(const hl_frame *f, const hl_ref *r)
{
    return f->q1 - f->q0 > 1 ? (size_t)(hl_address(f, r, f->q0 + 1) - hl_address(f, r, f->q0)) / f->p->element : 0;
}

size_t hl_conv_room(const hl_instr *t)
{
    return hl_conv_scratch(t->shape.dim[0], t->in_shape.dim[0], t->n, t->k);
}

void hl_conv_panels(const hl_frame *f, const hl_instr *t, size_t lanes)
{
    bool forward = t->code == HL_DO_CONV;
    hl_conv_geometry c =
        geometry(t, forward ? &t->in_shape : &t->shape, forward ? &t->shape : &t->in_shape, t->n, t->k, lanes);
    (forward ? f->p->k->conv : f->p->k->conv_t)(&c, f->q1 - f->q0, hl_half_panels(f, f->q0, f->q1 - f->q0, 1),
                                                hl_address(f, &t->in[0].ref, f->q0), step_of(f, &t->in[0].ref),
                                                hl_address(f, &t->in[1].ref, f->q0), hl_address(f, &t->out.ref, f->q0),
                                                step_of(f, &t->out.ref), f->scratch);
}

void hl_conv_weights(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi, size_t lanes, char *value, bool add)
{
    hl_shape image = { .rank = 3, .dim = { t->shape.dim[1], (size_t)t->m, t->groups } };
    hl_conv_geometry c = geometry(t, &image, &t->in_shape, t->shape.dim[2], t->shape.dim[3], lanes);
    size_t full = f->full > f->q1 ? f->q1 : f->full;
    f->p->k->conv_w(&c, lo, hi, f->q1, full, f->tail, hl_address(f, &t->in[0].ref, 0), t->in[0].ref.row_step,
                    hl_address(f, &t->in[1].ref, 0), t->in[1].ref.row_step, value, add);
}
