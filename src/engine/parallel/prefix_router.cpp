#include "engine/parallel/prefix_router.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace foretoken {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

}  // namespace

PrefixRouter::PrefixRouter(int num_engines, int block_size, int64_t max_blocks)
    : block_size_(static_cast<size_t>(block_size)),
      max_blocks_(static_cast<size_t>(max_blocks)),
      engines_(static_cast<size_t>(num_engines)) {
  FT_CHECK(num_engines > 0 && block_size > 0 && max_blocks >= 0);
}

PrefixRouter::Route PrefixRouter::choose(std::span<const int32_t> ids, std::string_view salt,
                                         int num_sequences, int num_candidates, int first) {
  const std::vector<uint64_t> hashes = hashes_of(ids, salt);
  const std::lock_guard lock(mutex_);
  const size_t candidates =
      num_candidates > 0 ? static_cast<size_t>(num_candidates) : engines_.size();
  size_t best = engines_.size();
  int64_t least = 0;
  Route route;
  for (size_t i = 0; i < candidates; ++i) {
    const size_t at = static_cast<size_t>(first) + (next_ + i) % candidates;
    const Seen& engine = engines_[at];
    const auto unseen = std::find_if(hashes.begin(), hashes.end(),
                                     [&](uint64_t hash) { return !engine.hashes.contains(hash); });
    const auto cached = static_cast<int64_t>(block_size_) * (unseen - hashes.begin());
    // The last token is computed in any case.
    const int64_t uncached = std::max<int64_t>(static_cast<int64_t>(ids.size()) - cached, 1);
    const int64_t cost = load_of(engine) + uncached;
    if (!engine.open || (best < engines_.size() && cost >= least)) continue;
    best = at;
    least = cost;
    route.uncached_tokens = uncached;
  }
  // All are closed: the first says why.
  if (best == engines_.size()) best = static_cast<size_t>(first);
  route.engine = static_cast<int>(best);
  Seen& chosen = engines_[best];
  remember(chosen, hashes);
  chosen.waiting_tokens += route.uncached_tokens;
  chosen.num_sequences += num_sequences;
  next_ = (best + 1) % engines_.size();
  return route;
}

void PrefixRouter::prompt_done(const Route& route) {
  const std::lock_guard lock(mutex_);
  engines_[static_cast<size_t>(route.engine)].waiting_tokens -= route.uncached_tokens;
}

void PrefixRouter::ended(const Route& route, int num_sequences, bool prompt_was_done) {
  const std::lock_guard lock(mutex_);
  Seen& engine = engines_[static_cast<size_t>(route.engine)];
  if (!prompt_was_done) engine.waiting_tokens -= route.uncached_tokens;
  engine.num_sequences -= num_sequences;
  FT_CHECK(engine.waiting_tokens >= 0 && engine.num_sequences >= 0);
}

void PrefixRouter::close(int engine) {
  const std::lock_guard lock(mutex_);
  engines_[static_cast<size_t>(engine)].open = false;
}

int64_t PrefixRouter::load(int engine) const {
  const std::lock_guard lock(mutex_);
  return load_of(engines_[static_cast<size_t>(engine)]);
}

// Each block's hash holds all before it.
std::vector<uint64_t> PrefixRouter::hashes_of(std::span<const int32_t> ids,
                                              std::string_view salt) const {
  std::vector<uint64_t> hashes;
  uint64_t hash = mix(0, std::hash<std::string_view>()(salt));
  for (size_t end = block_size_; end <= ids.size() && hashes.size() < max_blocks_;
       end += block_size_) {
    for (size_t i = end - block_size_; i < end; ++i)
      hash = mix(hash, static_cast<uint32_t>(ids[i]));
    hashes.push_back(hash);
  }
  return hashes;
}

int64_t PrefixRouter::load_of(const Seen& engine) const {
  return engine.waiting_tokens + kTokensOfSequence * engine.num_sequences;
}

// From the last block to the first, so that the end of a chain is forgotten before its beginning.
void PrefixRouter::remember(Seen& engine, const std::vector<uint64_t>& hashes) {
  for (auto hash = hashes.rbegin(); hash != hashes.rend(); ++hash) {
    const auto found = engine.hashes.find(*hash);
    if (found != engine.hashes.end()) {
      engine.order.splice(engine.order.begin(), engine.order, found->second);
    } else {
      engine.order.push_front(*hash);
      engine.hashes.emplace(*hash, engine.order.begin());
    }
  }
  while (engine.order.size() > max_blocks_) {
    engine.hashes.erase(engine.order.back());
    engine.order.pop_back();
  }
}

}  // namespace foretoken
