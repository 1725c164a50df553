#include "sched/kv_blocks.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/result.h"

namespace foretoken {
namespace {

std::optional<BlockPool> window_pool(const KvBlocksConfig& config) {
  if (config.num_window_blocks == 0) return std::nullopt;
  return std::optional<BlockPool>(std::in_place, config.num_window_blocks);
}

// Last block first, so that the end of a prefix is forgotten before its beginning.
void release_all(std::vector<BlockId>& blocks, BlockPool& pool) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (*block != kNullBlock) pool.release(*block);
  }
  blocks.clear();
}

}  // namespace

KvBlocks::KvBlocks(const KvBlocksConfig& config)
    : config_(config),
      full_(config.num_blocks),
      windowed_(window_pool(config)),
      cache_(full_, windowed(), config.block_size),
      exact_(static_cast<size_t>(config.num_blocks)) {
  FT_CHECK(config.block_size > 0 && (!windowed_ || config.window > 0));
  if (config.num_snapshots > 0 && config.prefix_caching) {
    const int max_moves = 2 * config.max_num_seqs;
    snapshots_.emplace(config.num_snapshots, config.num_blocks, 3 * max_moves);
    left_states_.reserve(2 * static_cast<size_t>(max_moves));
  }
  if (config.num_host_blocks == 0 || !config.prefix_caching) return;
  const int max_locked = 2 * config.max_block_assignments;
  host_.emplace(config.num_host_blocks, config.block_size, max_locked);
  host_hits_.blocks.reserve(static_cast<size_t>(config.num_blocks));
  if (windowed_ && config.num_host_windows > 0) {
    host_windows_.emplace(config.num_host_windows, 0, max_locked);
    window_names_.resize(static_cast<size_t>(config.num_window_blocks));
    host_hits_.window.reserve(static_cast<size_t>(config.num_window_blocks));
  }
  if (snapshots_ && config.num_host_states > 0) {
    host_states_.emplace(config.num_host_states, 0, 2 * config.num_snapshots);
  }
}

Status KvBlocks::check_fits(int prompt_len, int max_len) const {
  if (blocks_for(max_len) > full_.num_usable()) {
    return resource_exhausted(
        "the KV cache holds " + std::to_string(full_.num_usable() * config_.block_size) +
        " tokens, but prompt and output may reach " + std::to_string(max_len) + " (prompt " +
        std::to_string(prompt_len) +
        "); lower max_tokens, or raise --num-gpu-blocks-override or --kv-cache-memory-bytes");
  }
  if (!windowed_) return {};
  if (config_.whole_prompts && blocks_for(prompt_len) > windowed_->num_usable()) {
    return resource_exhausted(
        "the windowed KV cache holds " +
        std::to_string(windowed_->num_usable() * config_.block_size) + " tokens, but a prompt of " +
        std::to_string(prompt_len) +
        " that sees itself (--flex-mask with 'prompt') is computed in one step; shorten it, or "
        "raise --num-gpu-blocks-override or --kv-cache-memory-bytes");
  }
  // A window and the row that sees it may begin in the middle of a block.
  if (std::min(blocks_for(max_len), blocks_for(config_.window - 1) + 1) > windowed_->num_usable()) {
    return resource_exhausted(
        "the windowed KV cache holds " +
        std::to_string(windowed_->num_usable() * config_.block_size) +
        " tokens, but a sequence needs its window of " + std::to_string(config_.window) +
        " and one block; raise --num-gpu-blocks-override or --kv-cache-memory-bytes");
  }
  return {};
}

bool KvBlocks::worth_a_look(const Sequence& sequence) const {
  if (sequence.num_blocks_wanted <= full_.num_free() &&
      (!windowed_ || sequence.num_window_blocks_wanted <= windowed_->num_free())) {
    return true;
  }
  // Its chain of hits grows while another sequence computes the same prompt.
  const int next = sequence.num_cached_blocks;
  if (!config_.prefix_caching || sequence.bypasses_prefix_cache || next >= max_hits(sequence)) {
    return false;
  }
  const PrefixLink parent = parent_of(sequence, sequence.cache_tail, next);
  return cache_.find(parent, ids_of(sequence, next)) != kNullBlock;
}

