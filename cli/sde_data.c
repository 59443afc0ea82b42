/* sde_data.c - observations (trajectory, t, x) from tables: which columns they are, in which order, and what is wrong. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sde.h"

static const char *const time_names[] = { "t", "time", NULL };
static const double days_of_a_year = 365.2425;

/* A table, and which of its columns is what. */
typedef struct sheet {
    const cli_command *command;
    hl_context *ctx;
    const sde_source *source;
    hl_table *table;
    size_t time, trajectory; /* or HL_NO_COLUMN */
    size_t *x, count;        /* x, then what is extra */
} sheet;

bool sde_read_time(const char *text, char **end, double *time)
{
    const char *stop = hl_date_scan(text, time);
    if (stop) {
        *end = (char *)stop;
        *time = 1970 + *time / days_of_a_year;
        return true;
    }
    *time = strtod(text, end);
    return *end != text && isfinite(*time);
}

static int no_memory(const cli_command *command)
{
    return cli_fail(command, CLI_FAILED, "out of memory");
}

/* ---- opening ---- */

/* Standard input, or the descriptor of another pipe, such as <(command); -1 for files. */
static int open_pipe(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return STDIN_FILENO;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode) ? open(path, O_RDONLY) : -1;
}

/* A table is opened more than once, to find what its columns hold; a pipe can be read but once. So a pipe becomes a
 * file without a name that has all of it. */
static int keep_input(const cli_command *command, int pipe)
{
    char piece[65536];
    ssize_t count = 0;
    bool good = true;
    FILE *file = tmpfile();
    if (!file)
        return cli_fail(command, CLI_FAILED, "standard input: no temporary file can be made");
    while (good && (count = read(pipe, piece, sizeof piece)) > 0)
        good = fwrite(piece, 1, (size_t)count, file) == (size_t)count;
    good = good && count == 0 && fflush(file) == 0 && dup2(fileno(file), STDIN_FILENO) >= 0;
    fclose(file);
    if (pipe != STDIN_FILENO)
        close(pipe);
    return good ? CLI_OK : cli_fail(command, CLI_WRONG, "standard input: it cannot be read or kept");
}

static bool is_archive(const char *path)
{
    char head[2] = "";
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? NULL : fopen(path, "rb");
    size_t count = file ? fread(head, 1, 2, file) : 0;
    if (standard && pread(STDIN_FILENO, head, 2, 0) == 2)
        count = 2;
    if (file)
        fclose(file);
    return count == 2 && memcmp(head, "PK", 2) == 0;
}

static hl_status open_from_start(const sheet *s, const hl_table_options *o, hl_table **table)
{
    if (strcmp(s->source->path, "-") == 0)
        lseek(STDIN_FILENO, 0, SEEK_SET);
    return hl_table_open(s->ctx, s->source->path, o, table);
}

static const char *trajectory_name(const sde_source *from)
{
    return from->trajectory ? from->trajectory : "trajectory";
}

/* All arrays of an archive, if they go together; else the one that a table would be. The column `time` may hold dates, that of
 * trajectories text. */
static hl_status open_list(const sheet *s, const char *columns, const char *time, hl_table **table)
{
    const sde_source *from = s->source;
    hl_table_options o = { .columns = columns,
                           .array = from->array,
                           .drop_missing = from->drop,
                           .date_column = time,
                           .label_column = trajectory_name(from) };
    if (!o.array && is_archive(from->path)) {
        o.array = "*";
        hl_status status = open_from_start(s, &o, table);
        if (status == HL_OK)
            return status;
        o.array = NULL;
    }
    return open_from_start(s, &o, table);
}

/* The names of the model's columns and of those that are extra, to be freed; NULL if a comma is in one. */
static char *list_model(const sde_source *from)
{
    size_t dim = hl_sde_describe(from->model).dim, size = 1, used = 0;
    for (size_t i = 0; i < dim + from->extra; i++) {
        const char *name = i < dim ? hl_sde_name(from->model, i) : from->extra_names[i - dim];
        if (strchr(name, ','))
            return NULL;
        size += strlen(name) + 1;
    }
    char *list = malloc(size);
    for (size_t i = 0; list && i < dim + from->extra; i++)
        used += (size_t)snprintf(list + used, size - used, "%s%s", i ? "," : "",
                                 i < dim ? hl_sde_name(from->model, i) : from->extra_names[i - dim]);
    return list;
}

