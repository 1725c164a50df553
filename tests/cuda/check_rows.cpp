#include <algorithm>

#include "check.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/gemm/gated_act.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/rows/softcap.h"

namespace foretoken::check {
namespace {

void compare(Gpu& gpu, const char* name, const void* device_out, DType dtype,
             const std::vector<double>& expected, const std::string& detail) {
  const auto bytes =
      download(gpu, static_cast<const uint8_t*>(device_out), expected.size() * dtype_size(dtype));
  const double error = relative_error(values_of(bytes, dtype), expected);
  report(error < tolerance(dtype), name, text("%s error %.2e", detail.c_str(), error));
}

void check_embed(Gpu& gpu, DType dtype, bool of_halves = false) {
  Pool pool(gpu);
  const int rows = 7, hidden = 75, vocab = 90;
  const DType stored = of_halves ? DType::kF16 : dtype;
  const Stored table = store_as(random_floats(vocab * hidden, 1), stored);
  const std::vector<int32_t> ids = {5, 0, 89, -1, 90, 7, 7};
  float* out = pool.array<float>(rows * hidden);
  const RowTable lent{pool.upload(table.bytes), stored};
  gpu.queue->launch(EmbedArgs{device_counts(pool, rows - 1, 0), pool.upload(ids), lent, out, rows,
                              vocab, hidden, dtype, 55.5f});
  std::vector<double> expected(rows * hidden, 0.0);
  for (int r = 0; r + 1 < rows; ++r) {
    const int id = ids[r] >= 0 && ids[r] < vocab ? ids[r] : 0;
    for (int c = 0; c < hidden; ++c)
      expected[r * hidden + c] = 55.5 * table.values[id * hidden + c];
  }
  compare(gpu, "embed", out, DType::kF32, expected, dtype_name(stored));
}

void check_rms_norm(Gpu& gpu, DType out_dtype, int hidden, bool gather) {
  Pool pool(gpu);
  const int token_rows = 9, rows = 4, offset = 1;
  auto residual = random_floats(token_rows * hidden, 2);
  const auto delta = random_floats(token_rows * hidden, 3);
  const auto weight = random_floats(hidden, 4);
  const std::vector<int32_t> index = {8, 3, 3, 0, 6};
  float* device_residual = pool.upload(residual);
  const int max_rows = gather ? rows : token_rows;
  void* out = pool.take(max_rows * hidden * 4);
  gpu.queue->launch(RmsNormArgs{device_counts(pool, token_rows, 5), device_residual,
                                gather ? nullptr : pool.upload(delta), pool.upload(weight), out,
                                gather ? pool.upload(index) : nullptr, gather ? offset : 0,
                                max_rows, hidden, 1e-5f, out_dtype});
  std::vector<double> expected;
  for (int i = 0; i < max_rows; ++i) {
    const int r = gather ? index[offset + i] : i;
    double squares = 0;
    std::vector<double> row(hidden);
    for (int c = 0; c < hidden; ++c) {
      row[c] = residual[r * hidden + c] + (gather ? 0.0 : double{delta[r * hidden + c]});
      squares += row[c] * row[c];
    }
    for (int c = 0; c < hidden; ++c) {
      expected.push_back(row[c] / std::sqrt(squares / hidden + 1e-5) * weight[c]);
    }
  }
  compare(gpu, "rms_norm", out, out_dtype, expected,
          text("%s hidden %d%s", dtype_name(out_dtype), hidden, gather ? " gathered" : ""));
}

double activated(Activation activation, double x) {
  if (activation == Activation::kSilu) return x / (1 + std::exp(-x));
  if (activation == Activation::kGelu) return x * std::erfc(-x * std::sqrt(0.5)) / 2;
  return x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) / 2;
}

void check_gated_act(Gpu& gpu, DType dtype, Activation activation) {
  Pool pool(gpu);
  const int rows = 5, size = 1333;
  const auto gate_up = random_floats(rows * 2 * size, 5, 8.0f);
  void* out = pool.take(rows * size * 4);
  gpu.queue->launch(GatedActArgs{device_counts(pool, rows, 0), pool.upload(gate_up), out, rows,
                                 size, activation, dtype});
  std::vector<double> expected;
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < size; ++i) {
      expected.push_back(activated(activation, gate_up[r * 2 * size + i]) *
                         gate_up[r * 2 * size + size + i]);
    }
  }
  compare(gpu, "gated_act", out, dtype, expected,
          text("%s activation %d", dtype_name(dtype), static_cast<int>(activation)));
}

void check_softcap(Gpu& gpu, int size) {
  Pool pool(gpu);
  const int rows = 4, live = 3;
  const float cap = 30.0f;
  const auto x = random_floats(rows * size, 7, 100.0f);
  float* out = pool.upload(x);
  gpu.queue->launch(
      SoftcapArgs{device_counts(pool, 9, live + 2), out, RowKind::kLogits, 2, rows, size, cap});
  std::vector<double> expected;
  for (int i = 0; i < rows * size; ++i) {
    expected.push_back(i < live * size ? cap * std::tanh(double{x[i]} / cap) : double{x[i]});
  }
  compare(gpu, "softcap", out, DType::kF32, expected, text("size %d", size));
}

