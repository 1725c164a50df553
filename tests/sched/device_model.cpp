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
  step.moves_out = plan.moves_out;
  step.moves_in = plan.moves_in;
  step.states_out = plan.states_out;
  step.states_in = plan.states_in;
  for (const Span& span : plan.spans) {
    step.work.push_back({span, span.sequence->slot, span.sequence->tokens});
  }
  return step;
}

std::vector<DeviceModel::Result> DeviceModel::run(const Step& step, std::string& problem) {
  for (const BlockMove& move : step.moves_out) move_out(move);
  for (const BlockMove& move : step.moves_in) move_in(move, problem);
  move_states(step, problem);
  for (const Work& work : step.work) {
    if (work.span.is_first) start(work);
  }
  for (const auto& [block, epoch] : step.blocks) {
    group(block.windowed).table[{block.slot, block.index}] = {block.block, epoch};
    if (block.fresh && !block.windowed) headers_[block.block] = {epoch, {}};
  }
  std::vector<Result> results;
  for (const Work& work : step.work) {
    const bool passed_over = slots_[work.slot].ended;
    results.push_back(run_span(work, problem));
    if (!passed_over) draft(slots_[work.slot], work, problem);
  }
  return results;
}

void DeviceModel::move_window(const BlockMove& move, bool inwards, std::string& problem) {
  std::vector<std::optional<uint64_t>>& image = window_images_[move.image];
  if (inwards && image.empty()) problem = "a windowed image that was never made comes in";
  image.resize(static_cast<size_t>(config_.block_size));
  for (int i = 0; i < config_.block_size; ++i) {
    const int64_t at = int64_t{move.block} * config_.block_size + i;
    std::optional<uint64_t>& kept = image[static_cast<size_t>(i)];
    const auto found = windowed_.kv.find(at);
    if (!inwards) {
      kept = found == windowed_.kv.end() ? std::nullopt : std::optional(found->second);
    } else if (kept) {
      windowed_.kv[at] = *kept;
    }
  }
}

void DeviceModel::move_out(const BlockMove& move) {
  std::string none;
  if (move.part == HostPart::kWindowed) return move_window(move, false, none);
  if (move.part == HostPart::kStates) {
    state_images_[move.image] = snapshots_[move.block];
    return;
  }
  Image& image = images_[move.image];
  image = {.kv = {}, .entries = {}, .header = headers_[move.block]};
  const auto copy = [](const auto& from, const auto& key, auto& to) {
    const auto found = from.find(key);
    to.push_back(found == from.end() ? std::nullopt : std::optional(found->second));
  };
  const int64_t begin = int64_t{move.block} * config_.block_size;
  for (int64_t at = begin; at < begin + config_.block_size; ++at) copy(full_.kv, at, image.kv);
  for (int drafter = 0; drafter < static_cast<int>(config_.drafters.size()); ++drafter) {
    for (int64_t at = begin; at < begin + config_.block_size; ++at) {
      copy(entries_, std::pair(drafter, at), image.entries);
    }
  }
}

void DeviceModel::move_in(const BlockMove& move, std::string& problem) {
  if (move.part == HostPart::kWindowed) return move_window(move, true, problem);
  if (move.part == HostPart::kStates) {
    if (!state_images_.contains(move.image)) problem = "states that never moved out come in";
    snapshots_[move.block] = state_images_[move.image];
    return;
  }
  const auto found = images_.find(move.image);
  if (found == images_.end()) {
    problem = "an image that was never made comes in";
    return;
  }
  const Image& image = found->second;
  headers_[move.block] = image.header;
  headers_[move.block].epoch = move.epoch;
  const auto copy = [](const auto& from, auto& to, const auto& key) {
    to.erase(key);
    if (from) to[key] = *from;
  };
  const int64_t begin = int64_t{move.block} * config_.block_size;
  for (int i = 0; i < config_.block_size; ++i) copy(image.kv[i], full_.kv, begin + i);
  for (int drafter = 0; drafter < static_cast<int>(config_.drafters.size()); ++drafter) {
    for (int i = 0; i < config_.block_size; ++i) {
      copy(image.entries[drafter * config_.block_size + i], entries_,
           std::pair(drafter, begin + i));
    }
  }
}

void DeviceModel::move_states(const Step& step, std::string& problem) {
  for (const StateMove& move : step.states_out) snapshots_[move.snapshot] = states_[move.slot];
  for (const StateMove& move : step.states_in) {
    const auto found = snapshots_.find(move.snapshot);
    if (found == snapshots_.end()) {
      problem = "a snapshot that was never made is brought";
      return;
    }
    states_[move.slot] = found->second;
  }
}

