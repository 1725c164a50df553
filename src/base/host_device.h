#pragma once

// Marks small functions that both the host compiler and nvcc compile.
#ifdef __CUDACC__
#define FT_HD __host__ __device__
#else
#define FT_HD
#endif
