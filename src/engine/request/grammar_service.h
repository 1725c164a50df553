#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/grammar/grammar_thread.h"
#include "engine/request/request_state.h"
#include "text/grammar.h"

namespace foretoken {

struct GrammarServiceConfig {
  std::vector<int32_t> eos_ids;
  int max_draft_tokens = 0;  // of any drafter
  int num_threads = 4;       // that compile
  size_t max_cached = 64;    // compiled grammars that are kept
  int num_helpers = 0;       // of the thread that computes masks
  int64_t slow_ns = GrammarThread::kSlowNs;
  double repair_share = RepairPace::kShare;
  std::function<void()> masks_ready = {};  // see GrammarThread
};

// Gives requests their grammars before the engine thread sees them. Compiling is done by threads of
// its own, behind all others where cores are short; who submits never waits for it.
class GrammarService {
 public:
  using Choices = std::vector<std::unique_ptr<RequestState>>;
  // Takes the choices of a request over. Any thread, also the one that calls `prepare`.
  using Ready = std::function<void(Choices)>;

  GrammarService(std::unique_ptr<GrammarCompiler> compiler, const MaskExchange& exchange,
                 GrammarServiceConfig config, Ready ready);
  ~GrammarService();

  void start();
  // No grammar is compiled any more: requests that wait for theirs come out with an end requested.
  // Waits for what is being compiled.
  void stop_compiling();

  // Passes the choices on to `ready` with their grammars, or with what is wrong in `refused`. Any
  // thread.
  void prepare(Choices choices);

  GrammarThread& thread() { return thread_; }
  // Grammars that were compiled so far. Any thread.
  int64_t num_compiled() const { return num_compiled_.load(); }

 private:
  struct Compiled {
    std::shared_ptr<const Grammar> grammar;
    MaskPace::Habit habit;
  };
  using CachedGrammar = std::pair<std::string, Compiled>;

  void main();
  Result<Compiled> compile(const Choices& choices);
  MaskPace::Habit find_habit(const Grammar& grammar) const;
  std::optional<Compiled> find_cached(const std::string& key);
  void remember(const std::string& key, const Compiled& compiled);
  void pass_on(Choices choices, const Result<Compiled>& compiled);
  Status give(const Compiled& compiled, RequestState& request);

  const std::unique_ptr<GrammarCompiler> compiler_;
  const GrammarServiceConfig config_;
  const int mask_words_;
  const Ready ready_;
  GrammarThread thread_;

  std::mutex cache_mutex_;
  std::list<CachedGrammar> cached_;  // the one used last first
  std::unordered_map<std::string, std::list<CachedGrammar>::iterator> by_key_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Choices> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> compilers_;
  std::atomic<int64_t> num_compiled_{0};
};

}  // namespace foretoken
