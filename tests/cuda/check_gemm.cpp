#include <algorithm>

#include "check.h"
#include "kernels/activation_math.h"
#include "kernels/gemm/gated_act.h"

namespace foretoken::check {
namespace {

void check_shape(Gpu& gpu, int rows, int n, int k, DType dtype, DType out_dtype, bool bias) {
  Pool pool(gpu);
  const Stored x = store_as(random_floats(int64_t{rows} * k, 11), dtype);
  const Stored w = store_as(random_floats(int64_t{n} * k, 12), dtype);
  const auto b = random_floats(n, 13);
  void* y = pool.take(int64_t{rows} * n * 4);
  gpu.queue->fill(y, 0xff, int64_t{rows} * n * 4);
  const int offset = 3;
  gpu.queue->launch(GemmArgs{device_counts(pool, 0, rows + offset), pool.upload(x.bytes),
                             pool.weight(w.bytes.data(), n, k, dtype), y,
                             bias ? pool.upload(b) : nullptr, RowKind::kLogits, offset, rows, n, k,
                             dtype, out_dtype});
  const auto got =
      values_of(download(gpu, static_cast<uint8_t*>(y), int64_t{rows} * n * dtype_size(out_dtype)),
                out_dtype);
  std::vector<double> want(int64_t{rows} * n);
  parallel(rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = bias ? double{b[c]} : 0.0;
        for (int64_t i = 0; i < k; ++i) sum += x.values[r * k + i] * w.values[c * k + i];
        want[r * n + c] = sum;
      }
    }
  });
  const double error = relative_error(got, want);
  const double limit = out_dtype == DType::kBF16 ? 4e-3 : 5e-6;
  if (error >= limit || !(error == error)) {
    report(false, "gemm",
           text("rows %d n %d k %d %s->%s error %.2e", rows, n, k, dtype_name(dtype),
                dtype_name(out_dtype), error));
  }
}

struct BitsCase {
  int n;
  int k;
  int max_rows;
};

// Every number of rows gives the bits that the same rows have in the largest batch.
void check_bits(Gpu& gpu, const BitsCase& shape, DType dtype) {
  Pool pool(gpu);
  std::vector<uint16_t> x16, w16;
  std::vector<float> x32, w32;
  const void* w_data;
  void* x;
  if (dtype == DType::kBF16) {
    x16 = random_bf16(int64_t{shape.max_rows} * shape.k, 21);
    w16 = random_bf16(int64_t{shape.n} * shape.k, 22);
    x = pool.upload(x16);
    w_data = w16.data();
  } else {
    x32 = random_floats(int64_t{shape.max_rows} * shape.k, 21);
    w32 = random_floats(int64_t{shape.n} * shape.k, 22);
    x = pool.upload(x32);
    w_data = w32.data();
  }
  const int64_t bytes = int64_t{shape.max_rows} * shape.n * 4;
  auto* y = pool.array<uint8_t>(bytes);
  auto* host = static_cast<uint8_t*>(pool.take(bytes, MemoryKind::kPinned));
  auto* base = static_cast<uint8_t*>(pool.take(bytes, MemoryKind::kPinned));
  void* weight = pool.weight(w_data, shape.n, shape.k, dtype);
  const auto run = [&](int max_rows, int live, uint8_t* to) {
    gpu.queue->fill(y, 0xff, int64_t{max_rows} * shape.n * 4);
    gpu.queue->launch(GemmArgs{device_counts(pool, live, 0), x, weight, y, nullptr, RowKind::kToken,
                               0, max_rows, shape.n, shape.k, dtype, DType::kF32});
    gpu.queue->copy(to, y, int64_t{live} * shape.n * 4);
    gpu.drain("gemm");
  };
  run(shape.max_rows, shape.max_rows, base);
  std::vector<std::pair<int, int>> cases;
  for (int rows = 1; rows <= 64 && rows <= shape.max_rows; ++rows) cases.emplace_back(rows, rows);
  for (const int bucket : {8,   16,  24,  32,  64,  65,  96,   127,  128,  129,
                           192, 256, 257, 384, 512, 768, 1023, 1024, 1536, 2047}) {
    if (bucket > shape.max_rows) break;
    cases.emplace_back(bucket, bucket);
    cases.emplace_back(bucket, std::max(1, bucket - 3));
    cases.emplace_back(bucket, 1);
  }
  int64_t different = 0;
  for (const auto& [max_rows, live] : cases) {
    run(max_rows, live, host);
    std::atomic<int64_t> count{0};
    parallel(int64_t{live} * shape.n, [&](int64_t begin, int64_t end) {
      if (std::memcmp(host + begin * 4, base + begin * 4, (end - begin) * 4) != 0) ++count;
    });
    different += count;
    if (count > 0) std::printf("     rows %d live %d differ\n", max_rows, live);
  }
  // A few elements against the double sum, so that equal bits are also right ones.
  double difference = 0, norm = 1e-30;
  for (int s = 0; s < 400; ++s) {
    const int64_t r = s * 7919 % shape.max_rows, c = s * 104729 % shape.n;
    double sum = 0;
    for (int64_t i = 0; i < shape.k; ++i) {
      sum += dtype == DType::kBF16
                 ? double{bf16_to_float(x16[r * shape.k + i])} * bf16_to_float(w16[c * shape.k + i])
                 : double{x32[r * shape.k + i]} * w32[c * shape.k + i];
    }
    float got;
    std::memcpy(&got, base + (r * shape.n + c) * 4, 4);
    difference += (got - sum) * (got - sum);
    norm += sum * sum;
  }
  const double error = std::sqrt(difference / norm);
  // Tensor cores drop low bits of each sum: about 1e-9 for every k.
  report(different == 0 && error < (dtype == DType::kBF16 ? 3e-5 : 5e-6), "gemm bits",
         text("%s n %d k %d: %zu row counts up to %d, %lld differ, error %.1e", dtype_name(dtype),
              shape.n, shape.k, cases.size(), shape.max_rows, static_cast<long long>(different),
              error));
}

