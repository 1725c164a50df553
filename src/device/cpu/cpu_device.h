#pragma once
#include <array>
#include <memory>
#include <span>

#include "device/cpu/cpu_pool.h"
#include "device/device.h"

namespace foretoken::cpu {

// An op's CPU implementation. Runs on the queue's worker thread; spreads work over `pool`. Must not
// allocate. An exception becomes the queue's error.
using OpFn = void (*)(const void* args, CpuPool& pool);

inline constexpr size_t kMaxOps = 128;

// What the kernels folder gives to the CPU device, so that this folder does not depend on it.
struct CpuKernels {
  std::array<OpFn, kMaxOps> ops{};
  std::array<bool, kMaxOps> stores_event{};  // ops after which a waiting host must be looked for
  void* (*make_weight)(int64_t n, int64_t k, DType dtype, WeightOrder order,
                       int64_t unit_rows) = nullptr;
  int64_t (*weight_slice_rows)(int64_t n, int64_t k, DType dtype, WeightOrder order,
                               int64_t unit_rows) = nullptr;
  void* (*pack_weight)(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order,
                       int64_t unit_rows) = nullptr;
  void (*free_weight)(void* weight) = nullptr;
  RowTable (*rows_of_weight)(const void* weight) = nullptr;
  bool (*keeps_quantized)(const QuantForm& form, int64_t k) = nullptr;
  QuantizedWeight (*make_quantized_weight)(std::span<const QuantizedPart> parts, int64_t k,
                                           DType dtype, WeightOrder order,
                                           int64_t unit_rows) = nullptr;
  int64_t (*quantized_weight_bytes)(const void* weight) = nullptr;
};

// A device whose queues each own one worker thread and a pool of `num_threads` threads (the worker
// included); 0 takes the number of physical cores.
Result<std::unique_ptr<Device>> open_cpu_device(const CpuKernels& kernels, int num_threads);

}  // namespace foretoken::cpu
