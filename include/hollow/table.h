/* hollow/table.h - read tables of numbers from csv, npy and npz files, and write csv and npy files.
 *
 *     hl_table_open(ctx, "data.csv", NULL, &table);
 *     rows = hl_table_rows(table), columns = hl_table_columns(table);
 *     hl_table_read_rows(table, 0, 100, values);                     the first 100 rows, 100 x columns
 *     hl_table_free(table);
 *
 * An open table has at least one row and one column, and all of its numbers are finite. Arrays of npy files and of uncompressed npz files
 * stay in the file and are read on request, so memory does not depend on their size. The numbers of a large csv file are kept in an
 * unnamed temporary file (in TMPDIR), which disappears when the table is freed. */
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
    /* Use only these columns, in this order: a list as for hl_table_find. Other columns may contain text. Default all. */
    const char *columns;
    /* Do not use these columns. */
    const char *exclude;
    /* Also use these columns, after the others, unless they are among them. */
    const char *extra;
    /* npz: the array to read. A list "t,x" or "*" (all arrays) reads several arrays as columns side by side. */
    const char *array;
    /* Nonzero: skip rows with missing values. Default: a missing value is an error. */
    int drop_missing;
    /* csv: the first row contains names (> 0) or does not (< 0). Default: it does if one of its fields is not a number. */
    int header;
    /* csv: ',', ';', '\t' or ' ' (any white space). Default: detected in the first row. */
    char separator;
    /* Fewer rows are an error. Default 1. */
    size_t min_rows;
    /* csv: approximate number of numbers to keep in memory; a larger file goes to a temporary file. Default 2^23 (64 MB). */
    size_t in_memory;
    /* csv: name or number of a column that contains dates if its first value looks like a date (HL_COLUMN_DATES). */
    const char *date_column;
    /* csv: name or number of a column that contains texts if its first value is not a number (HL_COLUMN_LABELS). */
    const char *label_column;
    /* Nonzero: all ranks of the context (hollow/ranks.h) open the same file together. Each rank checks its part of the rows of an array,
     * or all rows with drop_missing. An error on one rank is an error on all. */
    int shared;
    /* Nonzero: do not check the numbers of arrays when the file is opened; values that are not finite are then returned. Useful for
     * reading a few rows of a large table. No effect on csv and with drop_missing. */
    int unchecked;
    /* Nonzero: `columns` contains names, never numbers. A file without names must have as many columns, which are taken by position. */
    int names;
    /* csv: more columns of texts, as names or numbers, such as "city,sex". With labels_only they are texts even if their first value is
     * a number. */
    const char *label_columns;
    int labels_only;
    /* csv with names: columns of numbers, such as "a,b". If given, each other column contains texts (HL_COLUMN_LABELS) if its first value is
     * not a number; empty fields are then empty texts, not missing values. */
    const char *number_columns;
} hl_table_options;

typedef enum hl_column_kind {
    HL_COLUMN_NUMBERS = 0,
    HL_COLUMN_DATES, /* days since 1970-01-01, see hl_date_scan */
    HL_COLUMN_LABELS /* distinct texts are numbered 0, 1, ... in the order of their first appearance */
} hl_column_kind;
/* Parse a date with optional time of day, such as 2024-02-29, 2024-02-29T13:45, 2024-02-29 13:45:30.5Z or 2024-02-29T13:45+02:00, and write
 * the days since 1970-01-01. Returns the end of the date, or NULL if the text does not begin with a date. */
HL_API const char *hl_date_scan(const char *text, double *days);
/* Write days since 1970-01-01 as a date, rounded to seconds: 2024-02-29 at midnight, else 2024-02-29T13:45:30. Days outside of the years 1 to
 * 9999 are written as by hl_number_text. buffer must have 32 bytes. Returns the length. */
HL_API size_t hl_date_text(double days, char *buffer);

/* Open a file, or standard input if the path is "-". The format is detected from the contents:
 *
 * npy: float16, float32, float64, integers and bool of either byte order, in C or Fortran order. A one-dimensional array is one column;
 * dimensions after the second are flattened. Integers beyond 2^53 are rounded.
 * npz: the array named by the options or by the path ("data.npz:train"). Default: the only array; else the only array with two or more
 * dimensions; else all arrays, if all are one-dimensional and of equal length.
 * csv: everything else. Handles quotes, comments (#), empty lines, all line endings and a byte order mark. Numbers are correctly rounded and do
 * not depend on the locale.
 *
 * Missing values are empty fields, NA, N/A, NaN, null, none, ? and infinities.
 *
 * Errors: HL_ERR_IO, HL_ERR_FORMAT, HL_ERR_UNSUPPORTED, HL_ERR_NOT_FINITE (missing value), HL_ERR_INVALID (unknown column or array). The
 * message contains the file, the line or row, and the column. On failure *table is NULL. */
HL_API hl_status hl_table_open(hl_context *context, const char *path, const hl_table_options *options,
                               hl_table **table);
HL_API void hl_table_free(hl_table *table); /* takes NULL */

HL_API size_t hl_table_rows(const hl_table *table);
HL_API size_t hl_table_columns(const hl_table *table);
/* Number of rows skipped because of missing values. */
HL_API size_t hl_table_dropped(const hl_table *table);
/* Name of a column; "x1", "x2", ... if the file has no names; NULL if there is no such column. Borrowed from the table. */
HL_API const char *hl_table_name(const hl_table *table, size_t column);
/* Contents of a column. */
HL_API hl_column_kind hl_table_kind(const hl_table *table, size_t column);
/* The text for a number in a column of HL_COLUMN_LABELS; NULL if there is none. Borrowed from the table. */
HL_API const char *hl_table_label(const hl_table *table, size_t number);
/* Write the distinct texts of a column of HL_COLUMN_LABELS, sorted, to labels, which has room for HL_TABLE_CATEGORIES. HL_ERR_INVALID if there
 * are more. Borrowed from the table. */