// A gated product has the bits of the product and the activation one after the other.
void check_gated(Gpu& gpu, int size, int k, DType dtype) {
  Pool pool(gpu);
  constexpr int kMaxRows = 1024;
  const int n = 2 * size;
  const Stored w = store_as(random_floats(int64_t{n} * k, 31, 2 / std::sqrt(float(k))), dtype);
  void* x = pool.upload(store_as(random_floats(int64_t{kMaxRows} * k, 32), dtype).bytes);
  const float* bias = pool.upload(random_floats(n, 33));
  const void* plain = pool.weight(w.bytes.data(), n, k, dtype);
  const void* pairs = pool.weight(w.bytes.data(), n, k, dtype, WeightOrder::kGateUp);
  auto* products = pool.array<float>(int64_t{kMaxRows} * n);
  const int64_t bytes = int64_t{kMaxRows} * size * static_cast<int64_t>(dtype_size(dtype));
  auto* want = pool.array<uint8_t>(bytes);
  auto* got = pool.array<uint8_t>(bytes);
  int64_t different = 0;
  int cases = 0;
  for (const int max_rows :
       {1, 3, 8, 9, 16, 17, 32, 40, 64, 65, 128, 130, 160, 195, 256, 300, 1024}) {
    const int live = max_rows > 8 ? max_rows - 3 : max_rows;
    const auto activation = static_cast<Activation>(cases % 3);
    const StepCounts* counts = device_counts(pool, live, 0);
    gpu.queue->fill(got, 0xff, bytes);
    GemmArgs args{counts,          x,          plain,    products, cases % 2 == 0 ? bias : nullptr,
                  RowKind::kToken, 0,          max_rows, n,        k,
                  dtype,           DType::kF32};
    gpu.queue->launch(args);
    gpu.queue->launch(GatedActArgs{counts, products, want, max_rows, size, activation, dtype});
    args.weight = pairs;
    args.y = got;
    args.out_dtype = dtype;
    args.gated = 1;
    args.activation = activation;
    gpu.queue->launch(args);
    const auto live_bytes = static_cast<size_t>(live) * size * dtype_size(dtype);
    if (download(gpu, want, live_bytes) != download(gpu, got, live_bytes)) ++different;
    const auto dead = download(gpu, got + live_bytes, bytes - live_bytes);
    for (const uint8_t byte : dead) different += byte != 0xff;
    ++cases;
  }
  report(different == 0, "gated gemm",
         text("%s size %d k %d: %d cases, %lld differ from gemm and gated_act", dtype_name(dtype),
              size, k, cases, static_cast<long long>(different)));
}

// The device's activations have the bits of the CPU's for gates of every sign and exponent.
void check_activation(Gpu& gpu, Activation activation) {
  Pool pool(gpu);
  constexpr int kRows = 4096;
  constexpr int kSize = 4099;
  constexpr uint32_t kStride = 255;  // so many steps of it cover nearly all bit patterns
  const auto gate_of = [](int64_t i) {
    return sample_math::float_of(static_cast<uint32_t>(i) * kStride);
  };
  const auto up_of = [](int64_t i) { return i % 2 == 0 ? 1.0f : 0.7f; };
  std::vector<float> pairs(int64_t{kRows} * kSize * 2);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kSize; ++c) {
      pairs[r * 2 * kSize + c] = gate_of(r * kSize + c);
      pairs[r * 2 * kSize + kSize + c] = up_of(r * kSize + c);
    }
  }
  auto* out = pool.array<float>(int64_t{kRows} * kSize);
  gpu.queue->launch(GatedActArgs{device_counts(pool, kRows, 0), pool.upload(pairs), out, kRows,
                                 kSize, activation, DType::kF32});
  const auto got = download(gpu, out, int64_t{kRows} * kSize);
  int64_t different = 0;
  for (int64_t i = 0; i < int64_t{kRows} * kSize; ++i) {
    const float want = activation_math::gated(activation, gate_of(i), up_of(i));
    if (std::isnan(want) && std::isnan(got[i])) continue;
    different += std::memcmp(&want, &got[i], sizeof want) != 0;
  }
  report(different == 0, "activation",
         text("number %d: %lld of %d gates differ from the CPU's", static_cast<int>(activation),
              static_cast<long long>(different), kRows * kSize));
}

