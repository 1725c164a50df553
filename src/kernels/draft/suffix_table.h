#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/step_types.h"
#include "spec/acceptance_rates.h"
#include "spec/length_choice.h"

// What followed a piece of text in past answers: a table of fixed size, for the CPU and the CUDA
// kernel of kernels/draft/suffix.h. Keys are the last tokens of a text, of kNumLevels lengths, and
// whose text it is. All on integers, so that both devices know the same.

namespace foretoken::suffix_table {

inline constexpr int kMaxDepth = 64;  // tokens of the longest piece of text
inline constexpr int kNumLevels = 4;  // lengths: the longest, its half, its quarter, its eighth
inline constexpr int kWays = 4;       // entries of a bucket
// Of the pieces of 2 tokens and more; one token tells nothing of what follows.
inline constexpr int kLeastTokens = 2;
// Occurrences that the frequencies look back on. Fewer, and one odd text is believed; more, and
// texts that changed are drafted as they were.
inline constexpr int32_t kWindow = 8;
// Frequencies, in 1/65535, that count as equal: the later token goes first then.
inline constexpr int32_t kTie = 16;
inline constexpr uint32_t kClockMask = (1u << 28) - 1;

// One piece of text. The owner's numbers are kept whole and compared, so that no collision of the
// table's hashes can show one owner's tokens to another.
struct Entry {
  uint64_t salt;      // SlotParams::cache_salt
  int32_t adapter;    // SlotParams::adapter_number
  uint32_t check;     // the part of the hash that does not choose the bucket
  int32_t ids[2];     // what followed, the likelier first; -1: nothing else did
  uint16_t rates[2];  // how often of late, in 1/65535
  uint32_t seen;      // clock at the last occurrence * 16 + occurrences, at most kWindow; 0: empty
};
static_assert(sizeof(Entry) == 32);

struct Table {
  Entry* entries;        // [num_buckets, kWays] in device memory
  uint32_t* clock;       // sequences that have begun to be learnt
  uint32_t num_buckets;  // a power of two; 0: nothing is kept of past answers
  uint32_t max_age;      // entries that no sequence of the last so many has touched count as empty
};

// Tokens of the pieces of a level, 0 being the longest; 0: there is no such level.
FT_HD inline int32_t level_tokens(int32_t max_depth, int level) {
  const int32_t tokens = max_depth >> level;
  return level == 0 || tokens >= kLeastTokens ? tokens : 0;
}

// Tokens of the shortest level that there is.
FT_HD inline int32_t least_tokens(int32_t max_depth) {
  int32_t least = max_depth;
  for (int level = 1; level < kNumLevels; ++level) {
    const int32_t tokens = level_tokens(max_depth, level);
    if (tokens > 0) least = tokens;
  }
  return least;
}

struct Key {
  uint64_t salt;
  int32_t adapter;
  uint32_t bucket;
  uint32_t check;
};

FT_HD inline uint64_t mixed(uint64_t hash, uint64_t word) {
  // Knuth's multiplicative step; the shift brings high bits back down.
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// Of the `tokens` last tokens of a text of the slot; `id_back(i)` is the one with i behind it.
template <class IdBack>
FT_HD inline Key key_of(const Table& table, const SlotParams& params, int32_t tokens,
                        const IdBack& id_back) {
  uint64_t hash = mixed(mixed(params.cache_salt, static_cast<uint32_t>(params.adapter_number)),
                        static_cast<uint32_t>(tokens));
  for (int32_t i = 0; i < tokens; ++i) hash = mixed(hash, static_cast<uint32_t>(id_back(i)));
  hash = mixed(hash, hash >> 32);
  return {params.cache_salt, params.adapter_number,
          static_cast<uint32_t>(hash >> 32) & (table.num_buckets - 1), static_cast<uint32_t>(hash)};
}

FT_HD inline uint32_t age_of(const Entry& entry, uint32_t clock) {
  return (clock - (entry.seen >> 4)) & kClockMask;
}

FT_HD inline bool is_of(const Entry& entry, const Key& key) {
  return entry.seen != 0 && entry.check == key.check && entry.salt == key.salt &&
         entry.adapter == key.adapter;
}

// Whether the entry tells what follows the key.
FT_HD inline bool holds(const Table& table, const Entry& entry, const Key& key, uint32_t clock) {
  return is_of(entry, key) && age_of(entry, clock) <= table.max_age;
}

// Takes in that `id` followed.
FT_HD inline void note(Entry& entry, int32_t id, uint32_t clock) {
  const auto before = static_cast<int32_t>(entry.seen & 15);
  const int32_t count = before < kWindow ? before + 1 : kWindow;
  entry.seen = (clock & kClockMask) << 4 | static_cast<uint32_t>(count);
  constexpr int32_t kOne = spec::RateConstants::kOne;
  for (int i = 0; i < 2; ++i) {
    entry.rates[i] = static_cast<uint16_t>(
        spec::moved_rate<int32_t>(entry.rates[i], entry.ids[i] == id ? kOne : 0, 1, count));
  }
  if (entry.ids[0] != id && entry.ids[1] != id && entry.rates[1] <= kOne / count) {
    entry.ids[1] = id;
    entry.rates[1] = static_cast<uint16_t>(kOne / count);
  }
  if (entry.ids[1] != id || entry.rates[1] + kTie < entry.rates[0]) return;
  const int32_t first = entry.ids[0];
  const uint16_t rate = entry.rates[0];
  entry.ids[0] = entry.ids[1];
  entry.rates[0] = entry.rates[1];
  entry.ids[1] = first;
  entry.rates[1] = rate;
}

// The same for the key's entry, which takes the place of an empty or of the oldest one of its
// bucket where there is none. Callers see to it that a bucket has one writer.
FT_HD inline void learn(const Table& table, const Key& key, int32_t id, uint32_t clock) {
  Entry* bucket = table.entries + int64_t{key.bucket} * kWays;
  Entry* place = bucket;
  uint32_t oldest = 0;
  bool found = false;
  for (int way = 0; way < kWays && !found; ++way) {
    Entry& entry = bucket[way];
    found = is_of(entry, key);
    const uint32_t age = entry.seen == 0 ? ~0u : age_of(entry, clock) + 1;
    if (!found && age <= oldest) continue;
    oldest = age;
    place = &entry;
  }
  if (!found || age_of(*place, clock) > table.max_age) {
    *place = {key.salt, key.adapter, key.check, {id, -1}, {0, 0}, 0};
  }
  note(*place, id, clock);
}

// The chance that the entry's first id follows, in 1/65535. What was seen few times counts for
// less, the less the shorter the piece of text is.
FT_HD inline int32_t chance_of(const Entry& entry, int32_t tokens) {
  const int32_t weight = tokens * static_cast<int32_t>(entry.seen & 15);
  return entry.rates[0] * weight / (weight + 1);
}

// Whether what follows is so likely, behind the longest piece of text that there is, that a drafter
// which rests is woken.
FT_HD inline bool is_sure(const Entry& entry, int32_t tokens, int32_t max_depth) {
  return tokens == max_depth && chance_of(entry, tokens) >= spec::kFirstRate;
}

// Most drafts behind a text whose last `matched` tokens were found.
FT_HD inline int32_t max_draft_tokens(int32_t matched, float max_factor, int32_t wanted) {
  const float most = max_factor * static_cast<float>(matched);
  return most < static_cast<float>(wanted) ? static_cast<int32_t>(most) : wanted;
}

}  // namespace foretoken::suffix_table
