/* density_categories.c - columns of texts in the context of a density model: which columns of 0 and 1 they are.
 *
 * In files, the metadata "categories" is [{"name": "city", "column": 0, "labels": ["Berlin", "Paris", "Rome"]}, ...]: columns 0 and 1 of the context are
 * "city=Paris" and "city=Rome". */
#include <string.h>

#include "io/json.h"
#include "learn/density.h"

void hl_density_free_categories(hl_density *m)
{
    for (size_t i = 0; i < m->categories; i++) {
        hl_free(m->ctx, (void *)m->category[i].labels);
        hl_free(m->ctx, (void *)m->category[i].name);
    }
    hl_free(m->ctx, m->category);
    m->category = NULL;
    m->categories = 0;
}

/* All texts are in one block behind the name; the labels point into it. */
static hl_status copy_category(hl_density *m, const hl_category *from, hl_category *to)
{
    size_t bytes = strlen(from->name) + 1, at = bytes;
    for (size_t k = 0; k < from->count; k++)
        bytes += strlen(from->labels[k]) + 1;
    char *text = hl_calloc(m->ctx, bytes, 1);
    const char **labels = hl_calloc(m->ctx, from->count, sizeof *labels);
    *to = (hl_category){ .name = text, .column = from->column, .count = from->count, .labels = labels };
    if (!text || !labels)
        return HL_ERR_NOMEM;
    memcpy(text, from->name, at);
    for (size_t k = 0; k < from->count; k++) {
        size_t length = strlen(from->labels[k]) + 1;
        memcpy(text + at, from->labels[k], length);
        labels[k] = text + at;
        at += length;
    }
    return HL_OK;
}

hl_status hl_density_set_categories(hl_density *m, size_t count, const hl_category *categories)
{
    if (!m)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < count; i++) {
        const hl_category *c = &categories[i];
        bool good =
            c->name && c->labels && c->count > 1 && c->column < m->context && c->count - 1 <= m->context - c->column;
        for (size_t k = 0; good && k < c->count; k++)
            good = c->labels[k] != NULL;
        if (!good)
            return hl_fail(
                m->ctx, HL_ERR_INVALID,
                "hl_density_set_categories: category %zu has no name, fewer than two labels, or columns that "
                "the context does not have",
                i + 1);
    }
    hl_density_free_categories(m);
    m->category = hl_calloc(m->ctx, count, sizeof *m->category);
    hl_status status = m->category ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < count && status == HL_OK; i++) {
        m->categories++;
        status = copy_category(m, &categories[i], &m->category[i]);
    }
    if (status != HL_OK || !count)
        hl_density_free_categories(m);
    return status;
}

size_t hl_density_categories(const hl_density *m)
{
    return m ? m->categories : 0;
}

hl_category hl_density_get_category(const hl_density *m, size_t index)
{
    return m && index < m->categories ? m->category[index] : (hl_category){ 0 };
}

/* ---- files ---- */

char *hl_density_categories_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < m->categories; i++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_text(&w, "name", m->category[i].name);
        hl_json_put_integer(&w, "column", (int64_t)m->category[i].column);
        hl_json_open(&w, "labels", '[');
        for (size_t k = 0; k < m->category[i].count; k++)
            hl_json_put_text(&w, NULL, m->category[i].labels[k]);
        hl_json_close(&w, ']');
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

/* One entry; its labels are in `labels`, which has room for them. */
static bool read_category(const hl_json *j, const char **labels, hl_category *c)
{
    const hl_json *name = hl_json_get(j, "name"), *column = hl_json_get(j, "column"), *list = hl_json_get(j, "labels");
    if (!name || !list || list->kind != HL_JSON_ARRAY || !hl_json_is_integer(column) || column->integer < 0)
        return false;
    *c = (hl_category){
        .name = hl_json_text(name), .column = (size_t)column->integer, .count = list->count, .labels = labels
    };
    size_t k = 0;
    for (const hl_json *label = list->first; label; label = label->next)
        labels[k++] = hl_json_text(label);
    return true;
}

hl_status hl_density_categories_read(hl_density *m, const hl_json *root)
{
    size_t count = root->kind == HL_JSON_ARRAY ? root->count : 0, texts = 0, i = 0;
    for (const hl_json *j = count ? root->first : NULL; j; j = j->next) {
        const hl_json *list = hl_json_get(j, "labels");
        texts += list && list->kind == HL_JSON_ARRAY ? list->count : 0;
    }
    hl_category *c = hl_calloc(m->ctx, count, sizeof *c);
    const char **labels = hl_calloc(m->ctx, texts, sizeof *labels), **next = labels;
    hl_status status = c && labels ? HL_OK : HL_ERR_NOMEM;
    for (const hl_json *j = count ? root->first : NULL; j && status == HL_OK; j = j->next, i++) {
        if (!read_category(j, next, &c[i]))
            status = HL_ERR_FORMAT;
        else
            next += c[i].count;
    }
    if (status == HL_OK)
        status = count ? hl_density_set_categories(m, count, c) : HL_ERR_FORMAT;
    hl_free(m->ctx, c);
    hl_free(m->ctx, labels);
    return status == HL_ERR_INVALID ? HL_ERR_FORMAT : status;
}
