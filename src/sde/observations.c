/* observations.c - observations (trajectory, t, x) from tables: choice of columns, sorting and error messages. */
#include "hollow/observations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "hollow/table.h"
#include "sde/observations_choose.h"
#include "sde/sde.h"

static const char *const time_names[] = { "t", "time", NULL };
static const double days_of_a_year = 365.2425;

/* Observations as the caller sees them, and where they came from. */
typedef struct observations {
    hl_observations seen; /* first */
    hl_context *ctx;
    hl_table *table;
    char *path;
    size_t *place;  /* the table's row of each row */
    size_t *column; /* the table's column of each name; time may be HL_NO_COLUMN */
    bool snapshots; /* the rows that were not read say so */
} observations;

/* A table, and which of its columns is what. */
typedef struct sheet {
    hl_context *ctx;
    const char *path;
    const hl_observation_options *source;
    hl_table *table;
    size_t time, trajectory; /* or HL_NO_COLUMN */
    size_t *x, count;        /* x, then what is extra */
} sheet;

const char *hl_time_scan(const char *text, double *time)
{
    char *end;
    const char *stop = text && time ? hl_date_scan(text, time) : text;
    if (!text || !time)
        return NULL;
    if (stop) {
        *time = 1970 + *time / days_of_a_year;
        return stop;
    }
    *time = strtod(text, &end);
    return end != text && isfinite(*time) ? end : NULL;
}

double hl_time_days(double time)
{
    return (time - 1970) * days_of_a_year;
}

