/* sde_records.h - results as lines of JSON that a later run of the benchmark finds again. */
#ifndef BENCH_SDE_RECORDS_H
#define BENCH_SDE_RECORDS_H

#include "program/program.h"

typedef struct sde_records {
    const char *directory, *name; /* directory NULL: lines go to stdout only */
    bool quiet;                   /* no lines to stdout */
    size_t count, capacity;
    char **line;
} sde_records;

/* Reads DIRECTORY/NAME.jsonl if it is there. Returns CLI_OK or an exit status. */
int sde_records_open(sde_records *r, const char *directory, const char *name);
/* The lines of another file of the directory, which stay in it, beside those of r. */
int sde_records_join(sde_records *r, const char *name);
void sde_records_free(sde_records *r);
/* The text of a member, without quotes, to `text`; false if the line has none, or null. */
bool sde_record_text(const char *line, const char *key, char *text, size_t size);
/* NaN if there is none. */
double sde_record_real(const char *line, const char *key);
/* The line with these texts of `keys` (ends with NULL), or NULL. */
const char *sde_records_find(const sde_records *r, const char *const *keys, const char *const *values);
/* Adds a line: to stdout, to the file and to the records. Returns CLI_OK or an exit status. */
int sde_records_add(sde_records *r, char *line);

/* A table DIRECTORY/NAME.md, written by `print`; nothing without a directory. */
int sde_records_print(const sde_records *r, const char *name, void (*print)(const sde_records *r, FILE *file));

#endif
