#pragma once
#include <cstdint>

#include "kernels/cuda/mma.cuh"

// Hopper's asynchronous products of a warpgroup; only sm_90a has them.
namespace foretoken::cuda {

// Orders ordinary writes to shared memory before later bulk copies from it and products of it.
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int Registers>
__device__ inline void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ inline void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Before the first product after registers of the accumulator were written.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most `Pending` committed groups are under way.
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving accesses of accumulators across.
template <int Count>
__device__ inline void pin_registers(float (&c)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

// Four 8 x 8 matrices of 16-bit values, as a product's results lie in a warp, to shared memory:
// lane i gives the address of row i % 8 of matrix i / 8.
__device__ inline void store_matrices(uint32_t address, const uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

// Descriptor of a K-major operand in the 128-byte swizzle: groups of 8 rows x 128 bytes at
// `address` (on 1 KB), `group_bytes` apart. 16 k further: + 2, within 64 k.
__device__ inline uint64_t swizzled_operand(uint32_t address, int group_bytes) {
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{1} << 16 | uint64_t(group_bytes >> 4) << 32 |
         uint64_t{1} << 62;
}

// c (+)= a * b of a warpgroup: 64 rows of a, N of b, 16 k, bfloat16 in, float accumulators; without
// `add` c starts at zero. Thread 32 w + 4 g + t holds, for each group j of 8 columns, in
// c[4 j ..]: row 16 w + g, columns 8 j + 2 t and + 1; then row 16 w + g + 8.
template <int N>
__device__ void wgmma(float (&c)[N / 2], uint64_t a, uint64_t b, bool add);

#define FT_WGMMA_REGISTERS_8 "%0, %1, %2, %3"
#define FT_WGMMA_REGISTERS_16 FT_WGMMA_REGISTERS_8 ", %4, %5, %6, %7"
#define FT_WGMMA_REGISTERS_24 FT_WGMMA_REGISTERS_16 ", %8, %9, %10, %11"
#define FT_WGMMA_REGISTERS_32 FT_WGMMA_REGISTERS_24 ", %12, %13, %14, %15"
#define FT_WGMMA_REGISTERS_40 FT_WGMMA_REGISTERS_32 ", %16, %17, %18, %19"
#define FT_WGMMA_REGISTERS_48 FT_WGMMA_REGISTERS_40 ", %20, %21, %22, %23"
#define FT_WGMMA_REGISTERS_56 FT_WGMMA_REGISTERS_48 ", %24, %25, %26, %27"
#define FT_WGMMA_REGISTERS_64 FT_WGMMA_REGISTERS_56 ", %28, %29, %30, %31"
#define FT_WGMMA_REGISTERS_72 FT_WGMMA_REGISTERS_64 ", %32, %33, %34, %35"
#define FT_WGMMA_REGISTERS_80 FT_WGMMA_REGISTERS_72 ", %36, %37, %38, %39"
#define FT_WGMMA_REGISTERS_88 FT_WGMMA_REGISTERS_80 ", %40, %41, %42, %43"
#define FT_WGMMA_REGISTERS_96 FT_WGMMA_REGISTERS_88 ", %44, %45, %46, %47"
#define FT_WGMMA_REGISTERS_104 FT_WGMMA_REGISTERS_96 ", %48, %49, %50, %51"
#define FT_WGMMA_REGISTERS_112 FT_WGMMA_REGISTERS_104 ", %52, %53, %54, %55"
#define FT_WGMMA_REGISTERS_120 FT_WGMMA_REGISTERS_112 ", %56, %57, %58, %59"
#define FT_WGMMA_REGISTERS_128 FT_WGMMA_REGISTERS_120 ", %60, %61, %62, %63"
#define FT_WGMMA_REGISTERS_136 FT_WGMMA_REGISTERS_128 ", %64, %65, %66, %67"
#define FT_WGMMA_REGISTERS_144 FT_WGMMA_REGISTERS_136 ", %68, %69, %70, %71"
#define FT_WGMMA_REGISTERS_152 FT_WGMMA_REGISTERS_144 ", %72, %73, %74, %75"
#define FT_WGMMA_REGISTERS_160 FT_WGMMA_REGISTERS_152 ", %76, %77, %78, %79"
#define FT_WGMMA_REGISTERS_168 FT_WGMMA_REGISTERS_160 ", %80, %81, %82, %83"
#define FT_WGMMA_REGISTERS_176 FT_WGMMA_REGISTERS_168 ", %84, %85, %86, %87"
#define FT_WGMMA_REGISTERS_184 FT_WGMMA_REGISTERS_176 ", %88, %89, %90, %91"
#define FT_WGMMA_REGISTERS_192 FT_WGMMA_REGISTERS_184 ", %92, %93, %94, %95"
#define FT_WGMMA_REGISTERS_200 FT_WGMMA_REGISTERS_192 ", %96, %97, %98, %99"
#define FT_WGMMA_REGISTERS_208 FT_WGMMA_REGISTERS_200 ", %100, %101, %102, %103"
#define FT_WGMMA_REGISTERS_216 FT_WGMMA_REGISTERS_208 ", %104, %105, %106, %107"
#define FT_WGMMA_REGISTERS_224 FT_WGMMA_REGISTERS_216 ", %108, %109, %110, %111"
#define FT_WGMMA_REGISTERS_232 FT_WGMMA_REGISTERS_224 ", %112, %113, %114, %115"
#define FT_WGMMA_REGISTERS_240 FT_WGMMA_REGISTERS_232 ", %116, %117, %118, %119"
#define FT_WGMMA_REGISTERS_248 FT_WGMMA_REGISTERS_240 ", %120, %121, %122, %123"
#define FT_WGMMA_REGISTERS_256 FT_WGMMA_REGISTERS_248 ", %124, %125, %126, %127"
#define FT_WGMMA_OPERANDS_8 "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#define FT_WGMMA_OPERANDS_16 FT_WGMMA_OPERANDS_8, "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
#define FT_WGMMA_OPERANDS_24 FT_WGMMA_OPERANDS_16, "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11])
#define FT_WGMMA_OPERANDS_32 \
  FT_WGMMA_OPERANDS_24, "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
#define FT_WGMMA_OPERANDS_40 \
  FT_WGMMA_OPERANDS_32, "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19])
#define FT_WGMMA_OPERANDS_48 \
  FT_WGMMA_OPERANDS_40, "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23])
#define FT_WGMMA_OPERANDS_56 \
  FT_WGMMA_OPERANDS_48, "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27])
#define FT_WGMMA_OPERANDS_64 \
  FT_WGMMA_OPERANDS_56, "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
#define FT_WGMMA_OPERANDS_72 \
  FT_WGMMA_OPERANDS_64, "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35])
#define FT_WGMMA_OPERANDS_80 \
  FT_WGMMA_OPERANDS_72, "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39])
#define FT_WGMMA_OPERANDS_88 \
  FT_WGMMA_OPERANDS_80, "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43])
#define FT_WGMMA_OPERANDS_96 \
  FT_WGMMA_OPERANDS_88, "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47])
#define FT_WGMMA_OPERANDS_104 \
  FT_WGMMA_OPERANDS_96, "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51])
#define FT_WGMMA_OPERANDS_112 \
  FT_WGMMA_OPERANDS_104, "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55])
#define FT_WGMMA_OPERANDS_120 \
  FT_WGMMA_OPERANDS_112, "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59])
#define FT_WGMMA_OPERANDS_128 \
  FT_WGMMA_OPERANDS_120, "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
#define FT_WGMMA_OPERANDS_136 \
  FT_WGMMA_OPERANDS_128, "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67])
#define FT_WGMMA_OPERANDS_144 \
  FT_WGMMA_OPERANDS_136, "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71])
#define FT_WGMMA_OPERANDS_152 \
  FT_WGMMA_OPERANDS_144, "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75])
#define FT_WGMMA_OPERANDS_160 \
  FT_WGMMA_OPERANDS_152, "+f"(c[76]), "+f"(c[77]), "+f"(c[78]), "+f"(c[79])
#define FT_WGMMA_OPERANDS_168 \
  FT_WGMMA_OPERANDS_160, "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83])
#define FT_WGMMA_OPERANDS_176 \
  FT_WGMMA_OPERANDS_168, "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87])
#define FT_WGMMA_OPERANDS_184 \
  FT_WGMMA_OPERANDS_176, "+f"(c[88]), "+f"(c[89]), "+f"(c[90]), "+f"(c[91])
#define FT_WGMMA_OPERANDS_192 \
  FT_WGMMA_OPERANDS_184, "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95])
#define FT_WGMMA_OPERANDS_200 \
  FT_WGMMA_OPERANDS_192, "+f"(c[96]), "+f"(c[97]), "+f"(c[98]), "+f"(c[99])
#define FT_WGMMA_OPERANDS_208 \
  FT_WGMMA_OPERANDS_200, "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103])
#define FT_WGMMA_OPERANDS_216 \
  FT_WGMMA_OPERANDS_208, "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107])
#define FT_WGMMA_OPERANDS_224 \
  FT_WGMMA_OPERANDS_216, "+f"(c[108]), "+f"(c[109]), "+f"(c[110]), "+f"(c[111])
#define FT_WGMMA_OPERANDS_232 \
  FT_WGMMA_OPERANDS_224, "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115])
#define FT_WGMMA_OPERANDS_240 \
  FT_WGMMA_OPERANDS_232, "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119])
#define FT_WGMMA_OPERANDS_248 \
  FT_WGMMA_OPERANDS_240, "+f"(c[120]), "+f"(c[121]), "+f"(c[122]), "+f"(c[123])
#define FT_WGMMA_OPERANDS_256 \
  FT_WGMMA_OPERANDS_248, "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])

// The instruction: c [64, n] (+)= a * b, both in shared memory, for functions with c, a, b and add.
// kind: its k and types. order: its last numbers, signs and which operands are turned.
#define FT_WGMMA_SHARED(n, kind, order, a_at, b_at, add_at)                            \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                            \
               ", 0;\n"                                                                \
               "wgmma.mma_async.sync.aligned.m64n" #n kind " {" FT_WGMMA_REGISTERS_##n \
               "}, %" #a_at ", %" #b_at ", p, " order ";\n}"                           \
               : FT_WGMMA_OPERANDS_##n                                                 \
               : "l"(a), "l"(b), "r"(static_cast<int>(add)))

// The same with a in four registers: of each warp 16 rows, as mma.sync has them.
#define FT_WGMMA_OWN(n, kind, order, a0, a1, a2, a3, b_at, add_at)                         \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                                \
               ", 0;\n"                                                                    \
               "wgmma.mma_async.sync.aligned.m64n" #n kind " {" FT_WGMMA_REGISTERS_##n     \
               "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_at ", p, " order ";\n}" \
               : FT_WGMMA_OPERANDS_##n                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)))

#define FT_WGMMA(n, a_at, b_at, add_at)                                                 \
  template <>                                                                           \
  __device__ inline void wgmma<n>(float(&c)[n / 2], uint64_t a, uint64_t b, bool add) { \
    FT_WGMMA_SHARED(n, "k16.f32.bf16.bf16", "1, 1, 0, 0", a_at, b_at, add_at);          \
  }

FT_WGMMA(8, 4, 5, 6)
FT_WGMMA(16, 8, 9, 10)
FT_WGMMA(24, 12, 13, 14)
FT_WGMMA(32, 16, 17, 18)
FT_WGMMA(40, 20, 21, 22)
FT_WGMMA(48, 24, 25, 26)
FT_WGMMA(56, 28, 29, 30)
FT_WGMMA(64, 32, 33, 34)
FT_WGMMA(80, 40, 41, 42)
FT_WGMMA(96, 48, 49, 50)
FT_WGMMA(112, 56, 57, 58)
FT_WGMMA(120, 60, 61, 62)
FT_WGMMA(128, 64, 65, 66)
FT_WGMMA(144, 72, 73, 74)
FT_WGMMA(160, 80, 81, 82)
FT_WGMMA(168, 84, 85, 86)
FT_WGMMA(192, 96, 97, 98)
FT_WGMMA(208, 104, 105, 106)
FT_WGMMA(224, 112, 113, 114)
FT_WGMMA(240, 120, 121, 122)
FT_WGMMA(248, 124, 125, 126)
FT_WGMMA(256, 128, 129, 130)

#undef FT_WGMMA

}  // namespace foretoken::cuda
