/* hollow/table.h - tables of numbers: csv, npy and npz files in, csv and npy files out.
 *
 *     hl_table_open(ctx, "data.csv", NULL, &table);
 *     rows = hl_table_rows(table), columns = hl_table_columns(table);
 *     hl_table_read_rows(table, 0, 100, values);                     the first 100 rows, 100 x columns
 *     hl_table_free(table);
 *
 * A table that was opened has at least one row and one column, and every number in it is finite. Arrays in npy files and in
 * npz files without compression stay in the file and are read when asked for: memory does not depend on their size. The numbers of a
 * large csv file go to a temporary file (in TMPDIR), which has no name and is gone when the table is freed. */
#ifndef HOLLOW_TABLE_H
#define HOLLOW_TABLE_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_table hl_table;               /* opaque */
typedef struct hl_table_writer hl_table_writer; /* opaque */

/* ---- reading ---- */

/* Zero or NULL in any field means the default. */
typedef struct hl_table_options {
    const char *columns; /* use only these, in this order, a list as for hl_table_find; the others may hold text */
    const char *exclude; /* leave these out of them, or of all */
    const char *extra;   /* use these as well, after them, unless they are among them */
    const char *array;   /* npz: the array to read; or several "t,x", or all "*", which become columns side by side */
    int drop_missing;    /* nonzero: leave rows out that have a missing value; default an error */
    int header;      /* csv: > 0 the first row holds names, < 0 it does not; default: it does if a field is no number */
    char separator;  /* csv: ',', ';', '\t' or ' ' (any blanks); default found from the first row */
    size_t min_rows; /* fewer rows are an error; default 1 */
    size_t
        in_memory; /* csv: about as many numbers stay in memory, those of a larger file do not; default 2^23, 64 MB */
    /* csv: the name or number of a column that holds dates if its first value looks like one (HL_COLUMN_DATES) */
    const char *date_column;
    /* csv: the name or number of a column that holds texts if its first value is no number (HL_COLUMN_LABELS) */
    const char *label_column;
    /* Nonzero: all ranks of the context (hollow/ranks.h) open the same file together. Each looks at its part of the rows of an array, or at
     * all with drop_missing; an error of one is an error of all. */
    int shared;
    /* Nonzero: the numbers of arrays are not looked at before they are read, and those that are not finite are handed out. For a few rows of a large
     * table; without effect on csv and with drop_missing. */
    int unchecked;
    int names; /* nonzero: `columns` are names, never numbers; a file without names must have as many columns, by place */
    /* csv: more such columns, "city,sex", by names or numbers. labels_only: they hold texts whatever their first value looks like. */
    const char *label_columns;
    int labels_only;
} hl_table_options;

typedef enum hl_column_kind {
    HL_COLUMN_NUMBERS = 0,
    HL_COLUMN_DATES, /* days since 1970-01-01, as hl_date_scan reads them */
    HL_COLUMN_LABELS /* every text that differs is a number from 0 on, in the order of their first appearance */
} hl_column_kind;
/* A date with or without a time of day, such as 2024-02-29, 2024-02-29T13:45, 2024-02-29 13:45:30.5Z or 2024-02-29T13:45+02:00, to days
 * since 1970-01-01. Returns what is behind it, or NULL if there is no date. */
HL_API const char *hl_date_scan(const char *text, double *days);
/* Days since 1970-01-01 as a date, to the second: 2024-02-29, or 2024-02-29T13:45:30 unless it is midnight; years 1 to 9999, other days as
 * hl_number_text. buffer has room for 32 bytes. Returns the length. */
HL_API size_t hl_date_text(double days, char *buffer);

/* Open a file, or standard input if the path is "-". What it is, its contents tell:
 *
 * npy: float16, 32, 64, integers and bool of either byte order, in C or Fortran order. One dimension is one column, dimensions
 * after the second are taken together. Integers beyond 2^53 are rounded.
 * npz: the array named by the options or by the path ("data.npz:train"). By default the only one; else the only one of two or
 * more dimensions; else all, if all are of one dimension and equal length.
 * csv: everything else. Quotes, comments (#), empty lines, any line end, a byte order mark. Numbers are correctly rounded,
 * whatever the locale.
 *
 * Missing values are: nothing, NA, N/A, NaN, null, none, ?, and the infinities.
 *
 * Errors, with the file, the line or row, and the column in the message: HL_ERR_IO, HL_ERR_FORMAT, HL_ERR_UNSUPPORTED,
 * HL_ERR_NOT_FINITE for a missing value, HL_ERR_INVALID for a column or array that is not there. On failure *table is NULL. */
HL_API hl_status hl_table_open(hl_context *context, const char *path, const hl_table_options *options,
                               hl_table **table);
HL_API void hl_table_free(hl_table *table); /* takes NULL */

HL_API size_t hl_table_rows(const hl_table *table);
HL_API size_t hl_table_columns(const hl_table *table);
/* Rows left out for missing values. */
HL_API size_t hl_table_dropped(const hl_table *table);
/* The name of a column; "x1", "x2", ... if the file has no names; NULL if there is no such column. Borrowed from the table. */
HL_API const char *hl_table_name(const hl_table *table, size_t column);
/* What the column holds. */
HL_API hl_column_kind hl_table_kind(const hl_table *table, size_t column);
/* The text of a number of a column of HL_COLUMN_LABELS; NULL if there is none. Borrowed from the table. */
HL_API const char *hl_table_label(const hl_table *table, size_t number);
/* The different texts of a column of HL_COLUMN_LABELS, sorted, to labels, which has room for HL_TABLE_CATEGORIES; HL_ERR_INVALID if there are
 * more. Borrowed from the table. */
