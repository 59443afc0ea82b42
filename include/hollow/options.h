/* hollow/options.h - options of a job, described once and set by name from text.
 *
 *     hl_settings_create(ctx, hl_density_fit_options(), &settings);
 *     hl_settings_set(settings, "iters", "500");
 *     hl_density_fit(ctx, &data, settings, NULL, &model, NULL);
 *
 * Every job of the library has a table of its options: the program makes its flags and its help from it, other languages their
 * keyword arguments. An option that was not set gets its value from the job, which may look at the data first; so zero can be
 * set like any other value. */
#ifndef HOLLOW_OPTIONS_H
#define HOLLOW_OPTIONS_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hl_option_kind {
    HL_OPTION_FLAG,    /* "on" or "off" */
    HL_OPTION_INTEGER, /* digits, in low..high */
    HL_OPTION_REAL,    /* a finite number, in low..high */
    HL_OPTION_TEXT,    /* not empty */
    HL_OPTION_CHOICE   /* one of `choices`; the first is the default unless `otherwise` says more */
} hl_option_kind;

typedef struct hl_option {
    const char *name; /* as the program's flag without its dashes, such as "ode-steps" */
    hl_option_kind kind;
    const char *value;          /* what the value is called in help, such as "N"; NULL for flags */
    double low, high;           /* of integers and reals */
    const char *const *choices; /* ends with NULL; NULL for other kinds */
    const char *otherwise;      /* the default in words, or NULL */
    const char *help;           /* one line */
    const char *applies;        /* where it has an effect: "model=cnf" or "model=cnf|maf"; NULL: everywhere */
} hl_option;

/* The option of this name, with '-' and '_' taken as equal, in a table that ends with a NULL name; NULL if there is none. */
HL_API const hl_option *hl_option_find(const hl_option *table, const char *name);
/* The name in the table that a mistyped one is close to; NULL if none is. */
HL_API const char *hl_option_nearest(const hl_option *table, const char *name);

typedef struct hl_settings hl_settings; /* opaque: the options of a table that were set, and their texts */

/* Nothing is set at first. The table is borrowed until the settings are freed. */
HL_API hl_status hl_settings_create(hl_context *context, const hl_option *table, hl_settings **settings);
HL_API void hl_settings_free(hl_settings *settings); /* takes NULL */
/* Set an option; a text of NULL undoes it. Copies. HL_ERR_INVALID if there is no such option or the value is not one of its
 * own; the message says which there are, and the settings stay as they were. */
HL_API hl_status hl_settings_set(hl_settings *settings, const char *name, const char *text);
/* The text that was set; NULL if none was. Borrowed until the option is set again. Takes NULL. */
HL_API const char *hl_settings_text(const hl_settings *settings, const char *name);

#ifdef __cplusplus
}
#endif

#endif