// Rows at position 0 begin states anew.
void DeviceModel::begin_states(const Slot& slot, int drafter, int begin, std::string& problem) {
  if (begin == 0) return;
  const States& states = states_[slot.number][drafter];
  const auto at = static_cast<size_t>(begin) - 1;
  if (begin < states.least || begin > states.most) {
    problem = "rows begin at " + std::to_string(begin) + ", but the slot's states stand behind " +
              std::to_string(states.least) + " to " + std::to_string(states.most);
  } else if (states.hashes.at(at) != slot.hashes.at(at)) {
    problem = "the slot's states are those of other tokens";
  }
}

void DeviceModel::set_states(const Slot& slot, int drafter, int least, int most) {
  const auto end = slot.hashes.begin() + most;
  states_[slot.number][drafter] = {least, most, {slot.hashes.begin(), end}};
}

void DeviceModel::start(const Work& work) {
  Slot& slot = slots_[work.slot];
  slot = {};
  slot.number = work.slot;
  for (const int32_t id : work.known) push_token(slot, id);
  slot.computed = work.span.num_hit_tokens;
  slot.draft_computed = work.span.num_state_entries;
  num_state_entries_ += slot.draft_computed;
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
  if (config_.keeps_states) begin_states(slot, -1, slot.computed, problem);
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
  // The last known token can be taken back.
  const int least = std::min(slot.computed, static_cast<int>(slot.tokens.size()) - 1);
  set_states(slot, -1, least, least);
  if (reached && work.span.sequence->pools) {
    result.ended = slot.ended = true;
  } else if (reached) {
    sample(slot, work, result, problem);
    set_states(slot, -1, least, slot.computed);
  }
  slot.num_draft_tokens = 0;
  const int known = reached ? static_cast<int>(slot.tokens.size()) : slot.computed;
  result.draft_missing = known - slot.draft_computed;
  return result;
}

