/* fail_malloc.c - preloaded into a program, makes the n-th allocation of the whole process fail, once: FAIL_MALLOC=n.
 * FAIL_MALLOC_COUNT=file: write there how many allocations the program made.
 *
 * Allocations inside SUNContext_Create never fail: in SUNDIALS 6.4 it uses two of them without a look, which its users cannot
 * mend. src/ode/sundials.h sees before that there is memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static atomic_long calls, fail_at = -1;

/* dlsym itself allocates: what it asks for before calloc is known comes from here. */
static char early[4096];
static size_t early_used;

static void find(void)
{
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
}

__attribute__((constructor)) static void begin(void)
{
    const char *n = getenv("FAIL_MALLOC");
    find();
    calls = 0;
    fail_at = n ? atol(n) : 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_MALLOC_COUNT");
    long count = calls;
    fail_at = -1;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld\n", count);
        fclose(file);
    }
}

static int in_sundials_context(void)
{
    void *frame[32];
    int count = backtrace(frame, 32);
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (dladdr(frame[i], &info) && info.dli_sname && strcmp(info.dli_sname, "SUNContext_Create") == 0)
            return 1;
    }
    return 0;
}

static int refuse(void)
{
    if (fail_at < 0 || atomic_fetch_add(&calls, 1) + 1 != fail_at)
        return 0;
    fail_at = -1; /* backtrace allocates, too */
    if (in_sundials_context())
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    if (!real_malloc)
        find();
    return refuse() ? NULL : real_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (!real_calloc) {
        size_t bytes = (count * size + 15) / 16 * 16;
        void *block = early + early_used;
        early_used += bytes;
        return early_used <= sizeof early ? block : NULL;
    }
    return refuse() ? NULL : real_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (!real_realloc)
        find();
    return refuse() ? NULL : real_realloc(old, size);
}
