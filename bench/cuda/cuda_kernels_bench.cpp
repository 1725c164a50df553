#include <algorithm>
#include <chrono>

#include "check.h"
#include "device/cuda_plugin.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/gemm/gated_act.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/sampling/sample.h"

// Times of the CUDA ops at the shapes of Llama-3-8B, as graph replays over data larger than the L2
// cache: cuda_kernels_bench [gemm|prefill|hot|layers|attention|long|prompts|sample|ROWS]...
// ROWS: numbers of rows for `hot`, which must be named.
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

// Microseconds of one replay, over `seconds` of replays that follow each other without a pause.
double hot_replay_us(Gpu& gpu, Graph& graph, double seconds) {
  constexpr int kAhead = 4;
  const auto start = std::chrono::steady_clock::now();
  for (int count = kAhead;; count += kAhead) {
    for (int i = 0; i < kAhead; ++i) gpu.queue->replay(graph);
    gpu.drain("replay");
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (time.count() >= seconds) return time.count() / count * 1e6;
  }
}

// First after a rest, then at the power limit.
void print_rates(Gpu& gpu, const char* name, const std::vector<GemmArgs>& products) {
  double flops = 0;
  gpu.queue->begin_capture();
  for (const GemmArgs& args : products) {
    gpu.queue->launch(args);
    flops += 2.0 * args.max_rows * args.n * args.k;
  }
  auto graph = gpu.queue->end_capture();
  hot_replay_us(gpu, *graph, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double first = hot_replay_us(gpu, *graph, 0.02);
  hot_replay_us(gpu, *graph, 1.0);
  const double hot = hot_replay_us(gpu, *graph, 0.3);
  std::printf("  %s %.0f %.0f", name, flops / first / 1e6, flops / hot / 1e6);
  std::fflush(stdout);
}

// The products of a layer as the engine launches them, for so long that the card is at its power
// limit: for a few milliseconds they run at higher clocks.
void bench_hot(Gpu& gpu, const std::vector<int>& row_counts) {
  constexpr int kLayers = 4;
  std::printf("products without a pause, TFLOP/s: first 20 ms, after 1 s\n");
  for (const int rows : row_counts) {
    Pool pool(gpu);
    const auto* counts = device_counts(pool, rows, 0);
    const auto* x = pool.upload(random_bf16(int64_t{rows} * 14336, 2));
    auto* residual = pool.array<float>(int64_t{rows} * 4096);
    auto* wide = pool.array<uint16_t>(int64_t{rows} * 14336);
    std::vector<GemmArgs> all;
    std::printf("%-6d", rows);
    for (int m = 0; m < 4; ++m) {
      const Matrix& matrix = kMatrices[m];
      const bool gated = m == 2, adds = m % 2 == 1;
      const auto data = random_bf16(int64_t{matrix.n} * matrix.k, 1, 0.02f);
      std::vector<GemmArgs> layers;
      for (int l = 0; l < kLayers; ++l) {
        void* weight = pool.weight(data.data(), matrix.n, matrix.k, DType::kBF16,
                                   gated ? WeightOrder::kGateUp : WeightOrder::kPlain);
        layers.push_back(gemm_args(counts, x, weight, wide, rows, matrix));
        layers.back().gated = gated;
        layers.back().add = adds;
        layers.back().out_dtype = adds ? DType::kF32 : DType::kBF16;
        if (adds) layers.back().y = residual;
      }
      print_rates(gpu, matrix.name, layers);
      all.insert(all.end(), layers.begin(), layers.end());
    }
    print_rates(gpu, "all", all);
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

// A sequence of a made-up step: its rows are the last of `context` positions.
struct Load {
  int sequences;
  int rows_each;
  int context;
};

struct AttentionRows {
  std::vector<int32_t> positions;
  std::vector<int32_t> slots;
  int num_slots = 0;
  int longest = 0;
  double positions_read = 0;
  double row_positions = 0;
};

AttentionRows attention_rows(const std::vector<Load>& loads) {
  AttentionRows all;
  for (const Load& load : loads) {
    all.longest = std::max(all.longest, load.context);
    for (int i = 0; i < load.sequences; ++i, ++all.num_slots) {
      all.positions_read += load.context;
      for (int r = load.context - load.rows_each; r < load.context; ++r) {
        all.slots.push_back(all.num_slots);
        all.positions.push_back(r);
        all.row_positions += r + 1;
      }
    }
  }
  return all;
}

// Blocks of the sequences in shuffled order; returns how many there are.
int fill_tables(const std::vector<Load>& loads, int block_size, int max_blocks,
                std::vector<int32_t>& tables) {
  std::vector<size_t> places;
  int slot = 0;
  for (const Load& load : loads) {
    for (int i = 0; i < load.sequences; ++i, ++slot) {
      for (int b = 0; b * block_size < load.context; ++b) {
        places.push_back(static_cast<size_t>(slot) * max_blocks + b);
      }
    }
  }
  std::shuffle(places.begin(), places.end(), std::mt19937(1));
  for (size_t i = 0; i < places.size(); ++i) tables[places[i]] = static_cast<int32_t>(i);
  return static_cast<int>(places.size());
}

void bench_attention_case(Gpu& gpu, const char* name, const std::vector<Load>& loads,
                          RunLengths runs) {
  constexpr int kHeads = 32, kKvHeads = 8, kDim = 128, kBlock = 16, kLaunches = 16;
  constexpr int64_t kWorkspace = int64_t{48} << 20;  // as the engine has
  Pool pool(gpu);
  const AttentionRows all = attention_rows(loads);
  const int rows = static_cast<int>(all.positions.size());
  const int max_blocks = (all.longest + kBlock - 1) / kBlock;
  std::vector<int32_t> tables(static_cast<size_t>(all.num_slots) * max_blocks, 0);
  const int64_t elements =
      int64_t{fill_tables(loads, kBlock, max_blocks, tables)} * kKvHeads * kBlock * kDim;
  const int layers = std::clamp(static_cast<int>(400000000 / (elements * 4)), 1, 16);
  const auto data = random_bf16(elements, 3);
  std::vector<KvLayer> caches;
  for (int l = 0; l < layers; ++l) {
    caches.push_back({pool.upload(data), pool.upload(data), kKvHeads, kBlock, kDim, DType::kBF16});
  }
  const auto* q = pool.upload(random_bf16(int64_t{rows} * kHeads * kDim, 4));
  auto* out = pool.array<uint16_t>(int64_t{rows} * kHeads * kDim);
  auto* workspace = pool.array<float>(kWorkspace);
  auto* sync = pool.upload(std::vector<uint32_t>(static_cast<size_t>(rows) * kHeads, 0));
  const auto* counts = device_counts(pool, rows, 0);
  const auto* p = pool.upload(all.positions);
  const auto* s = pool.upload(all.slots);
  const auto* t = pool.upload(tables);
  const double us =
      replay_us(gpu, 5,
                [&] {
                  for (int i = 0; i < kLaunches; ++i) {
                    gpu.queue->launch(AttentionArgs{counts, q, out, p, s, t, workspace, kWorkspace,
                                                    sync, caches[i % layers], max_blocks, rows,
                                                    kHeads, 0, 0.0883883f, 0, 0, runs});
                  }
                }) /
      kLaunches;
  const double bytes = all.positions_read * kKvHeads * kDim * 4;
  const double flops = 4.0 * kHeads * kDim * all.row_positions;
  std::printf("attention %-28s %-7s %8.1f us, %.2f TB/s (%.0f %%), %.0f TFLOP/s\n", name,
              runs == RunLengths::kShort  ? "short"
              : runs == RunLengths::kLong ? "long"
                                          : "far",
              us, bytes / us / 1e6, 100e6 * bytes / us / kReadLimit, flops / us / 1e6);
  std::fflush(stdout);
}

void bench_attention_case(Gpu& gpu, const char* name, const std::vector<Load>& loads) {
  bench_attention_case(gpu, name, loads, RunLengths::kShort);
  const auto too_long = [](const Load& load) { return load.rows_each > kShortRun; };
  if (std::none_of(loads.begin(), loads.end(), too_long)) return;
  bench_attention_case(gpu, name, loads, RunLengths::kLong);
  bench_attention_case(gpu, name, loads, RunLengths::kFar);
}

void bench_attention(Gpu& gpu) {
  bench_attention_case(gpu, "1 x 272", {{1, 1, 272}});
  bench_attention_case(gpu, "16 x 272", {{16, 1, 272}});
  bench_attention_case(gpu, "64 x 272", {{64, 1, 272}});
  bench_attention_case(gpu, "256 x 272", {{256, 1, 272}});
  bench_attention_case(gpu, "16 x 272, 4 rows", {{16, 4, 272}});
  bench_attention_case(gpu, "64 x 272, 4 rows", {{64, 4, 272}});
  bench_attention_case(gpu, "256 x 272, 4 rows", {{256, 4, 272}});
}

void bench_long_attention(Gpu& gpu) {
  bench_attention_case(gpu, "1 x 2048", {{1, 1, 2048}});
  bench_attention_case(gpu, "16 x 4096", {{16, 1, 4096}});
  bench_attention_case(gpu, "256 x 1024", {{256, 1, 1024}});
  bench_attention_case(gpu, "64 x 2048", {{64, 1, 2048}});
  bench_attention_case(gpu, "1 x 6k", {{1, 1, 6000}});
  bench_attention_case(gpu, "1 x 10k", {{1, 1, 10000}});
  bench_attention_case(gpu, "1 x 20k", {{1, 1, 20000}});
  bench_attention_case(gpu, "16 x 12k", {{16, 1, 12000}});
  bench_attention_case(gpu, "16 x 32k", {{16, 1, 32768}});
  bench_attention_case(gpu, "16 x 32k, 4 rows", {{16, 4, 32768}});
  bench_attention_case(gpu, "1 x 128k", {{1, 1, 131072}});
  bench_attention_case(gpu, "1 x 128k, 4 rows", {{1, 4, 131072}});
  bench_attention_case(gpu, "1 x 128k among 63 x 264", {{1, 1, 131072}, {63, 1, 264}});
}

void bench_prompt_attention(Gpu& gpu) {
  bench_attention_case(gpu, "prompt of 512", {{1, 512, 512}});
  bench_attention_case(gpu, "prompt of 128", {{1, 128, 128}});
  bench_attention_case(gpu, "prompt of 64", {{1, 64, 64}});
  bench_attention_case(gpu, "prompt of 256", {{1, 256, 256}});
  bench_attention_case(gpu, "64 behind 1k", {{1, 64, 1088}});
  bench_attention_case(gpu, "128 behind 1k", {{1, 128, 1152}});
  bench_attention_case(gpu, "256 behind 1k", {{1, 256, 1280}});
  bench_attention_case(gpu, "64 behind 8k", {{1, 64, 8256}});
  bench_attention_case(gpu, "128 behind 8k", {{1, 128, 8320}});
  bench_attention_case(gpu, "256 behind 8k", {{1, 256, 8448}});
  bench_attention_case(gpu, "prompt of 64 among 64 x 272", {{1, 64, 64}, {64, 1, 272}});
  bench_attention_case(gpu, "512 behind 8k among 128 x 272", {{1, 512, 8704}, {128, 1, 272}});
  bench_attention_case(gpu, "prompt of 192 among 64 x 272", {{1, 192, 192}, {64, 1, 272}});
  bench_attention_case(gpu, "prompt of 40 among 8 x 272", {{1, 40, 40}, {8, 1, 272}});
  bench_attention_case(gpu, "2k behind 8k", {{1, 2048, 10240}});
  bench_attention_case(gpu, "prompt of 8k", {{1, 8192, 8192}});
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
  std::vector<int> row_counts;
  for (int i = 1; i < argc; ++i) {
    if (const int rows = std::atoi(argv[i]); rows > 0) row_counts.push_back(rows);
  }
  if (row_counts.empty()) row_counts = {256, 2048, 8192};
  if (wanted("gemm")) bench_gemm(gpu);
  if (wanted("layers")) bench_layers(gpu);
  if (wanted("prefill")) bench_prefill(gpu);
  if (wanted("hot")) bench_hot(gpu, row_counts);
  if (wanted("attention")) bench_attention(gpu);
  if (wanted("long")) bench_long_attention(gpu);
  if (wanted("prompts")) bench_prompt_attention(gpu);
  if (wanted("sample")) bench_sample(gpu);
  gpu.drain("end");
  gpu.queue.reset();
  return 0;
}

}  // namespace
}  // namespace foretoken::check

int main(int argc, char** argv) { return foretoken::check::run(argc, argv); }
