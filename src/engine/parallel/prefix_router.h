#pragma once
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace foretoken {

// Chooses one of several engines for each request: the one that has the least to compute first.
// That is the prompt tokens which wait there, those of this prompt whose blocks it has not seen,
// and a charge for each sequence that runs there. So a prompt goes where its prefix is, unless the
// engine has more to do than the prefix saves.
//
// What an engine has seen is kept as hashes of chained blocks of prompt tokens, at most
// `max_blocks` for each engine, least recently used first out; a wrong guess costs time, never
// text. Any thread.
class PrefixRouter {
 public:
  // What a sequence that runs is reckoned, in prompt tokens.
  static constexpr int64_t kTokensOfSequence = 16;

  PrefixRouter(int num_engines, int block_size, int64_t max_blocks);

  struct Route {
    int engine = 0;
    int64_t uncached_tokens = 0;  // of the prompt, as far as is known
  };
  // Chooses among num_candidates engines (0: all) from `first` on and counts the request as waiting
  // there. `salt` keeps prefixes of users apart.
  Route choose(std::span<const int32_t> ids, std::string_view salt, int num_sequences,
               int num_candidates = 0, int first = 0);
  // The first output has come: the prompt is computed.
  void prompt_done(const Route& route);
  // The request has ended, or never began; after prompt_done where that was called.
  void ended(const Route& route, int num_sequences, bool prompt_was_done);
  // No requests go there any more.
  void close(int engine);

  // What an engine has to do, in prompt tokens.
  int64_t load(int engine) const;

 private:
  struct Seen {
    std::list<uint64_t> order;  // most recently used first
    std::unordered_map<uint64_t, std::list<uint64_t>::iterator> hashes;
    int64_t waiting_tokens = 0;
    int64_t num_sequences = 0;
    bool open = true;
  };

  std::vector<uint64_t> hashes_of(std::span<const int32_t> ids, std::string_view salt) const;
  int64_t load_of(const Seen& engine) const;
  void remember(Seen& engine, const std::vector<uint64_t>& hashes);

  const size_t block_size_;
  const size_t max_blocks_;
  mutable std::mutex mutex_;
  std::vector<Seen> engines_;
  size_t next_ = 0;  // looked at first: equal engines take turns
};

}  // namespace foretoken
