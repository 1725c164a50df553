#pragma once
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/bfloat16.h"
#include "base/half.h"
#include "device/device.h"
#include "kernels/gemm/gemm.h"
#include "kernels/step_types.h"

// A harness without test framework, so that the checks build on any machine with a GPU.
namespace foretoken::check {

inline int num_failures = 0;

// Prints one line; a false `ok` counts as a failure of the program.
inline void report(bool ok, const char* name, const std::string& detail) {
  if (!ok) ++num_failures;
  std::printf("%s %-28s %s\n", ok ? "ok  " : "FAIL", name, detail.c_str());
  std::fflush(stdout);
}

template <class... Args>
std::string text(const char* format, Args... args) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

// The device with one queue; buffers live until the end of the program part that made them.
struct Gpu {
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue;

  void drain(const char* what) {
    const Status status = queue->drain();
    if (!status.ok()) {
      std::printf("FAIL %s: %s\n", what, status.message().c_str());
      std::exit(1);
    }
  }
};

class Pool {
 public:
  explicit Pool(Gpu& gpu) : gpu_(gpu) {}
  ~Pool() {
    gpu_.drain("free");
    for (auto& [pointer, kind] : blocks_) gpu_.device->deallocate(pointer, kind);
    for (void* weight : weights_) gpu_.device->free_weight(weight);
  }
  void* take(size_t bytes, MemoryKind kind = MemoryKind::kDevice) {
    void* pointer = gpu_.device->allocate(bytes, kind);
    if (pointer == nullptr) {
      std::printf("FAIL no memory for %zu bytes\n", bytes);
      std::exit(1);
    }
    blocks_.emplace_back(pointer, kind);
    return pointer;
  }
  template <class T>
  T* array(size_t count) {
    return static_cast<T*>(take(count * sizeof(T)));
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* pointer = array<T>(values.size());
    gpu_.queue->copy(pointer, values.data(), values.size() * sizeof(T));
    gpu_.drain("upload");
    return pointer;
  }
  void* weight(const void* data, int64_t n, int64_t k, DType dtype,
               WeightOrder order = WeightOrder::kPlain) {
    const WeightPart parts[2] = {
        {data, n / 2},
        {static_cast<const char*>(data) + n / 2 * k * static_cast<int64_t>(dtype_size(dtype)),
         n - n / 2}};
    void* handle = gpu_.device->pack_weight(parts, k, dtype, order);
    if (handle == nullptr) std::exit(1);
    weights_.push_back(handle);
    return handle;
  }

 private:
  Gpu& gpu_;
  std::vector<std::pair<void*, MemoryKind>> blocks_;
  std::vector<void*> weights_;
};

template <class T>
std::vector<T> download(Gpu& gpu, const T* pointer, size_t count) {
  std::vector<T> values(count);
  gpu.queue->copy(values.data(), pointer, count * sizeof(T));
  gpu.drain("download");
  return values;
}

inline void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& work) {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] { work(count * t / threads, count * (t + 1) / threads); });
  }
  for (std::thread& thread : pool) thread.join();
}

// Uniform in [-scale, scale), a function of (seed, index).
inline float noise(uint64_t seed, uint64_t index, float scale) {
  uint64_t x = index * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return (static_cast<float>((x >> 40) & 0xffffff) / 8388608.0f - 1.0f) * scale;
}

inline std::vector<float> random_floats(size_t count, uint64_t seed, float scale = 1.0f) {
  std::vector<float> values(count);
  parallel(static_cast<int64_t>(count), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = noise(seed, i, scale);
  });
  return values;
}

inline std::vector<uint16_t> random_bf16(size_t count, uint64_t seed, float scale = 1.0f) {
  std::vector<uint16_t> values(count);
  parallel(static_cast<int64_t>(count), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = bf16_from_float(noise(seed, i, scale));
  });
  return values;
}

// A float array stored as `dtype`: bytes to upload, and the values that the device will see.
struct Stored {
  std::vector<uint8_t> bytes;
  std::vector<double> values;
};

inline Stored store_as(const std::vector<float>& floats, DType dtype) {
  Stored stored;
  stored.bytes.resize(floats.size() * dtype_size(dtype));
  stored.values.resize(floats.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    if (dtype == DType::kF32) {
      std::memcpy(&stored.bytes[i * 4], &floats[i], 4);
      stored.values[i] = floats[i];
    } else {
      const bool is_half = dtype == DType::kF16;
      const uint16_t bits = is_half ? half_from_float(floats[i]) : bf16_from_float(floats[i]);
      std::memcpy(&stored.bytes[i * 2], &bits, 2);
      stored.values[i] = is_half ? half_to_float(bits) : bf16_to_float(bits);
    }
  }
  return stored;
}

inline std::vector<double> values_of(const std::vector<uint8_t>& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF32) {
      float value;
      std::memcpy(&value, &bytes[i * 4], 4);
      values[i] = value;
    } else {
      uint16_t bits;
      std::memcpy(&bits, &bytes[i * 2], 2);
      values[i] = bf16_to_float(bits);
    }
  }
  return values;
}

// ||a - b|| / ||b||; NaN anywhere gives NaN.
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  double norm = 1e-30;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

// Largest relative error that the arithmetic explains.
inline double tolerance(DType dtype) { return dtype == DType::kF32 ? 2e-6 : 6e-3; }

inline StepCounts* device_counts(Pool& pool, int rows, int logits_rows) {
  return pool.upload(std::vector<StepCounts>{{rows, logits_rows, 0, 0}});
}

// Of one launch, from many.
template <class Args>
double microseconds(Gpu& gpu, const Args& args) {
  constexpr int kRuns = 50;
  gpu.queue->launch(args);
  gpu.drain("warm up");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) gpu.queue->launch(args);
  gpu.drain("time");
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
             .count() /
         kRuns;
}

void check_queue(Gpu& gpu);
void check_rows(Gpu& gpu);
void check_gemm(Gpu& gpu);
void check_gemm_bits(Gpu& gpu, bool large);
void check_attention(Gpu& gpu);
void check_attention_bits(Gpu& gpu);
void check_attention_schedules(Gpu& gpu);
void check_sample(Gpu& gpu);
void check_logits(Gpu& gpu);
void check_masks(Gpu& gpu);
void check_step(Gpu& gpu);
void check_draft(Gpu& gpu);
void check_head(Gpu& gpu, bool large);
// Ops between ranks: processes that take turns on device 0. Before this one opens a device.
void check_ranks();

}  // namespace foretoken::check
