/* density_fit_atoms.c - tables with atoms: columns in which one value, as the zero of a zero-inflated column, has a share of the rows of its own.
 *
 * Rows are sorted by pattern, which says which columns are at their atoms. The other columns of a pattern get a model by
 * hl_density_fit, without a flow if the pattern has fewer than FLOW_ROWS rows. Where these rows are few for their columns, rows of other patterns
 * help, all that have these columns: the model is then fitted to both, with a context that tells them apart. (525 rows of MiniBooNE at their atom, in 42 other
 * columns, alone had 33 nats, where the others had 12.) Of the rarest patterns, and of those that cannot be fitted, the
 * columns are independent, each with the density of its own values that are not atoms. Maps and probabilities see training rows only. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/linear.h"
#include "base/ranks.h"
#include "learn/density_atoms.h"
#include "learn/density_fit.h"

enum {
    LEAST_ROWS = 10,
    FLOW_ROWS = 500,
    PATTERN_ROWS = 20,
    ALONE_ROWS = 2000,
    MAP_ROWS = 40,
    MAP_PARTS = 8,
    FINDINGS = 64
};
enum { STREAM_STEPS = 46 }; /* of random numbers */
enum { MOST_PATTERNS = 12 /* that are fitted */, ROWS_PER_COLUMN = 50 };
static const double RARE_SHARE = 0.05; /* of the rows, in patterns that are not */
static const double LARGE_SHARE = 0.2, LEAST_SHARE = 0.02,
                    SECOND = 0.2; /* of the rows; of an atom's rows, what the next value may have */

/* ---- which atoms ---- */

/* The most frequent value of a column, if it stands out: the rows that have it, else 0. All values are sorted in `work`. Its rows are taken from
 * those that the other columns of the table, `stride` in all, are learnt from: with fewer than ROWS_PER_COLUMN for each of them it must have a large share. (MiniBooNE, with an atom of
 * 9 % and 12 rows for each column, had 13.42 nats with and 12.55 without it, in half of the time.) */
static size_t find_atom(size_t rows, const double *at, size_t stride, double *work, double *value)
{
    size_t most = 0, second = 0;
    bool whole = true;
    for (size_t r = 0; r < rows; r++) {
        work[r] = at[r * stride];
        whole = whole && work[r] == floor(work[r]);
    }
    hl_sort(work, rows);
    for (size_t i = 0, end; i < rows && !whole; i = end) { /* whole numbers are dequantised */
        for (end = i + 1; end < rows && work[end] == work[i];)
            end++;
        second = end - i > most ? most : end - i > second ? end - i : second;
        if (end - i > most) {
            most = end - i;
            *value = work[i];
        }
    }
    bool constant = most == rows, apart = (double)second < SECOND * (double)most;
    bool many = most >= ROWS_PER_COLUMN * (stride - 1) && (double)most > LEAST_SHARE * (double)rows;
    many = many || (double)most >= LARGE_SHARE * (double)rows;
    return !constant && apart && most >= LEAST_ROWS && many ? most : 0;
}

typedef struct candidate {
    size_t column, rows;
    double value;
} candidate;

/* Does the candidate leave patterns that can be fitted? Then it is bit `bit` of the rows' patterns. The first one always does. */
static bool join_patterns(const hl_density_rows *rows, size_t dim, const candidate *c, size_t bit, uint32_t *mask,
                          double *work)
{
    size_t rare = 0, frequent = 0;
    for (size_t r = 0; r < rows->rows; r++) {
        mask[r] |= rows->x[r * dim + c->column] == c->value ? (uint32_t)1 << bit : 0;
        work[r] = mask[r];
    }
    hl_sort(work, rows->rows);
    for (size_t i = 0, end; i < rows->rows; i = end) {
        for (end = i + 1; end < rows->rows && work[end] == work[i];)
            end++;
        rare += end - i < PATTERN_ROWS ? end - i : 0;
        frequent += end - i >= PATTERN_ROWS;
    }
    bool good = bit == 0 || ((double)rare <= RARE_SHARE * (double)rows->rows && frequent <= MOST_PATTERNS);
    for (size_t r = 0; r < rows->rows && !good; r++)
        mask[r] &= ~((uint32_t)1 << bit);
    return good;
}