// The head at x, after the norm by `weight` unless that is empty.
std::vector<double> normed_head(const float* x, int head_dim, const std::vector<float>& weight) {
  std::vector<double> head(x, x + head_dim);
  if (weight.empty()) return head;
  double squares = 0;
  for (const double value : head) squares += value * value;
  for (int d = 0; d < head_dim; ++d) head[d] *= weight[d] / std::sqrt(squares / head_dim + 1e-6);
  return head;
}

void check_rope_kv(Gpu& gpu, DType dtype, int head_dim, int rotary_dim, bool norms, int shift) {
  Pool pool(gpu);
  const int rows = 6, heads = 5, kv_heads = 2, block_size = 16, num_blocks = 4;
  const int width = (heads + 2 * kv_heads) * head_dim;
  const auto qkv = random_floats(rows * width, 6);
  const std::vector<int32_t> positions = {0, 1, 17, 4095, 131000, 3};
  const std::vector<int32_t> kv_slot = {16, 17, 40, 63, 20, 0};
  std::vector<float> inv_freq(rotary_dim / 2);
  for (int i = 0; i < rotary_dim / 2; ++i) {
    inv_freq[i] = static_cast<float>(std::pow(500000.0, -2.0 * i / rotary_dim));
  }
  const size_t cache = static_cast<size_t>(num_blocks) * kv_heads * block_size * head_dim;
  void* k = pool.take(cache * 4);
  void* v = pool.take(cache * 4);
  void* q = pool.take(rows * heads * head_dim * 4);
  const float scaling = 1.25f;
  const auto q_norm = random_floats(norms ? head_dim : 0, 8);
  const auto k_norm = random_floats(norms ? head_dim : 0, 9);
  gpu.queue->launch(RopeKvArgs{
      device_counts(pool, rows, 0), pool.upload(qkv), q, pool.upload(positions),
      pool.upload(kv_slot), rotary_dim > 0 ? pool.upload(inv_freq) : nullptr,
      KvLayer{k, v, kv_heads, block_size, head_dim, dtype}, rows, heads, rotary_dim, scaling,
      norms ? pool.upload(q_norm) : nullptr, norms ? pool.upload(k_norm) : nullptr, 1e-6f, shift});
  std::vector<double> want_q(rows * heads * head_dim), want_k(cache, 0.0), want_v(cache, 0.0);
  for (int r = 0; r < rows; ++r) {
    for (int h = 0; h < heads + 2 * kv_heads; ++h) {
      const bool is_v = h >= heads + kv_heads;
      const auto x = normed_head(&qkv[r * width + h * head_dim], head_dim,
                                 is_v        ? std::vector<float>()
                                 : h < heads ? q_norm
                                             : k_norm);
      for (int d = 0; d < head_dim; ++d) {
        double value = x[d];
        if (!is_v && d < rotary_dim) {
          const int i = d % (rotary_dim / 2);
          const double angle = static_cast<float>(std::max(positions[r] + shift, 0)) * inv_freq[i];
          const double a = x[i], b = x[i + rotary_dim / 2];
          value = d < rotary_dim / 2 ? a * std::cos(angle) - b * std::sin(angle)
                                     : b * std::cos(angle) + a * std::sin(angle);
          value *= scaling;
        }
        if (h < heads) {
          want_q[(r * heads + h) * head_dim + d] = value;
          continue;
        }
        auto& to = is_v ? want_v : want_k;
        const int kv_head = (h - heads) % kv_heads;
        const int block = kv_slot[r] / block_size;
        to[((block * kv_heads + kv_head) * block_size + kv_slot[r] % block_size) * head_dim + d] =
            value;
      }
    }
  }
  const std::string detail = text("%s dim %d rotary %d%s shift %d", dtype_name(dtype), head_dim,
                                  rotary_dim, norms ? " norms" : "", shift);
  compare(gpu, "rope q", q, dtype, want_q, detail);
  compare(gpu, "rope k cache", k, dtype, want_k, detail);
  compare(gpu, "rope v cache", v, dtype, want_v, detail);
}

}  // namespace

void check_rows(Gpu& gpu) {
  check_embed(gpu, DType::kF32, true);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check_embed(gpu, dtype);
    check_rms_norm(gpu, dtype, 75, false);
    for (const int hidden : {768, 2048, 4096, 8192, 9000}) {
      for (const bool gather : {false, true}) check_rms_norm(gpu, dtype, hidden, gather);
    }
    for (const auto activation : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
      check_gated_act(gpu, dtype, activation);
    }
    for (const bool norms : {false, true}) {
      check_rope_kv(gpu, dtype, 64, 64, norms, norms ? -1 : 0);
      check_rope_kv(gpu, dtype, 72, 0, norms, norms ? -1 : 0);
      check_rope_kv(gpu, dtype, 96, 32, norms, norms ? -1 : 0);
      check_rope_kv(gpu, dtype, 128, 128, norms, norms ? -1 : 0);
      check_rope_kv(gpu, dtype, 512, 512, norms, norms ? -1 : 0);
    }
  }
  for (const int size : {7, 5000}) check_softcap(gpu, size);
}

}  // namespace foretoken::check
