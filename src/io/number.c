/* number.c - decimal numbers to doubles and back.
 *
 * A decimal w * 10^e with w < 2^64 and |e| <= 19 is rounded once from an exact 128-bit product, or from an exact quotient and
 * its remainder: that is correct rounding, several times as fast as strtod. The printer tries 15, 16 and 17 digits, made
 * exactly in the same way, and takes the first that this reads back. What is outside that range goes to the C library, which
 * glibc, musl and the BSDs round correctly too. */
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/number.h"

enum {
    MAX_DIGITS = 19,       /* any so many fit 64 bits */
    MAX_POWER = 19,        /* 10^19 < 2^64 */
    MAX_EXPONENT = 1000000 /* stands for all larger ones */
};

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 wide;

static const uint64_t powers[MAX_POWER + 1] = { 1u,
                                                10u,
                                                100u,
                                                1000u,
                                                10000u,
                                                100000u,
                                                1000000u,
                                                10000000u,
                                                100000000u,
                                                1000000000u,
                                                10000000000u,
                                                100000000000u,
                                                1000000000000u,
                                                10000000000000u,
                                                100000000000000u,
                                                1000000000000000u,
                                                10000000000000000u,
                                                100000000000000000u,
                                                1000000000000000000u,
                                                10000000000000000000u };

/* x * 2^exponent where no result is subnormal: the power of two is made from its bits. */
static double scale(double x, int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;

    memcpy(&power, &bits, sizeof power);
    return x * power;
}

/* w / 10^power, correctly rounded. Both are shifted to the top of 64 bits, so the quotient has at least 63, and what the
 * division leaves only matters for being zero or not: it goes into the last bit, far below the 53 that stay. */
static double divide(uint64_t w, int power)
{
    uint64_t divisor = powers[power];
    int shift = __builtin_clzll(w), divisor_shift = __builtin_clzll(divisor);
    wide dividend = (wide)(w << shift) << 63;
    uint64_t quotient = (uint64_t)(dividend / (divisor << divisor_shift));
    bool rest = (wide)quotient * (divisor << divisor_shift) != dividend;

    return scale((double)(quotient | rest), divisor_shift - shift - 63);
}

/* w * 10^power, correctly rounded: the top 64 bits of the product, with the rest in the last of them. */
static double multiply(uint64_t w, int power)
{
    wide product = (wide)w * powers[power];
    uint64_t high = (uint64_t)(product >> 64);
    int shift;

    if (!high)
        return (double)(uint64_t)product;
    shift = 64 - __builtin_clzll(high);
    return scale((double)((uint64_t)(product >> shift) | (product << (128 - shift) != 0)), shift);
}

/* w * 10^exponent, if it is in the range of exact arithmetic. */
static bool convert(uint64_t w, int exponent, double *value)
{
    if (exponent < -MAX_POWER || exponent > MAX_POWER)
        return false;
    if (w == 0)
        *value = 0;
    else if (w < (uint64_t)1 << 53 && exponent <= 0)
        *value = (double)w / (double)powers[-exponent]; /* both exact (10^22 is the last): the division rounds once */
    else
        *value = exponent < 0 ? divide(w, -exponent) : multiply(w, exponent);
    return true;
}

#else

static bool convert(uint64_t w, int exponent, double *value)
{
    (void)w, (void)exponent, (void)value;
    return false;
}

#endif

/* strtod as in the C locale. uselocale is for this thread alone, and is undone. */
static double library_strtod(const char *text)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = (locale_t)0;
    double value;

    if (c)
        old = uselocale(c);
    value = strtod(text, NULL);
    if (c) {
        uselocale(old);
        freelocale(c);
    }
    return value;
}

/* ---- scanning ---- */

typedef struct decimal {
    uint64_t w;
    int digits;   /* of w, at most MAX_DIGITS */
    bool cut;     /* there were more */
    int exponent; /* the value is w * 10^exponent */
} decimal;

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Take a digit; `step` is what it does to the exponent when it is kept: 0 before the point, -1 after. */
static void take_digit(decimal *d, char c, int step)
{
    if (d->digits == MAX_DIGITS) {
        d->cut = true;
        return;
    }
    d->w = d->w * 10 + (uint64_t)(c - '0');
    d->digits += d->w != 0; /* leading zeros do not count */
    d->exponent += step;
}

/* The exponent at `p`, which is behind its 'e'; NULL if there is none. */
static const char *scan_exponent(const char *p, decimal *d)
{
    bool negative = *p == '-';
    int exponent = 0;

    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return NULL;
    for (; is_digit(*p); p++)
        if (exponent < MAX_EXPONENT)
            exponent = exponent * 10 + (*p - '0');
    d->exponent += negative ? -exponent : exponent;
    return p;
}

