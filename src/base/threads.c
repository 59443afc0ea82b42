/* threads.c - how many threads this process can keep busy: the processors that it may run on, and the share of them that its
 * control groups give it. */
#define _GNU_SOURCE /* sched_getaffinity */

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { MAX_THREADS = 256, LINE = 4096 };

/* The first line of a file, or false. */
static bool read_line(const char *path, char line[LINE])
{
    FILE *file = fopen(path, "re");
    bool good = file && fgets(line, LINE, file);

    if (file)
        fclose(file);
    return good;
}

/* Processors of one group, from "QUOTA PERIOD" (version 2) or two files (version 1); infinity if it has no limit. */
static double group_limit(const char *directory)
{
    char path[LINE + 40], line[LINE], more[LINE];
    double quota, period;

    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (read_line(path, line))
        return sscanf(line, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ? quota / period : INFINITY;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (!read_line(path, line))
        return INFINITY;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    if (!read_line(path, more) || sscanf(line, "%lf", &quota) != 1 || sscanf(more, "%lf", &period) != 1)
        return INFINITY;
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* The least of a group and all that it lies in. */
static double limit_of_path(const char *root, const char *controller, const char *group)
{
    char path[LINE];
    size_t top = strlen(root) + strlen(controller);
    double least = INFINITY;
    int length = snprintf(path, sizeof path, "%s%s%s", root, controller, group);

    if (length < 0 || (size_t)length >= sizeof path)
        return INFINITY;
    for (;;) {
        char *slash;

        least = fmin(least, group_limit(path));
        slash = strrchr(path + top, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

double hl_group_processors(const char *groups, const char *root)
{
    char line[LINE];
    double least = INFINITY;
    FILE *file = fopen(groups, "re");

    /* Lines of ID:CONTROLLERS:GROUP. Version 2 has no controllers in its only line. */
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (!controllers[1])
            least = fmin(least, limit_of_path(root, "", group));
        else if (strcmp(controllers + 1, "cpu,cpuacct") == 0 || strcmp(controllers + 1, "cpu") == 0 ||
                 strcmp(controllers + 1, "cpuacct,cpu") == 0)
            least = fmin(least, limit_of_path(root, "/cpu", group));
    }
    if (file)
        fclose(file);
    return least;
}

int hl_threads_available(void)
{
    cpu_set_t set;
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    double share = ceil(hl_group_processors("/proc/self/cgroup", "/sys/fs/cgroup"));

    if (sched_getaffinity(0, sizeof set, &set) ==
        0) /* fails where there are more processors than the set has room for */
        count = CPU_COUNT(&set);
    if (share < (double)count)
        count = (long)share;
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (int)count;
}