/* Open "trajectory,time,x" with a list for x, so that other columns may hold text; on success the columns stand in this order.
 * HL_ERR_INVALID: the file has no such columns. */
static hl_status open_chosen(sheet *s, const char *list, const char *const *times)
{
    const sde_source *from = s->source;
    const char *const some[] = { trajectory_name(from), NULL, NULL };
    hl_status status = HL_ERR_INVALID;
    size_t room = strlen(list) + 600;
    char *all = malloc(room);
    if (!all)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < (from->trajectory ? 1 : 2) && status == HL_ERR_INVALID; k++)
        for (size_t i = 0; status == HL_ERR_INVALID && (times[i] || (from->dt > 0 && i == 0)); i++) {
            if (k == 0 && from->unordered && !from->trajectory)
                break;
            snprintf(all, room, "%.250s%s%.250s%s%s", some[k] ? some[k] : "", some[k] ? "," : "",
                     times[i] ? times[i] : "", times[i] ? "," : "", list);
            status = open_list(s, all, times[i], &s->table);
            s->trajectory = some[k] ? 0 : HL_NO_COLUMN;
            s->time = times[i] ? (size_t)(some[k] != NULL) : HL_NO_COLUMN;
        }
    free(all);
    return status;
}

/* ---- which column is what ---- */

static size_t find(const hl_table *table, const char *name)
{
    for (size_t i = 0; i < hl_table_columns(table); i++)
        if (strcmp(hl_table_name(table, i), name) == 0)
            return i;
    return HL_NO_COLUMN;
}

/* A column by name, or by number from 1. */
static size_t find_one(const hl_table *table, const char *name)
{
    char *end;
    size_t at = find(table, name);
    if (at != HL_NO_COLUMN)
        return at;
    unsigned long number = strtoul(name, &end, 10);
    return number >= 1 && !*end && number <= hl_table_columns(table) ? (size_t)number - 1 : HL_NO_COLUMN;
}

static int no_time(const sheet *s)
{
    const char *given = s->source->time;
    hl_table *all = NULL;
    if (is_archive(s->source->path) && !s->source->array) { /* why do its arrays not go together? */
        hl_status status = open_from_start(s, &(hl_table_options){ .array = "*" }, &all);
        hl_table_free(all);
        if (status != HL_OK)
            return cli_fail_library(s->command, s->ctx, status);
    }
    return cli_fail(s->command, CLI_WRONG, "%s: no column of times, %s%s%s: name it by --time COL%s", s->source->path,
                    given ? "'" : "", given ? given : "t or time", given ? "'" : "",
                    s->source->unordered ? "" : ", or give --dt X if rows are equally spaced in time");
}

/* x in a table of all columns: those of the list, those of the model, or all that are left. */
static int assign_x(sheet *s, bool by_place)
{
    const sde_source *from = s->source;
    size_t all = hl_table_columns(s->table), dim = from->model ? hl_sde_describe(from->model).dim : 0;
    if (from->columns) {
        hl_status status = hl_table_find(s->table, from->columns, s->x, &s->count);
        return status == HL_OK ? CLI_OK : cli_fail_library(s->command, s->ctx, status);
    }
    for (size_t i = 0; from->model && i < dim + from->extra; i++) {
        const char *name = i < dim ? hl_sde_name(from->model, i) : from->extra_names[i - dim];
        size_t at = by_place ? i + (s->time == 0) : find(s->table, name);
        if (at == HL_NO_COLUMN)
            return cli_fail(s->command, CLI_WRONG, "%s: no column '%s'%s", from->path, name,
                            i < dim ? ", which the model needs" : "");
        s->x[s->count++] = at;
    }
    for (size_t i = 0; !from->model && i < all; i++) {
        if (i == s->time || i == s->trajectory)
            continue;
        for (size_t k = 0; time_names[k]; k++)
            if (strcmp(hl_table_name(s->table, i), time_names[k]) == 0)
                return cli_fail(s->command, CLI_WRONG,
                                "%s: column '%s' looks like times, too: choose the columns of x by --columns",
                                from->path, time_names[k]);
        s->x[s->count++] = i;
    }
    return s->count ? CLI_OK
                    : cli_fail(s->command, CLI_WRONG, "%s: no columns are left for x beside that of times", from->path);
}

