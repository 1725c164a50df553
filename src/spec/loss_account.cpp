#include "spec/loss_account.h"

#include <algorithm>

namespace foretoken {

int64_t LossAccount::first_ns(const Scale& scale) {
  return scale.plain_ns + std::min(scale.plain_ns * kFirstSequenceSteps / scale.num_seqs,
                                   scale.plain_ns * kFirstSteps);
}

void LossAccount::add(int64_t gain_ns, int64_t ns, const Scale& scale) {
  if (scale.num_seqs <= 0 || scale.plain_ns <= 0) return;
  if (plain_ns_ == 0) balance_ns_ = first_ns(scale);
  plain_ns_ = scale.plain_ns;
  const int64_t first = first_ns(scale);
  balance_ns_ = std::clamp(balance_ns_ + gain_ns, -kDebtSteps * plain_ns_, max_ns(scale));
  if (balance_ns_ < first) balance_ns_ = std::min(balance_ns_ + ns / kShare, first);
  if (balance_ns_ < 0) is_used_up_ = true;
  if (balance_ns_ >= plain_ns_ / 2) is_used_up_ = false;
}

void LossAccount::expect(int64_t loss_ns, const Scale& scale) {
  if (plain_ns_ == 0 || scale.num_seqs <= 0) return;
  if (balance_ns_ < std::min(loss_ns, first_ns(scale) / 2)) is_used_up_ = true;
}

void LossAccount::refill() {
  balance_ns_ = std::max(balance_ns_, plain_ns_ / 2);
  is_used_up_ = false;
}

}  // namespace foretoken
