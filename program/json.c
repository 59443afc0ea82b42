/* json.c - results as one line of JSON, or the same members as plain text for a reader.
 *
 * Plain text has a line for each member of the outermost object: its key, then its value; an object as "key value, key value", a list with
 * spaces between its values, and each object of a list on a line of its own. */
#include <math.h>
#include <string.h>

#include "program.h"

enum { KEY_COLUMN = 15 };

static void quoted(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    fputc('"', file);
}

/* A text of a file, without what could command a terminal. */
static void put_plain(FILE *file, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        fputc(*c < 0x20 || *c == 0x7f ? ' ' : *c, file);
}

/* What stands before a member of plain text. Objects of a list, and sentences of an outermost one, have lines of their own. */
static void plain_member(cli_json *json, const char *key, bool own_line)
{
    bool line = json->depth > 1 && !key && own_line;
    if (line)
        fprintf(json->file, "\n%*s", json->depth / 2 * 2, "");
    else if (json->depth > 1 && json->comma)
        fputs(key ? ", " : " ", json->file);
    json->comma = true;
    if (key && json->depth == 1)
        fprintf(json->file, "%-*s", KEY_COLUMN, key);
    else if (key)
        fprintf(json->file, "%s ", key);
}

static void member(cli_json *json, const char *key, bool own_line)
{
    if (json->plain) {
        plain_member(json, key, own_line);
        return;
    }
    if (json->comma)
        fputs(", ", json->file);
    json->comma = true;
    if (key) {
        quoted(json->file, key);
        fputs(": ", json->file);
    }
}

/* After a value. */
static void end(cli_json *json)
{
    if (json->plain && json->depth == 1)
        fputc('\n', json->file);
}

void cli_json_open(cli_json *json, const char *key, char bracket)
{
    member(json, key, bracket == '{');
    if (!json->plain)
        fputc(bracket, json->file);
    json->comma = false;
    json->depth++;
}

void cli_json_close(cli_json *json, char bracket)
{
    if (!json->plain)
        fputc(bracket, json->file);
    json->comma = true;
    json->depth--;
    end(json);
}

void cli_json_text(cli_json *json, const char *key, const char *value)
{
    member(json, key, json->depth == 2 && strchr(value, ' '));
    (json->plain ? put_plain : quoted)(json->file, value);
    end(json);
}

void cli_json_real(cli_json *json, const char *key, double value)
{
    member(json, key, false);
    if (isfinite(value))
        fprintf(json->file, "%.6g", value);
    else
        fputs(json->plain ? "none" : "null", json->file);
    end(json);
}

void cli_json_exact(cli_json *json, const char *key, double value)
{
    char text[32];
    if (json->plain) {
        cli_json_real(json, key, value);
        return;
    }
    member(json, key, false);
    hl_number_text(value, 0, text);
    fputs(isfinite(value) ? text : "null", json->file);
}

void cli_json_count(cli_json *json, const char *key, uint64_t value)
{
    member(json, key, false);
    fprintf(json->file, "%llu", (unsigned long long)value);
    end(json);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    member(json, key, false);
    fputs(json->plain ? value ? "yes" : "no" : value ? "true" : "false", json->file);
    end(json);
}

void cli_json_open_table(cli_json *json, size_t columns, const char *const *names)
{
    cli_json_open(json, NULL, '{');
    cli_json_open(json, "columns", '[');
    for (size_t i = 0; i < columns; i++)
        cli_json_text(json, NULL, names[i]);
    cli_json_close(json, ']');
}

void cli_json_close_rows(cli_json *json, const char *file)
{
    if (file)
        cli_json_text(json, "file", file);
    else
        cli_json_close(json, ']');
}

void cli_json_rows(cli_json *json, size_t rows, size_t columns, const double *values)
{
    for (size_t r = 0; r < rows; r++) {
        cli_json_open(json, NULL, '[');
        for (size_t i = 0; i < columns; i++)
            cli_json_exact(json, NULL, values[r * columns + i]);
        cli_json_close(json, ']');
    }
}
