#include "sched/device_model.h"

#include <algorithm>

namespace foretoken {
namespace {

uint64_t next_hash(uint64_t hash, int32_t id) {
  return (hash ^ static_cast<uint64_t>(id + 1)) * 0x100000001b3ull + 0x9e3779b97f4a7c15ull;
}

std::string place(bool windowed, int position) {
  return (windowed ? "windowed position " : "position ") + std::to_string(position);
}

}  // namespace

DeviceModel::Step DeviceModel::record(const StepPlan& plan) const {
  Step step;
  for (const BlockAssignment& block : plan.blocks) {
    step.blocks.push_back({block, pool(block.windowed).epoch(block.block)});
  }
  for (const Span& span : plan.spans) {
    step.work.push_back({span, span.sequence->slot, span.sequence->tokens});
  }
  return step;
}

std::vector<DeviceModel::Result> DeviceModel::run(const Step& step, std::string& problem) {
  for (const Work& work : step.work) {
    if (work.span.is_first) start(work);
  }
  for (const auto& [block, epoch] : step.blocks) {
    group(block.windowed).table[{block.slot, block.index}] = {block.block, epoch};
  }
  std::vector<Result> results;
  for (const Work& work : step.work) results.push_back(run_span(work, problem));
  return results;
}

void DeviceModel::start(const Work& work) {
  Slot& slot = slots_[work.slot];
  slot = {};
  slot.number = work.slot;
  for (const int32_t id : work.known) push_token(slot, id);
  slot.computed = work.span.num_hit_tokens;
  // What the slot's last sequence left there must not be read.
  for (Group* group : {&full_, &windowed_}) {
    std::erase_if(group->table, [&](const auto& entry) { return entry.first.first == work.slot; });
  }
}

DeviceModel::Result DeviceModel::run_span(const Work& work, std::string& problem) {
  Slot& slot = slots_[work.slot];
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
    write_row(slot, slot.computed, slot.hashes[static_cast<size_t>(slot.computed)], problem);
  }
  const bool reached = slot.computed == static_cast<int>(slot.tokens.size());
  if (reached != work.span.samples) problem = "a span samples before or after the last known token";
  read(false, slot, 0, slot.computed, problem);
  if (reached && work.span.sequence->pools) {
    result.ended = slot.ended = true;
  } else if (reached) {
    sample(slot, work, result, problem);
  }
  return result;
}

void DeviceModel::sample(Slot& slot, const Work& work, Result& result, std::string& problem) {
  const int room = work.span.sequence->max_len - static_cast<int>(slot.tokens.size());
  const int num_drafts = std::min(
      room - 1, static_cast<int>(random_() % static_cast<unsigned>(work.span.max_drafts + 1)));
  const int num_accepted = static_cast<int>(random_() % static_cast<unsigned>(num_drafts + 1));
  for (int i = 0; i < num_drafts; ++i) write_row(slot, slot.computed + i, ~0ull, problem);
  for (int i = 0; i <= num_accepted && !result.ended; ++i) {
    const auto id = static_cast<int32_t>(slot.hashes.back() >> 20 & 1);
    push_token(slot, id);
    result.ids.push_back(id);
    result.ended = static_cast<int>(slot.tokens.size()) == work.span.sequence->max_len ||
                   random_() % static_cast<unsigned>(config_.end_odds) == 0;
    // An accepted draft's entry is right: it was computed from the id that was sampled.
    if (i < num_accepted) {
      write_row(slot, slot.computed, slot.hashes.back(), problem);
      ++slot.computed;
    }
  }
  slot.ended = result.ended;
}

void DeviceModel::push_token(Slot& slot, int32_t id) {
  slot.hashes.push_back(next_hash(slot.hashes.empty() ? 0 : slot.hashes.back(), id));
  slot.tokens.push_back(id);
}

// One token row: its entry in every layer, and the window that it reads.
void DeviceModel::write_row(const Slot& slot, int position, uint64_t hash, std::string& problem) {
  write(false, slot, position, hash, problem);
  if (config_.window == 0) return;
  write(true, slot, position, hash, problem);
  read(true, slot, std::max(0, position - config_.window + 1), position, problem);
}

void DeviceModel::write(bool windowed, const Slot& slot, int position, uint64_t hash,
                        std::string& problem) {
  Group& to = group(windowed);
  const auto entry = to.table.find({slot.number, position / config_.block_size});
  if (entry == to.table.end()) {
    problem = "no block to write at " + place(windowed, position);
    return;
  }
  const auto& [block, epoch] = entry->second;
  if (pool(windowed).num_refs(block) == 0 || pool(windowed).epoch(block) != epoch) {
    problem = "a block that was freed is written at " + place(windowed, position);
  }
  to.kv[int64_t{block} * config_.block_size + position % config_.block_size] = hash;
}

// Entries of drafts, from `computed` on, only have to be there.
void DeviceModel::read(bool windowed, const Slot& slot, int begin, int end, std::string& problem) {
  Group& from = group(windowed);
  for (int position = begin; position < end; ++position) {
    const auto entry = from.table.find({slot.number, position / config_.block_size});
    if (entry == from.table.end()) {
      problem = "no block to read at " + place(windowed, position);
      return;
    }
    const auto& [block, epoch] = entry->second;
    if (pool(windowed).num_refs(block) == 0) {
      problem = "a block that was freed is read at " + place(windowed, position);
      return;
    }
    if (pool(windowed).epoch(block) != epoch) {
      problem = "a block that was handed out again is read at " + place(windowed, position);
      return;
    }
    const uint64_t hash =
        from.kv[int64_t{block} * config_.block_size + position % config_.block_size];
    if (position < slot.computed && hash != slot.hashes[static_cast<size_t>(position)]) {
      problem = "wrong KV entry at " + place(windowed, position);
      return;
    }
  }
}

}  // namespace foretoken
