/* date.c - dates and times of day as text: 2024-02-29, 2024-02-29T13:45, 2024-02-29 13:45:30.5Z, 2024-02-29T13:45+02:00.
 *
 * A day is counted from 1970-01-01 on, in UTC if the text says where it is; the time of day is its fraction. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "io/table.h"

enum { DAYS_1970 = 865565 }; /* what count_days counts up to then */

/* `count` digits at text. */
static bool take_digits(const char *text, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *value = *value * 10 + (text[i] - '0');
    }
    return true;
}

/* The year is counted from March on, so that a leap day is its last; months from March on have 31, 30, 31, 30, 31, 31, ...
 * days: (153 m + 2) / 5 before month m. */
static int count_days(int year, int month, int day)
{
    year += 399 + (month > 2); /* of 400 years more, to divide what is not negative */
    return 365 * year + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1 - DAYS_1970;
}

/* hh:mm, with :ss and a fraction if they are there; returns what is behind it, or NULL. */
static const char *take_time(const char *p, double *seconds)
{
    int hour, minute, second = 0;
    double fraction = 0, scale = 1;
    if (!take_digits(p, 2, &hour) || p[2] != ':' || !take_digits(p + 3, 2, &minute) || hour > 23 || minute > 59)
        return NULL;
    p += 5;
    if (*p == ':') {
        if (!take_digits(p + 1, 2, &second) || second > 60) /* a leap second */
            return NULL;
        p += 3;
        for (p += *p == '.'; *p >= '0' && *p <= '9'; p++) {
            scale /= 10;
            fraction += scale * (*p - '0');
        }
    }
    *seconds = 3600.0 * hour + 60.0 * minute + second + fraction;
    return p;
}

/* Z, +hh:mm or +hhmm: how much the clock is ahead; returns what is behind it, or NULL. Without one it is not. */
static const char *take_zone(const char *p, double *seconds)
{
    int hour, minute;
    *seconds = 0;
    if (*p == 'Z')
        return p + 1;
    if (*p != '+' && *p != '-')
        return p;
    double sign = *p == '+' ? 1 : -1;
    if (!take_digits(p + 1, 2, &hour))
        return NULL;
    const char *rest = p + 3 + (p[3] == ':');
    if (!take_digits(rest, 2, &minute) || hour > 23 || minute > 59)
        return NULL;
    *seconds = sign * (3600.0 * hour + 60.0 * minute);
    return rest + 2;
}

const char *hl_date_scan(const char *text, double *days)
{
    static const int lengths[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int year, month, day;
    double seconds = 0, ahead = 0;
    if (!text || !days || !take_digits(text, 4, &year) || text[4] != '-' || !take_digits(text + 5, 2, &month) ||
        text[7] != '-' || !take_digits(text + 8, 2, &day))
        return NULL;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1] || (month == 2 && day == 29 && !leap))
        return NULL;
    const char *end = text + 10;
    if ((*end == 'T' || *end == ' ') && end[1] >= '0' && end[1] <= '9') {
        end = take_time(end + 1, &seconds);
        end = end ? take_zone(end, &ahead) : NULL;
        if (!end)
            return NULL;
    }
    *days = count_days(year, month, day) + (seconds - ahead) / 86400;
    return end;
}

bool hl_date_like(const char *text, size_t bytes)
{
    int number;
    return bytes >= 8 && take_digits(text, 4, &number) && text[4] == '-' && text[5] >= '0' && text[5] <= '9';
}

size_t hl_date_text(double days, char *buffer)
{
    enum { SECONDS = 86400 };
    double seconds = round(days * SECONDS), whole = floor(seconds / SECONDS);
    if (!(whole >= count_days(1, 1, 1) && whole <= count_days(9999, 12, 31)))
        return hl_number_text(days, 0, buffer);
    int day = (int)whole, rest = (int)(seconds - whole * SECONDS), year = 1970 + (int)floor(whole / 365.2425),
        month = 12;
    year += (day >= count_days(year + 1, 1, 1)) - (day < count_days(year, 1, 1));
    while (day < count_days(year, month, 1))
        month--;
    int used = snprintf(buffer, 32, "%04d-%02d-%02d", year, month, day - count_days(year, month, 1) + 1);
    if (rest)
        used += snprintf(buffer + used, 16, "T%02d:%02d:%02d", rest / 3600, rest / 60 % 60, rest % 60);
    return (size_t)used;
}
