#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "engine/measure/made_up_ids.h"
#include "engine/step/model_runner.h"
#include "engine/step/step_memory.h"
#include "spec/cost_table.h"

namespace foretoken {

struct StepProfileConfig {
  std::vector<std::string> drafter_names;
  int32_t vocab_size = 0;     // of the target
  int max_len = 0;            // of the longest sequence
  int max_rows = 0;           // of a step
  int max_catch_up_rows = 0;  // of a drafter in a step
  int num_blocks = 0;         // of the full group, the null block included
  int num_window_blocks = 0;  // of the windowed group, likewise; 0: there is none
  double seconds = 2;         // for the target, and half of it for each drafter, at most
  // Where several ranks measure together: makes rank 0's measurement that of all, so that they
  // decide alike. Empty: one rank.
  std::function<Result<int64_t>(int64_t ns)> clock = nullptr;

  // Where it is measured between requests, a sample a turn. begin_turn waits until no sequence runs
  // and tells the number of the next step and blocks whose contents nobody will miss; an error ends
  // the measurement. end_turn gets the number of the step behind the last one.
  struct Turn {
    uint64_t step = 0;
    std::vector<int32_t> blocks;
  };
  std::function<Status(Turn*)> begin_turn = nullptr;
  std::function<void(uint64_t next_step)> end_turn = nullptr;
};

// Measures what steps cost, by running them on made-up sequences: at start, before the first
// request, or between requests. Sizes 1, 2, 4, ... up to every sequence with all its drafts, and
// 72, 144 and 288 rows, but only as many as the time is enough for; CostTable tells what lies
// between and beyond. Sequences know 256 tokens; a few sizes are timed with 64 and 4,096 too. The
// sequences have random ids, as many different ones as a text has, so that a mixture of experts is
// measured with the experts that such rows would touch. Afterwards all device state is as it was,
// but for the bytes of KV that nothing refers to.
class StepProfile {
 public:
  // The drafters are those of the runner, in its order. References outlive the profile.
  StepProfile(Device& device, Queue& queue, ModelRunner& runner, StepMemory& memory,
              std::vector<Drafter*> drafters, const StepProfileConfig& config);

  // Blocks for about as long as configured at most, turns of others left out, and less when rounds
  // bring nothing new. The runner must have no step times yet, and no step in flight. An error is
  // the queue's, or that of begin_turn.
  Result<CostTable> measure();
  // What decides about the first requests, in config.seconds altogether or, where a step takes
  // longer, in one step at most: two sizes of each curve, then further ones, and all of them again
  // while there is time. What was left out is taken from `guess`, by which it is also told what
  // would take too long. One rank, and no turns.
  Result<CostTable> measure_briefly(const CostTable& guess);
  // What its own steps took.
  double seconds() const { return static_cast<double>(spent_ns_) / 1e9; }

 private:
  // Sequences of one kind that fill a step.
  struct Batch {
    int num_seqs = 1;
    int num_verified = 0;  // verified for each
    int drafter = 0;
    int num_draft_tokens = 0;  // proposed for each
    int catch_up = 0;          // entries that each lacks
    bool idle = false;         // num_verified are room only
    int known = 0;  // tokens that each knows, in blocks of its own; 0: as all, in the null block
    bool is_short = false;  // as short ones do, in the null block
    int num_rows() const { return num_seqs * (num_verified + 1); }
  };

  // Blocks [first, last] of a sequence.
  struct Written {
    int first = 0;
    int last = 0;
    int count() const { return last - first + 1; }
  };

  // One size of a curve.
  struct Probe {
    Batch batch;
    std::optional<Recording> recording;  // of a drafter's passes
    int64_t ns = 0;                      // the shortest time so far; 0: none yet
    int64_t last_ns = 0;
  };
  enum class CurveKind : uint8_t { kTarget, kVerify, kContext, kCatchUp, kOnePass, kAllPasses };
  struct Curve {
    CurveKind kind = CurveKind::kTarget;
    int drafter = 0;
    int most = 1;  // the largest size
    double seconds = 0;
    std::function<Batch(int size)> batch_of;
    std::map<int, Probe> probes = {};  // by size
    size_t repeats = 0;                // of a short one, the curve in curves_ with its sizes
    bool in_steps() const { return kind <= CurveKind::kContext; }
  };

  Status take_memory();
  void add_curves();
  Status add_verify_curves();
  Status add_context_curves();
  Status add_short_curves();
  void choose_short_sizes();
  bool has_short(const Curve& curve) const;
  static std::vector<int> short_sizes(const Curve& curve);
  Result<bool> run_round_of(Curve& curve, bool slow_too);
  Result<int64_t> agreed(int64_t ns) const { return config_.clock ? config_.clock(ns) : ns; }
  static int size_of(CurveKind kind, const Batch& batch);
  static int64_t expected_ns(const Curve& curve, int size);
  Status find_sizes(Curve& curve);
  Result<bool> run_round(bool slow_too);
  int64_t guessed_ns(const Curve& curve, int size, const CostTable& guess) const;
  int64_t brief_ns(const Curve& curve, int size, const CostTable& guess) const;
  Status sample_sizes(Curve& curve, int begin, int end, const CostTable& guess);
  Status sample_first(Curve& curve, int size, const CostTable& guess);
  Status sample_again();
  Status begin_turn();
  void end_turn();
  bool takes_turns() const { return config_.begin_turn != nullptr; }
  Status sample(const Curve& curve, Probe& probe);
  Status run(const Curve& curve, Probe& probe);
  Status upload(Probe& probe);
  Status enqueue(const Curve& curve, const Probe& probe);
  static std::map<int, int64_t> shortest(const Curve& curve);
  std::vector<VerifyTimes> verify_times() const;
  static ContextTime context_time(const Curve& curve);
  CostTable step_times() const;
  void add_short_steps(CostTable& times) const;
  void add_short_passes(CostTable& times) const;

  Batch target_batch(int num_rows) const;
  int known_tokens(const Batch& batch) const {
    if (batch.known > 0) return batch.known;
    return batch.is_short ? short_context_ : context_;
  }
  Written written(const Batch& batch) const;
  int max_seqs(const Batch& batch) const;
  void write_states(const Batch& batch, bool committed);
  void copy_states(const Batch& batch);
  void copy_tables(const Batch& batch);
  std::span<const int32_t> own_blocks(const Batch& batch) const;
  StepPlan encode(const Batch& batch);

  Queue& queue_;
  ModelRunner& runner_;
  StepMemory& memory_;
  const std::vector<Drafter*> drafters_;
  const StepProfileConfig config_;
  Arena pinned_;
  MadeUpIds ids_;
  SlotState* states_ = nullptr;   // [num_slots] as the next step finds them
  SlotParams* params_ = nullptr;  // [num_slots]
  int32_t* tables_ = nullptr;     // [num_slots, max_blocks] parts of block tables
  int max_draft_tokens_ = 0;
  int longest_ = 1;               // tokens that a sequence may know
  int context_ = 1;               // known tokens of each sequence
  int short_context_ = 0;         // the same of short ones; 0: there are none
  DraftRates* priors_ = nullptr;  // [kMaxDrafters] those of the requests, while a turn lasts
  StepProfileConfig::Turn turn_;
  int64_t sample_ns_ = 4'000'000;  // a sample is as many steps as fit into this
  int64_t spent_ns_ = 0;
  uint64_t step_ = 0;
  std::vector<Curve> curves_;
  std::vector<Curve> short_curves_;  // few sizes of some of them
};

}  // namespace foretoken
