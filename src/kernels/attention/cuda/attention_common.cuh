#pragma once
#include "kernels/attention/attention.h"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {

// Kernels by type and head size: tensor cores for queries of bfloat16 with the head sizes of
// `uses_tensor_cores`, plain float arithmetic for the rest and where values are the front of keys.
// Codes of KvFormat::kFp8 become bfloat16 on the way to the tensor cores, exactly, without the
// scales of their heads: those join the score's factor and the result. So do those of kInt8, whose
// scales multiply each product and each weight.
//
// All reduce the KV positions of a split (AttentionSplits) to a partial result (highest score, sum
// of weights, weighted sum of values) and merge the partial results in ascending order with
// `merge_scales`. Schedules differ in which block computes a split and in where the partial results
// wait: in registers or in the workspace. Every product, sum and merge is the same, so the bits
// are, too.
struct AttentionSchedule {
  int num_parts;      // blocks that share the splits of a row; 1: no workspace
  int max_splits;     // stride of the workspace
  int first_end = 0;  // short runs that end before this row are another kernel's
};
// The device knows which rows form runs of consecutive positions of a sequence; each kernel takes
// its own. Rows of a run that share a block of launch_attention_short, at most:
int attention_short_tokens(const AttentionArgs& args);
// Runs of at most kLongRun rows.
void launch_attention_short(const AttentionArgs& args, AttentionSchedule schedule,
                            cudaStream_t stream);
// Longer runs. With the asynchronous products of sm_90a, false where there are none for the head
// size; with mma.sync for all.
struct LongCut;
bool launch_attention_wgmma(const AttentionArgs& args, const LongCut& cut, cudaStream_t stream);
// The blocks that it has without a cut.
int attention_wgmma_blocks(const AttentionArgs& args);
void launch_attention_long(const AttentionArgs& args, cudaStream_t stream);
// The same by blocks of three warpgroups, over bfloat16.
bool launch_attention_wgmma_wide(const AttentionArgs& args, const LongCut& cut,
                                 cudaStream_t stream);
// What these do with codes of KvFormat::kFp8.
bool launch_attention_wgmma_codes(const AttentionArgs& args, const LongCut& cut,
                                  cudaStream_t stream);
void launch_attention_short_codes(const AttentionArgs& args, AttentionSchedule schedule,
                                  cudaStream_t stream);
void launch_attention_long_codes(const AttentionArgs& args, cudaStream_t stream);
// The same of KvFormat::kInt8, for which the asynchronous products have no kernel.
void launch_attention_short_integers(const AttentionArgs& args, AttentionSchedule schedule,
                                     cudaStream_t stream);
void launch_attention_long_integers(const AttentionArgs& args, cudaStream_t stream);
// Rows of at most 1,024 with the copy engine and work that the device deals out; false where the
// device, the head size, the block size or slopes do not allow it, and then nothing is launched.
bool launch_attention_stream(const AttentionArgs& args, cudaStream_t stream);
// In steps of more rows the same for the short runs that end before this row, which those of
// sequences that decode do where they come first; where there are prompts beside them.
inline constexpr int kHeadRows = 1024;
bool launch_attention_head(const AttentionArgs& args, cudaStream_t stream);
// Latents, of bfloat16 or KvFormat::kFp8, through the asynchronous products of sm_90a; false where
// the device or the sizes do not allow it, and then nothing is launched.
bool launch_attention_latent(const AttentionArgs& args, cudaStream_t stream);
// The same by mma.sync, with the same bits; false where the sizes do not allow it.
bool launch_attention_latent_mma(const AttentionArgs& args, cudaStream_t stream);
void launch_attention_plain(const AttentionArgs& args, AttentionSchedule schedule,
                            cudaStream_t stream);
// Whole texts, of any type, format and scores, whose rows share blocks; false where rows see none
// behind them or the sizes do not allow it, and then nothing is launched.
bool launch_attention_texts(const AttentionArgs& args, cudaStream_t stream);
// Steps of the families of libraries that take latents; false where their kernels do not take the
// op, and then nothing is launched.
bool launch_attention_library(const AttentionArgs& args, cudaStream_t stream);
// Whether this build and the current device have such a family's kernels.
bool has_attention_library(AttentionFamily family);
// Leaves AttentionArgs::states, of any type, format and sizes.
void launch_attention_context(const AttentionArgs& args, cudaStream_t stream);
// Ends what launch_attention_short, launch_attention_plain or a program's kernel of tensor cores
// left in the workspace.
void launch_attention_merge(const AttentionArgs& args, AttentionSchedule schedule,
                            cudaStream_t stream);

// Whether this build and the current device have kernels of the family.
bool has_attention_family(AttentionFamily family);

// Whether scores depend on the distances of keys.
inline bool weighs_distances(const AttentionArgs& args) {
  return args.slopes != nullptr || args.distance_bias != nullptr;
}

// Splits of the longest context that the block table allows.
inline int splits_bound(const AttentionArgs& args) {
  return AttentionSplits::of(args.max_blocks * args.kv.block_size - 1) + 1;
}

// First KV position that a query at `position` sees.
__device__ inline int first_visible(const AttentionArgs& args, int position) {
  return first_seen(args, position);
}

__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// tanh(x), relative error 5e-7 (Cephes' polynomial near 0).
__device__ inline float tanh_approx(float x) {
  const float z = __fmul_rn(x, x);
  float p = fmaf(-5.70498872745e-3f, z, 2.06390887954e-2f);
  p = fmaf(p, z, -5.37397155531e-2f);
  p = fmaf(p, z, 1.33314422036e-1f);
  p = fmaf(p, z, -3.33332819422e-1f);
  const float near = fmaf(__fmul_rn(p, z), x, x);
  const float e = exp2_approx(__fmul_rn(fabsf(x), -2.88539008177792681f));
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(__fadd_rn(1.0f, e)));
  const float far = __fmul_rn(__fsub_rn(1.0f, e), inverse);
  return fabsf(x) < 0.625f ? near : copysignf(far, x);
}

