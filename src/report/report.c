/* report.c - reports of all kinds: their memory, and the page, its head and the JSON text that are made of them. */
#include <math.h>
#include <string.h>

#include "io/file.h"
#include "report/report.h"

static const char *const level_names[] = { "good", "minor", "wrong" };

/* By hl_report_kind. */
static const struct {
    const char *name, *title;
    void (*head)(const hl_report *report, hl_page *page);
    void (*body)(const hl_report *report, hl_page *page);
    void (*put_json)(const hl_report *report, hl_json_writer *w);
} kinds[] = {
    { "density", "Density model", hl_density_page_head, hl_density_page_body, hl_density_put_json },
    { "sde", "Stochastic equation", hl_sde_page_head, hl_sde_page_body, hl_sde_put_json },
    { "vae", "Autoencoder", hl_vae_page_head, hl_vae_page_body, hl_vae_put_json },
};

void *hl_report_room(hl_report *r, size_t count, size_t size)
{
    size_t bytes = hl_size_mul(count, size);
    void *room = bytes == SIZE_MAX ? NULL : hl_arena_alloc(&r->arena, bytes ? bytes : 1);
    if (!room) {
        hl_fail(r->ctx, HL_ERR_NOMEM, "out of memory for a report");
        return NULL;
    }
    return memset(room, 0, bytes ? bytes : 1);
}

static void copy_text(char *to, size_t size, const char *from)
{
    hl_text t = hl_text_start(to, size);
    hl_text_add(&t, "%s", from);
    while (t.length > t.used && t.used && ((unsigned char)to[t.used - 1] & 0x80)) /* no half of a character */
        to[--t.used] = '\0';
}

hl_status hl_report_create(hl_context *ctx, hl_report_kind kind, const hl_report_options *o, hl_report **out)
{
    hl_report *r = hl_calloc(ctx, 1, sizeof *r);
    *out = r;
    if (!r)
        return HL_ERR_NOMEM;
    r->ctx = ctx;
    r->kind = kind;
    hl_arena_init(&r->arena, ctx);
    copy_text(r->title, sizeof r->title, o->title ? o->title : "Report");
    copy_text(r->data, sizeof r->data, o->data ? o->data : "the data");
    copy_text(r->call, sizeof r->call, o->call ? o->call : "");
    return HL_OK;
}

void hl_report_free(hl_report *r)
{
    if (!r)
        return;
    hl_arena_free(&r->arena);
    hl_free(r->ctx, r);
}

const char *hl_report_verdict(const hl_report *r)
{
    return r ? r->verdict : "";
}

hl_report_level hl_report_get_level(const hl_report *r)
{
    return r ? r->level : HL_REPORT_WRONG;
}

/* ---- the page ---- */

static void put_head(const hl_report *r, hl_page *p)
{
    hl_page_add(p, "<header><p class=\"kind\">%s</p><h1>", kinds[r->kind].title);
    hl_page_text(p, r->title);
    hl_page_add(p, "</h1>\n<p class=\"verdict %s\">", level_names[r->level]);
    hl_page_text(p, r->verdict);
    hl_page_put(p, ".</p>\n");
    kinds[r->kind].head(r, p);
    hl_page_put(p, "</header>\n");
}

