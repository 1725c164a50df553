#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "device/attention_families.h"
#include "device/cuda_plugin.h"

namespace foretoken::cuda {

// Enqueues one op on the stream from a copy of its argument block. It allocates nothing and may be
// captured.
using LaunchFn = void (*)(const void* args, cudaStream_t stream);

// Written by a kernel into pinned memory when the step it should run is not the one it finds. The
// queue turns it into its error; a trap instead would end every queue of the process.
inline constexpr uint64_t kGroupEnded = 2;
struct PlanFailure {
  uint64_t failed;  // 0, 1 (the other fields are written first), or kGroupEnded: other ranks are
                    // not waited for any more
  uint64_t plan_step;
  uint64_t step;
  char reason[256];  // of kGroupEnded, written by the host; empty: another rank says why
};

struct CudaOp {
  LaunchFn launch;   // null: the plug-in has no such op
  const char* name;  // for error messages
};

// What the kernels layer gives the device: the op table, indexed by Op, and the weight layout.
struct CudaKernels {
  const CudaOp* ops;
  int num_ops;
  void (*report_failures_to)(PlanFailure* failure);  // start-up only
  void* (*make_weight)(int64_t n, int64_t k, DType dtype, WeightOrder order);
  int64_t (*weight_slice_rows)(int64_t n, int64_t k, DType dtype, WeightOrder order);
  void* (*pack_weight)(std::span<const WeightPart> parts, int64_t k, DType dtype,
                       WeightOrder order);
  void (*free_weight)(void* weight);
  int64_t (*rows_of_a_wave)(int64_t num_outputs);             // of the current device
  bool (*keeps_quantized)(const QuantForm& form, int64_t k);  // the current device, bfloat16
  bool (*keeps_together)(std::span<const QuantizedPart> parts, int64_t unit_rows);
  QuantizedWeight (*make_quantized_weight)(std::span<const QuantizedPart> parts, int64_t k,
                                           WeightOrder order, int64_t unit_rows);
  int64_t (*quantized_weight_bytes)(const void* weight);
  bool (*has_attention)(AttentionFamily family);  // of the current device
  // As of AttentionFamilies, for the current device; null with a sentence in `error`.
  std::shared_ptr<const void> (*hold_flex)(const FlexProgram& program, DType dtype, KvFormat format,
                                           std::string& error);
  // Before a queue's stream is destroyed, and after all its graphs are.
  void (*forget_stream)(cudaStream_t stream);
};

// Opens CUDA device `ordinal`; null with a sentence in `error` when there is no driver, no such
// device, or one below compute capability 8.0.
std::unique_ptr<Device> open_device(const CudaKernels& kernels, int ordinal, std::string& error);

}  // namespace foretoken::cuda
