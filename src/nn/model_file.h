/* model_file.h - what all kinds of model files share: saving and loading, in files and in memory, and the entries of their metadata.
 *
 * A kind of model writes its metadata and tensors to a table, and makes a model of such a table:
 *
 *     static const hl_model_kind kind = { "hl_vae", "model", gather, make, discard };
 *     hl_status hl_vae_save(const hl_vae *v, const char *path) { return v ? hl_model_save(&kind, v->ctx, v, path) : HL_ERR_INVALID; }
 */
#ifndef HL_MODEL_FILE_H
#define HL_MODEL_FILE_H

#include "io/json.h"
#include "io/safetensors.h"

typedef struct hl_model_kind {
    const char *type, *noun; /* for messages: "hl_density"; "model" */
    /* Metadata and tensors of the model to an empty table, which borrows from the model. */
    hl_status (*gather)(const void *model, hl_tensors *t);
    /* A model of the table. What stands in *model after a failure is discarded. */
    hl_status (*make)(hl_context *ctx, const char *path, const hl_tensors *t, void **model);
    void (*discard)(void *model); /* takes NULL */
} hl_model_kind;

hl_status hl_model_save(const hl_model_kind *kind, hl_context *ctx, const void *model, const char *path);
hl_status hl_model_write(const hl_model_kind *kind, hl_context *ctx, const void *model, void *bytes, size_t capacity,
                         size_t *size);
/* *model becomes NULL on failure; a NULL `model` is an error. */
hl_status hl_model_load(const hl_model_kind *kind, hl_context *ctx, const char *path, void **model);
hl_status hl_model_read(const hl_model_kind *kind, hl_context *ctx, const void *bytes, size_t size, void **model);

/* Set a key to a text that was made for it, and free the text; NULL: memory ran out. */
hl_status hl_model_set(hl_context *ctx, hl_tensors *t, const char *key, char *text);
/* Parse the metadata of a key; no root if they are missing or not JSON. */
hl_status hl_model_parse(hl_context *ctx, const hl_tensors *t, const char *key, hl_json_document *document);

/* The entries of a JSON object. The first that is missing or wrong sets status and message; after it, values are 0 or NULL. */
typedef struct hl_model_entries {
    hl_context *ctx;
    const char *path, *where; /* for messages: the file and the object */
    const hl_json *object;
    hl_status status;
} hl_model_entries;
int64_t hl_model_integer(hl_model_entries *e, const char *key, int64_t least, int64_t most);
double hl_model_number(hl_model_entries *e, const char *key);
bool hl_model_truth(hl_model_entries *e, const char *key);
const char *hl_model_text(hl_model_entries *e, const char *key);
/* A list of `count` integers in 0..most. */
void hl_model_sizes(hl_model_entries *e, const char *key, size_t count, int64_t most, size_t *to);
/* Something else is wrong with the object. */
hl_status hl_model_bad(hl_model_entries *e, const char *what);

#endif