void DeviceModel::sample(Slot& slot, const Work& work, Result& result, std::string& problem) {
  const int room = work.span.sequence->max_len - static_cast<int>(slot.tokens.size());
  const int num_draft_tokens = std::min({room - 1, slot.num_draft_tokens, work.span.max_verified});
  result.num_drafted = num_draft_tokens;
  const int num_accepted =
      static_cast<int>(random_() % static_cast<unsigned>(num_draft_tokens + 1));
  for (int i = 0; i < num_draft_tokens; ++i) write_row(slot, slot.computed + i, ~0ull, problem);
  // Masks may be late for all rows from one on.
  const bool pauses = work.span.sequence->may_pause && random_() % 3 == 0;
  const int num_ids = pauses ? static_cast<int>(random_() % (num_accepted + 1u)) : num_accepted + 1;
  for (int i = 0; i < num_ids && !result.ended; ++i) {
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
  slot.computed = static_cast<int>(slot.tokens.size()) - 1;
  slot.ended = result.ended;
  keep_written(slot, work.span.sequence->drafter, problem);
}

// What commit does for the entries of accepted drafts.
void DeviceModel::keep_written(Slot& slot, int drafter, std::string& problem) {
  const int end = std::min(slot.draft_written, static_cast<int>(slot.tokens.size()) - 1);
  slot.draft_written = 0;
  for (int i = slot.draft_computed; i < end; ++i) {
    write_entry(slot, drafter, i, slot.hashes[static_cast<size_t>(i)], problem);
  }
  const bool keeps_more = end > slot.draft_computed;
  raise_exact(slot, drafter, end, problem);
  if (!keeps_more || !config_.drafters[static_cast<size_t>(drafter)].keeps_states) return;
  set_states(slot, drafter, states_[slot.number][drafter].least, end);
}

// The catch-up of one span and, where it was granted, a proposal.
void DeviceModel::draft(Slot& slot, const Work& work, std::string& problem) {
  const Span& span = work.span;
  const int drafter = span.sequence->drafter;
  if (span.draft_rows == 0 && span.num_draft_tokens == 0) return;
  if (span.sequence->max_draft_tokens == 0)
    problem = "a span without speculation was granted drafts";
  const SchedulerDrafter& traits = config_.drafters[static_cast<size_t>(drafter)];
  if (traits.has_kv) {
    const int known = span.samples ? static_cast<int>(slot.tokens.size()) : slot.computed;
    const int end = std::min(known, traits.max_len);
    if (slot.draft_computed == 0 && !traits.keeps_states) {
      raise_exact(slot, drafter, find_exact(slot, drafter), problem);
    }
    const int rows = std::min(end - slot.draft_computed, span.draft_rows);
    if (traits.keeps_states && rows > 0) {
      begin_states(slot, drafter, slot.draft_computed, problem);
      const int computed = slot.draft_computed + rows;
      const int len = static_cast<int>(slot.tokens.size());
      set_states(slot, drafter, std::min(computed, len - 1), computed);
    }
    for (int i = 0; i < rows; ++i) {
      const int position = slot.draft_computed + i;
      write_entry(slot, drafter, position, slot.hashes[static_cast<size_t>(position)], problem);
    }
    raise_exact(slot, drafter, slot.draft_computed + std::max(0, rows), problem);
    num_caught_up_ += std::max(0, rows);
  } else if (span.draft_rows > 0) {
    problem = "a drafter without KV was granted rows";
  }
  if (span.num_draft_tokens > 0 && !slot.ended) propose(slot, work, problem);
}

void DeviceModel::propose(Slot& slot, const Work& work, std::string& problem) {
  const Sequence& sequence = *work.span.sequence;
  const SchedulerDrafter& traits = config_.drafters[static_cast<size_t>(sequence.drafter)];
  const int len = static_cast<int>(slot.tokens.size());
  const int most = std::min({work.span.num_draft_tokens, sequence.max_draft_tokens,
                             sequence.max_len - len - 1, traits.max_len - len + 1});
  if (most <= 0) return;
  if (traits.has_kv && slot.draft_computed != len) {
    problem = "a span was granted drafts, but not the rows to catch up";
    return;
  }
  // Mostly all of them, as without a length policy on the device.
  slot.num_draft_tokens = random_() % 4 == 0 ? static_cast<int>(random_() % (most + 1u)) : most;
  num_proposed_ += slot.num_draft_tokens;
  if (!traits.has_kv || slot.num_draft_tokens == 0) return;
  for (int i = 0; i + 1 < slot.num_draft_tokens; ++i) {
    write_entry(slot, sequence.drafter, len + i, ~0ull, problem);
  }
  if (traits.keeps_written) slot.draft_written = len + slot.num_draft_tokens - 1;
  for (int i = 0; i < len; ++i) {
    const Held& held = full_.table.at({slot.number, i / config_.block_size});
    const int64_t at = int64_t{held.block} * config_.block_size + i % config_.block_size;
    const auto entry = entries_.find({sequence.drafter, at});
    if (entry == entries_.end() || entry->second != slot.hashes[static_cast<size_t>(i)]) {
      problem = "wrong drafter entry at " + place(false, i);
      return;
    }
  }
}

void DeviceModel::write_entry(Slot& slot, int drafter, int position, uint64_t hash,
                              std::string& problem) {
  const auto found = full_.table.find({slot.number, position / config_.block_size});
  if (found == full_.table.end() || pool(false).epoch(found->second.block) != found->second.epoch ||
      pool(false).num_refs(found->second.block) == 0) {
    problem = "no block for the drafter's entry at " + place(false, position);
    return;
  }
  entries_[{drafter, int64_t{found->second.block} * config_.block_size +
                         position % config_.block_size}] = hash;
}

void DeviceModel::raise_exact(Slot& slot, int drafter, int end, std::string& problem) {
  for (; slot.draft_computed < end; ++slot.draft_computed) {
    const int position = slot.draft_computed;
    const auto found = full_.table.find({slot.number, position / config_.block_size});
    if (found == full_.table.end()) {
      problem = "no block for the drafter's entry at " + place(false, position);
      return;
    }
    int& count = headers_[found->second.block].counts[static_cast<size_t>(drafter)];
    count = std::max(count, position % config_.block_size + 1);
  }
}

// Leading entries that the page headers call exact.
int DeviceModel::find_exact(Slot& slot, int drafter) {
  int exact = 0;
  for (int index = 0; index * config_.block_size < slot.computed; ++index) {
    const Held& held = full_.table.at({slot.number, index});
    const int count = headers_[held.block].counts[static_cast<size_t>(drafter)];
    exact += count;
    if (count < config_.block_size) break;
  }
  exact = std::min(exact, slot.computed);
  num_found_ += exact;
  return exact;
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
