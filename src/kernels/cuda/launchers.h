#pragma once
#include <cuda_runtime.h>

#include <span>

#include "device/cuda/cuda_device.h"

// Launchers of the CUDA ops: `args` is the op's argument block (kernels/<op>.h).
namespace foretoken::cuda {

#define FT_OP(Name, name, kind) void launch_##name(const void* args, cudaStream_t stream);
#include "kernels/ops.def"
#undef FT_OP

// Lets no later kernel start before all that were launched so far have ended, so that those behind
// it may read what these wrote at once (common.cuh).
void launch_all_ended(cudaStream_t stream);

// A stream that is no more may have been the one whose layer tails start early.
void forget_tails(cudaStream_t stream);

// Where the upload op reports a plan that it cannot run.
void report_failures_to(PlanFailure* failure);

// Zero-filled room for a weight; nullptr when memory is short.
void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order);
int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order);
// Copies a weight to the device in the layout that launch_gemm reads (weight_layout.cuh).
// Blocks; nullptr when memory is short.
void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order);
void free_weight(void* weight);
// As of Device, for x of bfloat16.
bool keeps_quantized(const QuantForm& form, int64_t k);
bool keeps_together(std::span<const QuantizedPart> parts, int64_t unit_rows);
QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k,
                                      WeightOrder order, int64_t unit_rows);
// As of Device, of the current device.
int64_t rows_of_a_wave(int64_t num_outputs);
int64_t quantized_weight_bytes(const void* weight);

}  // namespace foretoken::cuda
