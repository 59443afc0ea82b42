/* test_memory_models.c - models in memory: the bytes are those of the file, and come back; damaged bytes are refused; failures at
 * every allocation. Also the library's version and the sizes of its structs. */
#include "support.h"

#include "directory.h"

#include "hollow/hollow.h"
#include "io/file.h"

typedef hl_status save_fn(const void *model, const char *path);
typedef hl_status write_fn(const void *model, void *bytes, size_t capacity, size_t *size);
typedef hl_status read_fn(hl_context *ctx, const void *bytes, size_t size, void **model);

/* A kind of model, by functions that take any. */
typedef struct kind {
    const char *name;
    hl_status (*make)(hl_context *ctx, void **model);
    save_fn *save;
    write_fn *write;
    read_fn *read;
    void (*release)(void *model);
} kind;

static const hl_net_spec small = { .dim = 2, .features = 2, .hidden = 3, .hidden_layers = 1, .width = 3, .layers = 1 };

static hl_status make_net(hl_context *ctx, void **model)
{
    hl_net *net = NULL;
    hl_status status = hl_net_create(ctx, &small, &net);
    *model = net;
    return status == HL_OK ? hl_net_init(net, 3) : status;
}

static hl_status make_density(hl_context *ctx, void **model)
{
    const hl_density_column columns[] = { { "a", 0.1, 2 }, { "b", -3, 0.7 } };
    const double factor[] = { 1, 0, 0.5, 0.75 };
    hl_density *density = NULL;
    hl_status status =
        hl_density_create(ctx, &(hl_flow_spec){ .kind = "maf", .flows = 2, .net = small }, columns, &density);
    *model = density;
    if (status == HL_OK)
        status = hl_density_set_factor(density, factor);
    return status == HL_OK ? hl_flow_init(hl_density_flow(density), 3) : status;
}

static hl_status make_sde(hl_context *ctx, void **model)
{
    hl_sde *sde = NULL;
    hl_status status =
        hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2, .components = 2, .density_hidden = 3, .net = small }, &sde);
    *model = sde;
    return status == HL_OK ? hl_sde_init(sde, 3) : status;
}

static hl_status make_vae(hl_context *ctx, void **model)
{
    hl_vae *vae = NULL;
    hl_status status = hl_vae_create(ctx, &(hl_vae_spec){ .dim = 4, .net = "linear", .latent = 2 }, &vae);
    *model = vae;
    return status == HL_OK ? hl_vae_init(vae, 3) : status;
}

#define KIND(name)                                                                                                     \
    static hl_status save_##name(const void *m, const char *path)                                                      \
    {                                                                                                                  \
        return hl_##name##_save(m, path);                                                                              \
    }                                                                                                                  \
    static hl_status write_##name(const void *m, void *bytes, size_t capacity, size_t *size)                           \
    {                                                                                                                  \
        return hl_##name##_write(m, bytes, capacity, size);                                                            \
    }                                                                                                                  \
    static hl_status read_##name(hl_context *ctx, const void *bytes, size_t size, void **m)                            \
    {                                                                                                                  \
        hl_##name *model = NULL;                                                                                       \
        hl_status status = hl_##name##_read(ctx, bytes, size, m ? &model : NULL);                                      \
        if (m)                                                                                                         \
            *m = model;                                                                                                \
        return status;                                                                                                 \
    }                                                                                                                  \
    static void release_##name(void *m)                                                                                \
    {                                                                                                                  \
        hl_##name##_free(m);                                                                                           \
    }
KIND(net)
KIND(density)
KIND(sde)
KIND(vae)

static const kind kinds[] = {
    { "net", make_net, save_net, write_net, read_net, release_net },
    { "density", make_density, save_density, write_density, read_density, release_density },
    { "sde", make_sde, save_sde, write_sde, read_sde, release_sde },
    { "vae", make_vae, save_vae, write_vae, read_vae, release_vae },
};
enum { KINDS = sizeof kinds / sizeof *kinds, CAPACITY = 1 << 17 };

