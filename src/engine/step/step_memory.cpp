#include "engine/step/step_memory.h"

#include <new>

#include "kernels/plan_layout.h"

namespace foretoken {

Result<std::unique_ptr<StepMemory>> StepMemory::make(Device& device,
                                                     const StepMemoryConfig& config) {
  std::unique_ptr<StepMemory> memory(new StepMemory(&device, config));
  FT_RETURN_IF_ERROR(memory->take_all());
  return memory;
}

std::unique_ptr<StepMemory> StepMemory::count(const StepMemoryConfig& config) {
  std::unique_ptr<StepMemory> memory(new StepMemory(nullptr, config));
  FT_CHECK(memory->take_all().ok());
  return memory;
}

Status StepMemory::take_all() {
  FT_RETURN_IF_ERROR(take_batch());
  FT_RETURN_IF_ERROR(take_lists());
  FT_RETURN_IF_ERROR(take_tensors());
  return take_rings();
}

Status StepMemory::take_batch() {
  const size_t slots = static_cast<size_t>(config_.num_slots) + 1;
  const size_t blocks = static_cast<size_t>(config_.num_blocks);
  FT_ASSIGN_OR_RETURN(batch.params, arena_.take_array<SlotParams>(slots, "slot parameters"));
  FT_ASSIGN_OR_RETURN(batch.slots, arena_.take_array<SlotState>(slots, "slot states"));
  FT_ASSIGN_OR_RETURN(batch.block_tables,
                      arena_.take_array<int32_t>(slots * config_.max_blocks, "block tables"));
  if (config_.windowed) {
    FT_ASSIGN_OR_RETURN(batch.window_tables, arena_.take_array<int32_t>(slots * config_.max_blocks,
                                                                        "windowed block tables"));
  }
  FT_ASSIGN_OR_RETURN(batch.token_pages,
                      arena_.take_array<int32_t>(blocks * config_.block_size, "token pages"));
  FT_ASSIGN_OR_RETURN(batch.page_headers,
                      arena_.take_array<PageHeader>(blocks, "token page headers"));
  FT_ASSIGN_OR_RETURN(batch.priors, arena_.take_array<DraftRates>(kMaxDrafters, "draft rates"));
  batch.max_blocks = config_.max_blocks;
  batch.block_size = config_.block_size;
  batch.num_slots = config_.num_slots;
  batch.num_branches = config_.num_branches;
  batch.branch_blocks = config_.branch_blocks;
  batch.first_branch_block = config_.num_blocks;
  batch.first_branch_window_block = config_.num_window_blocks;
  return {};
}

Status StepMemory::take_lists() {
  const size_t slots = static_cast<size_t>(config_.num_slots) + 1;
  SlotLists& lists = batch.lists;
  lists.mask_words = (config_.vocab_size + 31) / 32;
  FT_ASSIGN_OR_RETURN(lists.logit_bias,
                      arena_.take_array<LogitBias>(slots * kMaxLogitBias, "logit biases"));
  FT_ASSIGN_OR_RETURN(lists.bad_words,
                      arena_.take_array<int32_t>(slots * kMaxBadWordInts, "bad words"));
  FT_ASSIGN_OR_RETURN(
      lists.allowed_ids,
      arena_.take_array<uint32_t>(slots * static_cast<size_t>(lists.mask_words), "allowed ids"));
  lists.max_flex_words = config_.max_flex_words;
  if (config_.max_flex_words > 0) {
    FT_ASSIGN_OR_RETURN(
        lists.flex, arena_.take_array<uint32_t>(slots * static_cast<size_t>(config_.max_flex_words),
                                                "expressions of requests"));
  }
  lists.max_prediction = config_.max_prediction;
  if (config_.max_prediction == 0) return {};
  FT_ASSIGN_OR_RETURN(lists.prediction,
                      arena_.take_array<int32_t>(
                          slots * static_cast<size_t>(config_.max_prediction), "predictions"));
  return {};
}

Status StepMemory::take_tensors() {
  const size_t lanes = static_cast<size_t>(config_.num_lanes);
  const size_t rows = static_cast<size_t>(config_.max_rows) * lanes;
  const size_t logits_rows = static_cast<size_t>(config_.max_logits_rows);
  FT_ASSIGN_OR_RETURN(tensors.counts,
                      arena_.take_array<StepCounts>(1 + (lanes > 1 ? lanes : 0), "step counts"));
  FT_ASSIGN_OR_RETURN(
      tensors.spans,
      arena_.take_array<SpanState>(config_.limits.max_spans + config_.num_branches, "span states"));
  FT_ASSIGN_OR_RETURN(tensors.token_ids, arena_.take_array<int32_t>(rows, "token ids"));
  FT_ASSIGN_OR_RETURN(tensors.positions, arena_.take_array<int32_t>(rows, "positions"));
  FT_ASSIGN_OR_RETURN(tensors.row_slot, arena_.take_array<int32_t>(rows, "row slots"));
  FT_ASSIGN_OR_RETURN(tensors.kv_slot, arena_.take_array<int32_t>(rows, "KV slots"));
  if (config_.windowed) {
    FT_ASSIGN_OR_RETURN(tensors.window_slot, arena_.take_array<int32_t>(rows, "windowed KV slots"));
  }
  FT_ASSIGN_OR_RETURN(tensors.logits_rows, arena_.take_array<int32_t>(logits_rows, "logits rows"));
  FT_ASSIGN_OR_RETURN(tensors.sampled, arena_.take_array<int32_t>(logits_rows, "sampled ids"));
  return {};
}

Status StepMemory::take_rings() {
  plan_entry_bytes = plan_bytes(config_.limits);
  result_entry_bytes = result_bytes(config_.result_limits);
  FT_ASSIGN_OR_RETURN(plan, arena_.take(plan_entry_bytes, "step plan"));
  FT_ASSIGN_OR_RETURN(result, arena_.take(result_entry_bytes, "step result"));
  FT_ASSIGN_OR_RETURN(step_counter, arena_.take_array<uint64_t>(1, "step counter"));
  FT_ASSIGN_OR_RETURN(begun_counter, arena_.take_array<uint64_t>(1, "step counter"));
  FT_ASSIGN_OR_RETURN(plan_ring,
                      pinned_.take_array<char>(plan_entry_bytes * kStepRingSize, "step plan ring"));
  FT_ASSIGN_OR_RETURN(result_ring, pinned_.take_array<char>(result_entry_bytes * kStepRingSize,
                                                            "step result ring"));
  FT_ASSIGN_OR_RETURN(stamps, pinned_.take_array<StepStamps>(kStepRingSize, "step times"));
  FT_ASSIGN_OR_RETURN(void* word, pinned_.take(sizeof(uint64_t), "publish word"));
  if (word != nullptr) published.word = new (word) std::atomic<uint64_t>(0);
  return {};
}

void StepMemory::reset(Queue& queue) {
  const size_t slots = static_cast<size_t>(config_.num_slots) + 1;
  const size_t blocks = static_cast<size_t>(config_.num_blocks);
  const size_t table_bytes = slots * static_cast<size_t>(config_.max_blocks) * sizeof(int32_t);
  queue.fill(batch.params, 0, slots * sizeof(SlotParams));
  queue.fill(batch.slots, 0, slots * sizeof(SlotState));
  queue.fill(batch.block_tables, 0, table_bytes);
  if (batch.window_tables != nullptr) queue.fill(batch.window_tables, 0, table_bytes);
  queue.fill(batch.token_pages, 0,
             blocks * static_cast<size_t>(config_.block_size) * sizeof(int32_t));
  queue.fill(batch.page_headers, 0, blocks * sizeof(PageHeader));
  queue.fill(batch.priors, 0, kMaxDrafters * sizeof(DraftRates));
  queue.fill(step_counter, 0, sizeof(*step_counter));
  queue.fill(begun_counter, 0, sizeof(*begun_counter));
  queue.record(published, 0);
}

int64_t StepMemory::token_page_bytes() const {
  return static_cast<int64_t>(config_.num_blocks) *
         (config_.block_size * static_cast<int64_t>(sizeof(int32_t)) +
          static_cast<int64_t>(sizeof(PageHeader)));
}

int64_t StepMemory::block_table_bytes() const {
  return (config_.windowed ? 2 : 1) * (config_.num_slots + int64_t{1}) * config_.max_blocks *
         static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace foretoken
