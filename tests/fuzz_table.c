/* fuzz_table.c - the readers of tables: csv, npy and npz. What is read is written as csv and as npy and read again, and that must give
 * the same bits. */
#include "fuzz_support.h"

static void write_again(hl_context *ctx, hl_table *t, const char *path, hl_table_format format)
{
    size_t rows = hl_table_rows(t), columns = hl_table_columns(t);
    double *a = malloc(columns * sizeof *a), *b = malloc(columns * sizeof *b);
    hl_table_writer_options options = { .format = format };
    hl_table_writer *w;
    hl_table *again;

    require(hl_table_writer_create(ctx, path, columns, &options, &w) == HL_OK);
    for (size_t i = 0; i < rows; i++) {
        require(hl_table_read_rows(t, i, 1, a) == HL_OK);
        require(hl_table_write_rows(w, 1, a) == HL_OK);
    }
    require(hl_table_writer_finish(w) == HL_OK);
    hl_table_writer_free(w);
    require(hl_table_open(ctx, path, NULL, &again) == HL_OK);
    require(hl_table_rows(again) == rows && hl_table_columns(again) == columns);
    for (size_t i = 0; i < rows; i++) {
        require(hl_table_read_rows(t, i, 1, a) == HL_OK && hl_table_read_rows(again, i, 1, b) == HL_OK);
        require(memcmp(a, b, columns * sizeof *a) == 0);
    }
    hl_table_free(again);
    unlink(path);
    free(a);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    hl_table_options options = { .drop_missing = size % 2, .array = size % 3 ? NULL : "*" };
    char path[64], again[64];
    hl_context *ctx;
    hl_table *t;
    hl_status status;
    FILE *file;

    snprintf(path, sizeof path, "/dev/shm/fuzz_table.%ld", (long)getpid());
    snprintf(again, sizeof again, "%s.again", path);
    file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    require(hl_context_create(NULL, &ctx) == HL_OK);
    status = hl_table_open(ctx, path, &options, &t);
    require(status == HL_OK || (!t && *hl_context_message(ctx)));
    require(status != HL_ERR_IO && status != HL_ERR_NOMEM);
    if (!status) {
        write_again(ctx, t, again, HL_TABLE_CSV);
        write_again(ctx, t, again, HL_TABLE_NPY);
        hl_table_free(t);
    }
    hl_context_free(ctx);
    unlink(path);
    return 0;
}