bool KvBlocks::take_hits(Sequence& sequence, int chunk, bool alone) {
  find_chain(sequence);
  const PrefixLink chain_end = sequence.cache_tail;
  const int chain_len = sequence.num_cached_blocks;
  find_images(sequence);
  const int whole_chain = chain_len + static_cast<int>(host_hits_.blocks.size());
  sequence.branch = 0;
  const int free_before = full_.num_free();
  const int window_free_before = windowed_ ? windowed_->num_free() : 0;
  const int hits = usable_hits(sequence, whole_chain, true);
  if (host_) host_hits_.num_device_blocks = usable_hits(sequence, chain_len, false);
  retain_hits(sequence, hits);

  const int end = std::min(sequence.known_len() + 1, sequence.max_len);
  const int missing = blocks_for(end) - sequence.num_cached_blocks;
  const int horizon = std::min(end - sequence.num_scheduled, config_.window + chunk);
  const int window_restored = static_cast<int>(host_hits_.window.size());
  const int least = config_.whole_prompts ? blocks_for(sequence.prompt_len) : 1;
  const int window_missing =
      !windowed_ ? 0 : window_restored + (alone ? least : blocks_for(horizon));
  if (missing <= full_.num_free() && (!windowed_ || window_missing <= windowed_->num_free())) {
    sequence.num_blocks_wanted = sequence.num_window_blocks_wanted = 0;
    // One block more is not worth a step.
    if (snapshots_ && whole_chain > hits + 1) sequence.branch = whole_chain * config_.block_size;
    sequence.last_state_len = sequence.num_scheduled;
    sequence.output_state = {};
    return true;
  }
  sequence.num_blocks_wanted = free_before - full_.num_free() + missing;
  if (windowed_) {
    sequence.num_window_blocks_wanted = window_free_before - windowed_->num_free() + window_missing;
  }
  release(sequence);
  sequence.cache_tail = chain_end;
  sequence.num_cached_blocks = chain_len;
  return false;
}

// The last known token always runs, so hits stop before its block.
int KvBlocks::max_hits(const Sequence& sequence) const {
  return (sequence.known_len() - 1) / config_.block_size;
}

// Of the block at that index, which is full.
std::span<const int32_t> KvBlocks::ids_of(const Sequence& sequence, int index) const {
  return std::span<const int32_t>(sequence.tokens)
      .subspan(static_cast<size_t>(index) * config_.block_size, config_.block_size);
}

// Blocks before the one in which the adapter begins are those of sequences without one.
PrefixLink KvBlocks::root(const Sequence& sequence) const {
  if (sequence.adapter_begin >= config_.block_size) return PrefixLink::root(0, sequence.cache_salt);
  const PrefixLink own = PrefixLink::root(sequence.adapter, sequence.cache_salt);
  return sequence.adapter_begin > 0 ? own.adapted(sequence.adapter, sequence.adapter_begin) : own;
}

// Under which the block at that index is looked for and remembered, `behind` the one before it.
PrefixLink KvBlocks::parent_of(const Sequence& sequence, PrefixLink behind, int index) const {
  const bool begins = index > 0 && index == sequence.adapter_begin / config_.block_size;
  return begins ? behind.adapted(sequence.adapter, sequence.adapter_begin) : behind;
}

void KvBlocks::find_chain(Sequence& sequence) const {
  sequence.cache_tail = root(sequence);
  sequence.num_cached_blocks = 0;
  if (!config_.prefix_caching || sequence.bypasses_prefix_cache) return;
  const int most = max_hits(sequence);
  while (sequence.num_cached_blocks < most) {
    const int index = sequence.num_cached_blocks;
    const BlockId block =
        cache_.find(parent_of(sequence, sequence.cache_tail, index), ids_of(sequence, index));
    if (block == kNullBlock) break;
    sequence.blocks.push_back(block);
    sequence.cache_tail = cache_.link_to(block);
    ++sequence.num_cached_blocks;
  }
}

// The block in which the window of a row at `position` begins.
int KvBlocks::first_seen_block(int position) const {
  return std::max(0, position - config_.window + 1) / config_.block_size;
}

