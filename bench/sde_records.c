/* sde_records.c - a file of JSON lines: read, looked up by members, appended to. The lines are those that cli_json writes, with texts
 * that need no escapes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "sde_records.h"

static int fail(const sde_records *r, int error)
{
    return cli_fail(&bench_command, CLI_FAILED, "%s/%s: %s", r->directory, r->name, strerror(error));
}

static FILE *open_file(const sde_records *r, const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.jsonl", r->directory, name);
    return fopen(path, mode);
}

/* Takes the line. */
static int keep(sde_records *r, char *line)
{
    if (r->count == r->capacity) {
        size_t capacity = 2 * r->capacity + 64;
        char **more = realloc(r->line, capacity * sizeof *more);
        if (!more) {
            free(line);
            return cli_fail_library(&bench_command, NULL, HL_ERR_NOMEM);
        }
        r->line = more;
        r->capacity = capacity;
    }
    r->line[r->count++] = line;
    return CLI_OK;
}

int sde_records_open(sde_records *r, const char *directory, const char *name)
{
    *r = (sde_records){ .directory = directory, .name = name };
    int error = directory ? cli_make_directory(directory) : 0;
    return error ? fail(r, error) : sde_records_join(r, name);
}

int sde_records_join(sde_records *r, const char *name)
{
    int result = CLI_OK;
    FILE *file = r->directory ? open_file(r, name, "r") : NULL;
    if (!file)
        return r->directory && errno != ENOENT ? fail(r, errno) : CLI_OK;
    char *line = NULL;
    size_t room = 0;
    while (result == CLI_OK && getline(&line, &room, file) > 0) {
        result = keep(r, line);
        line = NULL;
        room = 0;
    }
    free(line);
    fclose(file);
    return result;
}

void sde_records_free(sde_records *r)
{
    for (size_t k = 0; k < r->count; k++)
        free(r->line[k]);
    free(r->line);
    *r = (sde_records){ 0 };
}

bool sde_record_text(const char *line, const char *key, char *text, size_t size)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    const char *at = strstr(line, wanted);
    if (!at)
        return false;
    at += strlen(wanted);
    bool quoted = *at == '"';
    at += quoted;
    snprintf(text, size, "%.*s", (int)strcspn(at, quoted ? "\"" : ",}"), at);
    return quoted || strcmp(text, "null") != 0;
}

double sde_record_real(const char *line, const char *key)
{
    char text[40];
    return sde_record_text(line, key, text, sizeof text) ? strtod(text, NULL) : NAN;
}

const char *sde_records_find(const sde_records *r, const char *const *keys, const char *const *values)
{
    char text[80];
    for (size_t n = 0; n < r->count; n++) {
        bool same = true;
        for (size_t k = 0; keys[k] && same; k++)
            same = sde_record_text(r->line[n], keys[k], text, sizeof text) && strcmp(text, values[k]) == 0;
        if (same)
            return r->line[n];
    }
    return NULL;
}

int sde_records_add(sde_records *r, char *line)
{
    if (!r->quiet)
        fputs(line, stdout);
    fflush(stdout);
    FILE *file = r->directory ? open_file(r, r->name, "a") : NULL;
    int error = r->directory && !file ? errno : 0;
    if (file && (fputs(line, file) < 0 || fflush(file) != 0))
        error = errno;
    if (file && fclose(file) != 0 && !error)
        error = errno;
    int result = keep(r, line);
    return error ? fail(r, error) : result;
}

int sde_records_print(const sde_records *r, const char *name, void (*print)(const sde_records *r, FILE *file))
{
    cli_file file = { 0 };
    if (!r->directory)
        return CLI_OK;
    int error = cli_file_open(&file, r->directory, name);
    if (!error) {
        print(r, file.stream);
        error = cli_file_keep(&file);
    }
    cli_file_drop(&file);
    return error ? fail(r, error) : CLI_OK;
}
