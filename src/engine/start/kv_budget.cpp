#include "engine/start/kv_budget.h"

#include <algorithm>
#include <string>

#include "device/device_traits.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

constexpr int64_t kMaxHostKvBytes = int64_t{4} << 30;
constexpr int64_t kShortSequence = 512;  // tokens
// That the driver takes for the graphs of an engine, those captured later included.
constexpr int64_t kGraphBytes = int64_t{512} << 20;

// Block counts without the null blocks.
class Shares {
 public:
  Shares(const EngineConfig& config, const KvDemand& demand)
      : block_size_(config.block_size),
        num_seqs_(config.max_num_seqs),
        full_each_(blocks(config.max_model_len)),
        has_window_(demand.window_block_bytes > 0),
        rows_in_flight_(int64_t{config.steps_in_flight} * config.max_num_batched_tokens),
        chunk_(config.max_num_batched_tokens),
        // The window of the first row in flight, and the last draft that can follow it.
        kept_(blocks(demand.window - 1 +
                     int64_t{config.steps_in_flight} * (demand.max_draft_tokens + 1)) +
              1) {}

  int64_t blocks(int64_t len) const { return (len + block_size_ - 1) / block_size_; }
  int64_t full_each() const { return full_each_; }
  // Of one sequence that has `full` blocks of the full group, while it decodes.
  int64_t window_each(int64_t full) const { return has_window_ ? std::min(full, kept_) : 0; }
  // The same with a chunk of its prompt in flight.
  int64_t window_alone(int64_t full) const {
    return has_window_ ? std::min(full, kept_ + blocks(chunk_)) : 0;
  }
  // KV slots are numbered with 31 bits.
  int64_t max_full() const {
    return std::min(full_each_ * num_seqs_, int64_t{INT32_MAX} / block_size_ - 2);
  }
  int64_t max_windowed() const {
    return std::min(max_full(), window_each(full_each_) * num_seqs_ + chunks());
  }
  // For so many sequences of max_model_len.
  int64_t windowed_for(double num_sequences) const {
    return static_cast<int64_t>(num_sequences * static_cast<double>(window_each(full_each_))) +
           chunks();
  }
  int64_t windowed_for_short() const {
    return num_seqs_ * window_each(std::min(full_each_, blocks(kShortSequence))) + chunks();
  }

 private:
  int64_t chunks() const { return has_window_ ? blocks(rows_in_flight_) : 0; }

  const int64_t block_size_;
  const int64_t num_seqs_;
  const int64_t full_each_;
  const bool has_window_;
  const int64_t rows_in_flight_;
  const int64_t chunk_;
  const int64_t kept_;
};

KvBlockCounts with_null_blocks(int64_t full, int64_t windowed) {
  return {static_cast<int>(full) + 1, windowed > 0 ? static_cast<int>(windowed) + 1 : 0};
}

KvBlockCounts split_override(const Shares& shares, int64_t num_blocks) {
  const int64_t full = std::min(num_blocks, shares.max_full());
  const double sequences = static_cast<double>(full) / static_cast<double>(shares.full_each());
  const int64_t wanted = std::max(
      {shares.windowed_for(sequences), shares.windowed_for_short(), shares.window_alone(full)});
  return with_null_blocks(full, std::min({wanted, full, shares.max_windowed()}));
}

// `bytes`: without those of the null blocks; enough for one sequence.
KvBlockCounts split_budget(const Shares& shares, const KvDemand& demand, int64_t bytes) {
  const int64_t full_bytes = demand.block_bytes;
  const int64_t window_bytes = demand.window_block_bytes;
  if (window_bytes == 0) {
    return with_null_blocks(std::min(bytes / full_bytes, shares.max_full()), 0);
  }
  const int64_t each =
      shares.full_each() * full_bytes + shares.window_each(shares.full_each()) * window_bytes;
  const double sequences =
      std::max(0.0, static_cast<double>(bytes - shares.windowed_for(0) * window_bytes)) /
      static_cast<double>(each);
  const int64_t for_short = std::min(shares.windowed_for_short(), bytes / 2 / window_bytes);
  const int64_t wanted = std::max(
      {shares.windowed_for(sequences), for_short, shares.window_alone(shares.full_each())});
  const int64_t room = (bytes - shares.full_each() * full_bytes) / window_bytes;
  int64_t windowed = std::min({wanted, room, shares.max_windowed()});
  const int64_t full = std::min((bytes - windowed * window_bytes) / full_bytes, shares.max_full());
  windowed = std::min((bytes - full * full_bytes) / window_bytes, shares.max_windowed());
  return with_null_blocks(full, windowed);
}

// Of one sequence with `full` blocks, and the null blocks.
int64_t bytes_alone(const Shares& shares, const KvDemand& demand, int64_t full) {
  return (full + 1) * demand.block_bytes +
         (shares.window_alone(full) + 1) * demand.window_block_bytes;
}