// The most leading blocks of the chain after which the next row finds its whole window, and
// recurrent layers a snapshot of their states. Example:
// with blocks of 16 and a window of 20 a chain of 5 blocks ends at position 80, whose row sees
// positions from 61 on, which begin in block 3. Where blocks 3 and 4 have companions still, all 5
// are hits; where only blocks 0 and 1 have one, 2 are (position 32 sees from 13 on), and where only
// block 1 has one, none is.
// `in_host`: what lies in host memory counts, too.
int KvBlocks::usable_hits(const Sequence& sequence, int chain_len, bool in_host) const {
  if (!windowed_) {
    int hits = chain_len;
    while (hits > 0 && !finds_state(sequence, hits - 1, in_host)) --hits;
    return hits;
  }
  int best = 0;
  int num_alive = 0;  // companions in a row up to block i
  for (int i = 0; i < chain_len; ++i) {
    num_alive = finds_window(sequence, i, in_host) ? num_alive + 1 : 0;
    const int hits = i + 1;
    const bool is_seen = num_alive >= hits - first_seen_block(hits * config_.block_size);
    if (is_seen && finds_state(sequence, i, in_host)) best = hits;
  }
  return best;
}

// Those in host memory have no blocks before restore_hits.
void KvBlocks::retain_hits(Sequence& sequence, int num_hits) {
  const int on_device = std::min(num_hits, static_cast<int>(sequence.blocks.size()));
  sequence.blocks.resize(static_cast<size_t>(on_device));
  host_hits_.blocks.resize(static_cast<size_t>(num_hits - on_device));
  for (const BlockId block : sequence.blocks) full_.retain(block);
  retain_window(sequence, num_hits);
  if (num_hits > 0 && !finds_state(sequence, num_hits - 1, false)) {
    host_hits_.state = host_states_->find(link_behind(sequence, num_hits - 1));
  }
  sequence.num_cached_blocks = on_device;
  sequence.num_scheduled = sequence.num_computed = num_hits * config_.block_size;
  sequence.cache_tail = on_device > 0 ? cache_.link_to(sequence.blocks.back()) : root(sequence);
}

void KvBlocks::retain_window(Sequence& sequence, int num_hits) {
  if (!windowed_) return;
  const int first = std::min(num_hits, first_seen_block(num_hits * config_.block_size));
  sequence.num_freed_window_blocks = first;
  sequence.window_blocks.assign(static_cast<size_t>(first), kNullBlock);
  for (int i = first; i < num_hits; ++i) {
    const bool on_device = finds_window(sequence, i, false);
    sequence.window_blocks.push_back(
        on_device ? cache_.companion(sequence.blocks[static_cast<size_t>(i)]) : kNullBlock);
    if (on_device) {
      windowed_->retain(sequence.window_blocks.back());
    } else {
      host_hits_.window.emplace_back(i, host_windows_->find(link_behind(sequence, i)));
    }
  }
}

int KvBlocks::window_room(const Sequence& sequence) const {
  if (!windowed_) return std::numeric_limits<int>::max();
  return (static_cast<int>(sequence.window_blocks.size()) + windowed_->num_free()) *
         config_.block_size;
}

bool KvBlocks::only_window_is_short(const Sequence& sequence, Reach reach) const {
  return blocks_for(reach.ids_end) - static_cast<int>(sequence.blocks.size()) <= full_.num_free() &&
         reach.rows_end > window_room(sequence);
}

// Example: a sequence of 30 tokens holds 2 blocks of 16. With a step in flight that may commit 4
// ids and 3 drafts to verify its rows may end at 37 and its ids at 38, so that it needs a third
// block; without a free one nothing is taken and the caller tries without drafts.
bool KvBlocks::reserve(Sequence& sequence, Reach reach, StepPlan& plan) {
  const int needed = blocks_for(reach.ids_end);
  const int window_needed = windowed_ ? blocks_for(reach.rows_end) : 0;
  if (needed - static_cast<int>(sequence.blocks.size()) > full_.num_free()) return false;
  if (reach.rows_end > window_room(sequence)) return false;
  while (static_cast<int>(sequence.blocks.size()) < needed) {
    const BlockId block = take_block(plan);
    plan.blocks.push_back({.slot = sequence.slot,
                           .index = static_cast<int>(sequence.blocks.size()),
                           .block = block,
                           .fresh = true});
    sequence.blocks.push_back(block);
  }
  while (static_cast<int>(sequence.window_blocks.size()) < window_needed) {
    const BlockId block = take_window_block(plan);
    plan.blocks.push_back({.slot = sequence.slot,
                           .index = static_cast<int>(sequence.window_blocks.size()),
                           .block = block,
                           .fresh = true,
                           .windowed = true});
    sequence.window_blocks.push_back(block);
  }
  return true;
}

