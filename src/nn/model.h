/* model.h - networks in files: the parts that model files of all kinds are made of. */
#ifndef HL_MODEL_H
#define HL_MODEL_H

#include "nn/model_file.h"
#include "nn/net.h"

/* A specification read from a file, with all that it points to. */
typedef struct hl_architecture {
    hl_context *ctx;
    hl_json_document json;
    hl_net_spec spec[HL_MAX_TERMS]; /* chained by `plus` */
    size_t *order[HL_MAX_TERMS];
} hl_architecture;

/* The specification as JSON, to be freed by hl_free; NULL with the message set if memory runs out. */
char *hl_net_architecture(const hl_net *net);
/* From such a text, of a file named `path` in messages; text NULL is an error. */
hl_status hl_architecture_read(hl_context *ctx, const char *path, const char *text, hl_dtype dtype,
                               hl_architecture **architecture);
void hl_architecture_free(hl_architecture *architecture); /* takes NULL */
/* The dtype that a file's metadata name. */
hl_status hl_model_dtype(hl_context *ctx, const char *path, const hl_tensors *t, hl_dtype *dtype);
/* Is the file's format `newest`, such as "hollow-density 5", or an earlier one of its kind? If not, the message says that the file is not
 * `what`, and what it is: of another kind, of a newer version, or of another program. */
hl_status hl_model_check_format(hl_context *ctx, const char *path, const hl_tensors *t, const char *newest,
                                const char *what);
/* Can `count` networks of this specification be in the file at all? Says so before memory is taken for them. */
hl_status hl_model_check_size(hl_context *ctx, const char *path, const hl_tensors *t, const hl_net_spec *spec,
                              size_t count);
/* The number of parameters of such a network, and of their values. */
hl_status hl_model_count(hl_context *ctx, const char *path, const hl_net_spec *spec, size_t *tensors, size_t *values);
/* Values in all tensors of a file, in elements of a precision. */
size_t hl_model_values(const hl_tensors *t, hl_dtype dtype);

/* The network's parameters in a table of tensors, each name after `prefix`; borrowed by the table. */
hl_status hl_net_add_tensors(const hl_net *net, const char *prefix, hl_tensors *t);
/* Are all of them there, with the right shapes? */
hl_status hl_net_check_tensors(const hl_net *net, const char *prefix, const char *path, const hl_tensors *t);
/* Take the values, and check them. */
hl_status hl_net_take_tensors(hl_net *net, const char *prefix, const char *path, const hl_tensors *t);
/* The context's message again, after the path of a file. */
hl_status hl_model_blame(hl_context *ctx, hl_status status, const char *path, const char *where);

#endif