/* The policy allows the styles of the page and its one script, which it names by its digest, and nothing else. */
static void put_page(const hl_report *r, hl_page *p)
{
    char digest[45];
    hl_sha256_base64(hl_page_script, digest);
    hl_page_put(p,
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
                "'unsafe-inline'; script-src 'sha256-");
    hl_page_put(p, digest);
    hl_page_put(p, "'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, "
                   "initial-scale=1\">\n"
                   "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    hl_page_text(p, r->title);
    hl_page_put(p, "</title>\n<style>\n");
    hl_page_put(p, hl_page_style);
    hl_page_put(p, "</style>\n</head>\n<body>\n<main>\n");
    put_head(r, p);
    kinds[r->kind].body(r, p);
    hl_page_put(p, "<footer>Written by Hollow " HL_VERSION
                   ". The same rows, model and options give the same numbers.</footer>\n</main>\n<script>");
    hl_page_put(p, hl_page_script);
    hl_page_put(p, "</script>\n</body>\n</html>\n");
}

/* The head for a notebook: the rules that it needs, for what is inside of it alone. */
static void put_part(const hl_report *r, hl_page *p)
{
    hl_page_put(p, "<div class=\"hollow-head\"><style>.hollow-head .verdict{border-left:4px solid #a86400;padding:8px "
                   "12px;font-size:15px}"
                   ".hollow-head .verdict.good{border-color:#1a7f4b}.hollow-head .verdict.wrong{border-color:#c0322b}"
                   ".hollow-head .tiles{display:flex;flex-wrap:wrap;gap:10px 26px;margin:8px 0}.hollow-head .tile "
                   "b{display:block;font-size:18px}"
                   ".hollow-head .tile span{opacity:.7;font-size:12px}.hollow-head nav{display:none}.hollow-head "
                   "h1{font-size:18px;margin:4px 0}"
                   ".hollow-head .kind{opacity:.7;margin:0}</style>");
    put_head(r, p);
    hl_page_put(p, "</div>\n");
}

static hl_status make_page(const hl_report *r, hl_report_part part, hl_page *p)
{
    *p = (hl_page){ .ctx = r->ctx };
    if (part == HL_REPORT_HEAD)
        put_part(r, p);
    else
        put_page(r, p);
    return p->failed ? HL_ERR_NOMEM : HL_OK;
}

/* Give a text to the caller, if there is room for it. */
static void hand_out(const void *text, size_t length, char *to, size_t capacity, size_t *size)
{
    *size = length;
    if (to && capacity >= length)
        memcpy(to, text, length);
}

hl_status hl_report_html(const hl_report *r, hl_report_part part, char *text, size_t capacity, size_t *size)
{
    if (!r)
        return HL_ERR_INVALID;
    if (!size || (part != HL_REPORT_PAGE && part != HL_REPORT_HEAD))
        return hl_fail(r->ctx, HL_ERR_INVALID, "hl_report_html: the size is NULL, or there is no such part");
    hl_page p;
    hl_status status = make_page(r, part, &p);
    if (status == HL_OK)
        hand_out(p.text, p.used, text, capacity, size);
    hl_free(r->ctx, p.text);
    return status;
}

hl_status hl_report_save(const hl_report *r, const char *path)
{
    if (!r)
        return HL_ERR_INVALID;
    if (!path)
        return hl_fail(r->ctx, HL_ERR_INVALID, "hl_report_save: the path is NULL");
    hl_page p;
    hl_status status = make_page(r, HL_REPORT_PAGE, &p);
    if (status == HL_OK)
        status = hl_file_replace(r->ctx, path, &(hl_file_piece){ p.text, p.used }, 1);
    hl_free(r->ctx, p.text);
    return status;
}

/* ---- JSON ---- */

hl_status hl_report_json(const hl_report *r, char *text, size_t capacity, size_t *size)
{
    if (!r)
        return HL_ERR_INVALID;
    if (!size)
        return hl_fail(r->ctx, HL_ERR_INVALID, "hl_report_json: the size is NULL");
    hl_json_writer w = { .ctx = r->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_text(&w, "title", r->title);
    hl_json_put_text(&w, "kind", kinds[r->kind].name);
    hl_json_put_text(&w, "verdict", r->verdict);
    hl_json_put_text(&w, "level", level_names[r->level]);
    hl_json_put_text(&w, "version", HL_VERSION);
    kinds[r->kind].put_json(r, &w);
    hl_json_close(&w, '}');
    char *made = hl_json_finish(&w);
    if (!made)
        return HL_ERR_NOMEM;
    hand_out(made, strlen(made), text, capacity, size);
    hl_free(r->ctx, made);
    return HL_OK;
}

/* ---- what all pages share ---- */

void hl_report_separate(hl_text *t)
{
    if (t->used)
        hl_text_add(t, "; ");
}

void hl_report_facts_open(const char *data, hl_page *p)
{
    hl_page_put(p, "<dl class=\"facts\"><dt>Data</dt><dd>");
    hl_page_text(p, data ? data : "none");
    hl_page_put(p, data ? ": " : "");
}

void hl_report_fact(hl_page *p, const char *name)
{
    hl_page_add(p, "</dd>\n<dt>%s</dt><dd>", name);
}

static void put_code(const char *name, const char *text, hl_page *p)
{
    if (!*text)
        return;
    hl_report_fact(p, name);
    hl_page_put(p, "<code>");
    hl_page_text(p, text);
    hl_page_put(p, "</code>");
}

void hl_report_facts_close(const hl_report *r, hl_page *p)
{
    put_code("Call", r->call, p);
    put_code("Training", r->note, p);
    hl_report_fact(p, "Version");
    hl_page_put(p, "Hollow " HL_VERSION "</dd></dl>\n");
}
