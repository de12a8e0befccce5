# Run an exported model from R, and compare with what Python computed.
#
#     python examples/export/make_models.py out
#     PKG_CPPFLAGS="-I out -include mlp.h" R CMD SHLIB examples/export/call_from_r.c \
#         -o out/call_from_r.so
#     Rscript examples/export/call_from_r.R out/call_from_r.so out/mlp.so out/mlp.bin
arguments <- commandArgs(trailingOnly = TRUE)
dyn.load(arguments[1])

open_model <- function(path) .Call("weft_r_open", path)

# Arrays are vectors with rows first, as C has them; shapes are beside them.
run_model <- function(model, arrays, shapes) {
  .Call("weft_r_run", model, lapply(arrays, as.double), lapply(shapes, as.double))
}

read_word <- function(file) {
  low <- readBin(file, "integer", 1, size = 4, endian = "little")
  readBin(file, "integer", 1, size = 4, endian = "little")
  low
}

read_array <- function(file) {
  dtype <- read_word(file)
  ndim <- read_word(file)
  shape <- vapply(seq_len(ndim), function(i) as.double(read_word(file)), 0)
  count <- prod(shape)
  numbers <- if (dtype == 11) {
    readBin(file, "numeric", count, size = 4, endian = "little")
  } else if (dtype == 12) {
    readBin(file, "numeric", count, size = 8, endian = "little")
  } else {
    vapply(seq_len(count), function(i) as.double(read_word(file)), 0)
  }
  list(numbers = numbers, shape = shape)
}

file <- file(arguments[3], "rb")
counts <- vapply(1:3, function(i) read_word(file), 0L)
inputs <- lapply(seq_len(counts[1]), function(i) read_array(file))
model <- open_model(arguments[2])
equal <- TRUE
for (run in seq_len(counts[2])) {
  outputs <- run_model(
    model, lapply(inputs, `[[`, "numbers"), lapply(inputs, `[[`, "shape")
  )
  for (output in outputs) {
    expected <- read_array(file)
    equal <- equal && identical(as.vector(output), expected$numbers) &&
      identical(attr(output, "shape"), expected$shape)
  }
}
close(file)
cat(basename(arguments[2]), ":", if (equal) "equal" else "DIFFERENT", "\n")
quit(status = if (equal) 0 else 1)