static char *copy_text(hl_context *ctx, const char *text)
{
    char *copy = hl_alloc(ctx, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* ---- opening ---- */

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
    if (strcmp(s->path, "-") == 0)
        lseek(STDIN_FILENO, 0, SEEK_SET);
    return hl_table_open(s->ctx, s->path, o, table);
}

static const char *trajectory_name(const hl_observation_options *from)
{
    return from->trajectory ? from->trajectory : "trajectory";
}

/* All arrays of an archive, if they go together; else the one that a table would be. The column `time` may hold dates, that of
 * trajectories text. */
static hl_status open_list(const sheet *s, const char *columns, const char *time, hl_table **table)
{
    const hl_observation_options *from = s->source;
    hl_table_options o = { .columns = columns,
                           .array = from->array,
                           .drop_missing = from->drop_missing,
                           .date_column = time,
                           .label_column = trajectory_name(from) };
    if (!o.array && is_archive(s->path)) {
        o.array = "*";
        hl_status status = open_from_start(s, &o, table);
        if (status == HL_OK)
            return status;
        o.array = NULL;
    }
    return open_from_start(s, &o, table);
}

/* The names of the model's columns and of those that are extra, to be freed; NULL if a comma is in one. */
static hl_status list_model(const sheet *s, char **out)
{
    const hl_observation_options *from = s->source;
    size_t dim = hl_sde_describe(from->model).dim, size = 1, used = 0;
    for (size_t i = 0; i < dim + from->extra; i++) {
        const char *name = i < dim ? hl_sde_name(from->model, i) : from->extra_names[i - dim];
        if (strchr(name, ','))
            return HL_OK;
        size += strlen(name) + 1;
    }
    char *list = *out = hl_alloc(s->ctx, size);
    for (size_t i = 0; list && i < dim + from->extra; i++)
        used += (size_t)snprintf(list + used, size - used, "%s%s", i ? "," : "",
                                 i < dim ? hl_sde_name(from->model, i) : from->extra_names[i - dim]);
    return list ? HL_OK : HL_ERR_NOMEM;
}

/* Open "trajectory,time,x" with a list for x, so that other columns may hold text; on success the columns stand in this order.
 * HL_ERR_INVALID: the file has no such columns. */
static hl_status open_chosen(sheet *s, const char *list, const char *const *times)
{
    const hl_observation_options *from = s->source;
    const char *const some[] = { trajectory_name(from), NULL, NULL };
    hl_status status = HL_ERR_INVALID;
    size_t room = strlen(list) + 600;
    char *all = hl_alloc(s->ctx, room);
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
    hl_free(s->ctx, all);
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

static hl_status no_time(const sheet *s)
{
    const char *given = s->source->time;
    hl_table *all = NULL;
    if (is_archive(s->path) && !s->source->array) { /* why do its arrays not go together? */
        hl_status status = open_from_start(s, &(hl_table_options){ .array = "*" }, &all);
        hl_table_free(all);
        if (status != HL_OK)
            return status;
    }
    return hl_fail(s->ctx, HL_ERR_INVALID, "%s: no column of times, %s%s%s; give its name with option time%s", s->path,
                   given ? "'" : "", given ? given : "t or time", given ? "'" : "",
                   s->source->unordered ? "" : ", or set option dt if rows are equally spaced in time");
}

/* x in a table of all columns: those of the list, those of the model, or all that are left. */
static hl_status assign_x(sheet *s, bool by_place)
{
    const hl_observation_options *from = s->source;
    size_t all = hl_table_columns(s->table), dim = from->model ? hl_sde_describe(from->model).dim : 0;
    if (from->columns) {
        hl_status status = hl_table_find(s->table, from->columns, s->x, &s->count);
        return status == HL_OK ? HL_OK : status;
    }
    for (size_t i = 0; from->model && i < dim + from->extra; i++) {
        const char *name = i < dim ? hl_sde_name(from->model, i) : from->extra_names[i - dim];
        size_t at = by_place ? i + (s->time == 0) : find(s->table, name);
        if (at == HL_NO_COLUMN)
            return hl_fail(s->ctx, HL_ERR_INVALID, "%s: no column '%s'%s", s->path, name,
                           i < dim ? ", which the model needs" : "");
        s->x[s->count++] = at;
    }
    for (size_t i = 0; !from->model && i < all; i++) {
        if (i == s->time || i == s->trajectory)
            continue;
        for (size_t k = 0; time_names[k]; k++)
            if (strcmp(hl_table_name(s->table, i), time_names[k]) == 0)
                return hl_fail(s->ctx, HL_ERR_INVALID,
                               "%s: column '%s' also looks like times; select the columns of x with option columns",
                               s->path, time_names[k]);
        s->x[s->count++] = i;
    }
    return s->count
               ? HL_OK
               : hl_fail(s->ctx, HL_ERR_INVALID, "%s: there are no columns for x besides the column of times", s->path);
}

/* Which column is what in a table of all columns. A table without names is t, x1, x2, ... as the model has them. */
static hl_status assign_all(sheet *s, const char *const *times)
{
    const hl_observation_options *from = s->source;
    size_t all = hl_table_columns(s->table);
    s->time = HL_NO_COLUMN;
    for (size_t i = 0; times[i] && s->time == HL_NO_COLUMN; i++)
        s->time = find_one(s->table, times[i]);
    s->trajectory = find_one(s->table, trajectory_name(from));
    if (from->trajectory && s->trajectory == HL_NO_COLUMN)
        return hl_fail(s->ctx, HL_ERR_INVALID, "%s: there is no column '%s', given by option trajectory", s->path,
                       from->trajectory);
    bool by_place = from->model && !hl_table_named(s->table) &&
                    all == hl_sde_describe(from->model).dim + from->extra + !(from->dt > 0);
    if (by_place && s->time == HL_NO_COLUMN && !(from->dt > 0))
        s->time = 0;
    if (s->time == HL_NO_COLUMN && !(from->dt > 0))
        return no_time(s);
    if (from->dt > 0 && !from->model && !from->columns && find(s->table, "t") != HL_NO_COLUMN)
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       "%s: the file has a column 't', but option dt is for rows without times; select the other "
                       "columns with option columns",
                       s->path);
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
static void name_times(const hl_observation_options *from, const char *times[4])
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

static hl_status open_sheet(sheet *s)
{
    const hl_observation_options *from = s->source;
    const char *times[4];
    if (from->dt > 0 && from->time)
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       "option dt is for rows without times and cannot be combined with option time");
    name_times(from, times);
    char *list = NULL;
    hl_status status = HL_OK;
    if (from->columns)
        status = (list = copy_text(s->ctx, from->columns)) ? HL_OK : HL_ERR_NOMEM;
    else if (from->model)
        status = list_model(s, &list);
    if (status != HL_OK)
        return status;
    status = list ? open_chosen(s, list, times) : HL_ERR_INVALID;
    if (status == HL_ERR_INVALID && list && from->times_optional)
        status = open_chosen(s, list, (const char *const[]){ NULL, NULL });
    hl_free(s->ctx, list);
    bool chosen = status == HL_OK;
    if (status == HL_ERR_INVALID && from->columns) { /* is it x that is missing, or time? */
        status = open_list(s, from->columns, NULL, &s->table);
        for (size_t i = 0; status == HL_OK && times[i]; i++)
            if (find(s->table, times[i]) != HL_NO_COLUMN)
                return hl_fail(s->ctx, HL_ERR_INVALID,
                               "option columns '%s': '%s' is the column of times; remove it from the list",
                               from->columns, times[i]);
        return status == HL_OK ? no_time(s) : status;
    }
    if (status == HL_ERR_INVALID) /* also: names with commas; the file has no names */
        status = open_all(s, times);
    if (status != HL_OK)
        return status;
    s->x = hl_calloc(s->ctx, hl_table_columns(s->table), sizeof *s->x);
    if (!s->x)
        return HL_ERR_NOMEM;
    if (!chosen)
        return assign_all(s, times);
    for (size_t i = (size_t)(s->time != HL_NO_COLUMN) + (s->trajectory != HL_NO_COLUMN); i < hl_table_columns(s->table);
         i++)
        s->x[s->count++] = i;
    return HL_OK;
}

/* ---- rows ---- */

const char *hl_observations_place(const hl_observations *seen, size_t row, size_t column, char *buffer, size_t size)
{
    const observations *rows = (const observations *)seen;
    if (size)
        *buffer = '\0';
    if (rows && row < seen->rows && (column == HL_NO_COLUMN || column <= seen->dim))
        hl_table_place(rows->table, rows->place[row], column == HL_NO_COLUMN ? column : rows->column[column], buffer,
                       size);
    return buffer;
}

static hl_status take_names(const sheet *s, observations *rows)
{
    rows->seen.dim = s->count - s->source->extra;
    rows->seen.name = hl_calloc(s->ctx, rows->seen.dim + 1, sizeof *rows->seen.name);
    rows->column = hl_calloc(s->ctx, rows->seen.dim + 1, sizeof *rows->column);
    if (!rows->seen.name || !rows->column)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i <= rows->seen.dim; i++) {
        rows->column[i] = i < rows->seen.dim ? s->x[i] : s->time;
        const char *name = rows->column[i] == HL_NO_COLUMN ? "t" : hl_table_name(s->table, rows->column[i]);
        if (strlen(name) > 255)
            return hl_fail(s->ctx, HL_ERR_INVALID, "%s: the name of column %zu has more than 255 bytes", s->path,
                           rows->column[i] + 1);
        rows->seen.name[i] = copy_text(s->ctx, name);
        if (!rows->seen.name[i])
            return HL_ERR_NOMEM;
    }
    return HL_OK;
}

