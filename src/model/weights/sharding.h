#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/comm/context_exchange.h"
#include "model/config/config.h"

namespace foretoken {

// Among how many ranks whole experts are dealt out, and which of them this one is; size 0: they are
// not, each rank has a part of the columns of every expert. What a mixture adds to a row is by
// definition the sum over these ranks ascending, and inside a rank over the row's choices
// ascending.
struct ExpertRanks {
  int32_t rank = 0;
  int32_t size = 0;
  // Engines side by side, each with rows of its own, that have the experts together, and the
  // Communicator::handle of what kernels/comm/expert_exchange.h wants; null with one engine.
  int32_t num_engines = 1;
  const void* comm = nullptr;
};

// Which part of a model this rank has, and what its queue meets the other ranks with. The parts
// are Megatron's: heads, the MLP's inner columns and the vocabulary are divided; what a layer adds
// to the residual is summed over the ranks, so that every rank holds whole hidden states.
struct Sharding {
  int32_t rank = 0;
  int32_t size = 1;
  const void* comm = nullptr;  // Communicator::handle; null with one rank
  ExpertRanks experts = {};
  // With which ranks this one shares the positions of sequences: of those that would hold the same
  // keys and values.
  ContextRanks context = {};

  bool is_cut() const { return size > 1; }
  bool deals_experts() const { return experts.size > 0; }
};

// Rows or columns [begin, begin + count).
struct ShardRange {
  int64_t begin;
  int64_t count;
};

// A part of `total`, which the size divides.
inline ShardRange shard_of(int64_t total, const Sharding& sharding) {
  const int64_t each = total / sharding.size;
  return {each * sharding.rank, each};
}

// The heads of keys and values of a rank: divided, or the one that its heads read.
inline ShardRange shard_of_kv_heads(int64_t total, const Sharding& sharding) {
  if (total >= sharding.size) return shard_of(total, sharding);
  return {total * sharding.rank / sharding.size, 1};
}

// Whether no rank before this one has the same heads of keys and values.
inline bool is_first_with_kv_heads(int64_t total, const Sharding& sharding) {
  if (sharding.rank == 0) return true;
  Sharding before = sharding;
  --before.rank;
  return shard_of_kv_heads(total, sharding).begin != shard_of_kv_heads(total, before).begin;
}

// The experts of a rank: all of them, or its share where they are dealt out, in which ranks differ
// by one expert at most.
inline ShardRange shard_of_experts(int64_t total, const Sharding& sharding) {
  if (!sharding.deals_experts()) return {0, total};
  const int64_t rank = sharding.experts.rank, size = sharding.experts.size;
  const int64_t begin = total * rank / size;
  return {begin, total * (rank + 1) / size - begin};
}

// Numbers of heads of keys and values that layers have, each once; the config's own is the first.
std::vector<int> kv_heads_of(const ModelConfig& config);

// Whether the ranks of sharding.context have the same heads of keys and values in every layer, and
// parts of a row.
bool can_share_context(const ModelConfig& config, const Sharding& sharding);
// The same for a drafter, which keeps its keys and values whole on each rank where they cannot.
inline Sharding sharding_of_drafter(const ModelConfig& config, Sharding sharding) {
  if (!can_share_context(config, sharding)) sharding.context = {};
  return sharding;
}

// The config of a rank's part: fewer heads and inner columns; hidden states, vocabulary and the
// number of experts whole. InvalidArgument names the size that cannot be divided, or for which
// there are too few experts, and what could be chosen; `flag` asked for it. Its ranks can share the
// context.
Result<ModelConfig> shard_config(const ModelConfig& config, const Sharding& sharding,
                                 const std::string& flag = "--tensor-parallel-size");

}  // namespace foretoken