/* Columns become atoms in the order of their shares, as long as the patterns can be fitted; the others are columns with ties. */
static hl_status choose_atoms(hl_context *ctx, const hl_density_rows *rows, size_t dim, size_t count, candidate *c,
                              struct hl_density_atoms *a)
{
    double *work = hl_calloc(ctx, rows->rows, sizeof *work);
    uint32_t *mask = hl_calloc(ctx, rows->rows, sizeof *mask);
    bool good = work && mask;
    for (size_t i = 0; i < count && good; i++)
        for (size_t k = i; k > 0 && c[k].rows > c[k - 1].rows; k--) {
            candidate keep = c[k];
            c[k] = c[k - 1];
            c[k - 1] = keep;
        }
    for (size_t i = 0; i < count && good && a->count < HL_ATOMS; i++) {
        if (!join_patterns(rows, dim, &c[i], a->count, mask, work))
            continue;
        size_t k = a->count++; /* in the order of columns */
        for (; k > 0 && a->column[k - 1] > c[i].column; k--) {
            a->column[k] = a->column[k - 1];
            a->value[k] = a->value[k - 1];
        }
        a->column[k] = c[i].column;
        a->value[k] = c[i].value;
    }
    hl_free(ctx, work);
    hl_free(ctx, mask);
    return good ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_fit_find_atoms(hl_context *ctx, const hl_density_data *data, const hl_settings *settings,
                            struct hl_density_atoms **out)
{
    const hl_density_rows *rows = &data->train;
    const char *wish = hl_settings_text(settings, "atoms");
    *out = NULL;
    if (data->context || rows->weights || !rows->x || rows->rows < 2 * LEAST_ROWS || (wish && strcmp(wish, "off") == 0))
        return HL_OK;
    for (size_t i = 0; i < rows->rows * data->dim; i++)
        if (!isfinite(rows->x[i]))
            return HL_OK; /* which the fit will tell */
    double *work = hl_calloc(ctx, rows->rows, sizeof *work);
    candidate *c = hl_calloc(ctx, data->dim, sizeof *c);
    struct hl_density_atoms *a = hl_calloc(ctx, 1, sizeof *a);
    hl_status status = work && c && a ? HL_OK : HL_ERR_NOMEM;
    size_t count = 0;
    bool constant = false;
    for (size_t i = 0; i < data->dim && status == HL_OK && !constant; i++) {
        c[count].column = i;
        c[count].rows = find_atom(rows->rows, rows->x + i, data->dim, work, &c[count].value);
        count += c[count].rows > 0;
        constant =
            work[0] == work[rows->rows - 1]; /* find_atom has sorted them; the fit without atoms refuses the table */
    }
    if (status == HL_OK && count && !constant)
        status = choose_atoms(ctx, rows, data->dim, count, c, a);
    hl_free(ctx, work);
    hl_free(ctx, c);
    if (status != HL_OK || !a->count)
        hl_atoms_free(ctx, a);
    else
        *out = a;
    return status;
}

/* ---- patterns ---- */

/* Rows of one pattern, without the columns that are at their atoms. */
typedef struct part {
    hl_density_rows train, valid;
    size_t own, own_valid; /* rows of the pattern itself */
    double *block;         /* train.x, valid.x, then their contexts */
    size_t rest, *columns;
    bool helped;  /* there are rows of other patterns, and a context */
    bool indexed; /* its own training rows are read by the index of a streamed table, not taken from the sample */
    const char **names;
    hl_density_outcome *outcome;
    hl_fit_pattern_rows rows; /* of a streamed table ... */
    hl_row_source source;     /* ... and of a pattern that is streamed in turn; else it has no function to read */
} part;

typedef struct job {
    hl_context *ctx;
    const hl_density_data *data;
    const hl_settings *settings;
    const hl_job *job;
    hl_density *model;
    part *part;               /* one for each pattern */
    hl_fit_patterns patterns; /* of a streamed table */
    hl_density_outcome whole;
    hl_finding finding[FINDINGS];
    bool started;
    const part *current;
} job;

static hl_status count_patterns(job *j)
{
    const hl_density_rows *rows = &j->data->train;
    struct hl_density_atoms *a = j->model->atoms;
    size_t room = 0;
    for (size_t r = 0; r < rows->rows; r++) {
        uint32_t mask = hl_atoms_mask(a, rows->x + r * j->data->dim);
        size_t k = hl_atoms_find(a, mask);
        if (k == a->patterns) {
            hl_status status = hl_grow(j->ctx, (void **)&a->pattern, &room, a->patterns + 1, sizeof *a->pattern);
            if (status != HL_OK)
                return status;
            a->pattern[a->patterns++] = (hl_atom_pattern){ .mask = mask };
        }
        a->pattern[k].rows++;
    }
    for (size_t i = 1; i < a->patterns; i++) /* most frequent first */
        for (size_t k = i; k > 0 && a->pattern[k].rows > a->pattern[k - 1].rows; k--) {
            hl_atom_pattern keep = a->pattern[k];
            a->pattern[k] = a->pattern[k - 1];
            a->pattern[k - 1] = keep;
        }
    hl_atoms_prepare(a);
    return HL_OK;
}

/* Copy the rows of a pattern, unless they come from the index of a streamed table, and, if it is helped, of others that are at no other atoms;
 * returns how many. */
static size_t take_rows(const job *j, const part *p, uint32_t mask, const hl_density_rows *from, double *to,
                        double *context)
{
    bool indexed = p->indexed && from == &j->data->train;
    size_t found = 0;
    for (size_t r = 0; r < from->rows && (p->helped || !indexed); r++) {
        const double *row = from->x + r * j->data->dim;
        uint32_t own = hl_atoms_mask(j->model->atoms, row);
        if (own == mask ? indexed : !(p->helped && (own & ~mask) == 0))
            continue;
        if (context)
            context[found] = own == mask ? HL_ATOMS_OWN : 0;
        for (size_t i = 0; to && i < p->rest; i++)
            to[found * p->rest + i] = row[p->columns[i]];
        found++;
    }
    return found;
}

/* A pattern of a streamed table: its rows are read by the index if they are few enough to be held; else they are streamed, and the sample
 * has some of them. Returns how many are to be read. */
static size_t index_part(job *j, part *p, size_t k)
{
    size_t own = hl_fit_patterns_rows(&j->patterns, k);
    p->rows = (hl_fit_pattern_rows){ &j->patterns, k, p->rest, p->columns };
    p->indexed = !p->rest || own <= hl_density_sample_rows(p->rest);
    if (!p->indexed)
        p->source = (hl_row_source){ .rows = own, .read = hl_fit_pattern_read, .user = &p->rows };
    return p->indexed && p->rest ? own : 0;
}

static hl_status read_indexed(job *j, part *p, size_t count, double *x, double *context)
{
    size_t *row = hl_calloc(j->ctx, count, sizeof *row);
    for (size_t r = 0; row && r < count; r++) {
        row[r] = r;
        context[r] = HL_ATOMS_OWN;
    }
    hl_status status = row ? hl_fit_pattern_read(count, row, x, NULL, NULL, &p->rows) : HL_ERR_NOMEM;
    hl_free(j->ctx, row);
    return status;
}

static hl_status fill_part(job *j, part *p, size_t k)
{
    uint32_t mask = j->model->atoms->pattern[k].mask;
    size_t dim = j->data->dim;
    p->columns = hl_calloc(j->ctx, dim, sizeof *p->columns);
    p->names = hl_calloc(j->ctx, dim + 1, sizeof *p->names);
    if (!p->columns || !p->names)
        return HL_ERR_NOMEM;
    p->rest = hl_atoms_rest(j->model, mask, p->columns);
    for (size_t i = 0; i < p->rest; i++)
        p->names[i] = j->model->column[p->columns[i]].name;
    p->names[p->rest] = "pattern";
    size_t read = j->patterns.stream ? index_part(j, p, k) : 0; /* of its own rows, before those of the sample */
    p->own =
        j->patterns.stream ? hl_fit_patterns_rows(&j->patterns, k) : take_rows(j, p, mask, &j->data->train, NULL, NULL);
    p->own_valid = take_rows(j, p, mask, &j->data->valid, NULL, NULL);
    p->helped = p->own >= PATTERN_ROWS && p->own < ALONE_ROWS;
    p->train.rows = read + take_rows(j, p, mask, &j->data->train, NULL, NULL);
    p->valid.rows = take_rows(j, p, mask, &j->data->valid, NULL, NULL);
    p->helped = p->helped && p->train.rows > p->own; /* else there are no others */
    p->block = hl_calloc(j->ctx, hl_size_mul(p->train.rows + p->valid.rows, p->rest + 1), sizeof *p->block);
    if (!p->block)
        return HL_ERR_NOMEM;
    double *valid = p->block + p->train.rows * p->rest, *context = valid + p->valid.rows * p->rest;
    take_rows(j, p, mask, &j->data->train, p->block + read * p->rest, context + read);
    take_rows(j, p, mask, &j->data->valid, valid, context + p->train.rows);
    p->train.x = p->block;
    p->valid.x = valid;
    p->train.context = p->helped ? context : NULL;
    p->valid.context = p->helped ? context + p->train.rows : NULL;
    return read ? read_indexed(j, p, read, p->block, context) : HL_OK;
}

/* ---- columns by themselves ---- */

/* Whole numbers and few values on a grid get uniform noise of a step's width, as in a table without atoms, and so, if the settings say it, do values of which more than
 * half are repetitions. The grid of the values is `grid`. Returns the width, or 0. */
static double dequantize(const job *j, size_t c, size_t rows, double *x, double *work, hl_column_form *grid)
{
    bool whole = true, all = hl_settings_flag(j->settings, "dequantize", false);
    uint64_t seed = hl_settings_integer(j->settings, "seed", 0);
    size_t distinct = 0, tied = 0;
    *grid = hl_column_grid(rows, x, 1, work);
    for (size_t r = 0; r < rows; r++) {
        work[r] = x[r];
        whole = whole && x[r] == floor(x[r]);
    }
    hl_sort(work, rows);
    for (size_t i = 0, end; i < rows; i = end, distinct++) {
        for (end = i + 1; end < rows && work[end] == work[i];)
            end++;
        tied += end - i > 1 ? end - i : 0;
    }
    if (whole && !(grid->step > 0))
        grid->step = 1;
    bool steps = whole || (grid->step > 0 && hl_fit_is_graded(rows, distinct));
    if (!(steps && (all || !hl_settings_flag(j->settings, "keep-steps", false))) && !(all && 2 * tied > rows))
        return 0;
    double width = grid->step > 0 ? grid->step : (work[rows - 1] - work[0]) / (double)(distinct > 1 ? distinct - 1 : 1);
    for (size_t r = 0; r < rows; r++)
        x[r] += width * (hl_random_uniform(seed, STREAM_STEPS, r * j->data->dim + c) - 0.5);
    return width;
}

/* Form and map of a column, from its `rows` values that are not the atom; these are changed. */
static hl_status fit_column(job *j, size_t c, size_t rows, double *x, double *work)
{
    hl_column_form *form = &j->model->form[c], given = *form, grid;
    hl_column_fold fold = { .rows = rows, .stride = 1, .x = x };
    size_t parts = 1;
    hl_status status = HL_OK;
    if (rows < 2) { /* any density will do */
        status = hl_column_map_create(j->ctx, 0, &j->model->map[c]);
        if (status == HL_OK && rows)
            j->model->map[c]->centre = x[0];
        return status;
    }
    double out = dequantize(j, c, rows, x, work, &grid) / 2;
    status = hl_column_form_choose(j->ctx, rows, x, 1, given.low - out, given.high + out, form);
    form->step = grid.step;
    form->origin = grid.origin;
    form->least = grid.least;
    form->most = grid.most;
    double *v = work + rows;
    for (size_t r = 0; r < rows && status == HL_OK; r++)
        v[r] = hl_column_form_forward(form, x[r], NULL, NULL);
    double floor = hl_column_tie_width(rows, v, 1, work);
    fold.x = v;
    if (status == HL_OK && rows >= MAP_ROWS) {
        hl_column_fold judged = fold;
        judged.held_rows = rows / 5;
        judged.rows = rows - judged.held_rows;
        judged.held = v + judged.rows;
        status = hl_column_map_choose(j->ctx, 1, &judged, MAP_PARTS, floor, &parts);
    }
    return status == HL_OK ? hl_column_map_fit(j->ctx, &fold, parts, floor, &j->model->map[c]) : status;
}

static hl_status fit_columns(job *j)
{
    const hl_density_rows *rows = &j->data->train;
    const struct hl_density_atoms *a = j->model->atoms;
    size_t dim = j->data->dim;
    double *x = hl_calloc(j->ctx, hl_size_mul(3, rows->rows), sizeof *x);
    j->model->map = hl_calloc(j->ctx, dim, sizeof(hl_column_map *));
    hl_status status = x && j->model->map ? HL_OK : HL_ERR_NOMEM;
    for (size_t c = 0, i = 0; c < dim && status == HL_OK; c++) {
        bool atom = i < a->count && a->column[i] == c;
        size_t count = 0;
        for (size_t r = 0; r < rows->rows; r++)
            if (!atom || rows->x[r * dim + c] != a->value[i])
                x[count++] = rows->x[r * dim + c];
        status = fit_column(j, c, count, x, x + rows->rows);
        i += atom;
    }
    hl_free(j->ctx, x);
    return status;
}

/* ---- fits of patterns ---- */

/* Findings of a part are those of the table. */
static void add_findings(job *j, const part *p, const hl_density_outcome *o)
{
    for (size_t i = 0; i < o->findings && j->whole.findings < FINDINGS; i++) {
        hl_finding f = o->finding[i];
        if (f.column >= p->rest || f.kind == HL_FINDING_FAR)
            continue; /* of the context, or of all rows of this part, or found already */
        f.column = p->columns[f.column];
        for (size_t k = 0; f.kind == HL_FINDING_DEPENDENT && k < f.count && k < HL_FINDING_OTHERS; k++)
            f.others[k] = p->columns[f.others[k]];
        j->finding[j->whole.findings++] = f;
    }
}

static int report(const void *seen, void *user)
{
    job *j = user;
    hl_density_progress p = *(const hl_density_progress *)seen;
    if (p.phase == HL_FIT_START && !j->started) {
        if (p.so_far)
            add_findings(j, j->current, p.so_far);
        j->started = true;
    } else if (p.phase == HL_FIT_START) {
        p.phase = HL_FIT_MIXING;
    }
    p.so_far = &j->whole;
    return j->job && j->job->progress && j->job->progress(&p, j->job->user) != 0;
}

/* The bounds of the columns that a part has. */
static hl_status filter_bounds(hl_context *ctx, const part *p, const char *text, hl_settings *to)
{
    size_t used = 0;
    char *kept = hl_calloc(ctx, text ? strlen(text) + 1 : 1, 1);
    if (!kept)
        return HL_ERR_NOMEM;
    for (const char *item = text; item && *item;) {
        const char *comma = strchr(item, ','), *end = comma ? comma : item + strlen(item);
        size_t size = (size_t)(end - item), name = size;
        while (name > 0 && item[name] != '=') /* the last one: names may have it, too */
            name--;
        for (size_t i = 0; i < p->rest; i++)
            if (strlen(p->names[i]) == name && memcmp(item, p->names[i], name) == 0) {
                if (used)
                    kept[used++] = ',';
                memcpy(kept + used, item, size);
                used += size;
            }
        item = comma ? comma + 1 : NULL;
    }
    hl_status status = hl_settings_set(to, "bounds", used ? kept : NULL);
    hl_free(ctx, kept);
    return status;
}

static hl_status copy_settings(const job *j, const part *p, hl_settings **out)
{
    hl_status status = hl_settings_create(j->ctx, hl_density_fit_options(), out);
    for (const hl_option *o = hl_density_fit_options(); o->name && status == HL_OK; o++) {
        const char *text = hl_settings_text(j->settings, o->name);
        status = text ? hl_settings_set(*out, o->name, text) : HL_OK;
    }
    if (status == HL_OK)
        status = filter_bounds(j->ctx, p, hl_settings_text(j->settings, "bounds"), *out);
    const char *members = hl_settings_text(j->settings, "members");
    if (status == HL_OK && p->own < FLOW_ROWS && !(members && strcmp(members, "flow") == 0))
        status = hl_settings_set(*out, "members", "mixture");
    return status;
}

/* A column is constant, or nearly so, in the rows of a pattern. */
static bool cannot_be_modelled(const hl_density_outcome *o)
{
    for (size_t i = 0; o && i < o->findings; i++)
        if (o->finding[i].kind == HL_FINDING_CONSTANT || o->finding[i].kind == HL_FINDING_SCALE)
            return true;
    return false;
}

static hl_status fit_pattern(job *j, part *p, hl_density **rest)
{
    hl_settings *settings = NULL;
    hl_density_data data = {
        .dim = p->rest, .context = p->helped, .names = p->names, .train = p->train, .valid = p->valid
    };
    hl_job own = { .progress = report, .user = j };
    hl_fit_stream stream = { .ctx = j->ctx };
    hl_density_data sample = data;
    hl_status status = copy_settings(j, p, &settings);
    j->current = p;
    data.source = p->source.read ? &p->source : NULL;
    if (status == HL_OK && data.source)
        status = hl_ranks_agree(j->ctx, hl_fit_stream_sample(j->ctx, &data, settings, &stream, &sample));
    if (status == HL_OK)
        status = hl_fit_one(j->ctx, &sample, settings, &own, stream.streamed ? &stream : NULL, rest, &p->outcome);
    hl_fit_stream_free(&stream);
    hl_settings_free(settings);
    return status == HL_ERR_INVALID && cannot_be_modelled(p->outcome) ? HL_OK
                                                                      : status; /* independent columns will do */
}

/* ---- all of it ---- */

static hl_status create_model(job *j, struct hl_density_atoms *atoms)
{
    size_t dim = j->data->dim;
    hl_density_column *columns = hl_calloc(j->ctx, dim, sizeof *columns);
    hl_fit_table table = { .ctx = j->ctx, .dim = dim, .column = columns };
    char(*names)[24] = hl_calloc(j->ctx, dim, sizeof *names);
    hl_status status = columns && names ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < dim && status == HL_OK; i++) {
        double n = (double)j->data->train.rows, mean = 0, square = 0;
        snprintf(names[i], sizeof *names, "x%zu", i + 1);
        for (size_t r = 0; r < j->data->train.rows; r++)
            mean += j->data->train.x[r * dim + i] / n;
        for (size_t r = 0; r < j->data->train.rows; r++)
            square += pow(j->data->train.x[r * dim + i] - mean, 2) / n;
        columns[i] =
            (hl_density_column){ j->data->names ? j->data->names[i] : names[i], mean, square > 0 ? sqrt(square) : 1 };
    }
    if (status == HL_OK)
        status = hl_fit_read_bounds(&table, j->data, hl_settings_text(j->settings, "bounds"));
    if (status == HL_OK)
        status = hl_density_create_columns(j->ctx, dim, 0, columns, &j->model);
    if (status == HL_OK)
        status = hl_density_set_forms(j->model, table.form);
    if (j->model)
        j->model->atoms = atoms;
    else
        hl_atoms_free(j->ctx, atoms);
    hl_free(j->ctx, table.form);
    hl_free(j->ctx, columns);
    hl_free(j->ctx, names);
    return status;
}