const char *hl_number_scan(const char *text, double *value)
{
    decimal d = { 0 };
    const char *p = text, *whole, *fraction = NULL, *end;
    bool negative = *p == '-';

    if (*p == '-' || *p == '+')
        p++;
    for (whole = p; is_digit(*p); p++)
        take_digit(&d, *p, 0);
    if (*p == '.') {
        for (fraction = ++p; is_digit(*p); p++)
            if (d.exponent > -MAX_EXPONENT)
                take_digit(&d, *p, -1);
            else
                d.cut = true;
    }
    if (p - whole <= (fraction != NULL))
        return text;
    if ((*p == 'e' || *p == 'E') && (end = scan_exponent(p + 1, &d)) != NULL)
        p = end;
    if (d.cut || !convert(d.w, d.exponent, value))
        *value = library_strtod(text);
    else if (negative)
        *value = -*value;
    return p;
}

/* ---- printing ---- */

#ifdef __SIZEOF_INT128__

/* m * 2^shift * 10^power, rounded to an integer; false if that is not in the range of exact arithmetic. */
static bool scaled_integer(uint64_t m, int shift, int power, uint64_t *result)
{
    wide product;

    if (power < 0 || power > MAX_POWER || shift > 0 || shift <= -120)
        return false;
    product = (wide)m * powers[power];
    if (shift)
        product = (product + ((wide)1 << (-shift - 1))) >> -shift;
    *result = (uint64_t)product;
    return product >> 64 == 0;
}

/* D * 10^-power in plain notation, without zeros at its end. */
static size_t plain_text(uint64_t d, int power, char *out)
{
    char digits[24];
    int count = 0, length = 0;

    for (; power > 0 && d % 10 == 0; power--)
        d /= 10;
    for (; d > 0 || count <= power; d /= 10)
        digits[count++] = (char)('0' + d % 10);
    while (count > 0) {
        if (count == power)
            out[length++] = '.';
        out[length++] = digits[--count];
    }
    return (size_t)length;
}

/* Print x > 0; 0 if it is outside the range of exact arithmetic. */
static size_t exact_text(double x, bool single, char *out)
{
    int most = single ? 9 : 17, least = single ? 6 : 15, shift, tens = 0;
    uint64_t m, d;
    double back;

    if (!(x >= 1e-3 && x < 1e15)) /* so that no power leaves the table */
        return 0;
    m = (uint64_t)(frexp(x, &shift) * 0x1p53);
    shift -= 53;
    while (x >= (double)powers[tens]) /* 10^(tens - 1) <= x < 10^tens, or one off, which costs a digit at most */
        tens++;
    while (tens <= 0 && x * (double)powers[1 - tens] < 1)
        tens--;
    for (int digits = least; digits <= most; digits++) {
        int power = digits > tens ? digits - tens : 0;

        if (!scaled_integer(m, shift, power, &d) || !convert(d, -power, &back))
            return 0;
        if (single ? (float)back == (float)x : back == x)
            return plain_text(d, power, out);
    }
    return 0;
}

#else

static size_t exact_text(double x, bool single, char *out)
{
    (void)x, (void)single, (void)out;
    return 0;
}

#endif

/* Print by the C library with the fewest digits that read back; the locale's point becomes '.'. */
static size_t library_text(double x, bool single, char *out)
{
    int most = single ? 9 : 17;

    for (int digits = single ? 6 : 15;; digits++) {
        int length = snprintf(out, HL_NUMBER_TEXT - 1, "%.*g", digits, x), used = 0;
        double back;

        for (int i = 0; i < length; i++) {
            if (is_digit(out[i]) || out[i] == 'e' || out[i] == '-' || out[i] == '+')
                out[used++] = out[i];
            else if (used == 0 || out[used - 1] != '.')
                out[used++] = '.'; /* the point may have several bytes */
        }
        out[used] = '\0';
        hl_number_scan(out, &back);
        if (digits == most || (single ? (float)back == (float)x : back == x))
            return (size_t)used;
    }
}

size_t hl_number_text(double value, int single, char *buffer)
{
    double x = single ? (double)(float)value : value;
    size_t sign = 0, length;

    if (isnan(x) || isinf(x)) {
        strcpy(buffer, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return strlen(buffer);
    }
    if (signbit(x))
        buffer[sign++] = '-';
    x = fabs(x);
    if (x == 0) {
        buffer[sign] = '0';
        length = 1;
    } else {
        length = exact_text(x, single, buffer + sign);
        if (!length)
            length = library_text(x, single, buffer + sign);
    }
    buffer[sign + length] = '\0';
    return sign + length;
}
