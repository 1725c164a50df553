#pragma once
#include <foretoken/config.h>

#include <cstdint>
#include <string>

#include "attention/kv_cache.h"
#include "base/result.h"

namespace foretoken {

// What blocks of the KV groups cost and what sequences keep of the windowed one.
struct KvDemand {
  // Full group: keys, values and the token page, and what the drafters keep beside them.
  int64_t block_bytes = 0;
  int64_t window_block_bytes = 0;  // windowed group; 0: the model has none
  int window = 0;                  // positions
  int max_draft_tokens = 0;
};

// Of drafters together.
struct DrafterDemand {
  int max_draft_tokens = 0;  // the most of any
  int64_t block_bytes = 0;   // sum of Drafter::bytes_per_block
};

// Of a model's groups (see Model::kv_groups) and of the drafters, whose entries and tap pages have
// the blocks of the full group.
KvDemand kv_demand(const std::vector<KvGroupSpec>& groups, int block_size,
                   const DrafterDemand& drafters);

// Blocks of each group, the null blocks included; `windowed` is 0 without such a group.
struct KvBlockCounts {
  int full = 0;
  int windowed = 0;
};

// The memory of a device while an engine starts, in bytes.
struct MemoryUse {
  std::string device;   // for messages
  bool of_host = true;  // DeviceTraits::uses_host_memory
  int64_t total = 0;
  int64_t free_at_start = 0;  // before the engine took any
  int64_t free_now = 0;       // weights and the models' scratch are there
  int64_t still_to_take = 0;  // by steps, beside the KV cache; graphs are added to it
  int64_t one_sequence = 0;   // of max_model_len needs so much KV cache; 0: not known yet
};

// Bytes for keys, values, token pages and what drafters keep: kv_cache_memory_bytes where it is
// given. Otherwise, of a device's own memory, what gpu_memory_utilization of it leaves beside what
// the engine took and will take; of the host's that share of half of what is free, at most 4 GiB
// or what one sequence needs. ResourceExhausted, with the remedy, when other processes hold what
// was granted, or nothing is left; not with num_gpu_blocks_override.
Result<int64_t> kv_budget(const EngineConfig& config, const MemoryUse& use);

// Bytes of KV cache that one sequence of max_model_len needs.
int64_t kv_bytes_alone(const EngineConfig& config, const KvDemand& demand);

// The largest max_model_len up to `longest` for which one sequence fits into `budget` (or into
// num_gpu_blocks_override blocks). ResourceExhausted when not even two tokens do.
Result<int> choose_max_model_len(const EngineConfig& config, const KvDemand& demand, int64_t budget,
                                 int longest);

// How many blocks each group gets, from `budget` or from the override (of full blocks), but never
// more than max_num_seqs sequences of max_model_len can use: each all its blocks in the full group;
// in the windowed group what the window and the drafts in flight touch, and together the chunks of
// the steps in flight. When not all of that fits, the groups are split
//  - so that both run out together for sequences of max_model_len,
//  - but the windowed group has what max_num_seqs sequences of 512 tokens keep, or half of the
//    budget if that is less: short sequences use as many blocks there as in the full group, and a
//    split for long ones alone would admit only a few of them,
//  - and one sequence of max_model_len always fits, with a whole chunk in the windowed group.
// With the override the windowed group follows by the same rules, without a budget.
// ResourceExhausted when one sequence of max_model_len does not fit and there is no override.
Result<KvBlockCounts> choose_num_blocks(const EngineConfig& config, const KvDemand& demand,
                                        int64_t budget);

}  // namespace foretoken
