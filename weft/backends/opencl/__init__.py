"""OpenCL devices as a back end, by the package pyopencl."""
