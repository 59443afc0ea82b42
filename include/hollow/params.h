/* hollow/params.h - a named set of parameters, with a flat view of values and gradients.
 *
 *     hl_params_from_graph(graph, HL_F32, &params);                  parameters of a graph; the set owns the values
 *     hl_params_from_nets(ctx, 2, nets, &params);                    parameters of two networks, which own the values
 *     output[i] = hl_params_gradients(params)[i];                    where a plan writes its gradients
 *     hl_plan_run(plan, rows, input, hl_params_values(params), output);
 *     hl_params_read_gradients(params, gradient);                    all gradients as one array of doubles
 *     hl_optimizer_step(optimizer, gradient, 1.0, NULL);
 *
 * Optimisers (hollow/learn.h), model files and checkpoints of all models use such sets. The flat array holds the parameters in order,
 * each row by row. */
#ifndef HOLLOW_PARAMS_H
#define HOLLOW_PARAMS_H

#include "hollow/net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_params hl_params; /* opaque */

/* The parameters of a graph, in its order and with its names; all values are 0. Duplicate names are an error. The graph may be freed. */
HL_API hl_status hl_params_from_graph(const hl_graph *graph, hl_dtype dtype, hl_params **params);
/* The parameters of `count` networks of the same precision, one network after the other. The networks are borrowed until the set is
 * freed. With several networks, names begin with "0.", "1.", ... */
HL_API hl_status hl_params_from_nets(hl_context *context, size_t count, hl_net *const *nets, hl_params **params);
HL_API void hl_params_free(hl_params *params); /* takes NULL */

HL_API size_t hl_params_count(const hl_params *params);
HL_API size_t hl_params_size(const hl_params *params); /* number of values of all parameters */
HL_API hl_dtype hl_params_dtype(const hl_params *params);
/* Parameter `index`; its values are borrowed until the set is freed and may be written. */
HL_API hl_status hl_params_get(const hl_params *params, size_t index, hl_net_param *param);
/* The index of a name; hl_params_count if there is no such parameter. */
HL_API size_t hl_params_find(const hl_params *params, const char *name);

/* One pointer per parameter: to its values, as hl_plan_run takes them, and to memory for its gradient. The first call of
 * hl_params_gradients allocates that memory; it returns NULL if the allocation fails. Borrowed until the set is freed. */
HL_API const void *const *hl_params_values(const hl_params *params);
HL_API void *const *hl_params_gradients(hl_params *params);

/* Copy all values or gradients to or from a flat array of hl_params_size doubles. */
HL_API void hl_params_read(const hl_params *params, double *flat);
HL_API void hl_params_write(hl_params *params, const double *flat);
HL_API void hl_params_read_gradients(const hl_params *params, double *flat); /* zeros if there are no gradients */

/* Initialise a parameter with independent normal values of variance 1 / fan_in, or with 0 if fan_in is 0. Use a different `stream` for
 * each parameter. */
HL_API hl_status hl_params_init(hl_params *params, size_t index, size_t fan_in, uint64_t seed, uint64_t stream);
/* Return HL_ERR_NOT_FINITE if a value is NaN or infinite; the message names the parameter. */
HL_API hl_status hl_params_check(const hl_params *params);

#ifdef __cplusplus
}
#endif

#endif
