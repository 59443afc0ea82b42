/* number.h - decimal numbers to doubles and back, exactly, whatever the locale. The printer, hl_number_text, is public. */
#ifndef HL_NUMBER_H
#define HL_NUMBER_H

#include "hollow/table.h"

enum { HL_NUMBER_TEXT = 32 }; /* bytes that hold any number as text */

/* Scan the longest number at `text`: [+-] digits [. digits] [e [+-] digits], with a digit before or after the point. *value is
 * correctly rounded, infinite if the number is too large for a double. Returns where it ends; `text`, and no value, if there
 * is no number. The text must end in a byte that no number has, as a line or a string does. */
const char *hl_number_scan(const char *text, double *value);

#endif
