#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config/config.h"

namespace foretoken {

// Which part of a model this rank has, and what its queue meets the other ranks with. The parts
// are Megatron's: heads, the MLP's inner columns and the vocabulary are divided; what a layer adds
// to the residual is summed over the ranks, so that every rank holds whole hidden states.
struct Sharding {
  int32_t rank = 0;
  int32_t size = 1;
  const void* comm = nullptr;  // Communicator::handle; null with one rank

  bool is_cut() const { return size > 1; }
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

// The config of a rank's part: fewer heads and inner columns; hidden states and vocabulary whole.
// InvalidArgument names the size that cannot be divided and what could be chosen; `flag` asked for
// it.
Result<ModelConfig> shard_config(const ModelConfig& config, const Sharding& sharding,
                                 const std::string& flag = "--tensor-parallel-size");

}  // namespace foretoken
