/* Load an exported model, run it on given inputs, and compare every bit with what Python computed.
 *
 *     python examples/export/make_models.py out
 *     cc -O2 -I out -include mlp.h examples/export/call_from_c.c -o call_from_c -ldl
 *     ./call_from_c out/mlp.so out/mlp.bin [REPEAT]
 *
 * Any of the headers serves: what they say of the interface is the same. One program can also be
 * linked with one library, `cc main.c out/mlp.so`; here it is loaded by its name. */
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "arrays.h"

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static weft_tensor tensor_of(const array_file_item *item, void *data) {
    weft_tensor made = {data, item->shape, (int32_t)item->dtype, (int32_t)item->ndim};
    return made;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL.so MODEL.bin [REPEAT]\n", argv[0]);
        return 2;
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    __typeof__(&weft_abi_version) abi_version = (__typeof__(abi_version))symbol("weft_abi_version");
    __typeof__(&weft_describe) describe = (__typeof__(describe))symbol("weft_describe");
    __typeof__(&weft_open) open_model = (__typeof__(open_model))symbol("weft_open");
    __typeof__(&weft_run) run = (__typeof__(run))symbol("weft_run");
    __typeof__(&weft_message) message = (__typeof__(message))symbol("weft_message");
    __typeof__(&weft_close) close_model = (__typeof__(close_model))symbol("weft_close");
    if (abi_version() != WEFT_ABI) {
        fprintf(stderr, "the library has another version of the interface\n");
        return 1;
    }

    char problem[512] = "";
    weft_options options = WEFT_OPTIONS;
    options.message = problem;
    options.message_bytes = sizeof problem;
    weft_instance *instance = NULL;
    if (open_model(&options, &instance) != 0) {
        fprintf(stderr, "it cannot be opened: %s\n", problem);
        return 1;
    }

    array_file given = read_arrays(argv[2]);
    weft_tensor inputs[16], outputs[16];
    for (int64_t i = 0; i < given.inputs; i++)
        inputs[i] = tensor_of(&given.items[i], given.items[i].data);
    int64_t different = 0;
    for (int64_t r = 0; r < given.runs; r++) {
        const array_file_item *expected = &given.items[given.inputs + r * given.outputs];
        for (int64_t i = 0; i < given.outputs; i++)
            outputs[i] = tensor_of(&expected[i], malloc((size_t)expected[i].nbytes + 1));
        if (run(instance, inputs, given.inputs, outputs, given.outputs) != 0) {
            fprintf(stderr, "it cannot run: %s\n", message(instance));
            return 1;
        }
        for (int64_t i = 0; i < given.outputs; i++) {
            different += memcmp(outputs[i].data, expected[i].data, (size_t)expected[i].nbytes) != 0;
            if (r + 1 < given.runs) free(outputs[i].data);
        }
    }
    printf("%s: %s\n", describe()->name, different ? "DIFFERENT" : "equal");

    int repeat = argc > 3 ? atoi(argv[3]) : 0;
    double best = 1e9;
    for (int k = 0; k < repeat; k++) {
        double begin = seconds();
        if (run(instance, inputs, given.inputs, outputs, given.outputs) != 0) break;
        double took = seconds() - begin;
        if (took < best) best = took;
    }
    if (repeat) printf("%.1f microseconds\n", 1e6 * best);
    close_model(instance);
    return different != 0;
}