/* Which column is what in a table of all columns. A table without names is t, x1, x2, ... as the model has them. */
static int assign_all(sheet *s, const char *const *times)
{
    const sde_source *from = s->source;
    size_t all = hl_table_columns(s->table);
    s->time = HL_NO_COLUMN;
    for (size_t i = 0; times[i] && s->time == HL_NO_COLUMN; i++)
        s->time = find_one(s->table, times[i]);
    s->trajectory = find_one(s->table, trajectory_name(from));
    if (from->trajectory && s->trajectory == HL_NO_COLUMN)
        return cli_fail(s->command, CLI_WRONG, "%s: no column '%s', which --trajectory names", from->path,
                        from->trajectory);
    bool by_place = from->model && !hl_table_named(s->table) &&
                    all == hl_sde_describe(from->model).dim + from->extra + !(from->dt > 0);
    if (by_place && s->time == HL_NO_COLUMN && !(from->dt > 0))
        s->time = 0;
    if (s->time == HL_NO_COLUMN && !(from->dt > 0))
        return no_time(s);
    if (from->dt > 0 && !from->model && !from->columns && find(s->table, "t") != HL_NO_COLUMN)
        return cli_fail(s->command, CLI_WRONG,
                        "%s: it has a column 't'; --dt is for rows without times: choose the others by --columns",
                        from->path);
    return assign_x(s, by_place);
}

/* All columns, with dates in that of times alone. */
static hl_status open_all(sheet *s, const char *const *times)
{
    hl_status status = open_list(s, NULL, times[0], &s->table);
    for (size_t i = 1; status == HL_ERR_FORMAT && times[i - 1] && times[i]; i++) {
        hl_table *column = NULL;
        bool there = open_list(s, times[i - 1], times[i - 1], &column) != HL_ERR_INVALID;
        hl_table_free(column);
        status = open_list(s, NULL, times[there ? i - 1 : i], &s->table); /* again, for its message */
        if (there)
            break;
    }
    return status;
}

/* The names that the column of times may have; the last is NULL. */
static void name_times(const sde_source *from, const char *times[4])
{
    size_t n = 0;
    memset(times, 0, 4 * sizeof *times);
    if (from->dt > 0 && !from->times_optional)
        return;
    if (from->time)
        times[n++] = from->time;
    else if (from->model)
        times[n++] = hl_sde_name(from->model, hl_sde_describe(from->model).dim);
    for (size_t i = 0; !from->time && time_names[i]; i++)
        times[n++] = time_names[i];
}

static int open_sheet(sheet *s)
{
    const sde_source *from = s->source;
    const char *times[4];
    if (from->dt > 0 && from->time)
        return cli_fail(s->command, CLI_WRONG, "--dt is for rows without times, and --time names a column of them");
    name_times(from, times);
    char *list = from->columns ? strdup(from->columns) : from->model ? list_model(from) : NULL;
    hl_status status = list ? open_chosen(s, list, times) : HL_ERR_INVALID;
    if (status == HL_ERR_INVALID && list && from->times_optional)
        status = open_chosen(s, list, (const char *const[]){ NULL, NULL });
    free(list);
    bool chosen = status == HL_OK;
    if (status == HL_ERR_INVALID && from->columns) { /* is it x that is missing, or time? */
        status = open_list(s, from->columns, NULL, &s->table);
        for (size_t i = 0; status == HL_OK && times[i]; i++)
            if (find(s->table, times[i]) != HL_NO_COLUMN)
                return cli_fail(s->command, CLI_WRONG,
                                "--columns '%s': '%s' is the column of times, not of x; leave it out", from->columns,
                                times[i]);
        return status == HL_OK ? no_time(s) : cli_fail_library(s->command, s->ctx, status);
    }
    if (status == HL_ERR_INVALID) /* also: names with commas; the file has no names */
        status = open_all(s, times);
    if (status != HL_OK)
        return cli_fail_library(s->command, s->ctx, status);
    s->x = calloc(hl_table_columns(s->table), sizeof *s->x);
    if (!s->x)
        return no_memory(s->command);
    if (!chosen)
        return assign_all(s, times);
    for (size_t i = (s->time != HL_NO_COLUMN) + (s->trajectory != HL_NO_COLUMN); i < hl_table_columns(s->table); i++)
        s->x[s->count++] = i;
    return CLI_OK;
}

