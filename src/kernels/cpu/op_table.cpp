#include "kernels/cpu/op_table.h"

#include "kernels/op.h"

namespace foretoken::cpu {

CpuKernels cpu_kernels() {
  CpuKernels kernels;
  const auto set = [&](Op op, OpFn fn) { kernels.ops[static_cast<size_t>(op)] = fn; };
  set(Op::kDelay, delay);
  set(Op::kMarkTime, mark_time);
  set(Op::kUpload, upload);
  set(Op::kPrepare, prepare);
  set(Op::kEmbed, embed);
  set(Op::kRmsNorm, rms_norm);
  set(Op::kGemm, gemm);
  set(Op::kLayerTail, layer_tail);
  set(Op::kRopeKv, rope_kv);
  set(Op::kAttention, attention);
  set(Op::kGatedAct, gated_act);
  set(Op::kSoftcap, softcap);
  set(Op::kPool, pool);
  set(Op::kKeepRaw, keep_raw);
  set(Op::kExportLogits, export_logits);
  set(Op::kImportLogits, import_logits);
  set(Op::kShapeLogits, shape_logits);
  set(Op::kExportSpans, export_spans);
  set(Op::kAwaitMasks, await_masks);
  set(Op::kApplyMasks, apply_masks);
  set(Op::kSample, sample);
  set(Op::kLogprobs, logprobs);
  set(Op::kCommit, commit);
  set(Op::kPublish, publish);
  set(Op::kNgram, ngram);
  set(Op::kChooseLengths, choose_lengths);
  set(Op::kDraftRows, draft_rows);
  set(Op::kDraftNext, draft_next);
  set(Op::kMoveRows, move_rows);
  set(Op::kPairRows, pair_rows);
  set(Op::kHeadArgmax, head_argmax);
  set(Op::kSpreadLogits, spread_logits);
  set(Op::kFillRandom, fill_random);
  set(Op::kPackRows, pack_rows);
  set(Op::kStamp, stamp);
  set(Op::kAllReduce, all_reduce);
  set(Op::kSendStep, send_step);
  set(Op::kReceiveStep, receive_step);
  set(Op::kSendRows, send_rows);
  set(Op::kReceiveRows, receive_rows);
  set(Op::kGatherColumns, gather_columns);
  set(Op::kGatherArgmax, gather_argmax);
  set(Op::kShareMasks, share_masks);
  kernels.stores_event[static_cast<size_t>(Op::kPublish)] = true;
  kernels.make_weight = make_weight;
  kernels.weight_slice_rows = weight_slice_rows;
  kernels.pack_weight = pack_weight;
  kernels.free_weight = free_weight;
  kernels.keeps_quantized = keeps_quantized;
  kernels.make_quantized_weight = make_quantized_weight;
  kernels.quantized_weight_bytes = quantized_weight_bytes;
  static_assert(static_cast<size_t>(Op::kCount) <= kMaxOps);
  return kernels;
}

}  // namespace foretoken::cpu
