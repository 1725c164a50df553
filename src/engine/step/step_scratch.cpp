#include "engine/step/step_scratch.h"

namespace foretoken {

int64_t StepScratch::device_bytes(const StepScratchConfig& config) {
  StepScratch scratch(nullptr, config);
  FT_CHECK(scratch.take().ok());
  return static_cast<int64_t>(scratch.rows_.bytes_taken() + scratch.arena_.bytes_taken());
}

Status StepScratch::take() {
  if (config_.logits_tile == 0) return {};
  FT_RETURN_IF_ERROR(take_rows());
  FT_RETURN_IF_ERROR(take_tables());
  if (config_.max_mask_spans > 0) FT_RETURN_IF_ERROR(take_masks());
  return config_.max_processor_rows > 0 ? take_host() : Status();
}

Status StepScratch::take_rows() {
  const auto rows = static_cast<size_t>(config_.logits_tile);
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  FT_ASSIGN_OR_RETURN(logits, rows_.take_array<float>(rows * vocab, "logits"));
  if (config_.with_logprobs) {
    FT_ASSIGN_OR_RETURN(raw, rows_.take_array<float>(rows * vocab, "unshaped logits"));
  }
  FT_ASSIGN_OR_RETURN(
      seen, rows_.take_array<uint32_t>(rows * 2 * ((vocab + 31) / 32), "sets of seen tokens"));
  FT_ASSIGN_OR_RETURN(keys, rows_.take_array<uint64_t>(rows, "keys of samples"));
  const size_t states =
      (static_cast<size_t>(config_.num_slots) + 1) * static_cast<size_t>(config_.hidden_size);
  FT_ASSIGN_OR_RETURN(accumulators, rows_.take_array<float>(states, "pooled states"));
  return {};
}

Status StepScratch::take_masks() {
  const auto spans = static_cast<size_t>(config_.max_mask_spans);
  const auto rows = spans * static_cast<size_t>(config_.mask_rows_each);
  masks.max_spans = config_.max_mask_spans;
  masks.rows_each = config_.mask_rows_each;
  masks.mask_words = (config_.vocab_size + 31) / 32;
  FT_ASSIGN_OR_RETURN(mask_ticket, arena_.take_array<MaskTicket>(1, "ticket of masks"));
  // A line for each writer.
  for (uint64_t** word :
       {&masks.posted, &masks.passed, &masks.taken, &masks.answered, &masks.resting}) {
    FT_ASSIGN_OR_RETURN(*word, pinned_.take_array<uint64_t>(1, "words of masks"));
  }
  FT_ASSIGN_OR_RETURN(masks.num_spans, pinned_.take_array<int32_t>(kMaskRing, "spans of masks"));
  FT_ASSIGN_OR_RETURN(masks.spans,
                      pinned_.take_array<MaskSpan>(kMaskRing * spans, "spans of masks"));
  FT_ASSIGN_OR_RETURN(masks.answers,
                      pinned_.take_array<uint64_t>(kMaskRing * spans, "answers of masks"));
  FT_ASSIGN_OR_RETURN(
      masks.repairs, pinned_.take_array<int32_t>(spans * kMaxDraftTokens, "drafts under grammars"));
  FT_ASSIGN_OR_RETURN(masks.masks,
                      pinned_.take_array<uint32_t>(rows * static_cast<size_t>(masks.mask_words),
                                                   "masks of grammars"));
  return {};
}

Status StepScratch::take_tables() {
  const size_t rows =
      (static_cast<size_t>(config_.max_rows) + 1) * static_cast<size_t>(config_.num_row_tables);
  FT_ASSIGN_OR_RETURN(row_ns, arena_.take_array<int32_t>(rows, "step times"));
  FT_ASSIGN_OR_RETURN(row_ns_host, pinned_.take_array<int32_t>(rows, "step times"));
  FT_ASSIGN_OR_RETURN(synthetic, arena_.take_array<uint32_t>(kMaxDraftTokens, "acceptance rates"));
  FT_ASSIGN_OR_RETURN(synthetic_host,
                      pinned_.take_array<uint32_t>(kMaxDraftTokens, "acceptance rates"));
  return {};
}

Status StepScratch::take_host() {
  const auto rows = static_cast<size_t>(config_.max_processor_rows);
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  FT_ASSIGN_OR_RETURN(host.rows, pinned_.take_array<HostRow>(rows, "rows of logits processors"));
  FT_ASSIGN_OR_RETURN(host.logits,
                      pinned_.take_array<float>(rows * vocab, "logits of logits processors"));
  FT_ASSIGN_OR_RETURN(host.history,
                      pinned_.take_array<int32_t>(rows * static_cast<size_t>(config_.max_len),
                                                  "histories of logits processors"));
  host.max_len = config_.max_len;
  for (int i = 1; i <= config_.max_processor_rows; ++i) {
    calls_.push_back({host, i, config_.vocab_size});
  }
  return {};
}

}  // namespace foretoken