// How a product q . k becomes a score in units of log2 (weight = 2^(score - highest)): times
// `scale`, and before that, with a soft cap, tanh(product * inner).
struct Scoring {
  bool capped;
  float inner;
  float scale;
};
__device__ inline Scoring scoring_of(const AttentionArgs& args) {
  constexpr float kLog2E = 1.44269504088896341f;
  if (args.softcap == 0) return {false, 1.0f, __fmul_rn(args.scale, kLog2E)};
  return {true, __fdiv_rn(args.scale, args.softcap), __fmul_rn(args.softcap, kLog2E)};
}
// The same for products of a row with codes of KvFormat::kFp8, which the scale of their head
// multiplies.
__device__ inline Scoring scoring_of_codes(const AttentionArgs& args, int64_t row, int kv_head) {
  const Scoring scoring = scoring_of(args);
  const float of_keys = key_scale(args.kv, head_of_scales(args, row, kv_head));
  if (scoring.capped) return {true, __fmul_rn(scoring.inner, of_keys), scoring.scale};
  return {false, scoring.inner, __fmul_rn(scoring.scale, of_keys)};
}
__device__ inline float capped(const Scoring& scoring, float product) {
  return tanh_approx(__fmul_rn(product, scoring.inner));
}

// The slope of a query head in the same units; 0: none.
__device__ inline float slope_of(const AttentionArgs& args, int head) {
  constexpr float kLog2E = 1.44269504088896341f;
  return args.slopes != nullptr ? __fmul_rn(args.slopes[head], kLog2E) : 0.0f;
}

// What a score in the same units gets for the distance of its key, which stands `behind` the row.
__device__ inline float with_distance(const AttentionArgs& args, int head, float slope, int behind,
                                      float score) {
  constexpr float kLog2E = 1.44269504088896341f;
  if (args.distance_bias != nullptr) {
    score = fmaf(args.distance_bias[head * kDistances + bias_index(behind)], kLog2E, score);
  }
  return slope == 0.0f ? score : fmaf(slope, -fabsf(static_cast<float>(behind)), score);
}

// Factors for the running result and for the partial result that joins it.
struct MergeScales {
  float running;
  float partial;
  float highest;
};
__device__ inline MergeScales merge_scales(float running, float partial) {
  const float highest = fmaxf(running, partial);
  const float base = highest == -INFINITY ? 0.0f : highest;
  return {exp2_approx(__fsub_rn(running, base)), exp2_approx(__fsub_rn(partial, base)), highest};
}
__device__ inline float merge(float running, float partial, const MergeScales& scales) {
  return fmaf(running, scales.running, __fmul_rn(partial, scales.partial));
}
// The sum of the weights of a row and query head with that of the head's sink, if there are sinks.
// highest: the highest score, which the weights are relative to.
__device__ inline float with_sink(const AttentionArgs& args, int head, float highest,
                                  float sum_of_weights) {
  if (args.sinks == nullptr) return sum_of_weights;
  constexpr float kLog2E = 1.44269504088896341f;
  const float score = __fmul_rn(args.sinks[head], kLog2E);
  return __fadd_rn(sum_of_weights, exp2_approx(__fsub_rn(score, highest)));
}
// By which the weighted sum of values of a row is multiplied in the end.
__device__ inline float inverse_of(float sum_of_weights) {
  return sum_of_weights > 0.0f ? __frcp_rn(sum_of_weights) : 0.0f;
}
__device__ inline float normalized(float sum_of_values, float sum_of_weights) {
  return __fmul_rn(sum_of_values, inverse_of(sum_of_weights));
}

__device__ inline int kv_head_of(const AttentionArgs& args, int head) {
  return head / (args.num_heads / args.kv.num_kv_heads);
}
// A row's attention over codes of KvFormat::kFp8 with the scale of their head; others have none.
__device__ inline float scaled(const AttentionArgs& args, int64_t row, int kv_head, float value) {
  return args.kv.v_scales == nullptr
             ? value
             : __fmul_rn(value, args.kv.v_scales[head_of_scales(args, row, kv_head)]);
}

// Workspace: values [row, head, split, value size], then {highest, sum of weights} [row, head,
// split].
__device__ inline int64_t partial_index(const AttentionArgs& args, int max_splits, int row,
                                        int head, int split) {
  return (int64_t{row} * args.num_heads + head) * max_splits + split;
}
__device__ inline float* partial_values(const AttentionArgs& args, int64_t index) {
  return args.workspace + index * args.kv.value_size();
}
__device__ inline float2* partial_state(const AttentionArgs& args, int max_splits, int64_t index) {
  const int64_t all = int64_t{args.max_rows} * args.num_heads * max_splits;
  return reinterpret_cast<float2*>(args.workspace + all * args.kv.value_size()) + index;
}

// Index of the KV entry of `position` for one KV head, in units of kv_entry_bytes.
__device__ inline int64_t kv_entry(const AttentionArgs& args, int slot, int position, int kv_head) {
  const KvLayer& kv = args.kv;
  const int block = args.block_tables[int64_t{slot} * args.max_blocks + position / kv.block_size];
  return (int64_t{block} * kv.num_kv_heads + kv_head) * kv.block_size + position % kv.block_size;
}

}  // namespace foretoken::cuda
