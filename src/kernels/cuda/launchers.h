#pragma once
#include <cuda_runtime.h>

#include <span>

#include "device/cuda/cuda_device.h"

// Launchers of the CUDA ops: `args` is the op's argument block (kernels/<op>.h).
namespace foretoken::cuda {

void launch_delay(const void* args, cudaStream_t stream);
void launch_mark_time(const void* args, cudaStream_t stream);
void launch_upload(const void* args, cudaStream_t stream);
void launch_prepare(const void* args, cudaStream_t stream);
void launch_embed(const void* args, cudaStream_t stream);
void launch_rms_norm(const void* args, cudaStream_t stream);
void launch_gemm(const void* args, cudaStream_t stream);
void launch_rope_kv(const void* args, cudaStream_t stream);
void launch_attention(const void* args, cudaStream_t stream);
void launch_gated_act(const void* args, cudaStream_t stream);
void launch_softcap(const void* args, cudaStream_t stream);
void launch_pool(const void* args, cudaStream_t stream);
void launch_keep_raw(const void* args, cudaStream_t stream);
void launch_export_logits(const void* args, cudaStream_t stream);
void launch_import_logits(const void* args, cudaStream_t stream);
void launch_shape_logits(const void* args, cudaStream_t stream);
void launch_export_spans(const void* args, cudaStream_t stream);
void launch_await_masks(const void* args, cudaStream_t stream);
void launch_apply_masks(const void* args, cudaStream_t stream);
void launch_sample(const void* args, cudaStream_t stream);
void launch_logprobs(const void* args, cudaStream_t stream);
void launch_commit(const void* args, cudaStream_t stream);
void launch_publish(const void* args, cudaStream_t stream);
void launch_ngram(const void* args, cudaStream_t stream);
void launch_choose_lengths(const void* args, cudaStream_t stream);
void launch_draft_rows(const void* args, cudaStream_t stream);
void launch_draft_next(const void* args, cudaStream_t stream);
void launch_move_rows(const void* args, cudaStream_t stream);
void launch_pair_rows(const void* args, cudaStream_t stream);
void launch_head_argmax(const void* args, cudaStream_t stream);
void launch_spread_logits(const void* args, cudaStream_t stream);
void launch_fill_random(const void* args, cudaStream_t stream);
void launch_pack_rows(const void* args, cudaStream_t stream);
void launch_stamp(const void* args, cudaStream_t stream);
void launch_all_reduce(const void* args, cudaStream_t stream);
void launch_gather_columns(const void* args, cudaStream_t stream);
void launch_gather_argmax(const void* args, cudaStream_t stream);
void launch_share_masks(const void* args, cudaStream_t stream);
void launch_send_step(const void* args, cudaStream_t stream);
void launch_receive_step(const void* args, cudaStream_t stream);
void launch_send_rows(const void* args, cudaStream_t stream);
void launch_receive_rows(const void* args, cudaStream_t stream);
void launch_layer_tail(const void* args, cudaStream_t stream);

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

}  // namespace foretoken::cuda
