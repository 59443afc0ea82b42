/* table.h - tables as their readers see them.
 *
 * The numbers of a table are in one of two places: in blocks of doubles (csv), or in arrays (npy, npz), each of which gives
 * some of the columns and stays in the file, or in memory if it had to be inflated. */
#ifndef HL_TABLE_H
#define HL_TABLE_H

#include "hollow/table.h"
#include "io/file.h"
#include "io/labels.h"
#include "io/source.h"

enum {
    HL_TABLE_MAX_COLUMNS = 1000000,
    HL_TABLE_SHOWN = 64 /* bytes of a name or a field in a message */
};

/* An array as npy describes it. */
typedef struct hl_array {
    char kind;     /* 'f' float, 'i' integer, 'u' unsigned, 'b' bool */
    unsigned size; /* bytes of an element: 1, 2, 4, 8 */
    bool swapped;  /* big-endian */
    bool fortran;  /* columns one after another */
    int rank;      /* as in the file, at least 1 */
    size_t rows, columns;
    size_t offset; /* of the values in the input, if memory is NULL */
    char *memory;  /* owned by the table; else NULL */
} hl_array;

typedef struct hl_column {
    const char *name; /* in the arena */
    size_t array;     /* which array */
    size_t index;     /* column of the array, or of the blocks */
    size_t place;     /* column of the file */
    hl_column_kind kind;
    bool open, labels; /* csv: its first value will tell its kind; it may hold text */
    bool free_text;    /* its texts may be empty */
    bool indicator;    /* 1 where the column of labels at the same place is `equals`, else 0 */
    double equals;
} hl_column;

/* From `row` on, row and line grow together. */
typedef struct hl_line_mark {
    size_t row, line;
} hl_line_mark;

/* Is the text of a date, be it impossible? (date.c) */
bool hl_date_like(const char *text, size_t bytes);

struct hl_table {
    hl_context *ctx;
    hl_table_options options; /* what it points to is borrowed while the table is opened */
    hl_source source;
    hl_arena names;
    hl_column *columns;
    size_t column_count, column_capacity;
    bool named;
    size_t rows, dropped;
    hl_labels labels;

    double **blocks; /* csv: block_rows rows each */
    size_t block_count, block_capacity, block_rows, block_columns;
    bool spilling; /* blocks went to a file, `spilled` rows of them, ... */
    int spill;     /* ... which is open until the table's source takes it over */
    size_t spilled;
    hl_line_mark *marks; /* csv */
    size_t mark_count, mark_capacity;

    hl_array *arrays; /* npy, npz */
    size_t array_count, array_capacity;
    size_t *gone; /* rows of the arrays that were left out, in order: `dropped` of them */
    size_t gone_capacity;
    void *scratch; /* holds a row of any array */
    size_t scratch_bytes;
};

/* "data.csv: <what is wrong>" with a status. */
hl_status hl_table_fault(hl_table *t, hl_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Copy text that may hold anything to where a message can show it, what is not printable as '?'. Returns out. */
const char *hl_text_shown(char out[HL_TABLE_SHOWN], const char *text, size_t bytes);

/* Statistics of any rows that can be read: hl_table_stats for a table. */
typedef hl_status hl_rows_fn(void *user, size_t first, size_t count, double *out);
hl_status hl_rows_stats(hl_context *ctx, size_t rows, size_t columns, hl_rows_fn *read, void *user,
                        hl_column_stats *stats);

/* Append a column; copies the name, NULL for none. */
hl_status hl_table_add_column(hl_table *t, const char *name, size_t array, size_t index);
/* Once all columns of the file are there: give the nameless a name, refuse names that stand twice. */
hl_status hl_table_check_names(hl_table *t);
/* Keep only the columns that the options ask for, in their order. */
hl_status hl_table_select(hl_table *t);

/* The readers; the input is open. They fill columns and rows; the caller frees the table if they fail. */
hl_status hl_table_read_csv(hl_table *t);
hl_status hl_table_read_npy(hl_table *t);
hl_status hl_table_read_npz(hl_table *t);

/* Parse the header of npy at data[0..bytes): an array and the length of the header. `what` names it in messages; bytes is what
 * there is of the file, or HL_NPY_HEADER bytes of it. */
enum { HL_NPY_HEADER = 1 << 16 }; /* no longer header is read */
hl_status hl_npy_parse(hl_table *t, const char *what, const char *data, size_t bytes, hl_array *array,
                       size_t *header_bytes);
/* Add an array and its columns; `name` is that of the array, NULL if it has none. The table then owns array->memory. */
hl_status hl_table_add_array(hl_table *t, const hl_array *array, const char *name);
/* Bytes of the array's values. hl_npy_parse has seen that they do not overflow. */
size_t hl_array_bytes(const hl_array *array);
/* Convert `count` elements, src_step bytes and out_step values apart. */
void hl_array_convert(const hl_array *array, const char *src, size_t src_step, size_t count, double *out,
                      size_t out_step);
/* The header of a npy file, 128 bytes whatever the number of rows. */
enum { HL_NPY_WRITTEN = 128 };
void hl_npy_header(char out[HL_NPY_WRITTEN], bool single, size_t rows, size_t columns, bool flat);

#endif
