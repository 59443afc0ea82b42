/* test_io.c - files, and safetensors: round trips, hostile files, and failures at every allocation. */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"
#include "io/safetensors.h"

enum { NOBODY = 65534 };

/* The tests run in an empty directory of their own. */
static char directory[] = "/tmp/test_io.XXXXXX";

static int enter_directory(void **state)
{
    (void)state;
    return !mkdtemp(directory) || chmod(directory, 0755) || chdir(directory);
}

/* Files in the directory; with `remove_them`, they are deleted. */
static int count_files(bool remove_them)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    int count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            count++;
            if (remove_them)
                assert_return_code(remove(entry->d_name), 0);
        }
    closedir(dir);
    return count;
}

static int empty_directory(void **state)
{
    (void)state;
    count_files(true);
    return 0;
}

static int leave_directory(void **state)
{
    (void)state;
    return chdir("/") || rmdir(directory);
}

static void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void check_file(hl_context *ctx, const char *path, const char *expected)
{
    char *data;
    size_t size;

    CHECK_OK(ctx, hl_file_load(ctx, path, 1 << 20, &data, &size));
    assert_string_equal(data, expected);
    assert_int_equal(size, strlen(expected));
    hl_free(ctx, data);
}

static void check_message(const hl_context *ctx, const char *fragment)
{
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("\"%s\" does not contain \"%s\"", hl_context_message(ctx), fragment);
}

/* Give up root, if we have it, so that permissions count. */
static bool was_root;
static void become_nobody(void)
{
    was_root = geteuid() == 0;
    if (was_root)
        assert_return_code(seteuid(NOBODY), 0);
}

static void become_root(void)
{
    if (was_root)
        assert_return_code(seteuid(0), 0);
}

/* ---- files ---- */

static void test_load(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char big[10000], *data;
    size_t size;

    (void)state;
    memset(big, 'x', sizeof big);
    put_file("big", big, sizeof big);
    CHECK_OK(ctx, hl_file_load(ctx, "big", sizeof big, &data, &size));
    assert_int_equal(size, sizeof big);
    assert_memory_equal(data, big, size);
    assert_int_equal(data[size], 0);
    hl_free(ctx, data);
    CHECK_STATUS(ctx, hl_file_load(ctx, "big", sizeof big - 1, &data, &size), HL_ERR_FORMAT);
    check_message(ctx, "big: larger than the allowed 9999 bytes");
    assert_null(data);
    put_file("empty", "", 0);
    check_file(ctx, "empty", "");

    CHECK_STATUS(ctx, hl_file_load(ctx, "missing", 10, &data, &size), HL_ERR_IO);
    check_message(ctx, "missing: cannot open: No such file or directory");
    CHECK_STATUS(ctx, hl_file_load(ctx, ".", 10, &data, &size), HL_ERR_IO);
    check_message(ctx, "Is a directory");
    hl_context_free(ctx);
}

/* A pipe has no size, and more may come than is allowed. */
static void test_load_pipe(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char sent[20000], path[32], *data;
    int ends[2];
    size_t size;

    (void)state;
    memset(sent, 'y', sizeof sent);
    for (int i = 0; i < 2; i++) {
        assert_return_code(pipe(ends), 0);
        assert_int_equal(write(ends[1], sent, sizeof sent), sizeof sent);
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        if (i == 0) {
            CHECK_OK(ctx, hl_file_load(ctx, path, SIZE_MAX, &data, &size));
            assert_int_equal(size, sizeof sent);
            assert_memory_equal(data, sent, size);
            hl_free(ctx, data);
        } else {
            CHECK_STATUS(ctx, hl_file_load(ctx, path, 19999, &data, &size), HL_ERR_FORMAT);
        }
        close(ends[0]);
    }
    hl_context_free(ctx);
}

static void test_open(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char path[600], text[8];
    hl_file file;

    (void)state;
    put_file("six", "abcdef", 6);
    CHECK_OK(ctx, hl_file_open(ctx, "six", &file));
    assert_int_equal(file.size, 6);
    CHECK_OK(ctx, hl_file_read(&file, text, 2));
    assert_memory_equal(text, "ab", 2);
    CHECK_OK(ctx, hl_file_skip(&file, 1));
    CHECK_STATUS(ctx, hl_file_read(&file, text, 5), HL_ERR_IO);
    assert_memory_equal(text, "def", 3);
    check_message(ctx, "six: cannot read: the file ends 2 bytes too early");
    hl_file_close(&file);

    CHECK_STATUS(ctx, hl_file_open(ctx, "missing", &file), HL_ERR_IO);
    check_message(ctx, "missing: cannot open: No such file or directory");
    CHECK_STATUS(ctx, hl_file_open(ctx, ".", &file), HL_ERR_IO);
    check_message(ctx, ".: cannot read: Is a directory");
    assert_return_code(mkfifo("fifo", 0600), 0);
    CHECK_STATUS(ctx, hl_file_open(ctx, "fifo", &file), HL_ERR_IO);
    check_message(ctx, "fifo: cannot read: not a regular file");
    assert_return_code(chmod("six", 0), 0);
    become_nobody();
    CHECK_STATUS(ctx, hl_file_open(ctx, "six", &file), HL_ERR_IO);
    become_root();
    check_message(ctx, "six: cannot open: Permission denied");

    /* A long path must not push the reason out of the message, nor be cut inside a character. */
    for (size_t i = 0; i + 2 < sizeof path; i += 2)
        memcpy(path + i, i % 100 == 0 ? "//" : "\xC3\xA9", 2);
    memcpy(path + sizeof path - 2, "x", 2);
    CHECK_STATUS(ctx, hl_file_open(ctx, path, &file), HL_ERR_IO);
    check_message(ctx, "\xC3\xA9x: cannot open: No such file or directory");
    assert_true(strlen(hl_path_shown(path)) == 127);
    hl_context_free(ctx);
}

