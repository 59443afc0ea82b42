/* params.h - inside a named set of parameters, and such sets in model files. */
#ifndef HL_PARAMS_H
#define HL_PARAMS_H

#include "graph/graph.h"
#include "hollow/params.h"
#include "io/safetensors.h"

struct hl_params {
    hl_context *ctx;
    hl_dtype dtype;
    size_t count, size;
    hl_net_param *param; /* [count] */
    hl_arena names;
    const void **value; /* [count] */
    void *values;       /* of all, if the set owns them; NULL if they are borrowed or not there yet */
    void *gradients, **gradient;
};

/* A set that knows its shapes but has no memory for values yet; and that memory, zeroed. */
hl_status hl_params_declare(const hl_graph *graph, hl_dtype dtype, hl_params **params);
hl_status hl_params_allocate(hl_params *params);

/* The parameters in a table of tensors, each name after `prefix`; borrowed by the table. */
hl_status hl_params_add_tensors(const hl_params *params, const char *prefix, hl_tensors *t);
/* Are all of them there, with the right shapes? The set need not have memory. */
hl_status hl_params_check_tensors(const hl_params *params, const char *prefix, const char *path, const hl_tensors *t);
/* Take the values, and check that they are finite. The tensors have been checked. */
hl_status hl_params_take_tensors(hl_params *params, const char *prefix, const char *path, const hl_tensors *t);

#endif
