/* options.h - settings as jobs of the library read them. All take settings of NULL, in which nothing is set. */
#ifndef HL_BASE_OPTIONS_H
#define HL_BASE_OPTIONS_H

#include <stdbool.h>

#include "hollow/options.h"

bool hl_settings_given(const hl_settings *settings, const char *name);
/* The value that was set, else `otherwise`. */
bool hl_settings_flag(const hl_settings *settings, const char *name, bool otherwise);
uint64_t hl_settings_integer(const hl_settings *settings, const char *name, uint64_t otherwise);
double hl_settings_real(const hl_settings *settings, const char *name, double otherwise);
/* Of a choice, its place among the choices. */
size_t hl_settings_choice(const hl_settings *settings, const char *name, size_t otherwise);

/* The default of an option whose `otherwise` is a number; NaN if it is told in other words. */
double hl_option_number(const hl_option *table, const char *name);

/* The settings are of this table, or NULL; and every option that was set has an effect (hl_option's `applies`). */
hl_status hl_settings_check(hl_context *ctx, const hl_settings *settings, const hl_option *table);

#endif
