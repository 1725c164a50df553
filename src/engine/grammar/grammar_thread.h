#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/grammar/grammar_sequence.h"
#include "engine/grammar/repair_pace.h"
#include "kernels/sampling/token_masks.h"

namespace foretoken {

// Answers the spans that steps post in a MaskExchange, in the order of the queue, while the
// target's forward runs. It sees all that steps commit and needs nothing else: preemption, prefix
// hits and steps in flight are spans like others. A second thread computes the masks of sequences
// that were slow, for which no step waits; their rows are found when the span comes again.
// Time is that of the computing thread on its core, so a busy machine makes nobody slow.
class GrammarThread {
 public:
  // Masks of a span that take longer than a quarter of a step make their sequence slow, within
  // these bounds: at least `slow_ns / kSlowRange`, at most `slow_ns`.
  static constexpr int64_t kSlowNs = 3'000'000;
  static constexpr int64_t kSlowRange = 12;

  // `num_helpers`: further threads that share the spans of a step where there are several.
  // `masks_ready`: called by the second thread when a sequence is no longer awaited.
  // `repair_share`: of a step, for repairing drafts.
  explicit GrammarThread(const MaskExchange& exchange, int64_t slow_ns = kSlowNs,
                         int num_helpers = 0, std::function<void()> masks_ready = {},
                         double repair_share = RepairPace::kShare);
  ~GrammarThread();

  void start();
  void stop();

  // The number of a sequence, for SlotParams::grammar. It may be destroyed at any time; its spans
  // then get no answer. Any thread.
  uint64_t add(const std::shared_ptr<GrammarSequence>& sequence);

  // Engine thread: a step that draws so many tickets is submitted.
  void expect(int num_tickets = 1);

  // Sequences that are awaited. Any thread.
  int num_awaited() const { return num_awaited_.load(); }
  // Any thread.
  int64_t num_tickets() const { return num_tickets_.load(std::memory_order_relaxed); }
  int64_t num_slow_spans() const { return num_slow_spans_.load(std::memory_order_relaxed); }

 private:
  struct SlowSpan {
    std::shared_ptr<GrammarSequence> sequence;
    MaskSpan span;
  };

  void main();
  void slow_main();
  void compute(const SlowSpan& job);
  void end_wait(GrammarSequence& sequence);
  void helper_main();
  void share_work(uint64_t ticket);
  void work(uint64_t ticket);
  bool wait_for_post();
  void note_step_time();
  int64_t limit_ns() const { return limit_ns_.load(std::memory_order_relaxed); }
  bool all_passed() const;
  void answer(uint64_t ticket);
  void note_repairs(int64_t ns);
  void answer_span(uint64_t ticket, int index, const MaskSpan& span,
                   const std::shared_ptr<GrammarSequence>& sequence);
  void repair_span(uint64_t ticket, int index, const MaskSpan& span, GrammarSequence& sequence);
  void publish(uint64_t ticket, int index, const GrammarSequence& sequence, int& num_published);
  void hand_over(std::shared_ptr<GrammarSequence> sequence, const MaskSpan& span);
  std::shared_ptr<GrammarSequence> find(uint64_t number);

  const MaskExchange exchange_;
  const int64_t slow_ns_;
  const std::function<void()> masks_ready_;
  std::vector<MaskSpan> spans_;  // of the ticket being answered
  uint64_t seen_ = 0;            // the last ticket seen, plus one
  uint64_t last_passed_ = 0;
  int64_t last_post_ns_ = 0;  // 0: it has parked since
  RepairPace repair_pace_;
  double step_ns_ = 0;             // from one post to the next, a moving mean
  std::atomic<int64_t> limit_ns_;  // what makes a sequence slow now

  // Spans whose sequences are not slow: the index in `spans_`, and who answers it.
  std::vector<std::pair<int, std::shared_ptr<GrammarSequence>>> work_;
  std::atomic<size_t> next_work_{0};
  const int num_helpers_;
  std::mutex help_mutex_;
  std::condition_variable help_wanted_;
  std::condition_variable help_done_;
  uint64_t help_ticket_ = 0;
  bool wants_help_ = false;  // work_ may be looked at
  int num_helping_ = 0;
  std::vector<std::thread> helpers_;

  std::mutex sequences_mutex_;
  std::unordered_map<uint64_t, std::weak_ptr<GrammarSequence>> sequences_;
  uint64_t next_number_ = 1;
  size_t prune_at_ = 1024;

  std::atomic<uint64_t> num_expected_{0};
  std::atomic<int> tickets_each_{1};  // of the step submitted last
  std::atomic<bool> stopping_{false};
  std::atomic<bool> parked_{false};
  std::mutex mutex_;
  std::condition_variable wake_;

  std::mutex slow_mutex_;
  std::condition_variable slow_wake_;
  std::deque<SlowSpan> slow_spans_;
  std::atomic<int> num_awaited_{0};

  std::atomic<int64_t> num_tickets_{0};
  std::atomic<int64_t> num_slow_spans_{0};
  std::thread thread_;
  std::thread slow_thread_;
};

}  // namespace foretoken