// Products that are added to y: the bits of the sum of both.
void check_added(Gpu& gpu, int n, int k, DType dtype) {
  Pool pool(gpu);
  constexpr int kMaxRows = 300;
  const Stored w = store_as(random_floats(int64_t{n} * k, 41), dtype);
  void* x = pool.upload(store_as(random_floats(int64_t{kMaxRows} * k, 42), dtype).bytes);
  const float* bias = pool.upload(random_floats(n, 43));
  const auto before = random_floats(int64_t{kMaxRows} * n, 44);
  const void* weight = pool.weight(w.bytes.data(), n, k, dtype);
  auto* products = pool.array<float>(before.size());
  int64_t different = 0;
  for (const int max_rows : {1, 8, 16, 32, 64, 65, 130, 300}) {
    const int live = max_rows > 8 ? max_rows - 3 : max_rows;
    float* y = pool.upload(before);
    GemmArgs args{device_counts(pool, live, 0),
                  x,
                  weight,
                  products,
                  max_rows % 2 == 0 ? bias : nullptr,
                  RowKind::kToken,
                  0,
                  max_rows,
                  n,
                  k,
                  dtype,
                  DType::kF32};
    gpu.queue->launch(args);
    args.y = y;
    args.add = 1;
    gpu.queue->launch(args);
    const auto sums = download(gpu, products, before.size());
    const auto got = download(gpu, y, before.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const bool is_live = i < static_cast<size_t>(live) * n;
      different += got[i] != (is_live ? before[i] + sums[i] : before[i]);
    }
  }
  report(different == 0, "added gemm",
         text("%s n %d k %d: %lld differ", dtype_name(dtype), n, k,
              static_cast<long long>(different)));
}

}  // namespace

void check_gemm(Gpu& gpu) {
  const int before = num_failures;
  int count = 0;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [n, k] : std::vector<std::pair<int, int>>{{1, 8},
                                                               {5, 8},
                                                               {16, 32},
                                                               {33, 40},
                                                               {100, 72},
                                                               {129, 1000},
                                                               {50, 20},
                                                               {77, 333},
                                                               {640, 256}}) {
      for (const int rows : {1, 3, 8, 9, 16, 17, 40, 70, 130, 200, 300, 520}) {
        for (const DType out : {DType::kF32, DType::kBF16}) {
          check_shape(gpu, rows, n, k, dtype, out, rows % 2 == 0);
          ++count;
        }
      }
    }
  }
  report(num_failures == before, "gemm", text("%d cases against double", count));
  for (const Activation activation :
       {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
    check_activation(gpu, activation);
  }
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [size, k] : std::vector<std::pair<int, int>>{
             {1, 8}, {8, 32}, {12, 40}, {100, 72}, {77, 333}, {344, 256}, {1376, 512}}) {
      check_gated(gpu, size, k, dtype);
    }
    check_gated(gpu, 14328, 512, dtype);  // the widest tiles, whose rings go round
    check_gated(gpu, 7172, 1024, dtype);
    check_added(gpu, 100, 72, dtype);
    check_added(gpu, 1024, 512, dtype);
    // Clusters of three blocks along x, 120 and 168 columns each.
    check_added(gpu, 4096, 688, dtype);
    for (const int rows : {130, 189}) {
      for (const DType out : {DType::kF32, DType::kBF16}) {
        check_shape(gpu, rows, 4096, 688, dtype, out, true);
        check_shape(gpu, rows, 6144, 512, dtype, out, true);
      }
    }
  }
}

void check_gemm_bits(Gpu& gpu, bool large) {
  if (!large) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      check_bits(gpu, {768, 256, 2048}, dtype);
      check_bits(gpu, {1000, 296, 2048}, dtype);
      check_bits(gpu, {4096, 688, 1024}, dtype);
    }
    return;
  }
  check_bits(gpu, {6144, 4096, 2048}, DType::kBF16);
  check_bits(gpu, {4096, 4096, 2048}, DType::kBF16);
  check_bits(gpu, {28672, 4096, 2048}, DType::kBF16);
  check_bits(gpu, {4096, 14336, 2048}, DType::kBF16);
  check_bits(gpu, {128256, 4096, 2048}, DType::kBF16);
  check_bits(gpu, {4096, 4096, 256}, DType::kF32);
}

}  // namespace foretoken::check