/* Rows of a pattern that validate: those that were given, or the share that is split off. */
static size_t held_rows(const job *j, const part *p)
{
    double share = hl_settings_real(j->settings, "validation-share", 0.1);
    size_t split = p->source.read ? hl_density_sample_rows(p->rest) : p->own;
    return p->own_valid ? p->own_valid : (size_t)(share * (double)split);
}

/* Mean -log p of the parts, by their shares, and what else is known of all. */
static void conclude(job *j)
{
    const struct hl_density_atoms *a = j->model->atoms;
    hl_density_outcome *o = &j->whole;
    double best = 0;
    o->valid_rows = 0;
    for (size_t k = 0; k < a->patterns; k++) {
        const part *p = &j->part[k];
        double own = 0, share = a->pattern[k].rows / a->rows;
        if (a->pattern[k].rest) {
            own = p->outcome->best; /* of all rows that it was fitted to: the split does not know patterns */
            o->valid_rows += p->helped ? held_rows(j, p) : p->outcome->valid_rows;
            o->parameters += p->outcome->parameters;
        }
        for (size_t r = 0; r < p->train.rows && !a->pattern[k].rest; r++) {
            for (size_t i = 0; i < p->rest; i++) /* a row as the model has it, in the room of the forms */
                j->model->formed[p->columns[i]] = p->block[r * p->rest + i];
            own -= hl_atoms_independent(j->model, a->pattern[k].mask, j->model->formed) / (double)p->train.rows;
        }
        best += share * (own - log(hl_atoms_probability(a, a->pattern[k].mask)));
    }
    o->best = o->valid_rows ? best : NAN; /* of training rows alone it says nothing */
    o->verdict = HL_DENSITY_GOOD;
}

