#include <algorithm>
#include <chrono>

#include "check.h"
#include "device/cuda_plugin.h"
#include "kernels/attention.h"
#include "kernels/gated_act.h"
#include "kernels/rms_norm.h"
#include "kernels/rope_kv.h"
#include "kernels/sample.h"

// Times of the CUDA ops at the shapes of Llama-3-8B, as graph replays over data larger than the L2
// cache: cuda_kernels_bench [gemm|prefill|layers|attention|sample]...
namespace foretoken::check {
namespace {

constexpr double kReadLimit = 4.2e12;  // bytes a second that a copy reaches on an H200
constexpr double kMathLimit = 790e12;  // bf16 operations a second of a large library product

// Median microseconds of one replay of what `enqueue` records.
template <class Enqueue>
double replay_us(Gpu& gpu, int repeats, const Enqueue& enqueue) {
  gpu.queue->begin_capture();
  enqueue();
  auto graph = gpu.queue->end_capture();
  std::vector<double> times;
  for (int i = 0; i < repeats + 2; ++i) {
    gpu.drain("before");
    const auto start = std::chrono::steady_clock::now();
    gpu.queue->replay(*graph);
    gpu.drain("replay");
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (i >= 2) times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

struct Matrix {
  const char* name;
  int n;
  int k;
};
constexpr Matrix kMatrices[] = {{"qkv", 6144, 4096},
                                {"o", 4096, 4096},
                                {"gate_up", 28672, 4096},
                                {"down", 4096, 14336},
                                {"head", 128256, 4096}};

GemmArgs gemm_args(const StepCounts* counts, const void* x, const void* weight, void* y, int rows,
                   const Matrix& m) {
  return {counts, x,    weight, y,   nullptr,      RowKind::kToken,
          0,      rows, m.n,    m.k, DType::kBF16, DType::kF32};
}

void bench_gemm(Gpu& gpu) {
  std::printf("decode products, us and share of %.1f TB/s (weight bytes)\n%-8s", kReadLimit / 1e12,
              "rows");
  for (const Matrix& m : kMatrices) std::printf(" %16s", m.name);
  std::printf("\n");
  const std::vector<int> row_counts = {1, 8, 16, 32, 64, 128, 256};
  std::vector<std::vector<double>> times(row_counts.size());
  for (const Matrix& m : kMatrices) {
    Pool pool(gpu);
    const auto w = random_bf16(int64_t{m.n} * m.k, 1);
    const auto x = pool.upload(random_bf16(int64_t{256} * m.k, 2));
    auto* y = pool.array<float>(int64_t{256} * m.n);
    const int copies = std::max<int>(1, static_cast<int>(600000000 / (int64_t{m.n} * m.k * 2)));
    std::vector<void*> weights;
    for (int i = 0; i < copies; ++i)
      weights.push_back(pool.weight(w.data(), m.n, m.k, DType::kBF16));
    for (size_t r = 0; r < row_counts.size(); ++r) {
      const int rows = row_counts[r];
      const auto* counts = device_counts(pool, rows, 0);
      const int loops = std::max(1, 40 / copies);
      const double us = replay_us(gpu, 7, [&] {
        for (int l = 0; l < loops; ++l) {
          for (void* weight : weights) {
            gpu.queue->launch(gemm_args(counts, x, weight, y, rows, m));
          }
        }
      });
      times[r].push_back(us / loops / copies);
    }
  }
  for (size_t r = 0; r < row_counts.size(); ++r) {
    std::printf("%-8d", row_counts[r]);
    for (size_t i = 0; i < times[r].size(); ++i) {
      const double floor = double(kMatrices[i].n) * kMatrices[i].k * 2 / kReadLimit * 1e6;
      std::printf(" %8.1f (%3.0f %%)", times[r][i], floor / times[r][i] * 100);
    }
    std::printf("\n");
  }
}

void bench_prefill(Gpu& gpu) {
  std::printf("prefill products, TFLOP/s (library: %.0f)\n", kMathLimit / 1e12);
  for (const int rows : {512, 2048, 8192}) {
    std::printf("%-8d", rows);
    for (const Matrix& m : kMatrices) {
      if (m.n > 100000) continue;
      Pool pool(gpu);
      const auto x = pool.upload(random_bf16(int64_t{rows} * m.k, 2));
      void* weight = pool.weight(random_bf16(int64_t{m.n} * m.k, 1).data(), m.n, m.k, DType::kBF16);
      auto* y = pool.array<float>(int64_t{rows} * m.n);
      const auto* counts = device_counts(pool, rows, 0);
      const double us = replay_us(gpu, 3, [&] {
        for (int i = 0; i < 4; ++i) gpu.queue->launch(gemm_args(counts, x, weight, y, rows, m));
      });
      std::printf(" %s %6.1f", m.name, 2.0 * rows * m.n * m.k / (us / 4) / 1e6);
    }
    std::printf("\n");
  }
}

// All linear layers, norms and activations of a step, each with weights of its own.
void bench_layers(Gpu& gpu) {
  constexpr int kLayers = 32, kHidden = 4096, kInner = 14336;
  Pool pool(gpu);
  std::vector<void*> weights[4];
  double bytes = 0;
  for (int i = 0; i < 4; ++i) {
    const Matrix& m = kMatrices[i];
    const auto w = random_bf16(int64_t{m.n} * m.k, 1, 0.02f);
    for (int l = 0; l < kLayers; ++l) {
      weights[i].push_back(pool.weight(w.data(), m.n, m.k, DType::kBF16));
      bytes += double(m.n) * m.k * 2;
    }
  }
  const Matrix& head = kMatrices[4];
  void* head_weight = pool.weight(random_bf16(int64_t{head.n} * head.k, 1, 0.02f).data(), head.n,
                                  head.k, DType::kBF16);
  bytes += double(head.n) * head.k * 2;
  for (const int rows : {1, 16, 64}) {
    const auto* counts = device_counts(pool, rows, rows);
    auto* residual = pool.array<float>(rows * kHidden);
    auto* norm_weight = pool.array<float>(kHidden);
    void* x = pool.take(rows * kInner * 2);
    auto* y = pool.array<float>(int64_t{rows} * head.n);
    const auto norm = [&] {
      gpu.queue->launch(RmsNormArgs{counts, residual, y, norm_weight, x, nullptr, 0, rows, kHidden,
                                    1e-5f, DType::kBF16});
    };
    const auto product = [&](void* weight, const Matrix& m) {
      gpu.queue->launch(gemm_args(counts, x, weight, y, rows, m));
    };
    const double us = replay_us(gpu, 7, [&] {
      for (int l = 0; l < kLayers; ++l) {
        norm();
        product(weights[0][l], kMatrices[0]);
        product(weights[1][l], kMatrices[1]);
        norm();
        product(weights[2][l], kMatrices[2]);
        gpu.queue->launch(
            GatedActArgs{counts, y, x, rows, kInner, Activation::kSilu, DType::kBF16});
        product(weights[3][l], kMatrices[3]);
      }
      norm();
      product(head_weight, head);
    });
    std::printf("32 layers without attention, %d rows: %.0f us, floor %.0f us, %.2f TB/s\n", rows,
                us, bytes / kReadLimit * 1e6, bytes / us / 1e6);
  }
}

void bench_attention_case(Gpu& gpu, int sequences, int rows_each, int context) {
  constexpr int kHeads = 32, kKvHeads = 8, kDim = 128, kBlock = 16;
  Pool pool(gpu);
  const int rows = sequences * rows_each;
  const int max_blocks = (context + kBlock - 1) / kBlock;
  const int64_t elements = int64_t{sequences} * max_blocks * kKvHeads * kBlock * kDim;
  const int layers = std::clamp(static_cast<int>(400000000 / (elements * 4)), 1, 16);
  const auto data = random_bf16(elements, 3);
  std::vector<KvLayer> caches;
  for (int l = 0; l < layers; ++l) {
    caches.push_back({pool.upload(data), pool.upload(data), kKvHeads, kBlock, kDim, DType::kBF16});
  }
  std::vector<int32_t> tables(sequences * max_blocks), positions(rows), slots(rows);
  for (size_t i = 0; i < tables.size(); ++i) tables[i] = static_cast<int32_t>(i);
  std::shuffle(tables.begin(), tables.end(), std::mt19937(1));
  for (int r = 0; r < rows; ++r) {
    slots[r] = r / rows_each;
    positions[r] = context - rows_each + r % rows_each;
  }
  const auto* q = pool.upload(random_bf16(int64_t{rows} * kHeads * kDim, 4));
  auto* out = pool.array<uint16_t>(int64_t{rows} * kHeads * kDim);
  const int64_t splits = (context + kAttentionSplit - 1) / kAttentionSplit;
  const int64_t floats = rows <= 128 ? rows * kHeads * splits * (kDim + 2) : 0;
  auto* workspace = pool.array<float>(floats + 1);
  const auto* counts = device_counts(pool, rows, 0);
  const auto* p = pool.upload(positions);
  const auto* s = pool.upload(slots);
  const auto* t = pool.upload(tables);
  constexpr int kLaunches = 16;
  const double us = replay_us(gpu, 5,
                              [&] {
                                for (int i = 0; i < kLaunches; ++i) {
                                  gpu.queue->launch(AttentionArgs{
                                      counts, q, out, p, s, t, workspace, floats,
                                      caches[i % layers], max_blocks, rows, kHeads, 0, 0.0883883f});
                                }
                              }) /
                    kLaunches;
  const double bytes = double(sequences) * context * kKvHeads * kDim * 4;
  const double mean_context = context - (rows_each - 1) / 2.0;
  const double flops = 4.0 * rows * kHeads * kDim * mean_context;
  std::printf(
      "attention %3d sequences x %4d rows, context %6d: %8.1f us, %.2f TB/s, %.0f TFLOP/s\n",
      sequences, rows_each, context, us, bytes / us / 1e6, flops / us / 1e6);
}

void bench_attention(Gpu& gpu) {
  bench_attention_case(gpu, 1, 1, 1024);
  bench_attention_case(gpu, 1, 1, 32768);
  bench_attention_case(gpu, 16, 1, 4096);
  bench_attention_case(gpu, 16, 5, 4096);
  bench_attention_case(gpu, 64, 1, 2048);
  bench_attention_case(gpu, 256, 1, 1024);
  bench_attention_case(gpu, 1, 2048, 2048);
  bench_attention_case(gpu, 4, 2048, 2048);
}

void bench_sample(Gpu& gpu) {
  constexpr int kVocab = 128256, kRows = 64;
  Pool pool(gpu);
  auto* logits = pool.upload(random_floats(int64_t{kRows} * kVocab, 5, 8.0f));
  std::vector<int32_t> index(kRows);
  for (int i = 0; i < kRows; ++i) index[i] = i;
  StepTensors tensors{};
  tensors.positions = tensors.logits_rows = pool.upload(index);
  tensors.row_slot = pool.upload(std::vector<int32_t>(kRows, 0));
  tensors.sampled = pool.array<int32_t>(kRows);
  struct Case {
    const char* name;
    float temperature, top_p;
    int top_k;
  };
  for (const Case& c : {Case{"greedy", 0, 1, 0}, Case{"temperature 1", 1, 1, 0},
                        Case{"top_p 0.9", 1, 0.9f, 0}, Case{"top_k 50, top_p 0.9", 1, 0.9f, 50}}) {
    SlotParams params{};
    params.temperature = c.temperature;
    params.top_p = c.top_p;
    params.top_k = c.top_k;
    BatchState batch{};
    batch.params = pool.upload(std::vector<SlotParams>{params});
    batch.slots = pool.upload(std::vector<SlotState>(1));
    std::printf("sample %-20s", c.name);
    for (const int count : {1, 16, 64}) {
      tensors.counts = device_counts(pool, count, count);
      const double us = replay_us(gpu, 5, [&] {
        for (int i = 0; i < 10; ++i) {
          gpu.queue->launch(SampleArgs{logits, tensors, batch, 0, count, kVocab});
        }
      });
      std::printf("  %d rows %7.1f us", count, us / 10);
    }
    std::printf("\n");
  }
}

int run(int argc, char** argv) {
  auto device = open_cuda_device(0);
  if (!device.ok()) {
    std::printf("%s\n", device.status().message().c_str());
    return 77;
  }
  Gpu gpu{std::move(device).value(), nullptr};
  gpu.queue = std::move(gpu.device->make_queue()).value();
  std::printf("device %s\n", gpu.device->name().c_str());
  const auto wanted = [&](const char* name) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], name) == 0) return true;
    }
    return argc == 1;
  };
  if (wanted("gemm")) bench_gemm(gpu);
  if (wanted("layers")) bench_layers(gpu);
  if (wanted("prefill")) bench_prefill(gpu);
  if (wanted("attention")) bench_attention(gpu);
  if (wanted("sample")) bench_sample(gpu);
  gpu.drain("end");
  gpu.queue.reset();
  return 0;
}

}  // namespace
}  // namespace foretoken::check

int main(int argc, char** argv) { return foretoken::check::run(argc, argv); }