/* The rows that are read, trajectory by trajectory; each keeps the file's order. */
static hl_status choose_rows(const sheet *s, observations *rows)
{
    size_t all = hl_table_rows(s->table), most = s->source->most_rows ? s->source->most_rows : all;
    hl_chosen_rows chosen;
    hl_status status =
        hl_observations_choose(s->ctx, s->table, (hl_choice_columns){ s->time, s->trajectory }, most, &chosen);
    if (status != HL_OK)
        return status;
    rows->seen.rows = chosen.count;
    rows->seen.trajectory = hl_calloc(s->ctx, rows->seen.rows, sizeof *rows->seen.trajectory);
    rows->place = hl_calloc(s->ctx, rows->seen.rows, sizeof *rows->place);
    status = rows->seen.trajectory && rows->place ? HL_OK : HL_ERR_NOMEM;
    for (size_t r = 0; status == HL_OK && r < rows->seen.rows; r++) {
        const hl_chosen_row *row = &chosen.row[r], *before = r ? row - 1 : NULL;
        rows->seen.trajectories += !before || row->trajectory != before->trajectory;
        rows->seen.trajectory[r] = rows->seen.trajectories - 1;
        rows->place[r] = row->row;
    }
    rows->seen.all_rows = all;
    rows->snapshots = chosen.snapshots;
    hl_free(s->ctx, chosen.row);
    return status;
}

