#pragma once

// Marks small functions that both the host compiler and nvcc compile.
#ifdef __CUDACC__
#define FT_HD __host__ __device__
#define FT_UNROLL _Pragma("unroll")
#else
#define FT_HD
#define FT_UNROLL
#endif
