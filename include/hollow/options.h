/* hollow/options.h - options that are set by name.
 *
 *     hl_settings_create(ctx, hl_density_fit_options(), &settings);
 *     hl_settings_set(settings, "iters", "500");
 *     hl_density_fit(ctx, &data, settings, NULL, &model, NULL);
 *
 * Every long-running function (a job) has a table of options. The program derives its flags and help from the table; bindings derive
 * keyword arguments. A job chooses the values of options that are not set, possibly from the data. Zero is a value like any other. */
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
    HL_OPTION_CHOICE   /* one of `choices`; the first is the default unless `otherwise` is set */
} hl_option_kind;

typedef struct hl_option {
    const char *name; /* the program's flag without dashes, such as "ode-steps" */
    hl_option_kind kind;
    const char *value;          /* placeholder of the value in help texts, such as "N"; NULL for flags */
    double low, high;           /* range of integers and reals */
    const char *const *choices; /* ends with NULL; NULL for other kinds */
    const char *otherwise;      /* the default in words, or NULL */
    const char *help;           /* one line */
    const char *applies;        /* when it has an effect: "model=cnf" or "model=cnf|maf"; NULL: always */
} hl_option;

/* Find an option by name; '-' and '_' are equivalent. The table ends with a NULL name. NULL if there is no such option. */
HL_API const hl_option *hl_option_find(const hl_option *table, const char *name);
/* The name in the table that is closest to a mistyped name; NULL if none is close. */
HL_API const char *hl_option_nearest(const hl_option *table, const char *name);

typedef struct hl_settings hl_settings; /* opaque: the options that were set, with their values */

/* Create settings in which no option is set. The table is borrowed until the settings are freed. */
HL_API hl_status hl_settings_create(hl_context *context, const hl_option *table, hl_settings **settings);
HL_API void hl_settings_free(hl_settings *settings); /* takes NULL */
/* Set an option; copies `text`. A NULL text unsets it. Returns HL_ERR_INVALID for an unknown option or an invalid value; the message
 * lists what is valid, and the settings are unchanged. */
HL_API hl_status hl_settings_set(hl_settings *settings, const char *name, const char *text);
/* The value of an option as text; NULL if it is not set. Borrowed until the option is set again. Takes NULL. */
HL_API const char *hl_settings_text(const hl_settings *settings, const char *name);

#ifdef __cplusplus
}
#endif

#endif
