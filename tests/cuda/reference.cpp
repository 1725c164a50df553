#include "reference.h"

#include "kernels/cpu/op_table.h"
#include "kernels/op.h"

namespace foretoken::check {

cpu::CpuKernels reference_kernels() {
  cpu::CpuKernels kernels;
  const auto set = [&](Op op, cpu::OpFn fn) { kernels.ops[static_cast<size_t>(op)] = fn; };
  set(Op::kUpload, cpu::upload);
  set(Op::kPrepare, cpu::prepare);
  set(Op::kPool, cpu::pool);
  set(Op::kKeepRaw, cpu::keep_raw);
  set(Op::kExportLogits, cpu::export_logits);
  set(Op::kImportLogits, cpu::import_logits);
  set(Op::kShapeLogits, cpu::shape_logits);
  set(Op::kExportSpans, cpu::export_spans);
  set(Op::kAwaitMasks, cpu::await_masks);
  set(Op::kApplyMasks, cpu::apply_masks);
  set(Op::kSample, cpu::sample);
  set(Op::kLogprobs, cpu::logprobs);
  set(Op::kCommit, cpu::commit);
  set(Op::kPublish, cpu::publish);
  set(Op::kNgram, cpu::ngram);
  set(Op::kChooseLengths, cpu::choose_lengths);
  set(Op::kDraftRows, cpu::draft_rows);
  set(Op::kDraftNext, cpu::draft_next);
  set(Op::kMoveRows, cpu::move_rows);
  set(Op::kPairRows, cpu::pair_rows);
  set(Op::kSpreadLogits, cpu::spread_logits);
  return kernels;
}

}  // namespace foretoken::check
