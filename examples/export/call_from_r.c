/* What lets R call an exported model: numbers of R's become tensors of the model's dtypes.
 *
 *     PKG_CPPFLAGS="-I out -include mlp.h" R CMD SHLIB examples/export/call_from_r.c -o out/call_from_r.so -ldl
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <R.h>
#include <Rinternals.h>

typedef struct {
    void *library;
    weft_instance *instance;
    __typeof__(&weft_describe) describe;
    __typeof__(&weft_run) run;
    __typeof__(&weft_output_shapes) output_shapes;
    __typeof__(&weft_message) message;
    __typeof__(&weft_close) close;
} r_model;

static void close_r_model(SEXP pointer) {
    r_model *model = R_ExternalPtrAddr(pointer);
    if (model == NULL) return;
    model->close(model->instance);
    free(model);
    R_ClearExternalPtr(pointer);
}

SEXP weft_r_open(SEXP path) {
    r_model *model = calloc(1, sizeof(r_model));
    model->library = dlopen(CHAR(STRING_ELT(path, 0)), RTLD_NOW | RTLD_LOCAL);
    if (model->library == NULL) {
        free(model);
        error("%s", dlerror());
    }
    __typeof__(&weft_open) open_model = (__typeof__(open_model))dlsym(model->library, "weft_open");
    model->describe = (__typeof__(model->describe))dlsym(model->library, "weft_describe");
    model->run = (__typeof__(model->run))dlsym(model->library, "weft_run");
    model->output_shapes =
        (__typeof__(model->output_shapes))dlsym(model->library, "weft_output_shapes");
    model->message = (__typeof__(model->message))dlsym(model->library, "weft_message");
    model->close = (__typeof__(model->close))dlsym(model->library, "weft_close");
    char problem[512] = "";
    weft_options options = WEFT_OPTIONS;
    options.message = problem;
    options.message_bytes = sizeof problem;
    if (open_model(&options, &model->instance) != 0) {
        free(model);
        error("%s", problem);
    }
    SEXP pointer = PROTECT(R_MakeExternalPtr(model, R_NilValue, R_NilValue));
    R_RegisterCFinalizerEx(pointer, close_r_model, TRUE);
    UNPROTECT(1);
    return pointer;
}

static int64_t elements_of(const weft_tensor *tensor) {
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++) count *= tensor->shape[i];
    return count;
}

/* R keeps numbers as doubles, and columns first: `aperm` on its side makes rows first of them. */
static void *from_doubles(const double *numbers, int64_t count, int32_t dtype) {
    void *made = R_alloc((size_t)count + 1, 8);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == WEFT_FLOAT32) ((float *)made)[i] = (float)numbers[i];
        else if (dtype == WEFT_FLOAT64) ((double *)made)[i] = numbers[i];
        else if (dtype == WEFT_INT64) ((int64_t *)made)[i] = (int64_t)numbers[i];
        else if (dtype == WEFT_INT32) ((int32_t *)made)[i] = (int32_t)numbers[i];
        else error("dtype %d is not known here", dtype);
    }
    return made;
}

static SEXP to_doubles(const weft_tensor *tensor) {
    int64_t count = elements_of(tensor);
    SEXP made = PROTECT(allocVector(REALSXP, count));
    for (int64_t i = 0; i < count; i++) {
        double *to = &REAL(made)[i];
        if (tensor->dtype == WEFT_FLOAT32) *to = ((const float *)tensor->data)[i];
        else if (tensor->dtype == WEFT_FLOAT64) *to = ((const double *)tensor->data)[i];
        else if (tensor->dtype == WEFT_INT64) *to = (double)((const int64_t *)tensor->data)[i];
        else error("dtype %d is not known here", tensor->dtype);
    }
    SEXP shape = PROTECT(allocVector(REALSXP, tensor->ndim));
    for (int32_t i = 0; i < tensor->ndim; i++) REAL(shape)[i] = (double)tensor->shape[i];
    setAttrib(made, install("shape"), shape);
    UNPROTECT(2);
    return made;
}

/* arrays and shapes are lists, one of each for each input. */
SEXP weft_r_run(SEXP pointer, SEXP arrays, SEXP shapes) {
    r_model *model = R_ExternalPtrAddr(pointer);
    const weft_info *info = model->describe();
    weft_tensor inputs[16], outputs[16];
    if (length(arrays) != info->input_count || info->input_count > 16 || info->output_count > 16)
        error("the model has %d input(s)", (int)info->input_count);
    for (int i = 0; i < length(arrays); i++) {
        SEXP numbers = VECTOR_ELT(arrays, i), sizes = VECTOR_ELT(shapes, i);
        int64_t *shape = (int64_t *)R_alloc((size_t)length(sizes) + 1, 8);
        for (int k = 0; k < length(sizes); k++) shape[k] = (int64_t)REAL(sizes)[k];
        weft_tensor made = {NULL, shape, info->inputs[i].dtype, (int32_t)length(sizes)};
        if (elements_of(&made) != (int64_t)length(numbers))
            error("input %d has another number of elements than its shape", i + 1);
        made.data = from_doubles(REAL(numbers), (int64_t)length(numbers), made.dtype);
        inputs[i] = made;
    }
    int code = model->output_shapes(model->instance, inputs, info->input_count, outputs,
                                    info->output_count);
    for (int i = 0; code == 0 && i < info->output_count; i++)
        outputs[i].data = R_alloc((size_t)elements_of(&outputs[i]) + 1, 8);
    if (code == 0)
        code = model->run(model->instance, inputs, info->input_count, outputs, info->output_count);
    if (code != 0) error("%s", model->message(model->instance));
    SEXP made = PROTECT(allocVector(VECSXP, info->output_count));
    for (int i = 0; i < info->output_count; i++) SET_VECTOR_ELT(made, i, to_doubles(&outputs[i]));
    UNPROTECT(1);
    return made;
}
