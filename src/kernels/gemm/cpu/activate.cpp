#include "kernels/gemm/activate.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation_math.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/gemm/cpu/gated_row.h"

namespace foretoken::cpu {
namespace {

// Gates of ones make a gated row a plain one.
constexpr int kPiece = 256;
struct Ones {
  float values[kPiece];
  constexpr Ones() : values() {
    for (float& value : values) value = 1;
  }
};
constexpr Ones kOnes;

template <class Out>
void activate_gated(Activation activation, const float* x, int size, Out* out) {
  for (int at = 0; at < size; at += kPiece) {
    const int count = std::min(kPiece, size - at);
    write_gated(activation, {x + at, kOnes.values, nullptr, nullptr, count}, out + at);
  }
}

template <class Out>
FT_INLINE void square(const float* x, int size, Out* out) {
  for (int i = 0; i < size; ++i) {
    const float positive = x[i] > 0 ? x[i] : 0;
    store_one(out + i, positive * positive);
  }
}
FT_HOT void square_f32(const float* x, int size, float* out) { square(x, size, out); }
FT_HOT void square_bf16(const float* x, int size, uint16_t* out) { square(x, size, out); }
void square_any(const float* x, int size, float* out) { square_f32(x, size, out); }
void square_any(const float* x, int size, uint16_t* out) { square_bf16(x, size, out); }

template <class Out>
FT_INLINE void rectify(const float* x, int size, Out* out) {
  for (int i = 0; i < size; ++i) store_one(out + i, x[i] > 0 ? x[i] : 0);
}
FT_HOT void rectify_f32(const float* x, int size, float* out) { rectify(x, size, out); }
FT_HOT void rectify_bf16(const float* x, int size, uint16_t* out) { rectify(x, size, out); }
void rectify_any(const float* x, int size, float* out) { rectify_f32(x, size, out); }
void rectify_any(const float* x, int size, uint16_t* out) { rectify_bf16(x, size, out); }

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

template <class Out>
void write_xielu(const float* parameters, const float* x, int size, Out* out) {
  const float beta = parameters[2], eps = parameters[3];
  const float positive = softplus(parameters[0]), negative = beta + softplus(parameters[1]);
  for (int i = 0; i < size; ++i) {
    const float bent =
        x[i] > 0 ? positive * x[i] * x[i] : (std::expm1(std::min(x[i], eps)) - x[i]) * negative;
    store_one(out + i, bent + beta * x[i]);
  }
}

// kTanh or kSigmoid.
template <class Out>
void squash(Activation activation, const float* x, int size, Out* out) {
  const bool is_tanh = activation == Activation::kTanh;
  for (int i = 0; i < size; ++i) {
    store_one(out + i, is_tanh ? activation_math::tanh_of(x[i]) : activation_math::sigmoid(x[i]));
  }
}

template <class Out>
void activate_row(const ActivateArgs& a, const float* x, Out* out) {
  switch (a.activation) {
    case Activation::kReluSquared:
      return square_any(x, a.size, out);
    case Activation::kRelu:
      return rectify_any(x, a.size, out);
    case Activation::kXielu:
      return write_xielu(a.parameters, x, a.size, out);
    case Activation::kTanh:
    case Activation::kSigmoid:
      return squash(a.activation, x, a.size, out);
    default:
      return activate_gated(a.activation, x, a.size, out);
  }
}

}  // namespace

void activate(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ActivateArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.size}, [&](int64_t row) {
    const float* x = a.x + row * a.size;
    if (a.out_dtype == DType::kF32) {
      activate_row(a, x, static_cast<float*>(a.out) + row * a.size);
    } else {
      activate_row(a, x, static_cast<uint16_t*>(a.out) + row * a.size);
    }
  });
}

}  // namespace foretoken::cpu
