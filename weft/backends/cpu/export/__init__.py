"""Programs as shared libraries: machine code, weights and a C interface in one file."""
