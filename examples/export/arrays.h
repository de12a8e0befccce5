/* Read what make_models.py wrote: inputs, and what Python computed of them in some runs. */
#ifndef WEFT_EXAMPLE_ARRAYS_H
#define WEFT_EXAMPLE_ARRAYS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The size of an element, by the number of its dtype. */
static const int64_t ELEMENT_BYTES[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};

typedef struct {
    int64_t dtype, ndim, nbytes;
    int64_t shape[8];
    void *data;
} array_file_item;

typedef struct {
    int64_t inputs, runs, outputs; /* inputs come first, then the outputs of each run */
    array_file_item *items;
} array_file;

static void stop_reading(const char *path) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
}

static array_file read_arrays(const char *path) {
    array_file made;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(&made, 8, 3, file) != 3) stop_reading(path);
    int64_t count = made.inputs + made.runs * made.outputs;
    made.items = (array_file_item *)calloc((size_t)count, sizeof(array_file_item));
    for (int64_t i = 0; i < count; i++) {
        array_file_item *item = &made.items[i];
        if (fread(item, 8, 2, file) != 2) stop_reading(path);
        if (fread(item->shape, 8, (size_t)item->ndim, file) != (size_t)item->ndim)
            stop_reading(path);
        item->nbytes = ELEMENT_BYTES[item->dtype];
        for (int64_t k = 0; k < item->ndim; k++) item->nbytes *= item->shape[k];
        item->data = malloc((size_t)item->nbytes + 1);
        if (fread(item->data, 1, (size_t)item->nbytes, file) != (size_t)item->nbytes)
            stop_reading(path);
    }
    fclose(file);
    return made;
}

#endif
