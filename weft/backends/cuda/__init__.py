"""CUDA devices as a back end: NVRTC makes code of kernels, the driver's library runs it."""
