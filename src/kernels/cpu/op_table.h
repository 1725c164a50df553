#pragma once
#include "device/cpu/cpu_device.h"

namespace foretoken::cpu {

// The CPU implementation of every op, in the order of enum Op, and of the weight packing.
CpuKernels cpu_kernels();

// The ops. `args` points to the op's argument block (kernels/<op>.h). They run on the queue's
// worker thread, spread work over `pool` and do not allocate.
void delay(const void* args, CpuPool& pool);
void mark_time(const void* args, CpuPool& pool);
void upload(const void* args, CpuPool& pool);
void prepare(const void* args, CpuPool& pool);
void embed(const void* args, CpuPool& pool);
void rms_norm(const void* args, CpuPool& pool);
void gemm(const void* args, CpuPool& pool);
void layer_tail(const void* args, CpuPool& pool);
void rope_kv(const void* args, CpuPool& pool);
void attention(const void* args, CpuPool& pool);
void gated_act(const void* args, CpuPool& pool);
void softcap(const void* args, CpuPool& pool);
void pool(const void* args, CpuPool& threads);
void keep_raw(const void* args, CpuPool& pool);
void export_logits(const void* args, CpuPool& pool);
void import_logits(const void* args, CpuPool& pool);
void shape_logits(const void* args, CpuPool& pool);
void export_spans(const void* args, CpuPool& pool);
void await_masks(const void* args, CpuPool& pool);
void apply_masks(const void* args, CpuPool& pool);
void sample(const void* args, CpuPool& pool);
void logprobs(const void* args, CpuPool& pool);
void commit(const void* args, CpuPool& pool);
void publish(const void* args, CpuPool& pool);
void ngram(const void* args, CpuPool& pool);
void choose_lengths(const void* args, CpuPool& pool);
void draft_rows(const void* args, CpuPool& pool);
void draft_next(const void* args, CpuPool& pool);
void move_rows(const void* args, CpuPool& pool);
void pair_rows(const void* args, CpuPool& pool);
void head_argmax(const void* args, CpuPool& pool);
void spread_logits(const void* args, CpuPool& pool);
void fill_random(const void* args, CpuPool& pool);
void pack_rows(const void* args, CpuPool& pool);
void stamp(const void* args, CpuPool& pool);
void all_reduce(const void* args, CpuPool& pool);
void send_step(const void* args, CpuPool& pool);
void receive_step(const void* args, CpuPool& pool);
void send_rows(const void* args, CpuPool& pool);
void receive_rows(const void* args, CpuPool& pool);
void gather_columns(const void* args, CpuPool& pool);
void gather_argmax(const void* args, CpuPool& pool);
void share_masks(const void* args, CpuPool& pool);

// The weight functions of Device for the CPU.
void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order);
int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order);
void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order);
void free_weight(void* weight);
bool keeps_quantized(const QuantForm& form, int64_t k);
QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k, DType dtype,
                                      WeightOrder order);
int64_t quantized_weight_bytes(const void* weight);

}  // namespace foretoken::cpu