enum { HL_TABLE_CATEGORIES = 64 };
HL_API hl_status hl_table_categories(hl_table *table, size_t column, const char **labels, size_t *count);
/* Add indicator columns for labels[1], labels[2], ... of a column of labels, with names such as "city=Paris". labels[0] gets no column.
 * HL_ERR_INVALID if a row has another text; the message contains its position. */
HL_API hl_status hl_table_add_indicators(hl_table *table, size_t column, size_t count, const char *const *labels);
/* Nonzero if the file contains column names. */
HL_API int hl_table_named(const hl_table *table);

/* Find the columns of a list such as "t,x1,4-6": names, numbers from 1, and ranges of numbers. A text that is a name is not taken as a
 * number. index has room for hl_table_columns entries; *count receives their number. HL_ERR_INVALID if a column does not exist or is listed
 * twice; the message lists the unknown columns and the existing names. */
HL_API hl_status hl_table_find(const hl_table *table, const char *list, size_t *index, size_t *count);
/* The same, but numbers refer to the columns of the file, not to those selected by the options. */
HL_API hl_status hl_table_find_in_file(const hl_table *table, const char *list, size_t *index, size_t *count);

/* Read rows first .. first + count - 1, all columns, to out (count x columns). */
HL_API hl_status hl_table_read_rows(hl_table *table, size_t first, size_t count, double *out);
/* Read only the `columns` columns listed in index, in that order; out is count x columns. */
HL_API hl_status hl_table_read_columns(hl_table *table, size_t first, size_t count, size_t columns, const size_t *index,
                                       double *out);
/* Read `count` rows by their numbers, in any order. Adjacent rows in sequence are read together. */
HL_API hl_status hl_table_gather(hl_table *table, size_t count, const size_t *row, size_t columns, const size_t *index,
                                 double *out);

/* Write the position of a number, for messages: "data.csv:17: column 'age'" or "data.npy: row 3, column 'x2'". HL_NO_COLUMN: the row
 * only. Works like snprintf and returns the full length. */
#define HL_NO_COLUMN SIZE_MAX
HL_API int hl_table_place(const hl_table *table, size_t row, size_t column, char *buffer, size_t size);
/* The line of the file, from 1, where a row begins; 0 if the file is not text. */
HL_API size_t hl_table_line(const hl_table *table, size_t row);

/* ---- statistics ---- */

typedef struct hl_column_stats {
    double mean, deviation; /* deviation: sqrt(sum (x - mean)^2 / rows); exactly 0 if and only if min == max */
    double min, max;
    int integer;     /* nonzero: every value is an integer */
    size_t examined; /* rows examined for the next two fields: all rows, or a random sample of at most 65536 */
    size_t distinct; /* distinct values among these */
    double tied;     /* fraction of these that share their value with another row */
} hl_column_stats;

/* Statistics of all columns in one pass over the table. Repeated calls give bitwise the same result. */
HL_API hl_status hl_table_stats(hl_table *table, hl_column_stats *stats);

/* ---- writing ---- */

typedef enum hl_table_format { HL_TABLE_AUTO = 0, HL_TABLE_CSV = 1, HL_TABLE_NPY = 2 } hl_table_format;

/* Zero or NULL in any field means the default. */
typedef struct hl_table_writer_options {
    /* Default npy if the path ends in .npy, else csv. */
    hl_table_format format;
    /* csv: the header, one name per column; copied. Default: no header. */
    const char *const *names;
    /* Nonzero: round to float32; npy has type <f4, csv has fewer digits. */
    int single;
    /* Number of rows that will be written. Required for npy to a pipe; otherwise checked if given. */
    size_t rows;
    /* npy with one column: shape (rows,) instead of (rows, 1). */
    int flat;
    /* csv: 1 + the number of a column of days that is written as dates. Default none. */
    size_t date_column;
    /* csv: write the texts of column i, if it is one of HL_COLUMN_LABELS in this table. Borrowed until the writer is freed. Default none. */
    const struct hl_table *texts;
} hl_table_writer_options;

/* Start a file, or standard output if the path is "-". The old contents of a file remain until hl_table_writer_finish replaces them
 * atomically. Fails if the path is not writable. csv numbers have the fewest digits that read back to the same bits; nan, inf and -inf are
 * allowed. Standard output is written through its file descriptor: flush stdout before. */
HL_API hl_status hl_table_writer_create(hl_context *context, const char *path, size_t columns,
                                        const hl_table_writer_options *options, hl_table_writer **writer);
/* Append count x columns values. */
HL_API hl_status hl_table_write_rows(hl_table_writer *writer, size_t count, const double *values);
/* Write buffered rows, for example to a pipe whose reader waits. */
HL_API hl_status hl_table_writer_flush(hl_table_writer *writer);
/* Complete the file and put it in place. Afterwards only hl_table_writer_free may be called. */
HL_API hl_status hl_table_writer_finish(hl_table_writer *writer);
/* Takes NULL. Without hl_table_writer_finish, the new file is discarded. */
HL_API void hl_table_writer_free(hl_table_writer *writer);
/* Write a number as in csv files: the fewest digits that read back to the same bits, as a float if single is nonzero. buffer must have 32
 * bytes. Returns the length. */
HL_API size_t hl_number_text(double value, int single, char *buffer);

#ifdef __cplusplus
}
#endif

#endif