/* ---- rows ---- */

const char *sde_place(const sde_rows *rows, size_t r, size_t name, char *buffer, size_t size)
{
    hl_table_place(rows->table, rows->place[r], name == HL_NO_COLUMN ? name : rows->column[name], buffer, size);
    return buffer;
}

static int take_names(const sheet *s, sde_rows *rows)
{
    rows->dim = s->count - s->source->extra;
    rows->name = calloc(rows->dim + 1, sizeof *rows->name);
    rows->column = calloc(rows->dim + 1, sizeof *rows->column);
    if (!rows->name || !rows->column)
        return no_memory(s->command);
    for (size_t i = 0; i <= rows->dim; i++) {
        rows->column[i] = i < rows->dim ? s->x[i] : s->time;
        const char *name = rows->column[i] == HL_NO_COLUMN ? "t" : hl_table_name(s->table, rows->column[i]);
        if (strlen(name) > 255)
            return cli_fail(s->command, CLI_WRONG, "%s: the name of column %zu has more than 255 bytes",
                            s->source->path, rows->column[i] + 1);
        rows->name[i] = strdup(name);
        if (!rows->name[i])
            return no_memory(s->command);
    }
    return CLI_OK;
}

typedef struct key {
    double trajectory;
    size_t row;
} key;

static int by_trajectory(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->trajectory != y->trajectory)
        return x->trajectory < y->trajectory ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The order of the rows, trajectory by trajectory; each keeps the file's. */
static int sort_rows(const sheet *s, sde_rows *rows)
{
    key *keys = calloc(rows->rows, sizeof *keys);
    double *ids = calloc(rows->rows, sizeof *ids);
    int result = keys && ids ? CLI_OK : no_memory(s->command);
    hl_status status = HL_OK;
    if (result == CLI_OK && s->trajectory != HL_NO_COLUMN)
        status = hl_table_read_columns(s->table, 0, rows->rows, 1, &s->trajectory, ids);
    if (status != HL_OK)
        result = cli_fail_library(s->command, s->ctx, status);
    for (size_t r = 0; result == CLI_OK && r < rows->rows; r++)
        keys[r] = (key){ ids[r], r };
    if (result == CLI_OK && s->trajectory != HL_NO_COLUMN)
        qsort(keys, rows->rows, sizeof *keys, by_trajectory);
    for (size_t r = 0; result == CLI_OK && r < rows->rows; r++) {
        rows->trajectories += r == 0 || keys[r].trajectory != keys[r - 1].trajectory;
        rows->trajectory[r] = rows->trajectories - 1;
        rows->place[r] = keys[r].row;
    }
    free(keys);
    free(ids);
    return result;
}

static int read_values(const sheet *s, sde_rows *rows)
{
    size_t d = rows->dim, extra = s->source->extra, wide = s->count + (s->time != HL_NO_COLUMN), start = 0;
    bool dates = hl_table_kind(s->table, s->time) == HL_COLUMN_DATES;
    double *all = calloc(rows->rows, wide * sizeof *all);
    size_t *index = calloc(wide, sizeof *index);
    int result = all && index ? CLI_OK : no_memory(s->command);
    for (size_t i = 0; index && i < wide; i++)
        index[i] = i < s->count ? s->x[i] : s->time;
    hl_status status = HL_OK;
    if (result == CLI_OK)
        status = hl_table_read_columns(s->table, 0, rows->rows, wide, index, all);
    if (status != HL_OK)
        result = cli_fail_library(s->command, s->ctx, status);
    for (size_t r = 0; result == CLI_OK && r < rows->rows; r++) {
        const double *line = all + rows->place[r] * wide;
        memcpy(rows->x + r * d, line, d * sizeof *line);
        memcpy(rows->extra + r * extra, line + d, extra * sizeof *line);
        if (r > 0 && rows->trajectory[r] != rows->trajectory[r - 1])
            start = r;
        rows->t[r] = s->time == HL_NO_COLUMN ? s->source->dt * (double)(r - start) : line[s->count];
        if (dates)
            rows->t[r] = 1970 + rows->t[r] / days_of_a_year;
    }
    free(all);
    free(index);
    return result;
}