static void test_round_trip(void **state)
{
    static char bytes[CAPACITY], again[CAPACITY];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const kind *kind = &kinds[k];
        void *model, *copy;
        char *file;
        size_t size = 0, file_size, again_size = 0;
        CHECK_OK(ctx, kind->make(ctx, &model));
        CHECK_OK(ctx, kind->save(model, "model"));
        CHECK_OK(ctx, hl_file_load(ctx, "model", CAPACITY, &file, &file_size));

        CHECK_OK(ctx, kind->write(model, NULL, 0, &size));
        assert_int_equal(size, file_size);
        memset(bytes, 0, sizeof bytes);
        CHECK_OK(ctx, kind->write(model, bytes, size - 1, &size));
        assert_int_equal(size, file_size);
        assert_int_equal(bytes[0], 0); /* too little room: nothing is written */
        CHECK_OK(ctx, kind->write(model, bytes, sizeof bytes, &size));
        assert_memory_equal(bytes, file, size);
        assert_int_equal(bytes[size], 0);

        CHECK_OK(ctx, kind->read(ctx, bytes, size, &copy));
        CHECK_OK(ctx, kind->write(copy, again, sizeof again, &again_size));
        assert_int_equal(again_size, size);
        assert_memory_equal(again, bytes, size);
        kind->release(copy);
        kind->release(model);
        hl_free(ctx, file);
    }
    test_context_free(ctx, NULL);
}

/* Every shorter stretch, and every byte of the header changed, gives an error, or, where the checksum does not cover it, a model. */
static void test_damaged(void **state)
{
    static char bytes[CAPACITY];
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const kind *kind = &kinds[k];
        void *model;
        size_t size = 0;
        CHECK_OK(ctx, kind->make(ctx, &model));
        CHECK_OK(ctx, kind->write(model, bytes, sizeof bytes, &size));
        kind->release(model);
        for (size_t length = 0; length < size; length += length < 16 ? 1 : 37) {
            CHECK_STATUS(ctx, kind->read(ctx, bytes, length, &model), HL_ERR_FORMAT);
            assert_null(model);
        }
        for (size_t at = 0; at < size; at += 29) {
            bytes[at] ^= 1;
            CHECK(kind->read(ctx, bytes, size, &model) < 0, kind->name);
            assert_null(model);
            bytes[at] ^= 1;
        }
        for (size_t i = 0; i < KINDS; i++)
            if (i != k)
                CHECK_STATUS(ctx, kinds[i].read(ctx, bytes, size, &model), HL_ERR_FORMAT);
        CHECK(strstr(hl_context_message(ctx), "in memory"), hl_context_message(ctx));
        CHECK_STATUS(ctx, kind->read(ctx, NULL, 0, &model), HL_ERR_INVALID);
        CHECK_STATUS(ctx, kind->read(ctx, bytes, size, NULL), HL_ERR_INVALID);
        CHECK_STATUS(ctx, kind->write(NULL, bytes, size, &size), HL_ERR_INVALID);
    }
    test_context_free(ctx, &allocator);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    static char bytes[CAPACITY];
    const kind *kind = user;
    void *model = NULL, *copy = NULL;
    size_t size = 0;
    hl_status status = kind->make(ctx, &model);
    if (status == HL_OK)
        status = kind->write(model, bytes, sizeof bytes, &size);
    if (status == HL_OK)
        status = kind->read(ctx, bytes, size, &copy);
    kind->release(copy);
    kind->release(model);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        check_every_allocation(1, scenario, (void *)(uintptr_t)&kinds[k]);
}

static void test_version(void **state)
{
    size_t count = 0, seen = 0;
    (void)state;
    assert_string_equal(hl_version(), HL_VERSION);
    for (const hl_struct_size *s = hl_struct_sizes(); s->name; s++, count++) {
        if (strcmp(s->name, "hl_net_spec") == 0)
            seen += s->size == sizeof(hl_net_spec);
        if (strcmp(s->name, "hl_sde_values") == 0)
            seen += s->size == sizeof(hl_sde_values);
        assert_true(s->size > 0);
    }
    assert_int_equal(seen, 2);
    assert_true(count > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, empty_directory),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
