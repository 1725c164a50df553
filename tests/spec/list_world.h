#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "sched/scheduler.h"
#include "spec/acceptance_rates.h"
#include "spec/length_controller.h"

namespace foretoken {

// A batch of sequences, all of which have the same list of drafters, through the real scheduler and
// length policy, on a device that knows step times and how often drafts are accepted. It chooses
// lengths and drafters as the kernels do (kernels/draft/choose_lengths.h, choose_draft.h), by the
// same arithmetic.
class ListWorld {
 public:
  struct Workload {
    int batch = 1;     // sequences at a time
    int requests = 0;  // of them in all; 0: as many, which begin together
    int prompt_len = 128;
    int output_len = 272;
    int output_step = 0;  // that each of five sequences is longer than the one before
    std::vector<SchedulerDrafter> drafters;
    uint32_t lookups = 0;  // bit d: drafter d is one
    int last = 0;          // the drafter of the sequences; look-ups but it stand before it
    // Chance that a draft is accepted when those before it are, and the drafts that a look-up finds
    // behind a text of so many tokens.
    std::function<double(int drafter)> acceptance;
    std::function<int(int sequence, int position)> finds = nullptr;
    // Whether a draft at this place of the text, made behind `len` tokens, is accepted when those
    // before it are; instead of a chance.
    std::function<bool(int sequence, int len, int position)> accepts = nullptr;
    // Whether a long piece of text is known behind so many tokens, which wakes a look-up.
    std::function<bool(int sequence, int position)> is_sure = nullptr;
  };
  struct Totals {
    int64_t ns = 0;
    int64_t num_steps = 0;
    int64_t num_drafted = 0;
    int64_t num_accepted = 0;
    int first_accepting_step = -1;
  };

  ListWorld(const CostTable& times, const LengthControllerConfig& policy, const Workload& workload);
  Totals run();

 private:
  struct Slot {
    int len = 0;
    int num_draft_tokens = 0;  // that stand
    int drafter = -1;          // who made them
    std::array<DraftRates, kMaxDrafters> rates{};
  };
  struct Result {
    Slot* slot = nullptr;
    int num_drafted = 0;
    int num_accepted = 0;
    int drafter = -1;
    int num_committed = 0;
    bool goes_on = false;
  };
  struct Step {
    uint64_t number = 0;
    std::vector<Span> spans;
    std::array<DraftUse, kMaxDrafters> use{};
    std::vector<Result> results;
  };

  bool plan();
  void finish_step();
  Result verify(const Span& span);
  bool accepts_next(const Sequence& sequence, const Result& result);
  void learn(int drafter, const Step& step);
  int room(int drafter, const Span& span, const Result& result) const;
  int lowest_level(int drafter, const Step& step);
  void propose(int drafter, const Step& step);
  void reconcile(const Step& step);
  int64_t step_ns(const Step& step) const;
  bool is_likely(const Span& span, const Result& result) const;
  bool looks_up(int drafter) const { return (workload_.lookups >> drafter & 1) != 0; }
  bool is_listed(int drafter) const { return looks_up(drafter) && drafter != workload_.last; }

  const CostTable& times_;
  const LengthControllerConfig config_;
  const Workload workload_;
  LengthController policy_;
  Scheduler scheduler_;
  std::mt19937 random_{7};
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Slot> slots_;  // by Sequence::id
  std::array<DraftRates, kMaxDrafters> priors_{};
  std::map<std::pair<int, int>, std::vector<int32_t>> row_ns_;
  std::deque<Step> in_flight_;
  BatchDemand demand_;
  int num_running_ = 0;
  uint64_t num_planned_ = 0;
  Totals totals_;
};

}  // namespace foretoken