static int by_place(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Take the values of row r from a line: x, then what is extra, then the time. `start` is the first row of its trajectory. */
static void take_line(const sheet *s, observations *rows, size_t r, size_t start, const double *line)
{
    size_t d = rows->seen.dim, extra = s->source->extra;
    bool path = s->trajectory == HL_NO_COLUMN; /* of which pieces may have been chosen */
    memcpy(rows->seen.x + r * d, line, d * sizeof *line);
    memcpy(rows->seen.extra + r * extra, line + d, extra * sizeof *line);
    rows->seen.t[r] =
        s->time == HL_NO_COLUMN ? s->source->dt * (double)(path ? rows->place[r] : r - start) : line[s->count];
    if (rows->seen.dates)
        rows->seen.t[r] = 1970 + rows->seen.t[r] / days_of_a_year;
}

/* Read the chosen rows in the order of the file, in chunks that skip what is not needed. */
static hl_status read_values(const sheet *s, observations *rows)
{
    enum { CHUNK = 1024 };
    size_t n = rows->seen.rows, wide = s->count + (s->time != HL_NO_COLUMN), start = 0, next = 0, number[CHUNK];
    double *lines = hl_calloc(s->ctx, CHUNK, wide * sizeof *lines);
    size_t *index = hl_calloc(s->ctx, wide, sizeof *index);
    size_t(*order)[3] = hl_calloc(s->ctx, n, sizeof *order); /* row of the file; r; the first of its trajectory */
    hl_status status = lines && index && order ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; index && i < wide; i++)
        index[i] = i < s->count ? s->x[i] : s->time;
    for (size_t r = 0; order && r < n; r++) {
        start = r && rows->seen.trajectory[r] != rows->seen.trajectory[r - 1] ? r : start;
        order[r][0] = rows->place[r];
        order[r][1] = r;
        order[r][2] = start;
    }
    if (status == HL_OK)
        qsort(order, n, sizeof *order, by_place);
    while (status == HL_OK && next < n) {
        size_t count = n - next < CHUNK ? n - next : CHUNK;
        for (size_t i = 0; i < count; i++)
            number[i] = order[next + i][0];
        status = hl_table_gather(s->table, count, number, wide, index, lines);
        for (size_t i = 0; status == HL_OK && i < count; i++)
            take_line(s, rows, order[next + i][1], order[next + i][2], lines + i * wide);
        next += count;
    }
    hl_free(s->ctx, lines);
    hl_free(s->ctx, index);
    hl_free(s->ctx, order);
    return status;
}

/* Times must rise in a trajectory; without a column of them, rows with rising times are one. */
static hl_status check_times(const sheet *s, observations *rows)
{
    bool given = s->trajectory != HL_NO_COLUMN, rising = !rows->snapshots;
    size_t back = 0; /* the first row whose time does not rise, if it was read */
    char place[400];
    rows->seen.paired = given;
    for (size_t r = 1; r < rows->seen.rows; r++) {
        bool after = rows->seen.t[r] > rows->seen.t[r - 1],
             same = rows->seen.trajectory[r] == rows->seen.trajectory[r - 1];
        back = !back && !after ? r : back;
        rising = rising && after;
        if (given && same && !after)
            return hl_fail(
                s->ctx, HL_ERR_INVALID,
                "%s: time %.10g %s in its trajectory, after %.10g; sort its rows by time, without repetitions",
                hl_observations_place(&rows->seen, r, rows->seen.dim, place, sizeof place), rows->seen.t[r],
                rows->seen.t[r] == rows->seen.t[r - 1] ? "comes twice" : "goes back", rows->seen.t[r - 1]);
    }
    if (!given && rising)
        rows->seen.paired = true;
    for (size_t r = 0; !given && !rising && r < rows->seen.rows; r++)
        rows->seen.trajectory[r] = r;
    if (!given && !rising) {
        rows->seen.trajectories = rows->seen.rows;
        rows->seen.snapshots = back;
        return hl_sde_merge_times(s->ctx, rows->seen.rows, rows->seen.t);
    }
    return HL_OK;
}