static void replace(hl_context *ctx, const char *path, const char *text)
{
    size_t half = strlen(text) / 2;
    hl_file_piece pieces[] = { { text, half }, { NULL, 0 }, { text + half, strlen(text) - half } };

    CHECK_OK(ctx, hl_file_replace(ctx, path, pieces, 3));
}

static void test_replace(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char longest[256];
    struct stat info;
    mode_t old_mask = umask(027);

    (void)state;
    replace(ctx, "new", "first");
    check_file(ctx, "new", "first");
    assert_return_code(stat("new", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_return_code(chmod("new", 0606), 0);
    replace(ctx, "./new", "second");
    check_file(ctx, "new", "second");
    assert_return_code(stat("new", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0606);
    umask(old_mask);

    assert_return_code(symlink("new", "link"), 0);
    replace(ctx, "link", "through the link");
    check_file(ctx, "new", "through the link");
    assert_return_code(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    replace(ctx, "empty", "");
    check_file(ctx, "empty", "");

    /* A link to a file that is not there yet: it is made, and the link stays. */
    assert_return_code(mkdir("far", 0777), 0);
    assert_return_code(symlink("far/second", "first"), 0);
    assert_return_code(symlink("made", "far/second"), 0);
    replace(ctx, "first", "through two links");
    check_file(ctx, "far/made", "through two links");
    assert_return_code(lstat("first", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_return_code(lstat("far/second", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    replace(ctx, "first", "again");
    check_file(ctx, "far/made", "again");
    assert_return_code(unlink("far/made"), 0);
    assert_return_code(unlink("far/second"), 0);
    assert_return_code(rmdir("far"), 0); /* nothing else was left there */
    assert_return_code(unlink("first"), 0);

    memset(longest, 'n', 255);
    longest[255] = '\0';
    replace(ctx, longest, "the longest name");
    check_file(ctx, longest, "the longest name");
    assert_int_equal(count_files(false), 4);
    hl_context_free(ctx);
}

/* A process that is killed while it writes leaves a temporary file behind. The next write of the same file removes it; while the
 * process lives, both write. */
static void test_replace_stale(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_replacement *a, *b, *c;
    int ready[2];
    pid_t child;
    char byte;

    (void)state;
    assert_return_code(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        hl_replacement_begin(ctx, "file", &a);
        hl_replacement_write(a, "half", 4);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    replace(ctx, "file", "while the other lives");
    assert_int_equal(count_files(false), 2);
    assert_return_code(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(count_files(false), 2);
    replace(ctx, "file", "after the crash");
    assert_int_equal(count_files(false), 1);
    check_file(ctx, "file", "after the crash");
    close(ready[0]);
    close(ready[1]);

    /* Three at the same time in one process: each is whole. */
    CHECK_OK(ctx, hl_replacement_begin(ctx, "file", &a));
    CHECK_OK(ctx, hl_replacement_begin(ctx, "file", &b));
    CHECK_OK(ctx, hl_replacement_begin(ctx, "file", &c));
    CHECK_OK(ctx, hl_replacement_write(a, "aaa", 3));
    CHECK_OK(ctx, hl_replacement_write(b, "b", 1));
    CHECK_OK(ctx, hl_replacement_commit(b));
    check_file(ctx, "file", "b");
    CHECK_OK(ctx, hl_replacement_commit(a));
    check_file(ctx, "file", "aaa");
    hl_replacement_free(a);
    hl_replacement_free(b);
    hl_replacement_free(c);
    assert_int_equal(count_files(false), 1);
    hl_context_free(ctx);
}

static void check_refused(hl_context *ctx, const char *path, const char *fragment)
{
    hl_file_piece piece = { "new", 3 };

    CHECK_STATUS(ctx, hl_file_replace(ctx, path, &piece, 1), HL_ERR_IO);
    check_message(ctx, fragment);
}

static void test_replace_refused(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char *longer = calloc(1, 6000);

    (void)state;
    put_file("old", "old", 3);
    assert_return_code(mkdir("folder", 0555), 0);
    assert_return_code(mkfifo("fifo", 0666), 0);
    check_refused(ctx, "missing/new", "missing/new: cannot create a temporary file beside it: No such file");
    check_refused(ctx, "old/new", "old/new: cannot write: Not a directory");
    check_refused(ctx, "folder", "folder: cannot write: Is a directory");
    check_refused(ctx, "folder/", "Is a directory");
    check_refused(ctx, "fifo", "fifo: cannot write: not a regular file");
    check_refused(ctx, "/dev/null", "not a regular file");
    check_refused(ctx, "", "No such file or directory");
    memset(longer, '/', 5999);
    memcpy(longer + 5990, "new", 3);
    check_refused(ctx, longer, "File name too long");

    /* A file that may not be written, and a directory that may not. */
    assert_return_code(chmod("old", 0444), 0);
    become_nobody();
    check_refused(ctx, "old", "old: cannot write: Permission denied");
    check_refused(ctx, "folder/new", "cannot create a temporary file beside it: Permission denied");
    become_root();
    check_file(ctx, "old", "old");
    assert_int_equal(count_files(false), 3);
    assert_return_code(rmdir("folder"), 0); /* so it is empty */
    free(longer);
    hl_context_free(ctx);
}

/* The disk fills up (here: a limit on a file's size) while the new contents are being written. */
static void test_replace_cut_short(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    struct rlimit old_limit, limit;
    char big[5000] = { 0 };
    hl_file_piece pieces[] = { { "start", 5 }, { big, sizeof big } };
    hl_status status;

    (void)state;
    put_file("old", "old", 3);
    signal(SIGXFSZ, SIG_IGN);
    assert_return_code(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    limit = old_limit;
    limit.rlim_cur = 1000;
    assert_return_code(setrlimit(RLIMIT_FSIZE, &limit), 0);
    status = hl_file_replace(ctx, "old", pieces, 2);
    assert_return_code(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, HL_ERR_IO);
    check_message(ctx, "old: cannot write: File too large");
    check_file(ctx, "old", "old");
    assert_int_equal(count_files(false), 1);
    hl_context_free(ctx);
}

/* ---- tables ---- */

static const float floats[] = { 1.5f, -2, 0, 3.25f, 1e30f, -1e-30f, 7 };
static const double doubles[] = { 3.141592653589793, -1e300 };
#define ODD_TEXT "quote \" slash \\ newline \n \xC3\xA9 \xE2\x88\x82 \xF0\x9F\x8C\x8A"

/* Odd lengths, a scalar, an empty tensor, and floats before doubles. */
static hl_status fill(hl_tensors *t)
{
    hl_status status = hl_tensors_add(t, "tau.0.weight", HL_F32, 2, (size_t[]){ 1, 3 }, floats);

    if (!status)
        status = hl_tensors_add(t, "scalar", HL_F64, 0, NULL, doubles);
    if (!status)
        status = hl_tensors_add(t, "\xCF\x84 \"'\\", HL_F32, 1, (size_t[]){ 4 }, floats + 3);
    if (!status)
        status = hl_tensors_add(t, "empty", HL_F64, 3, (size_t[]){ 5, 0, 2 }, NULL);
    if (!status)
        status = hl_tensors_add(t, "a", HL_F64, 1, (size_t[]){ 1 }, doubles + 1);
    if (!status)
        status = hl_tensors_set_metadata(t, "format", "0");
    if (!status)
        status = hl_tensors_set_metadata(t, "odd \" \xC3\xA9", ODD_TEXT);
    return status ? status : hl_tensors_set_metadata(t, "format", "1");
}

static void check_tensor(const hl_tensors *t, const char *name, const char *type, int rank, const void *data,
                         size_t bytes)
{
    const hl_tensor *tensor = hl_tensors_find(t, name);

    CHECK(tensor, name);
    assert_string_equal(tensor->name, name);
    assert_string_equal(tensor->type, type);
    assert_int_equal(tensor->dtype, strcmp(type, "F32") == 0 ? HL_F32 : HL_F64);
    assert_int_equal(tensor->rank, rank);
    assert_int_equal(tensor->bytes, bytes);
    assert_int_equal((uintptr_t)tensor->data % 64, 0);
    if (bytes)
        assert_memory_equal(tensor->data, data, bytes);
}

static void check_filled(const hl_tensors *t)
{
    const char *const order[] = { "scalar", "empty", "a", "tau.0.weight", "\xCF\x84 \"'\\" };
    const char *key, *value;

    assert_int_equal(hl_tensors_count(t), 5);
    for (size_t i = 0; i < 5; i++)
        assert_ptr_equal(hl_tensors_find(t, order[i]), hl_tensors_get(t, i));
    assert_null(hl_tensors_get(t, 5));
    assert_null(hl_tensors_find(t, ""));
    assert_null(hl_tensors_find(t, "zzz"));
    assert_null(hl_tensors_find(t, "scala"));
    check_tensor(t, order[0], "F64", 0, doubles, 8);
    check_tensor(t, order[1], "F64", 3, NULL, 0);
    check_tensor(t, order[2], "F64", 1, doubles + 1, 8);
    check_tensor(t, order[3], "F32", 2, floats, 12);
    check_tensor(t, order[4], "F32", 1, floats + 3, 16);
    assert_int_equal(hl_tensors_find(t, "empty")->dims[0], 5);
    assert_int_equal(hl_tensors_find(t, "empty")->dims[1], 0);
    assert_int_equal(hl_tensors_find(t, "tau.0.weight")->dims[1], 3);

    assert_int_equal(hl_tensors_metadata_count(t), 2);
    assert_string_equal(hl_tensors_metadata(t, "format"), "1");
    assert_string_equal(hl_tensors_metadata(t, "odd \" \xC3\xA9"), ODD_TEXT);
    assert_null(hl_tensors_metadata(t, "other"));
    assert_true(hl_tensors_metadata_get(t, 1, &key, &value));
    assert_string_equal(key, "odd \" \xC3\xA9");
    assert_string_equal(value, ODD_TEXT);
    assert_false(hl_tensors_metadata_get(t, 2, &key, &value));
}

/* The table of fill(), as a file. The caller frees *bytes. */
static void write_filled(hl_context *ctx, const char *path, char **bytes, size_t *size)
{
    hl_tensors *t;

    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_OK(ctx, fill(t));
    CHECK_OK(ctx, hl_tensors_write(t, path));
    hl_tensors_free(t);
    CHECK_OK(ctx, hl_file_load(ctx, path, 1 << 20, bytes, size));
}

static void test_round_trip(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_tensors *t;
    char *first, *second;
    size_t size, size_again;

    (void)state;
    write_filled(ctx, "first", &first, &size);
    CHECK_OK(ctx, hl_tensors_read(ctx, "first", &t));
    check_filled(t);

    /* What was read can be written again, and the bytes are the same. */
    CHECK_OK(ctx, hl_tensors_write(t, "second"));
    hl_tensors_free(t);
    CHECK_OK(ctx, hl_file_load(ctx, "second", 1 << 20, &second, &size_again));
    assert_int_equal(size, size_again);
    assert_memory_equal(first, second, size);
    hl_free(ctx, first);
    hl_free(ctx, second);
    assert_int_equal(count_files(false), 2);
    test_context_free(ctx, &allocator);
}

/* The bytes themselves, so that writer and reader cannot be wrong together. */
static void test_bytes(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"k\":\"\xC3\xA9\\n\",\"crc32\":\"d5c55b5b\"},"
                                 "\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
                                 "\"f\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[8,20]}}";
    hl_context *ctx = test_context(NULL, 1);
    hl_tensors *t;
    char *bytes;
    size_t size, length;

    (void)state;
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_OK(ctx, hl_tensors_add(t, "f", HL_F32, 2, (size_t[]){ 3, 1 }, floats));
    CHECK_OK(ctx, hl_tensors_add(t, "d", HL_F64, 0, NULL, doubles));
    CHECK_OK(ctx, hl_tensors_set_metadata(t, "k", "\xC3\xA9\n"));
    CHECK_OK(ctx, hl_tensors_write(t, "bytes"));
    hl_tensors_free(t);
    CHECK_OK(ctx, hl_file_load(ctx, "bytes", 1 << 20, &bytes, &size));
    length = (unsigned char)bytes[0];
    assert_memory_equal(bytes + 1, "\0\0\0\0\0\0", 7);
    assert_int_equal(length % 8, 0);
    assert_true(length >= strlen(header) && length < strlen(header) + 8);
    assert_memory_equal(bytes + 8, header, strlen(header));
    for (size_t i = strlen(header); i < length; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_int_equal(size, 8 + length + 20);
    assert_memory_equal(bytes + 8 + length, "\x18\x2D\x44\x54\xFB\x21\x09\x40", 8); /* pi */
    assert_memory_equal(bytes + 8 + length + 8, "\0\0\xC0\x3F\0\0\0\xC0\0\0\0\0", 12);
    hl_free(ctx, bytes);

    /* The empty table is a file too. */
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_OK(ctx, hl_tensors_write(t, "nothing"));
    hl_tensors_free(t);
    CHECK_OK(ctx, hl_file_load(ctx, "nothing", 100, &bytes, &size));
    assert_int_equal(size, 8 + 40);
    assert_memory_equal(bytes, "\x28\0\0\0\0\0\0\0{\"__metadata__\":{\"crc32\":\"00000000\"}}   ", size);
    hl_free(ctx, bytes);
    CHECK_OK(ctx, hl_tensors_read(ctx, "nothing", &t));
    assert_int_equal(hl_tensors_count(t), 0);
    hl_tensors_free(t);
    hl_context_free(ctx);
}

static void test_add_refused(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    char longest[HL_TENSOR_MAX_NAME + 2] = { 0 };
    const size_t huge[] = { SIZE_MAX / 2, 3, 0 }, one[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    hl_tensors *t;

    (void)state;
    memset(longest, 'n', HL_TENSOR_MAX_NAME);
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_OK(ctx, hl_tensors_add(t, longest, HL_F32, 8, one, floats));
    longest[HL_TENSOR_MAX_NAME] = 'n';
    const struct {
        const char *name, *fragment;
        int dtype, rank;
        const size_t *dims;
        const void *data;
    } cases[] = {
        { NULL, "name '' is NULL", HL_F32, 1, one, floats },
        { "", "name '' is empty", HL_F32, 1, one, floats },
        { longest, "is longer than 256 bytes", HL_F32, 1, one, floats },
        { "a\xFFz", "name 'a?z' is not UTF-8", HL_F32, 1, one, floats },
        { "a\xED\xA0\x80", "is not UTF-8", HL_F32, 1, one, floats },
        { "a\xC0\x80", "is not UTF-8", HL_F32, 1, one, floats },
        { "a\xF4\x90\x80\x80", "is not UTF-8", HL_F32, 1, one, floats },
        { "a\xE2\x82", "is not UTF-8", HL_F32, 1, one, floats },
        { "a\x1B[2J", "name 'a?[2J' has a control character", HL_F32, 1, one, floats },
        { "a\xC2\x9B", "has a control character", HL_F32, 1, one, floats },
        { "__metadata__", "is reserved", HL_F32, 1, one, floats },
        { "w", "has an unknown type", HL_DTYPE_OTHER, 1, one, floats },
        { "w", "has a bad rank", HL_F32, 9, one, floats },
        { "w", "has a bad rank", HL_F32, -1, one, floats },
        { "w", "has a bad rank", HL_F32, 1, NULL, floats },
        { "w", "is too large", HL_F32, 2, huge, floats },
        { "w", "is too large", HL_F32, 3, huge, floats },
        { "w", "is too large", HL_F64, 1, huge, floats },
        { "w", "has no data", HL_F32, 1, one, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STATUS(
            ctx,
            hl_tensors_add(t, cases[i].name, (hl_dtype)cases[i].dtype, cases[i].rank, cases[i].dims, cases[i].data),
            HL_ERR_INVALID);
        check_message(ctx, cases[i].fragment);
    }
    longest[HL_TENSOR_MAX_NAME] = '\0';
    CHECK_STATUS(ctx, hl_tensors_add(t, longest, HL_F64, 0, NULL, doubles), HL_ERR_INVALID);
    check_message(ctx, "nnn...' is there already");
    CHECK_STATUS(ctx, hl_tensors_set_metadata(t, "k\xFF", ""), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_tensors_set_metadata(t, "k", "\x80"), HL_ERR_INVALID);
    check_message(ctx, "metadata 'k' is not UTF-8");
    CHECK_STATUS(ctx, hl_tensors_set_metadata(t, NULL, ""), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_tensors_set_metadata(t, "k", NULL), HL_ERR_INVALID);
    assert_int_equal(hl_tensors_count(t), 1);
    assert_int_equal(hl_tensors_metadata_count(t), 0);
    hl_tensors_free(t);
    hl_tensors_free(NULL);
    test_context_free(ctx, &allocator);
}

/* As many tensors as a table takes, and one more. */
static void test_full(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_tensors *t;
    char name[16];

    (void)state;
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    for (int i = 0; i < HL_TENSORS_MAX_COUNT; i++) {
        snprintf(name, sizeof name, "%06d", i);
        CHECK_OK(ctx, hl_tensors_add(t, name, i % 3 ? HL_F32 : HL_F64, 0, NULL, doubles + i % 2));
    }
    CHECK_STATUS(ctx, hl_tensors_add(t, "more", HL_F32, 0, NULL, doubles), HL_ERR_INVALID);
    check_message(ctx, "tensor 'more' is one too many");
    CHECK_OK(ctx, hl_tensors_write(t, "full"));
    hl_tensors_free(t);
    CHECK_OK(ctx, hl_tensors_read(ctx, "full", &t));
    assert_int_equal(hl_tensors_count(t), HL_TENSORS_MAX_COUNT);
    for (int i = 0; i < HL_TENSORS_MAX_COUNT; i++) {
        snprintf(name, sizeof name, "%06d", i);
        check_tensor(t, name, i % 3 ? "F32" : "F64", 0, doubles + i % 2, i % 3 ? 4 : 8);
    }
    hl_tensors_free(t);
    hl_context_free(ctx);
}

/* ---- hostile files ---- */

/* A file with this header, as it stands, and `data_bytes` bytes of data. */
static void put_tensors(const char *path, const char *header, size_t header_bytes, size_t data_bytes)
{
    size_t size = 8 + header_bytes + data_bytes;
    char *bytes = calloc(1, size);

    memcpy(bytes, &(uint64_t){ header_bytes }, 8);
    memcpy(bytes + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++)
        bytes[8 + header_bytes + i] = (char)(i + 1);
    put_file(path, bytes, size);
    free(bytes);
}

static void check_malformed(hl_context *ctx, const char *header, size_t header_bytes, size_t data_bytes,
                            const char *fragment)
{
    hl_tensors *t = (hl_tensors *)&t;
    hl_status status;

    put_tensors("m.hollow", header, header_bytes, data_bytes);
    status = hl_tensors_read(ctx, "m.hollow", &t);
    if (status != HL_ERR_FORMAT || t)
        fail_msg("%.200s: status %d, message \"%s\"", header, status, hl_context_message(ctx));
    check_message(ctx, "m.hollow: ");
    check_message(ctx, fragment);
}

/* A description of tensor "w". */
#define W(text) "{\"w\":" text "}"
/* The same with all its fields; 24 bytes of data. */
#define F(dtype, shape, offsets) W("{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}")
/* A field of a table with several tensors. */
#define T(name, shape, offsets) "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header, *fragment;
} malformed[] = {
    /* not JSON, or not this JSON */
    { "", "the header does not begin with '{'" },
    { "[]", "the header does not begin with '{'" },
    { " {}", "the header does not begin with '{'" },
    { "null", "the header does not begin with '{'" },
    { "{", "not valid JSON: at byte 1: expected a string" },
    { "{}x", "not valid JSON: at byte 2: expected the end of the text" },
    { "{}{}", "expected the end of the text" },
    { "{\"w\":}", "not valid JSON" },
    { "{\"w\":{},}", "not valid JSON" },
    { "{'w':{}}", "not valid JSON" },
    { "{\"w\":NaN}", "not valid JSON" },
    { "{\"w", "not valid JSON" },
    { "{\"w\\", "not valid JSON" },
    { "{\"\xFF\":{}}", "the string is not UTF-8" },
    { "{\"\xC0\x80\":{}}", "the string is not UTF-8" },
    { "{\"\xED\xA0\x80\":{}}", "the string is not UTF-8" },
    { "{\"\\ud800\":{}}", "invalid surrogate pair" },
    { "{\"a\x1B[2J\":{}}", "control character in a string" },
    { "{\"w\":{},\"w\":{}}", "duplicate key" },
    { F("\"F32\",\"dtype\":\"F32\"", "[2,3]", "[0,24]"), "duplicate key" },
    { "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", "duplicate key" },
    { "{\"w\":[[[]]]}", "nested too deeply at byte 15" },
    { "{\"w\":{\"shape\":[[1]]}}", "nested too deeply" },
    /* names */
    { "{\"\":{}}", "tensor name '' is empty" },
    { "{\"a\\u0000b\":{}}", "u0000 is not supported" },
    { "{\"a\\u001b[2J\":{}}", "tensor name 'a?[2J' has a control character" },
    { "{\"a\\u009b\":{}}", "tensor name 'a?' has a control character" },
    { "{\"a\\nb\":{}}", "has a control character" },
    /* metadata */
    { "{\"__metadata__\":[]}", "__metadata__ is not an object" },
    { "{\"__metadata__\":null}", "__metadata__ is not an object" },
    { "{\"__metadata__\":{\"k\":1}}", "__metadata__ 'k' is not a string" },
    { "{\"__metadata__\":{\"k\":\"\\u0000\"}}", "not valid JSON" },
    /* fields */
    { W("[]"), "tensor 'w': its description is not an object" },
    { W("null"), "its description is not an object" },
    { W("{}"), "tensor 'w': dtype is missing" },
    { W("{\"shape\":[],\"data_offsets\":[0,4]}"), "dtype is missing" },
    { W("{\"dtype\":\"F32\",\"data_offsets\":[0,4]}"), "shape is missing" },
    { W("{\"dtype\":\"F32\",\"shape\":[6]}"), "data_offsets is missing" },
    { W("{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24],\"scale\":2}"), "unknown field 'scale'" },
    { F("32", "[6]", "[0,24]"), "dtype is not a string" },
    { F("\"F33\"", "[6]", "[0,24]"), "tensor 'w': unknown dtype 'F33'" },
    { F("\"f32\"", "[6]", "[0,24]"), "unknown dtype 'f32'" },
    { F("\"\"", "[6]", "[0,24]"), "unknown dtype ''" },
    { F("\"\\u001bc\"", "[6]", "[0,24]"), "unknown dtype '?c'" },
    /* shapes */
    { F("\"F32\"", "6", "[0,24]"), "shape is not an array" },
    { F("\"F32\"", "{}", "[0,24]"), "shape is not an array" },
    { F("\"F32\"", "[2,-3]", "[0,24]"), "tensor 'w': dimension 1 of shape is not a whole number >= 0" },
    { F("\"F32\"", "[6.0]", "[0,24]"), "dimension 0 of shape is not a whole number" },
    { F("\"F32\"", "[\"6\"]", "[0,24]"), "dimension 0 of shape is not a whole number" },
    { F("\"F32\"", "[true,6]", "[0,24]"), "dimension 0 of shape is not a whole number" },
    { F("\"F32\"", "[1e400]", "[0,24]"), "the number is too large" },
    { F("\"F32\"", "[99999999999999999999]", "[0,24]"), "the integer is too large" },
    { F("\"F32\"", "[1,1,1,1,1,1,1,1,6]", "[0,24]"), "shape has 9 dimensions; at most 8 are supported" },
    { F("\"F32\"", "[4294967296,4294967296]", "[0,24]"), "shape [4294967296, 4294967296] is too large" },
    { F("\"F32\"", "[4294967296,4294967296,0]", "[0,0]"), "is too large" },
    { F("\"F32\"", "[4611686018427387905]", "[0,4]"), "is too large" },
    { F("\"F64\"", "[9223372036854775807]", "[0,24]"), "is too large" },
    { F("\"F4\"", "[3]", "[0,1]"), "shape [3] of F4 does not fill whole bytes" },
    /* offsets */
    { F("\"F32\"", "[6]", "24"), "data_offsets is not a pair of whole numbers >= 0" },
    { F("\"F32\"", "[6]", "[]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[24]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[0,24,48]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[0,24.0]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[null,24]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[-24,0]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[0,-1]"), "data_offsets is not a pair" },
    { F("\"F32\"", "[6]", "[24,0]"), "data_offsets [24, 0] end before they begin" },
    { F("\"F32\"", "[7]", "[0,28]"), "data_offsets [0, 28] exceed the 24 bytes of data" },
    { F("\"F32\"", "[6]", "[9223372036854775783,9223372036854775807]"), "exceed the 24 bytes" },
    { F("\"F32\"", "[2,3]", "[0,16]"),
      "m.hollow: tensor 'w': data_offsets [0, 16] hold 16 bytes but shape [2, 3] of F32 needs 24" },
    { F("\"F64\"", "[2,3]", "[0,24]"), "shape [2, 3] of F64 needs 48" },
    { F("\"F32\"", "[]", "[0,24]"), "shape [] of F32 needs 4" },
    { F("\"F32\"", "[0]", "[0,24]"), "shape [0] of F32 needs 0" },
    { F("\"F32\"", "[2]", "[6,14]"), "data_offsets [6, 14] of F32 do not begin at a multiple of 4" },
    { F("\"F64\"", "[2]", "[4,20]"), "data_offsets [4, 20] of F64 do not begin at a multiple of 8" },
    /* the data as a whole */
    { "{}", "24 unexpected bytes after the last tensor" },
    { F("\"F32\"", "[5]", "[0,20]"), "4 unexpected bytes after the last tensor" },
    { F("\"F32\"", "[5]", "[4,24]"), "bytes 0 to 4 of the data do not belong to a tensor" },
    { "{" T("b", "[2]", "[16,24]") "," T("a", "[3]", "[0,12]") "}",
      "bytes 12 to 16 of the data do not belong to a tensor" },
    { "{" T("b", "[3]", "[12,24]") "," T("a", "[4]", "[0,16]") "}",
      "tensor 'b': data_offsets [12, 24] overlap those of 'a', [0, 16]" },
    { "{" T("a", "[6]", "[0,24]") "," T("b", "[6]", "[0,24]") "}", "overlap" },
    { "{" T("a", "[6]", "[0,24]") "," T("b", "[1]", "[4,8]") "}", "overlap" },
    { "{" T("a", "[6]", "[0,24]") "," T("b", "[0]", "[8,8]") "}", "overlap" },
};

static void test_malformed(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);

    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        check_malformed(ctx, malformed[i].header, strlen(malformed[i].header), 24, malformed[i].fragment);
    check_malformed(ctx, "{}\0", 3, 0, "not valid JSON");
    check_malformed(ctx, "{\"a\0b\":{}}", 10, 0, "not valid JSON");
    test_context_free(ctx, &allocator);
}

/* Headers whose length is a lie, and files too short to have one. */
static void test_header_length(void **state)
{
    static const struct {
        uint64_t length;
        size_t size;
        const char *fragment;
    } cases[] = {
        { 2, 0, "only 0 bytes long: not a safetensors file" },
        { 2, 7, "only 7 bytes long: not a safetensors file" },
        { 2, 8, "a header of 2 bytes exceeds the file size of 8 bytes" },
        { 0, 8, "does not begin with '{'" },
        { 25, 32, "a header of 25 bytes exceeds the file size of 32 bytes" },
        { 100000000, 32, "a header of 100000000 bytes exceeds" },
        { 100000001, 32, "a header of 100000001 bytes is more than the 100000000 allowed" },
        { UINT64_MAX, 32, "a header of 18446744073709551615 bytes is more" },
        { UINT64_MAX - 7, 32, "bytes is more than" },
    };
    hl_context *ctx = test_context(NULL, 1);
    char bytes[32] = { 0 };
    hl_tensors *t;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bytes, &cases[i].length, 8);
        put_file("m.hollow", bytes, cases[i].size);
        CHECK_STATUS(ctx, hl_tensors_read(ctx, "m.hollow", &t), HL_ERR_FORMAT);
        check_message(ctx, cases[i].fragment);
    }
    hl_context_free(ctx);
}

/* Too many of everything; the message comes before the memory is taken. */
static void test_too_many(void **state)
{
    enum { COUNT = HL_TENSORS_MAX_COUNT + 1, CAPACITY = 60 * COUNT };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    char *header = malloc(CAPACITY);
    size_t used = 1;

    (void)state;
    header[0] = '{';
    for (int i = 0; i < COUNT; i++)
        used += (size_t)sprintf(header + used, "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                                i ? "," : "", i);
    header[used++] = '}';
    check_malformed(ctx, header, used, 0, "there are 100001 tensors; at most 100000 are supported");

    used = (size_t)sprintf(header, "{\"__metadata__\":{");
    for (int i = 0; i < COUNT; i++)
        used += (size_t)sprintf(header + used, "%s\"%d\":\"\"", i ? "," : "", i);
    used += (size_t)sprintf(header + used, "}}");
    check_malformed(ctx, header, used, 0, "__metadata__ has 100001 entries; at most 100000 are supported");

    memset(header, ',', CAPACITY);
    memcpy(header, "{\"w\":[", 6);
    check_malformed(ctx, header, CAPACITY, 0, "the header has more than 2000000 values");
    memset(header, '[', CAPACITY);
    memcpy(header, "{\"w\":", 5);
    check_malformed(ctx, header, CAPACITY, 0, "nested too deeply");

    memset(header, 'n', 300);
    memcpy(header, "{\"", 2);
    memcpy(header + 2 + HL_TENSOR_MAX_NAME + 1, "\":{}}", 5);
    check_malformed(ctx, header, 2 + HL_TENSOR_MAX_NAME + 6, 0, "nnn...' is longer than 256 bytes");
    free(header);
    test_context_free(ctx, &allocator);
}

/* Files that other programs might write: any order of names, spaces, types we only list, data at odd places. */
static void test_foreign(void **state)
{
    static const char header[] = " {\n \"h\" : {\"data_offsets\":[16,22], \"shape\":[3], \"dtype\":\"BF16\"},\n"
                                 "\"f\": {\"shape\":[2],\"dtype\":\"F32\",\"data_offsets\":[8,16]},"
                                 "\"q\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[22,25]},"
                                 "\"i\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}  ";
    hl_context *ctx = test_context(NULL, 1);
    const char *const names[] = { "i", "f", "h", "q" }, *const types[] = { "I64", "F32", "BF16", "F4" };
    const size_t bytes[] = { 8, 8, 6, 3 };
    hl_tensors *t;

    (void)state;
    for (size_t spaces = 0; spaces < 3; spaces++) {
        put_tensors("foreign", header + 1, strlen(header) - 1 - spaces, 25);
        CHECK_OK(ctx, hl_tensors_read(ctx, "foreign", &t));
        assert_int_equal(hl_tensors_count(t), 4);
        for (size_t i = 0; i < 4; i++) {
            const hl_tensor *tensor = hl_tensors_get(t, i);

            assert_string_equal(tensor->name, names[i]);
            assert_string_equal(tensor->type, types[i]);
            assert_int_equal(tensor->bytes, bytes[i]);
            assert_int_equal(tensor->dtype, i == 1 ? HL_F32 : HL_DTYPE_OTHER);
            assert_true(!tensor->data == (i != 1));
        }
        check_tensor(t, "f", "F32", 1, "\x09\x0A\x0B\x0C\x0D\x0E\x0F\x10", 8);
        CHECK_STATUS(ctx, hl_tensors_write(t, "copy"), HL_ERR_UNSUPPORTED);
        check_message(ctx, "tensor 'i' of type I64 cannot be written");
        hl_tensors_free(t);
    }
    assert_int_equal(count_files(false), 1);
    hl_context_free(ctx);
}

static void test_not_a_file(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_tensors *t = (hl_tensors *)&t;

    (void)state;
    CHECK_STATUS(ctx, hl_tensors_read(ctx, "missing.hollow", &t), HL_ERR_IO);
    check_message(ctx, "missing.hollow: cannot open: No such file or directory");
    assert_null(t);
    CHECK_STATUS(ctx, hl_tensors_read(ctx, "/", &t), HL_ERR_IO);
    check_message(ctx, "/: cannot read: Is a directory");
    CHECK_STATUS(ctx, hl_tensors_read(ctx, "/dev/zero", &t), HL_ERR_IO);
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_STATUS(ctx, hl_tensors_write(t, "missing/m.hollow"), HL_ERR_IO);
    assert_int_equal(count_files(false), 0);
    hl_tensors_free(t);
    hl_context_free(ctx);
}

static void test_truncated(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_tensors *t;
    char *bytes;
    size_t size;

    (void)state;
    write_filled(ctx, "whole", &bytes, &size);
    for (size_t cut = 0; cut < size; cut++) {
        put_file("cut", bytes, cut);
        CHECK_STATUS(ctx, hl_tensors_read(ctx, "cut", &t), HL_ERR_FORMAT);
        assert_null(t);
        check_message(ctx, "cut: ");
    }
    hl_free(ctx, bytes);
    test_context_free(ctx, &allocator);
}

/* Use all that a table promises, so that a sanitizer sees a broken promise. */
static void use(hl_context *ctx, const hl_tensors *t)
{
    const char *key, *value;

    for (size_t i = 0; i < hl_tensors_count(t); i++) {
        const hl_tensor *tensor = hl_tensors_get(t, i);
        void *copy = hl_alloc(ctx, tensor->bytes);

        assert_ptr_equal(hl_tensors_find(t, tensor->name), tensor);
        if (tensor->dtype != HL_DTYPE_OTHER)
            memcpy(copy, tensor->data, tensor->bytes);
        else
            assert_null(tensor->data);
        hl_free(ctx, copy);
    }
    for (size_t i = 0; hl_tensors_metadata_get(t, i, &key, &value); i++)
        assert_ptr_equal(hl_tensors_metadata(t, key), value);
}

/* A flipped bit is noticed, but in the name of the checksum, and in a file without one in nothing but values and texts. */
static void test_checksum(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_tensors *t;
    char *bytes;
    size_t size, unnoticed = 0;

    (void)state;
    write_filled(ctx, "whole", &bytes, &size);
    CHECK_OK(ctx, hl_tensors_read(ctx, "whole", &t));
    assert_true(hl_tensors_checked(t));
    assert_null(hl_tensors_metadata(t, "crc32"));
    CHECK_STATUS(ctx, hl_tensors_set_metadata(t, "crc32", "0"), HL_ERR_INVALID);
    hl_tensors_free(t);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 1;
        put_file("flipped", bytes, size);
        bytes[i] ^= 1;
        if (hl_tensors_read(ctx, "flipped", &t) == HL_OK) {
            assert_false(hl_tensors_checked(t));
            unnoticed++;
        }
        hl_tensors_free(t);
    }
    assert_in_range(unnoticed, 1, strlen("crc32"));
    bytes[size - 1] ^= 1;
    put_file("flipped", bytes, size);
    CHECK_STATUS(ctx, hl_tensors_read(ctx, "flipped", &t), HL_ERR_FORMAT);
    check_message(ctx, "flipped: damaged, or modified by another program: the checksum is ");
    forget_checksum(bytes, size);
    put_file("flipped", bytes, size);
    CHECK_OK(ctx, hl_tensors_read(ctx, "flipped", &t));
    hl_tensors_free(t);
    hl_free(ctx, bytes);
    test_context_free(ctx, NULL);
}

/* Whatever a damaged file gives, it is a sound table or an error with a message. */
static void test_damaged(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_tensors *t;
    char *bytes;
    size_t size;

    (void)state;
    write_filled(ctx, "whole", &bytes, &size);
    forget_checksum(bytes, size);
    for (size_t i = 0; i < size; i++)
        for (int flip = 0; flip < 9; flip++) {
            char mask = (char)(flip < 8 ? 1 << flip : 0xFF);

            bytes[i] ^= mask;
            put_file("damaged", bytes, size);
            bytes[i] ^= mask;
            if (hl_tensors_read(ctx, "damaged", &t) == HL_OK)
                use(ctx, t);
            else
                check_message(ctx, "damaged: ");
            hl_tensors_free(t);
        }
    hl_free(ctx, bytes);
    test_context_free(ctx, &allocator);
}

/* ---- out of memory ---- */

static hl_status write_and_read(hl_context *ctx, void *user)
{
    hl_tensors *made = NULL, *read = NULL;
    char *text = NULL;
    size_t size;
    hl_status status = hl_tensors_create(ctx, &made);

    (void)user;
    if (!status)
        status = fill(made);
    if (!status)
        status = hl_tensors_write(made, "memory");
    if (!status)
        status = hl_tensors_read(ctx, "memory", &read);
    if (!status)
        check_filled(read);
    if (!status)
        status = hl_file_load(ctx, "memory", 1 << 20, &text, &size);
    hl_free(ctx, text);
    hl_tensors_free(made);
    hl_tensors_free(read);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_every_allocation(1, write_and_read, NULL);
    assert_int_equal(count_files(false), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, empty_directory)
    const struct CMUnitTest tests[] = {
        TEST(test_load),          TEST(test_load_pipe),       TEST(test_open),
        TEST(test_replace),       TEST(test_replace_refused), TEST(test_replace_cut_short),
        TEST(test_round_trip),    TEST(test_bytes),           TEST(test_add_refused),
        TEST(test_full),          TEST(test_malformed),       TEST(test_header_length),
        TEST(test_too_many),      TEST(test_foreign),         TEST(test_not_a_file),
        TEST(test_truncated),     TEST(test_checksum),        TEST(test_damaged),
        TEST(test_out_of_memory), TEST(test_replace_stale),
    };

    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
