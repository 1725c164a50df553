#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/loss_account.h"

namespace foretoken {

// The accounts of a batch, which tell whose drafts have to wait. Three are kept:
//  - of the mean: what all sequences gain together against what the step takes longer.
//  - of most: tokens of a few sequences do not pay for the time of the others. Where no request
//    comes that would take the place of those that end early, a batch takes as long as most of its
//    sequences do, and they must not lose either. So every 16 steps what the median sequence got
//    counts.
//  - of predictions: drafts from them are asked for one by one, and go on whatever others lost.
//    They bear the part of the costs that their drafts are of all drafts.
//
// Example of the second: 64 sequences, 5 ms a step without drafts, 5.4 ms with them, and eight of
// the sequences get four tokens more in each. By the mean a step brings 64 + 32 tokens, 2.1 ms more
// than it takes. But the other 56 have one token a step, as without drafts, and lose 16 * 0.4 ms,
// of which 16 * 0.04 ms are allowed. That is nearly all that this account holds.
class DraftLosses {
 public:
  // What a slot got in a step; of one that had no room for drafts then, but may in others.
  static constexpr uint8_t kNothing = 255;

  explicit DraftLosses(int num_slots = 0) : slots_(static_cast<size_t>(num_slots)) {
    sorted_.reserve(slots_.size());
  }

  struct Step {
    int num_seqs = 0;      // that decode
    int64_t plain_ns = 0;  // of a step that only decodes, without drafts
    int64_t step_ns = 0;   // of this step without drafts, prompts included
    int64_t cost_ns = 0;   // that drafts added to it
    // Of entries that fell behind, beyond those of the step's own tokens: an investment, which is
    // charged in parts.
    int64_t caught_up_ns = 0;
    struct Drafts {
      int num_live = 0;  // that were verified
      int num_accepted = 0;
      void add(int live, int accepted) {
        num_live += live;
        num_accepted += accepted;
      }
    };
    Drafts drafts = {};                     // of all
    Drafts predicted = {};                  // of those, from predictions
    bool is_open = false;                   // requests come, or wait for a place
    std::span<const uint8_t> by_slot = {};  // tokens beyond one, or kNothing
  };
  void add(const Step& step);
  // There is no prediction any more; the next one may be tried.
  void end_predictions() { predicted_.refill(); }

  // Results of steps are to come whose drafts cost so much: where the account of the mean could not
  // pay for them, drafts wait before there is a debt.
  void expect(int64_t cost_ns, const LossAccount::Scale& scale) { mean_.expect(cost_ns, scale); }

  // Whether drafts have to wait.
  bool must_wait() const { return mean_.is_used_up() || typical_.is_used_up(); }
  bool must_predictions_wait() const { return predicted_.is_used_up(); }
  // Drafts are likely to pay now: they are tried without waiting, if not much is owed.
  void lend() {
    mean_.lend();
    typical_.lend();
  }
  // Of the mean; 0 where no time passed yet, or with what it would hold then.
  int64_t balance_ns() const { return mean_.balance_ns(); }
  int64_t balance_ns(const LossAccount::Scale& scale) const { return mean_.balance_ns(scale); }

 private:
  // Steps after which sequences are compared. Fewer, and texts that drafts fit now and then look
  // like some of which they always do; more, and a loss is seen late.
  static constexpr int kWindow = 16;
  // Sequences, at least. Fewer have no majority.
  static constexpr size_t kFewest = 4;
  // Steps over which most of an investment is charged. Fewer, and drafts end before they can pay
  // for it; more, and a short run never pays.
  static constexpr int64_t kTerm = 64;

  struct Slot {
    int extra = 0;
    int num_steps = 0;
  };
  bool note_slots(std::span<const uint8_t> by_slot);
  void add_to_window(const Step& step, int64_t gain_ns, int64_t cost_ns);
  void end_window(const LossAccount::Scale& scale);
  void restart_window();

  LossAccount mean_, typical_, predicted_;
  int64_t owed_ns_ = 0;  // of investments
  std::vector<Slot> slots_;
  std::vector<int> sorted_;
  int64_t window_gain_ns_ = 0;  // by the mean
  int64_t window_cost_ns_ = 0;
  int64_t window_ns_ = 0;  // without drafts
  int num_window_steps_ = 0;
};

}  // namespace foretoken
