/* hollow/params.h - a named set of parameters, with a flat view of values and gradients.
 *
 *     hl_params_from_graph(graph, HL_F32, &params);                  the parameters of a graph; the set owns the values
 *     hl_params_from_nets(ctx, 2, nets, &params);                    those of two networks, where they are
 *     output[i] = hl_params_gradients(params)[i];                    where a plan writes its gradients
 *     hl_plan_run(plan, rows, input, hl_params_values(params), output);
 *     hl_params_read_gradients(params, gradient);                    all of them in one row of doubles
 *     hl_optimizer_step(optimizer, gradient, 1.0, NULL);
 *
 * Optimisers (hollow/learn.h), model files and checkpoints take such a set, whatever the model is. The flat order is that of the
 * parameters, each row by row. */
#ifndef HOLLOW_PARAMS_H
#define HOLLOW_PARAMS_H

#include "hollow/net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_params hl_params; /* opaque */

/* The parameters of a graph, in its order, with its names, all 0. Two of one name are an error. The graph may be freed. */
HL_API hl_status hl_params_from_graph(const hl_graph *graph, hl_dtype dtype, hl_params **params);
/* The parameters of `count` networks of one precision, one network after the other. The networks are borrowed until the set
 * is freed. Of several networks the names are "0.", "1.", ... and the network's own. */
HL_API hl_status hl_params_from_nets(hl_context *context, size_t count, hl_net *const *nets, hl_params **params);
HL_API void hl_params_free(hl_params *params); /* takes NULL */

HL_API size_t hl_params_count(const hl_params *params);
HL_API size_t hl_params_size(const hl_params *params); /* values of all parameters */
HL_API hl_dtype hl_params_dtype(const hl_params *params);
/* Parameter `index`; its values are borrowed until the set is freed and may be written. */
HL_API hl_status hl_params_get(const hl_params *params, size_t index, hl_net_param *param);
/* The index of a name; hl_params_count if there is none. */
HL_API size_t hl_params_find(const hl_params *params, const char *name);

/* One pointer per parameter: to its values (as hl_plan_run takes them) and to room for its gradient, which is made by
 * the first call; NULL if memory ran out. Borrowed until the set is freed. */
HL_API const void *const *hl_params_values(const hl_params *params);
HL_API void *const *hl_params_gradients(hl_params *params);

/* The flat views: hl_params_size doubles. */
HL_API void hl_params_read(const hl_params *params, double *flat);
HL_API void hl_params_write(hl_params *params, const double *flat);
HL_API void hl_params_read_gradients(const hl_params *params, double *flat); /* zeros if there are none */

/* Independent normals of variance 1 / fan_in for one parameter; fan_in 0 sets it to 0. `stream` should differ between parameters. */
HL_API hl_status hl_params_init(hl_params *params, size_t index, size_t fan_in, uint64_t seed, uint64_t stream);
/* HL_ERR_NOT_FINITE, naming the parameter, if any value is NaN or infinite. */
HL_API hl_status hl_params_check(const hl_params *params);

#ifdef __cplusplus
}
#endif

#endif