static hl_status read_sheet(const sheet *s, observations *rows)
{
    size_t least = s->source->min_rows, count = hl_table_rows(s->table);
    if (count < least)
        return hl_fail(s->ctx, HL_ERR_INVALID, "%s: the table has only %zu row%s; at least %zu are needed", s->path,
                       count, count == 1 ? "" : "s", least);
    rows->seen.dropped = hl_table_dropped(s->table);
    rows->seen.timed = s->time != HL_NO_COLUMN;
    rows->seen.dates = rows->seen.timed && hl_table_kind(s->table, s->time) == HL_COLUMN_DATES;
    hl_status status = take_names(s, rows);
    if (status == HL_OK)
        status = choose_rows(s, rows);
    if (status != HL_OK)
        return status;
    count = rows->seen.rows;
    rows->seen.t = hl_calloc(s->ctx, count, sizeof *rows->seen.t);
    rows->seen.x = hl_calloc(s->ctx, hl_size_mul(count, rows->seen.dim), sizeof *rows->seen.x);
    rows->seen.extra = hl_calloc(s->ctx, hl_size_mul(count, s->source->extra) + 1, sizeof *rows->seen.extra);
    if (!rows->seen.t || !rows->seen.x || !rows->seen.extra)
        return HL_ERR_NOMEM;
    status = read_values(s, rows);
    return status == HL_OK && !s->source->unordered ? check_times(s, rows) : status;
}

hl_status hl_observations_read(hl_context *ctx, const char *path, const hl_observation_options *options,
                               hl_observations **out)
{
    static const hl_observation_options none = { 0 };
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_observations_read: the path or the result is NULL");
    *out = NULL;
    sheet s = { ctx, path, options ? options : &none, NULL, HL_NO_COLUMN, HL_NO_COLUMN, NULL, 0 };
    observations *rows = hl_calloc(ctx, 1, sizeof *rows);
    if (!rows)
        return HL_ERR_NOMEM;
    rows->ctx = ctx;
    rows->seen.snapshots = SIZE_MAX;
    rows->path = copy_text(ctx, path);
    rows->seen.path = rows->path;
    hl_status status = rows->path ? open_sheet(&s) : HL_ERR_NOMEM;
    rows->table = s.table;
    if (status == HL_OK)
        status = read_sheet(&s, rows);
    hl_free(ctx, s.x);
    if (status == HL_OK)
        *out = &rows->seen;
    else
        hl_observations_free(&rows->seen);
    return status;
}

void hl_observations_free(hl_observations *seen)
{
    observations *rows = (observations *)seen;
    if (!rows)
        return;
    for (size_t i = 0; seen->name && i <= seen->dim; i++)
        hl_free(rows->ctx, seen->name[i]);
    void *const blocks[] = { seen->name,       seen->t,     seen->x,      seen->extra,
                             seen->trajectory, rows->place, rows->column, rows->path };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(rows->ctx, blocks[i]);
    hl_table_free(rows->table);
    hl_free(rows->ctx, rows);
}

hl_sde_observations hl_observations_rows(const hl_observations *o)
{
    if (!o)
        return (hl_sde_observations){ 0 };
    return (hl_sde_observations){
        o->rows, o->dim, o->t, o->x, o->paired ? o->trajectory : NULL, (const char *const *)o->name, o->dates
    };
}
