#include "kernels/quant/cpu/quant_kernels.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "device/cpu/cpu_isa.h"
#include "kernels/cpu/kept_kernels.h"
#include "kernels/quant/cpu/quant_product.h"

namespace foretoken::cpu {
namespace {

// One column at a time, for processors without kernels of their own.
struct Plain {
  using Floats = float;
  using Ints = int32_t;
  using Codes = uint32_t;
  static constexpr int kLanes = 1;
  static constexpr int kMaxRows = 4;
  template <int kBits>
  static constexpr int kPartialDots = 0;
  static constexpr bool kCentresBytes = false;

  static float floats(float value) { return value; }
  static int32_t ints(int32_t value) { return value; }
  static float to_floats(int32_t v) { return static_cast<float>(v); }
  static float multiply(float a, float b) { return a * b; }
  static float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
  static float subtract_product(float c, float a, float b) { return std::fma(-a, b, c); }
  static float load(const float* at) { return *at; }
  static void store(float* to, float v) { *to = v; }

  static uint32_t load_codes(const uint8_t* at) {
    uint32_t four;
    std::memcpy(&four, at, sizeof four);
    return four;
  }
  static uint32_t low4(uint32_t v) { return v & 0x0f0f0f0fU; }
  static uint32_t high4(uint32_t v) { return (v >> 4) & 0x0f0f0f0fU; }
  static uint32_t with_bits_4_and_5(uint32_t four, uint32_t two, int place) {
    return four | ((two >> (2 * place) & 0x03030303U) << 4);
  }
  static uint32_t two_bits(uint32_t v, int place) { return v >> (2 * place) & 0x03030303U; }
  template <int kTo>
  static uint32_t with_bit(uint32_t low, uint32_t ones, int place) {
    return low | (ones >> place & 0x01010101U) << kTo;
  }
  static uint32_t look_up(uint32_t codes, const uint8_t* table) {
    uint8_t code[4];
    std::memcpy(code, &codes, sizeof code);
    for (uint8_t& byte : code) byte = table[byte];
    std::memcpy(&codes, code, sizeof code);
    return codes;
  }
  template <int kBits>
  static int32_t dot(int32_t sum, uint32_t codes, const int8_t* x) {
    uint8_t code[4];
    std::memcpy(code, &codes, sizeof code);
    for (int i = 0; i < 4; ++i) sum += code[i] * x[i];
    return sum;
  }

  static float halves(const uint8_t* at) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return half_to_float(bits);
  }
  static float bytes(const uint8_t* at) { return *at; }
  static float signed_bytes(const uint8_t* at) { return static_cast<int8_t>(*at); }
  static void prefetch(const uint8_t*, int) {}
};

}  // namespace

#if defined(__x86_64__)
extern const QuantKernels kAvx512VnniKernels;
extern const QuantKernels kAvxVnniKernels;
extern const QuantKernels kAvx2Kernels;
#endif

namespace {

std::vector<QuantKernels> find_kernels() {
  std::vector<QuantKernels> found;
#if defined(__x86_64__)
  if (cpu_isa() >= CpuIsa::kAvx512 && __builtin_cpu_supports("avx512vnni")) {
    found.push_back(kAvx512VnniKernels);
  }
  const bool has_avx2 = cpu_isa() >= CpuIsa::kAvx2;
  if (has_avx2 && __builtin_cpu_supports("avxvnni")) found.push_back(kAvxVnniKernels);
  if (has_avx2) found.push_back(kAvx2Kernels);
#endif
  found.push_back(make_kernels<Plain>("plain"));
  return found;
}

}  // namespace

int64_t quant_scale_bytes(const QuantForm& form, int64_t k) {
  return (quantized_row_bytes(form, k) - k) * kQuantCols;
}

int quant_kind(const QuantForm& form) {
  constexpr struct {
    int bits;
    GroupScale scale;
    int32_t group;  // -1: any number of whole steps
    CodeTable table = CodeTable::kNone;
  } kKinds[kQuantKinds] = {
      {8, GroupScale::kHalf, -1},
      {4, GroupScale::kHalf, -1},
      {4, GroupScale::kHalfAndZero, -1},
      {4, GroupScale::kSuper, 32},
      {6, GroupScale::kSuperSigned, 16},
      {4, GroupScale::kHalfAndMinimum, -1},
      {5, GroupScale::kHalf, -1},
      {5, GroupScale::kHalfAndMinimum, -1},
      {5, GroupScale::kSuper, 32},
      {3, GroupScale::kSuperSigned, 16},
      {2, GroupScale::kSuper, 16},
      {4, GroupScale::kHalf, -1, CodeTable::kIq4},
      {4, GroupScale::kSuperSigned, 32, CodeTable::kIq4},
      {2, GroupScale::kHalfAndMinimum, -1},
      {4, GroupScale::kHalf, -1, CodeTable::kE2m1},
      {8, GroupScale::kHalfAndMinimum, -1},
  };
  const bool has_steps = form.group > 0 && form.group % kQuantStep == 0;
  for (int i = 0; i < kQuantKinds; ++i) {
    const auto& kind = kKinds[i];
    const bool fits = kind.group < 0 ? has_steps : form.group == kind.group;
    if (fits && form.bits == kind.bits && form.scale == kind.scale && form.table == kind.table) {
      return i;
    }
  }
  return -1;
}

std::span<const QuantKernels> quant_kernels() { return kept_kernels(find_kernels); }

}  // namespace foretoken::cpu
