#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/grammar/mask_pace.h"
#include "kernels/sampling/token_masks.h"
#include "text/token_mask.h"

namespace foretoken {

// Follows one output through its grammar, from the spans that the queue exports, and keeps the
// masks of the span that it saw last. A span may come again, with the same or with other drafts.
class GrammarSequence {
 public:
  // `habit`: of its grammar; null: it has none.
  GrammarSequence(std::unique_ptr<TokenMask> mask, int prompt_len, int mask_words,
                  int max_draft_tokens, MaskPace::Habit habit = nullptr);

  // Grammar threads, under `mutex`.
  void begin(const MaskSpan& span);
  // Computes one more mask of that span, and repairs the draft of its row. Nothing to do when
  // `is_done`.
  void advance();
  bool is_done() const { return is_done_; }
  // Whether that is the span seen last.
  bool is_at(const MaskSpan& span) const;
  MaskAnswer answer() const;
  // Those of the span. With MaskSpan::num_repaired, once it is done: cut before the first one that
  // the grammar forbids, and continued by ids that it forces.
  std::span<const int32_t> drafts() const { return drafts_; }
  std::span<const uint32_t> row(int index) const;

  std::mutex mutex;
  MaskPace pace;  // noted under `mutex`
  // The masks of the span seen last are computed beside the steps: a row for it would be wasted.
  // Any thread.
  std::atomic<bool> is_awaited{false};

  // Any thread. Whether the grammar allowed nothing more behind so many tokens of output, because
  // it was complete.
  bool completed_after(int64_t num_tokens) const {
    return complete_len_.load() == prompt_len_ + num_tokens;
  }
  // For an output that ended because no token could be sampled.
  std::string why_nothing_fits() const;

 private:
  std::span<uint32_t> row_at(int index);
  void commit_tail(const MaskSpan& span);
  void keep_prefix(const MaskSpan& span);
  void take_back(int num_kept);
  void consume(int32_t id);
  bool repair(int index);
  void note(const Status& status);
  void note_end();

  const std::unique_ptr<TokenMask> mask_;
  const int prompt_len_;
  const int mask_words_;
  const int max_draft_tokens_;
  int len_;                      // the mask of row 0 is for the id at this position
  std::vector<int32_t> drafts_;  // of the span seen last
  int num_repaired_ = 0;         // how many they may become; 0: they stay as they are
  int num_consumed_ = 0;         // of them, by mask_
  int num_rows_ = 0;             // masks in rows_
  bool is_done_ = false;
  std::vector<uint32_t> rows_;  // [max_draft_tokens + 1, mask_words]
  std::atomic<int64_t> complete_len_{-1};
  mutable std::mutex fault_mutex_;
  Status fault_;  // the first one; from then on every mask is empty
  std::atomic<bool> failed_{false};
};

}  // namespace foretoken
