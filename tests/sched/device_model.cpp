#include "sched/device_model.h"

#include <algorithm>

namespace foretoken {
namespace {

uint64_t next_hash(uint64_t hash, int32_t id) {
  return (hash ^ static_cast<uint64_t>(id + 1)) * 0x100000001b3ull + 0x9e3779b97f4a7c15ull;
}

// Of the tokens up to and including `position`.
uint64_t hash_at(const std::vector<int32_t>& tokens, int position) {
  uint64_t hash = 0;
  for (int i = 0; i <= position; ++i) hash = next_hash(hash, tokens[static_cast<size_t>(i)]);
  return hash;
}

}  // namespace

DeviceModel::Step DeviceModel::record(const StepPlan& plan) {
  Step step;
  step.blocks = plan.blocks;
  for (const Span& span : plan.spans) {
    step.work.push_back({span, span.sequence->slot, span.sequence->tokens});
  }
  return step;
}

std::vector<DeviceModel::Result> DeviceModel::run(const Step& step, std::string& problem) {
  for (const BlockAssignment& block : step.blocks) {
    slots_[block.slot].table[block.index] = block.block;
  }
  std::vector<Result> results;
  for (const Work& work : step.work) results.push_back(run_span(work, problem));
  return results;
}

DeviceModel::Result DeviceModel::run_span(const Work& work, std::string& problem) {
  Slot& slot = slots_[work.slot];
  if (work.span.is_first) {
    slot.tokens = work.known;
    slot.computed = work.span.num_hit_tokens;
    slot.ended = false;
  }
  Result result;
  if (slot.ended) return result;
  if (work.span.first_new_id >= 0 && work.span.first_new_id != slot.computed) {
    problem = "ids are uploaded to position " + std::to_string(work.span.first_new_id) +
              ", but the device is at " + std::to_string(slot.computed);
  }
  for (int i = 0; i < work.span.num_tokens; ++i, ++slot.computed) {
    if (slot.computed >= static_cast<int>(slot.tokens.size())) {
      problem = "a span reaches beyond the known tokens";
      return result;
    }
    if (!write(slot, slot.computed, hash_at(slot.tokens, slot.computed), problem)) return result;
  }
  const bool reached = slot.computed == static_cast<int>(slot.tokens.size());
  if (reached != work.span.samples) problem = "a span samples before or after the last known token";
  if (reached) sample(slot, work, result, problem);
  return result;
}

void DeviceModel::sample(Slot& slot, const Work& work, Result& result, std::string& problem) {
  check_context(slot, problem);
  const int room = work.span.sequence->max_len - static_cast<int>(slot.tokens.size());
  const int num_drafts = std::min(
      room - 1, static_cast<int>(random_() % static_cast<unsigned>(work.span.max_drafts + 1)));
  const int num_accepted = static_cast<int>(random_() % static_cast<unsigned>(num_drafts + 1));
  for (int i = 0; i < num_drafts; ++i) {
    if (!write(slot, slot.computed + i, ~0ull, problem)) return;
  }
  for (int i = 0; i <= num_accepted && !result.ended; ++i) {
    const int last = static_cast<int>(slot.tokens.size()) - 1;
    const auto id = static_cast<int32_t>(hash_at(slot.tokens, last) >> 20 & 1);
    slot.tokens.push_back(id);
    result.ids.push_back(id);
    result.ended = static_cast<int>(slot.tokens.size()) == work.span.sequence->max_len ||
                   random_() % static_cast<unsigned>(config_.end_odds) == 0;
    // An accepted draft's entry is right: it was computed from the id that was sampled.
    if (i < num_accepted) {
      (void)write(slot, slot.computed, hash_at(slot.tokens, slot.computed), problem);
      ++slot.computed;
    }
  }
  slot.ended = result.ended;
}

bool DeviceModel::write(Slot& slot, int position, uint64_t hash, std::string& problem) {
  const auto block = slot.table.find(position / config_.block_size);
  if (block == slot.table.end()) {
    problem = "no block for position " + std::to_string(position);
    return false;
  }
  kv_[int64_t{block->second} * config_.block_size + position % config_.block_size] = hash;
  return true;
}

void DeviceModel::check_context(const Slot& slot, std::string& problem) const {
  uint64_t hash = 0;
  for (int position = 0; position < slot.computed; ++position) {
    hash = next_hash(hash, slot.tokens[static_cast<size_t>(position)]);
    const auto block = slot.table.find(position / config_.block_size);
    if (block == slot.table.end()) {
      problem = "no block at position " + std::to_string(position);
      return;
    }
    const auto entry =
        kv_.find(int64_t{block->second} * config_.block_size + position % config_.block_size);
    if (entry == kv_.end() || entry->second != hash) {
      problem = "wrong KV entry at position " + std::to_string(position) + " of " +
                std::to_string(slot.computed);
      return;
    }
  }
}

}  // namespace foretoken