std::string needed_mebibytes(int64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

// Two digits behind the point, rounded down.
std::string short_number(double value) {
  const auto hundredths = static_cast<int64_t>(value * 100 + 1e-6);
  const std::string digits = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (digits.size() == 1 ? "0" : "") + digits;
}

// Those that make more of it.
std::string flags_of_budget(const EngineConfig& config) {
  const DeviceTraits* device = find_device_type(config.device);
  const bool of_host = device != nullptr && device->uses_host_memory;
  const bool by_share = config.kv_cache_memory_bytes == 0 && !of_host;
  return by_share ? "--gpu-memory-utilization or --kv-cache-memory-bytes"
                  : "--kv-cache-memory-bytes";
}

std::string mebibytes(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

KvDemand kv_demand(const std::vector<KvGroupSpec>& groups, int block_size,
                   const DrafterDemand& drafters) {
  KvDemand demand;
  demand.block_bytes = kv_bytes_per_block(groups.front(), block_size) +
                       block_size * static_cast<int64_t>(sizeof(int32_t)) +
                       static_cast<int64_t>(sizeof(PageHeader)) + drafters.block_bytes;
  demand.max_draft_tokens = drafters.max_draft_tokens;
  if (groups.size() > 1) {
    demand.window_block_bytes = kv_bytes_per_block(groups[1], block_size);
    demand.window = groups[1].window;
  }
  return demand;
}

int64_t kv_bytes_alone(const EngineConfig& config, const KvDemand& demand) {
  const Shares shares(config, demand);
  return bytes_alone(shares, demand, shares.full_each());
}

Result<int64_t> kv_budget(const EngineConfig& config, const MemoryUse& use) {
  if (config.kv_cache_memory_bytes > 0) return config.kv_cache_memory_bytes;
  const double share = config.gpu_memory_utilization;
  if (use.of_host) {
    const auto budget = static_cast<int64_t>(static_cast<double>(use.free_now) * share);
    return std::min(budget / 2, std::max(kMaxHostKvBytes, use.one_sequence));
  }
  const auto granted = static_cast<int64_t>(static_cast<double>(use.total) * share);
  const int64_t graphs = config.enforce_eager ? 0 : kGraphBytes;
  const int64_t taken = use.free_at_start - use.free_now + use.still_to_take + graphs;
  if (config.num_gpu_blocks_override > 0) return std::max<int64_t>(granted - taken, 0);
  if (granted > use.free_at_start) {
    const double most = 0.99 * static_cast<double>(use.free_at_start);
    return resource_exhausted(
        "--gpu-memory-utilization " + short_number(share) + " asks for " + mebibytes(granted) +
        " of " + use.device + ", but only " + mebibytes(use.free_at_start) + " of its " +
        mebibytes(use.total) + " were free at start; lower it to " +
        short_number(most / static_cast<double>(use.total)) + " or end other processes");
  }
  if (granted <= taken) {
    return resource_exhausted(
        "no memory is left for the KV cache on " + use.device + ": --gpu-memory-utilization " +
        short_number(share) + " grants " + mebibytes(granted) + ", but weights and scratch take " +
        mebibytes(taken) +
        "; raise it, lower --max-num-batched-tokens or --max-num-seqs, or use a smaller model");
  }
  return granted - taken;
}

Result<int> choose_max_model_len(const EngineConfig& config, const KvDemand& demand, int64_t budget,
                                 int longest) {
  const Shares shares(config, demand);
  int64_t low = 0;
  int64_t high = shares.blocks(longest);
  if (config.num_gpu_blocks_override > 0) {
    low = std::min<int64_t>(high, config.num_gpu_blocks_override);
  } else {
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      const bool fits = bytes_alone(shares, demand, middle) <= budget;
      (fits ? low : high) = fits ? middle : middle - 1;
    }
  }
  if (low == 0) {
    return resource_exhausted("one block of KV cache needs " +
                              needed_mebibytes(bytes_alone(shares, demand, 1)) + ", but only " +
                              mebibytes(budget) + " are available; raise " +
                              flags_of_budget(config) + ", or free memory");
  }
  return static_cast<int>(std::min<int64_t>(longest, low * config.block_size));
}

Result<KvBlockCounts> choose_num_blocks(const EngineConfig& config, const KvDemand& demand,
                                        int64_t budget) {
  const Shares shares(config, demand);
  if (config.num_gpu_blocks_override > 0) {
    return split_override(shares, config.num_gpu_blocks_override);
  }
  const int64_t alone = kv_bytes_alone(config, demand);
  if (alone > budget) {
    return resource_exhausted(
        "one sequence of max_model_len " + std::to_string(config.max_model_len) + " needs " +
        needed_mebibytes(alone) + " of KV cache, but only " + mebibytes(budget) +
        " are available; lower --max-model-len (auto: as much as fits), or raise " +
        flags_of_budget(config));
  }
  return split_budget(shares, demand, budget - demand.block_bytes - demand.window_block_bytes);
}

}  // namespace foretoken