/* Times must rise in a trajectory; without a column of them, rows with rising times are one. */
static int check_times(const sheet *s, sde_rows *rows)
{
    bool given = s->trajectory != HL_NO_COLUMN, rising = true;
    size_t back = 0; /* the first row whose time does not rise */
    char place[400];
    rows->paired = given;
    for (size_t r = 1; r < rows->rows; r++) {
        bool after = rows->t[r] > rows->t[r - 1], same = rows->trajectory[r] == rows->trajectory[r - 1];
        back = rising && !after ? r : back;
        rising = rising && after;
        if (given && same && !after)
            return cli_fail(s->command, CLI_WRONG, "%s: time %.10g %s in its trajectory, after %.10g",
                            sde_place(rows, r, rows->dim, place, sizeof place), rows->t[r],
                            rows->t[r] == rows->t[r - 1] ? "comes twice" : "goes back", rows->t[r - 1]);
    }
    if (!given && rising)
        rows->paired = true;
    for (size_t r = 0; !given && !rising && r < rows->rows; r++)
        rows->trajectory[r] = r;
    if (!given && !rising) {
        rows->trajectories = rows->rows;
        cli_say(s->command,
                "%s: times do not all rise, so rows are taken as snapshots; name trajectories by --trajectory COL",
                sde_place(rows, back, HL_NO_COLUMN, place, sizeof place));
    }
    return CLI_OK;
}

static void hash_values(uint64_t *hash, const void *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, (const char *)values + i * sizeof bits, sizeof bits);
        *hash = (*hash ^ bits) * 0x100000001b3ULL;
        *hash ^= *hash >> 29;
    }
}

static int read_sheet(const sheet *s, sde_rows *rows)
{
    size_t least = s->source->least;
    rows->table = s->table;
    rows->rows = hl_table_rows(s->table);
    if (rows->rows < least)
        return cli_fail(s->command, CLI_WRONG, "%s: it has only %zu row%s; at least %zu are needed", s->source->path,
                        rows->rows, rows->rows == 1 ? "" : "s", least);
    if (hl_table_dropped(s->table))
        cli_say(s->command, "%s: %zu rows with missing values are left out", s->source->path,
                hl_table_dropped(s->table));
    int result = take_names(s, rows);
    if (result != CLI_OK)
        return result;
    rows->t = calloc(rows->rows, sizeof *rows->t);
    rows->x = calloc(rows->rows * rows->dim, sizeof *rows->x);
    rows->extra = calloc(rows->rows * s->source->extra + 1, sizeof *rows->extra);
    rows->trajectory = calloc(rows->rows, sizeof *rows->trajectory);
    rows->place = calloc(rows->rows, sizeof *rows->place);
    if (!rows->t || !rows->x || !rows->extra || !rows->trajectory || !rows->place)
        return no_memory(s->command);
    result = sort_rows(s, rows);
    if (result == CLI_OK)
        result = read_values(s, rows);
    if (result == CLI_OK && !s->source->unordered)
        result = check_times(s, rows);
    hash_values(&rows->hash, rows->t, rows->rows);
    hash_values(&rows->hash, rows->x, rows->rows * rows->dim);
    for (size_t r = 0; r < rows->rows; r++)
        hash_values(&rows->hash, &(uint64_t){ rows->trajectory[r] }, 1);
    return result;
}

int sde_read(const cli_command *command, hl_context *ctx, const sde_source *source, sde_rows *rows)
{
    sheet s = { .command = command, .ctx = ctx, .source = source, .time = HL_NO_COLUMN, .trajectory = HL_NO_COLUMN };
    *rows = (sde_rows){ 0 };
    sde_source standard = *source;
    int result = CLI_OK, pipe = open_pipe(source->path);
    if (pipe >= 0) {
        result = keep_input(command, pipe);
        standard.path = "-";
        s.source = &standard;
    }
    if (result == CLI_OK)
        result = open_sheet(&s);
    rows->table = s.table;
    if (result == CLI_OK)
        result = read_sheet(&s, rows);
    free(s.x);
    return result;
}

void sde_rows_free(sde_rows *rows)
{
    for (size_t i = 0; rows->name && i <= rows->dim; i++)
        free(rows->name[i]);
    void *const blocks[] = { rows->name, rows->column, rows->t, rows->x, rows->extra, rows->trajectory, rows->place };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    hl_table_free(rows->table);
}