static bool is_frequent(const part *p)
{
    return p->own >= PATTERN_ROWS && p->rest;
}

/* Rows that the fits of the patterns will leave for validation, before they are made. */
static void count_rows(job *j)
{
    for (size_t k = 0; k < j->model->atoms->patterns; k++) {
        const part *p = &j->part[k];
        if (!is_frequent(p))
            continue;
        j->whole.train_rows -= p->own_valid ? 0 : held_rows(j, p);
        j->whole.valid_rows += held_rows(j, p);
    }
}

static hl_status fit_patterns(job *j)
{
    struct hl_density_atoms *a = j->model->atoms;
    hl_status status = HL_OK;
    j->part = hl_calloc(j->ctx, a->patterns, sizeof *j->part);
    if (!j->part)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < a->patterns && status == HL_OK;
         k++) /* all at once: the data are borrowed until the first report */
        status = fill_part(j, &j->part[k], k);
    if (j->patterns.stream)
        status = hl_ranks_agree(j->ctx, status);
    if (status == HL_OK)
        status = fit_columns(j);
    count_rows(j);
    for (size_t k = 0; k < a->patterns && status == HL_OK; k++)
        if (is_frequent(&j->part[k]))
            status = fit_pattern(j, &j->part[k], &a->pattern[k].rest);
    hl_density_progress all = {
        .phase = HL_FIT_START, .loss = NAN, .validation = NAN, .best = NAN, .validation_fixed = NAN
    };
    if (status == HL_OK && !j->started && report(&all, j)) /* no pattern had a fit that would tell */
        status = HL_STOPPED;
    return status;
}

