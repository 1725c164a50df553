#pragma once
#include "device/cpu/cpu_device.h"

namespace foretoken::cpu {

// The CPU implementation of every op, in the order of enum Op, and of the weight packing.
CpuKernels cpu_kernels();

// The ops. `args` points to the op's argument block (kernels/<op>.h). They run on the queue's
// worker thread, spread work over `pool` and do not allocate.
#define FT_OP(Name, name, kind) void name(const void* args, CpuPool& threads);
#include "kernels/ops.def"
#undef FT_OP

// The weight functions of Device for the CPU.
void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order, int64_t unit_rows);
int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order, int64_t unit_rows);
void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order,
                  int64_t unit_rows);
void free_weight(void* weight);
RowTable rows_of_weight(const void* weight);
bool keeps_quantized(const QuantForm& form, int64_t k);
QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k, DType dtype,
                                      WeightOrder order, int64_t unit_rows = 0);
int64_t quantized_weight_bytes(const void* weight);

}  // namespace foretoken::cpu
