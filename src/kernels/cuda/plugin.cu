#include <array>
#include <cstdio>
#include <string>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/attention_fa3.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/op.h"

namespace foretoken::cuda {
namespace {

constexpr int kNumOps = static_cast<int>(Op::kCount);
using Ops = std::array<CudaOp, kNumOps>;

constexpr void set(Ops& ops, Op op, LaunchFn launch, const char* name) {
  ops[static_cast<size_t>(op)] = {launch, name};
}

constexpr Ops make_ops() {
  Ops ops{};
  set(ops, Op::kDelay, launch_delay, "delay");
  set(ops, Op::kMarkTime, launch_mark_time, "mark_time");
  set(ops, Op::kUpload, launch_upload, "upload");
  set(ops, Op::kPrepare, launch_prepare, "prepare");
  set(ops, Op::kEmbed, launch_embed, "embed");
  set(ops, Op::kRmsNorm, launch_rms_norm, "rms_norm");
  set(ops, Op::kGemm, launch_gemm, "gemm");
  set(ops, Op::kRopeKv, launch_rope_kv, "rope_kv");
  set(ops, Op::kAttention, launch_attention, "attention");
  set(ops, Op::kGatedAct, launch_gated_act, "gated_act");
  set(ops, Op::kSoftcap, launch_softcap, "softcap");
  set(ops, Op::kPool, launch_pool, "pool");
  set(ops, Op::kKeepRaw, launch_keep_raw, "keep_raw");
  set(ops, Op::kExportLogits, launch_export_logits, "export_logits");
  set(ops, Op::kImportLogits, launch_import_logits, "import_logits");
  set(ops, Op::kShapeLogits, launch_shape_logits, "shape_logits");
  set(ops, Op::kExportSpans, launch_export_spans, "export_spans");
  set(ops, Op::kAwaitMasks, launch_await_masks, "await_masks");
  set(ops, Op::kApplyMasks, launch_apply_masks, "apply_masks");
  set(ops, Op::kSample, launch_sample, "sample");
  set(ops, Op::kLogprobs, launch_logprobs, "logprobs");
  set(ops, Op::kCommit, launch_commit, "commit");
  set(ops, Op::kPublish, launch_publish, "publish");
  set(ops, Op::kNgram, launch_ngram, "ngram");
  set(ops, Op::kChooseLengths, launch_choose_lengths, "choose_lengths");
  set(ops, Op::kDraftRows, launch_draft_rows, "draft_rows");
  set(ops, Op::kDraftNext, launch_draft_next, "draft_next");
  set(ops, Op::kMoveRows, launch_move_rows, "move_rows");
  set(ops, Op::kPairRows, launch_pair_rows, "pair_rows");
  set(ops, Op::kHeadArgmax, launch_head_argmax, "head_argmax");
  set(ops, Op::kSpreadLogits, launch_spread_logits, "spread_logits");
  set(ops, Op::kFillRandom, launch_fill_random, "fill_random");
  set(ops, Op::kPackRows, launch_pack_rows, "pack_rows");
  set(ops, Op::kStamp, launch_stamp, "stamp");
  set(ops, Op::kAllReduce, launch_all_reduce, "all_reduce");
  set(ops, Op::kGatherColumns, launch_gather_columns, "gather_columns");
  set(ops, Op::kGatherArgmax, launch_gather_argmax, "gather_argmax");
  set(ops, Op::kShareMasks, launch_share_masks, "share_masks");
  set(ops, Op::kSendStep, launch_send_step, "send_step");
  set(ops, Op::kReceiveStep, launch_receive_step, "receive_step");
  set(ops, Op::kSendRows, launch_send_rows, "send_rows");
  set(ops, Op::kReceiveRows, launch_receive_rows, "receive_rows");
  set(ops, Op::kLayerTail, launch_layer_tail, "layer_tail");
  return ops;
}

constexpr Ops kOps = make_ops();

}  // namespace
}  // namespace foretoken::cuda

extern "C" int foretoken_cuda_abi() { return foretoken::kCudaPluginAbi; }

extern "C" foretoken::Device* foretoken_cuda_open(int ordinal, char* error, size_t error_bytes) {
  using namespace foretoken::cuda;
  std::string reason;
  auto device =
      open_device({kOps.data(), kNumOps, report_failures_to, make_weight, weight_slice_rows,
                   pack_weight, free_weight, has_attention_fa3, forget_tails},
                  ordinal, reason);
  if (device == nullptr && error_bytes > 0) {
    std::snprintf(error, error_bytes, "%s", reason.c_str());
  }
  return device.release();
}
