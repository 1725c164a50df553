#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "sched/scheduler.h"
#include "spec/length_controller.h"

namespace foretoken {

// A closed loop of requests through the real scheduler and length policy, on a device that is
// nothing but its step-time table and a chance of acceptance. It proposes as many drafts as it may.
class PolicyWorld {
 public:
  struct Workload {
    int batch = 1;
    int num_requests = 1;  // `batch` of them at a time
    int prompt_len = 64;
    int max_num_batched_tokens = 8192;
    int output_len = 512;
    // Of request `index`; empty: output_len and down to half of it, as requests of a server end one
    // after another.
    std::function<int(int index)> length = nullptr;
    bool runs_to_the_end = false;  // no output can end before its length
    // Chance that draft `position` is accepted when those before it are, once so many percent of
    // all tokens are out.
    std::function<double(int percent, int position)> acceptance;
    int drafting = 8;  // of eight sequences, those for which the device drafts what it may
    // What a step takes whose table time is `ns`; empty: that.
    std::function<int64_t(int num_seqs, int num_draft_tokens, int64_t ns)> really = nullptr;

    int length_of(int index) const;  // tokens of output
  };
  struct Totals {
    int64_t ns = 0;
    int64_t num_tokens = 0;
    int64_t num_steps = 0;
    int64_t num_drafted = 0;
    int64_t num_accepted = 0;
    int64_t num_caught_up = 0;  // rows
    std::vector<int> limits;    // granted in each step
    double tokens_per_second() const {
      return static_cast<double>(num_tokens) * 1e9 / static_cast<double>(ns);
    }
  };

  // `policy.drafters` has one entry.
  PolicyWorld(const CostTable& times, const LengthControllerConfig& policy,
              const Workload& workload);

  Totals run();

 private:
  struct Work {
    Span span;
    int standing = 0;  // drafts on the device when the span runs
  };
  struct Step {
    uint64_t number = 0;
    std::vector<Work> work;
    DraftUse use;
  };

  void submit();
  bool plan();
  void finish_step();
  int64_t run_span(const Work& work, uint64_t step);

  const CostTable& times_;
  const LengthControllerConfig config_;
  const Workload workload_;
  LengthController policy_;
  Scheduler scheduler_;
  std::mt19937 random_{7};
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::deque<Step> in_flight_;
  BatchDemand demand_;
  int64_t num_wanted_ = 0;  // tokens of all outputs
  int num_submitted_ = 0;
  int num_running_ = 0;
  uint64_t num_planned_ = 0;
  Totals totals_;
};

}  // namespace foretoken
