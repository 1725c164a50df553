#pragma once
#include <cstdint>

namespace foretoken {

// What drafting brought and cost beside going without, so that what is tried can never lose more
// than a small share of the time, whatever made it look worth trying: little that is known, rates
// that changed, costs that no table holds. Each step adds an allowance of 1/128 of its time; what
// brings less than it takes is paid from the account, other steps fill it up again. Where it is
// used up, drafting has to wait until half a step is there. Debts are kept, since results come
// some steps late: over any time no more is lost than the allowance, what the account held at
// first, and what the last steps lost that were under way when it was used up.
//
// Example: 64 sequences, 5 ms a step without drafts. The account holds 1.25 steps at most, 6.25 ms.
// Steps with drafts take 5.4 ms and none is accepted, 0.36 ms more than is allowed: after 18 steps
// the account is used up. Results are two steps old, and 0.7 ms of debt and half a step come back
// in 80 steps. A single sequence whose drafts paid for long may have 17 steps, but begins with 3.
class LossAccount {
 public:
  // By what an account is measured: steps of so many sequences, which take so long without drafts.
  struct Scale {
    int num_seqs = 1;
    int64_t plain_ns = 1;
  };

  // A time of `ns` without drafts passed, in which drafting gained so much; negative: it lost.
  void add(int64_t gain_ns, int64_t ns, const Scale& scale);
  // So much more may be lost by steps that are under way: with less than half of what it begins
  // with it is used up where it could not pay for them.
  void expect(int64_t loss_ns, const Scale& scale);
  // Ends a wait, unless half a step is owed.
  void lend() {
    if (balance_ns_ >= -plain_ns_ / 2) is_used_up_ = false;
  }
  // It holds at least as much as ends a wait.
  void refill();

  bool is_used_up() const { return is_used_up_; }
  // What it holds; 0 where no time passed yet, or what it would hold at first.
  int64_t balance_ns() const { return balance_ns_; }
  int64_t balance_ns(const Scale& scale) const {
    return plain_ns_ > 0 ? balance_ns_ : first_ns(scale);
  }
  // What it holds at first, and at the most.
  static int64_t first_ns(const Scale& scale);
  static int64_t max_ns(const Scale& scale) {
    return scale.plain_ns * kKeptSteps + scale.plain_ns * kSequenceSteps / scale.num_seqs;
  }

  // Of the time, what may be lost.
  static constexpr int64_t kShare = 128;

 private:
  // Steps of what was gained that are kept, for all and divided by the sequences. Fewer, and texts
  // that fit in turns, on which drafts pay, are left without them; more, and what was gained once
  // is lost again.
  static constexpr int64_t kKeptSteps = 16, kSequenceSteps = 64;
  // Steps that it begins with, beside one, divided by the sequences: fewer, and a drafter that pays
  // is stopped by a few unlucky steps, which scatter more where sequences are few; and at most.
  // More, and short runs lose what long ones win back.
  static constexpr int64_t kFirstSequenceSteps = 16, kFirstSteps = 2;
  // Steps that can be owed. More, and costs that were wrong for a while stop drafts for minutes.
  static constexpr int64_t kDebtSteps = 16;

  int64_t balance_ns_ = 0;
  int64_t plain_ns_ = 0;  // of the last step; 0: there was none
  bool is_used_up_ = false;
};

}  // namespace foretoken