void KvBlocks::announce_hits(const Sequence& sequence, StepPlan& plan) const {
  for (size_t i = 0; i < sequence.blocks.size(); ++i) {
    plan.blocks.push_back(
        {.slot = sequence.slot, .index = static_cast<int>(i), .block = sequence.blocks[i]});
  }
  for (size_t i = static_cast<size_t>(sequence.num_freed_window_blocks);
       i < sequence.window_blocks.size(); ++i) {
    plan.blocks.push_back({.slot = sequence.slot,
                           .index = static_cast<int>(i),
                           .block = sequence.window_blocks[i],
                           .windowed = true});
  }
}

int KvBlocks::num_hits_to_announce(const Sequence& sequence) const {
  return static_cast<int>(sequence.blocks.size() + host_hits_.blocks.size() +
                          sequence.window_blocks.size()) -
         sequence.num_freed_window_blocks;
}

void KvBlocks::remember(Sequence& sequence, int num_tokens) {
  if (!config_.prefix_caching) return;
  while ((sequence.num_cached_blocks + 1) * config_.block_size <= num_tokens) {
    const size_t index = static_cast<size_t>(sequence.num_cached_blocks);
    const std::span<const int32_t> ids = ids_of(sequence, sequence.num_cached_blocks);
    // Where host memory knows the prefix, what it has behind that is found again.
    const PrefixLink parent = parent_of(sequence, sequence.cache_tail, sequence.num_cached_blocks);
    const BlockId image = host_ ? host_->find(parent, ids) : kNullBlock;
    const uint64_t name = image != kNullBlock ? host_->name(image) : 0;
    sequence.cache_tail = cache_.insert(parent, ids, sequence.blocks[index], name);
    if (windowed_) cache_.set_companion(sequence.cache_tail.block, sequence.window_blocks[index]);
    if (host_windows_) {
      const auto block = static_cast<size_t>(sequence.window_blocks[index]);
      window_names_[block] = sequence.cache_tail.name;
    }
    ++sequence.num_cached_blocks;
  }
}

void KvBlocks::note_exact(Sequence& sequence, int num_tokens) {
  const int end =
      std::min(num_tokens / config_.block_size, static_cast<int>(sequence.blocks.size()));
  for (int& i = sequence.num_exact_blocks; i < end; ++i) {
    const BlockId block = sequence.blocks[static_cast<size_t>(i)];
    exact_[static_cast<size_t>(block)] |= static_cast<uint8_t>(1 << sequence.drafter);
  }
}

int KvBlocks::num_exact_hits(const Sequence& sequence) const {
  int num_blocks = 0;
  for (const BlockId block : sequence.blocks) {
    if ((exact_[static_cast<size_t>(block)] >> sequence.drafter & 1) == 0) break;
    ++num_blocks;
  }
  return num_blocks * config_.block_size;
}

void KvBlocks::free_behind_window(Sequence& sequence) {
  if (!windowed_) return;
  const int end = std::min(first_seen_block(sequence.num_computed),
                           static_cast<int>(sequence.window_blocks.size()));
  for (int& i = sequence.num_freed_window_blocks; i < end; ++i) {
    BlockId& block = sequence.window_blocks[static_cast<size_t>(i)];
    windowed_->release(block);
    block = kNullBlock;
  }
}

void KvBlocks::release(Sequence& sequence) {
  release_all(sequence.blocks, full_);
  if (windowed_) release_all(sequence.window_blocks, *windowed_);
  sequence.num_freed_window_blocks = sequence.num_exact_blocks = 0;
  sequence.num_scheduled = sequence.num_computed = 0;
}

}  // namespace foretoken
