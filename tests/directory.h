/* directory.h - tests that write files run in an empty directory of their own; in memory if possible, as they save hundreds of
 * files, and saving waits for the disk. */
#ifndef TESTS_DIRECTORY_H
#define TESTS_DIRECTORY_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory_in_memory[] = "/dev/shm/hollow-test.XXXXXX", directory_on_disk[] = "/tmp/hollow-test.XXXXXX";
static const char *directory;

static int enter_directory(void **state)
{
    (void)state;
    directory = mkdtemp(directory_in_memory);
    if (!directory)
        directory = mkdtemp(directory_on_disk);
    return !directory || chdir(directory);
}

static int empty_directory(void **state)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    (void)state;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            remove(entry->d_name);
    return !dir || closedir(dir);
}

static int leave_directory(void **state)
{
    (void)state;
    return chdir("/") || rmdir(directory);
}

#endif