/* Atoms, copies, and values far from the others, by their rows in the table. */
static hl_status find_all(job *j, const hl_fit_stream *stream, const struct hl_density_atoms *atoms)
{
    const hl_density_rows *rows = &j->data->train;
    size_t dim = j->data->dim;
    for (size_t i = 0; i < atoms->count; i++) {
        hl_finding f = { .kind = HL_FINDING_ATOM, .column = atoms->column[i], .value = atoms->value[i] };
        for (size_t r = 0; r < rows->rows; r++)
            f.count += rows->x[r * dim + f.column] == f.value;
        j->finding[j->whole.findings++] = f;
    }
    hl_fit_table table = {
        .ctx = j->ctx, .stream = stream, .dim = dim, .train = { .rows = rows->rows, .x = (double *)rows->x }
    };
    hl_status status = hl_fit_tell_copies(&table);
    if (status == HL_OK)
        status = hl_fit_check_far(&table);
    for (size_t i = 0; i < table.findings && j->whole.findings < FINDINGS; i++)
        j->finding[j->whole.findings++] = table.finding[i];
    hl_free(j->ctx, table.finding);
    return status;
}

/* The patterns of all rows of a streamed table, and how many rows are at each atom. */
static hl_status index_patterns(job *j, const hl_fit_stream *stream)
{
    struct hl_density_atoms *a = j->model->atoms;
    hl_status status = hl_fit_patterns_make(&j->patterns, stream, a);
    for (size_t i = 0; i < a->count && status == HL_OK;
         i++) { /* these findings came first, in the order of the atoms */
        j->finding[i].count = 0;
        for (size_t k = 0; k < a->patterns; k++)
            j->finding[i].count += a->pattern[k].mask >> i & 1 ? (size_t)a->pattern[k].rows : 0;
    }
    return status;
}