enum { HL_TABLE_CATEGORIES = 64 };
HL_API hl_status hl_table_categories(hl_table *table, size_t column, const char **labels, size_t *count);
/* Add columns that are 1 where a column of labels is labels[1], labels[2], ..., else 0; their names are "city=Paris". labels[0] has none.
 * HL_ERR_INVALID, with the place of the first, if a row has another text. */
HL_API hl_status hl_table_add_indicators(hl_table *table, size_t column, size_t count, const char *const *labels);
/* Nonzero if the file gives names. */
HL_API int hl_table_named(const hl_table *table);

/* The columns of a list such as "t,x1,4-6": names, numbers from 1, and ranges of numbers; what is a name is not taken as a
 * number. index has room for hl_table_columns; *count receives how many. HL_ERR_INVALID, with all that are not there and the
 * names that there are, or if one is listed twice. */
HL_API hl_status hl_table_find(const hl_table *table, const char *list, size_t *index, size_t *count);
/* The same, but numbers are those of the file's columns, whichever of them the table has. */
HL_API hl_status hl_table_find_in_file(const hl_table *table, const char *list, size_t *index, size_t *count);

/* Read rows first .. first + count - 1, all columns, to out (count x columns). */
HL_API hl_status hl_table_read_rows(hl_table *table, size_t first, size_t count, double *out);
/* The same for `columns` columns, those of index, in that order: out is count x columns. */
HL_API hl_status hl_table_read_columns(hl_table *table, size_t first, size_t count, size_t columns, const size_t *index,
                                       double *out);
/* The same for `count` rows by their numbers, in any order; neighbours one after another are read together. */
HL_API hl_status hl_table_gather(hl_table *table, size_t count, const size_t *row, size_t columns, const size_t *index,
                                 double *out);

/* Where a number stands, for messages: "data.csv:17: column 'age'" or "data.npy: row 3, column 'x2'". HL_NO_COLUMN names the
 * row alone. Written as snprintf does; returns the length it needs. */
#define HL_NO_COLUMN SIZE_MAX
HL_API int hl_table_place(const hl_table *table, size_t row, size_t column, char *buffer, size_t size);
/* The line of the file, counted from 1, where a row begins; 0 if the file is not text. */
HL_API size_t hl_table_line(const hl_table *table, size_t row);

/* ---- statistics ---- */

typedef struct hl_column_stats {
    double mean, deviation; /* deviation: sqrt(sum (x - mean)^2 / rows); exactly 0 if and only if min == max */
    double min, max;
    int integer;     /* nonzero: every value is a whole number */
    size_t examined; /* rows looked at for the next two: all of them, or a random 65536 or fewer */
    size_t distinct; /* different values among these */
    double tied;     /* the part of these whose value another has too, from 0 to 1 */
} hl_column_stats;

/* The statistics of all columns, in one pass over the table; the same bits whenever it is called. */
HL_API hl_status hl_table_stats(hl_table *table, hl_column_stats *stats);

/* ---- writing ---- */

typedef enum hl_table_format { HL_TABLE_AUTO = 0, HL_TABLE_CSV = 1, HL_TABLE_NPY = 2 } hl_table_format;

/* Zero or NULL in any field means the default. */
typedef struct hl_table_writer_options {
    hl_table_format format;   /* default npy if the path ends in .npy, else csv */
    const char *const *names; /* csv: the header, one for each column, copied; default no header */
    int single;               /* nonzero: round to float32: npy of <f4, and csv of fewer digits */
    size_t rows;              /* how many will be written; needed for npy to a pipe; else checked if given */
    int flat;                 /* npy, one column: shape (rows,) instead of (rows, 1) */
    size_t date_column;       /* csv: 1 + the number of a column of days that is written as dates; default none */
} hl_table_writer_options;

/* Begin a file, or standard output if the path is "-". A file's old contents stay in place until hl_table_writer_finish, which
 * replaces them at once; what cannot be written fails here. Numbers in csv have the fewest digits that read back to the same
 * bits; they may be nan, inf and -inf. Standard output is written by its descriptor: flush stdout before. */
HL_API hl_status hl_table_writer_create(hl_context *context, const char *path, size_t columns,
                                        const hl_table_writer_options *options, hl_table_writer **writer);
/* Append count x columns values. */
HL_API hl_status hl_table_write_rows(hl_table_writer *writer, size_t count, const double *values);
/* Hand on what is buffered; for pipes whose reader waits. */
HL_API hl_status hl_table_writer_flush(hl_table_writer *writer);
/* Complete the file and put it in place. Afterwards only hl_table_writer_free may be called. */
HL_API hl_status hl_table_writer_finish(hl_table_writer *writer);
/* Takes NULL. Without hl_table_writer_finish before, nothing is left of the new file. */
HL_API void hl_table_writer_free(hl_table_writer *writer);
/* A number as csv files have it: the fewest digits that read back to the same bits, as a float if single is nonzero. buffer
 * has room for 32 bytes. Returns the length. */
HL_API size_t hl_number_text(double value, int single, char *buffer);

#ifdef __cplusplus
}
#endif

#endif