static void free_parts(job *j)
{
    for (size_t k = 0; j->part && k < j->model->atoms->patterns; k++) {
        hl_free(j->ctx, j->part[k].block);
        hl_free(j->ctx, j->part[k].columns);
        hl_free(j->ctx, j->part[k].names);
        hl_density_outcome_free(j->part[k].outcome);
    }
    hl_free(j->ctx, j->part);
    hl_fit_patterns_free(&j->patterns);
}

hl_status hl_fit_with_atoms(hl_context *ctx, const hl_density_data *data, const hl_settings *settings,
                            const hl_job *wanted, hl_fit_stream *stream, struct hl_density_atoms *atoms,
                            hl_density **model, hl_density_outcome **out)
{
    job *j = hl_calloc(ctx, 1, sizeof *j);
    double start = hl_clock();
    if (!j) {
        hl_atoms_free(ctx, atoms);
        return HL_ERR_NOMEM;
    }
    hl_density_data own = *data;
    if (stream && stream->held) /* each pattern sets some of its own rows aside */
        own.valid = (hl_density_rows){ 0 };
    *j = (job){ .ctx = ctx, .data = &own, .settings = settings, .job = wanted };
    j->whole =
        (hl_density_outcome){ .best = NAN, .normal = NAN, .recent = NAN, .mixture = NAN, .flow = NAN, .gain = NAN };
    j->whole.gain_error = NAN;
    j->whole.train_rows = stream ? stream->source.rows : data->train.rows;
    j->whole.finding = j->finding;
    hl_status status = find_all(j, stream, atoms), created = create_model(j, atoms);
    status = status == HL_OK ? created : status;
    if (status == HL_OK)
        status = stream ? index_patterns(j, stream) : count_patterns(j);
    if (status == HL_OK)
        status = fit_patterns(j);
    char note[160] = "";
    if (status == HL_OK) {
        conclude(j);
        snprintf(note, sizeof note, "atoms in %zu columns, %zu patterns", atoms->count, atoms->patterns);
        status = hl_density_set_note(j->model, note);
    }
    j->whole.seconds = hl_clock() - start;
    hl_status made = out ? hl_fit_make_outcome(ctx, &j->whole, note, out) : HL_OK;
    status = status == HL_OK ? made : status;
    free_parts(j);
    if (status == HL_OK)
        *model = j->model;
    else
        hl_density_free(j->model);
    hl_free(ctx, j);
    return status;
}
