#include "engine/grammar/grammar_sequence.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

bool allows(std::span<const uint32_t> mask, int32_t id) {
  const auto word = static_cast<size_t>(id) / 32;
  return id >= 0 && word < mask.size() && (mask[word] >> (id % 32) & 1u) != 0;
}

}  // namespace

GrammarSequence::GrammarSequence(std::unique_ptr<TokenMask> mask, int prompt_len, int mask_words,
                                 int max_draft_tokens, MaskPace::Habit habit)
    : pace(std::move(habit)),
      mask_(std::move(mask)),
      prompt_len_(prompt_len),
      mask_words_(mask_words),
      max_draft_tokens_(max_draft_tokens),
      len_(prompt_len),
      rows_((static_cast<size_t>(max_draft_tokens) + 1) * static_cast<size_t>(mask_words)) {
  drafts_.reserve(static_cast<size_t>(max_draft_tokens));
}

std::span<uint32_t> GrammarSequence::row_at(int index) {
  const auto words = static_cast<size_t>(mask_words_);
  return std::span(rows_).subspan(static_cast<size_t>(index) * words, words);
}

std::span<const uint32_t> GrammarSequence::row(int index) const {
  return const_cast<GrammarSequence*>(this)->row_at(index);
}

MaskAnswer GrammarSequence::answer() const {
  return {num_rows_, is_done_ ? static_cast<int32_t>(drafts_.size()) + 1 : num_rows_};
}

void GrammarSequence::begin(const MaskSpan& span) {
  FT_CHECK(span.num_draft_tokens <= max_draft_tokens_ && span.num_repaired <= max_draft_tokens_);
  if (span.len != len_) {
    commit_tail(span);
  } else if (span.num_repaired == 0) {
    keep_prefix(span);
  } else {
    take_back(0);
    num_rows_ = 0;
  }
  num_repaired_ = span.num_repaired;
  drafts_.assign(span.drafts, span.drafts + span.num_draft_tokens);
  is_done_ = num_repaired_ == 0 && num_rows_ > span.num_draft_tokens;
}

bool GrammarSequence::is_at(const MaskSpan& span) const {
  return span.len == len_ && std::equal(drafts_.begin(), drafts_.end(), span.drafts,
                                        span.drafts + span.num_draft_tokens);
}

// Masks depend on the drafts before their row alone.
void GrammarSequence::keep_prefix(const MaskSpan& span) {
  const auto end = std::mismatch(drafts_.begin(), drafts_.end(), span.drafts,
                                 span.drafts + span.num_draft_tokens);
  const int common = static_cast<int>(end.first - drafts_.begin());
  num_rows_ = std::min(num_rows_, common + 1);
  take_back(std::min(num_consumed_, common));
}

// What was tried and came true stays.
void GrammarSequence::commit_tail(const MaskSpan& span) {
  const int num_new = span.len - len_;
  num_rows_ = 0;
  if (num_new < 0 || num_new > span.num_tail) {
    note(internal_error("structured_outputs: " + std::to_string(num_new) +
                        " ids were committed unseen"));
    return;
  }
  const int32_t* ids = span.tail + span.num_tail - num_new;
  int known = 0;
  while (known < std::min(num_new, num_consumed_) &&
         ids[known] == drafts_[static_cast<size_t>(known)]) {
    ++known;
  }
  take_back(known);
  for (int i = known; i < num_new; ++i) consume(ids[i]);
  num_consumed_ = 0;
  len_ = span.len;
}

void GrammarSequence::take_back(int num_kept) {
  const int count = num_consumed_ - num_kept;
  num_consumed_ = num_kept;
  if (count > 0 && !failed_.load()) note(mask_->rollback(count));
}

void GrammarSequence::consume(int32_t id) {
  if (!failed_.load() && !mask_->ends(id)) note(mask_->consume(id));
}

void GrammarSequence::advance() {
  if (is_done_) return;
  const auto num_draft_tokens = static_cast<int>(drafts_.size());
  if (num_rows_ > 0) {
    const int32_t draft = drafts_[static_cast<size_t>(num_rows_ - 1)];
    if (!allows(row(num_rows_ - 1), draft) || mask_->ends(draft)) {
      is_done_ = true;
      return;
    }
    if (num_consumed_ < num_rows_) {
      consume(draft);
      ++num_consumed_;
    }
  }
  const std::span<uint32_t> words = row_at(num_rows_);
  if (!failed_.load()) note(mask_->fill(words));
  if (failed_.load()) std::fill(words.begin(), words.end(), 0u);
  const bool is_empty = std::all_of(words.begin(), words.end(), [](uint32_t w) { return w == 0; });
  note_end();
  ++num_rows_;
  is_done_ = num_repaired_ > 0 ? !repair(num_rows_ - 1) : is_empty || num_rows_ > num_draft_tokens;
}

// The draft of the newest row. False: none follows it.
bool GrammarSequence::repair(int index) {
  const auto at = static_cast<size_t>(index);
  if (at >= drafts_.size() || !allows(row(index), drafts_[at])) {
    drafts_.resize(at);
    const int32_t id = failed_.load() ? -1 : mask_->forced(row(index));
    if (id < 0) return false;
    drafts_.push_back(id);
  }
  if (index + 1 < num_repaired_ && !mask_->ends(drafts_[at])) return true;
  drafts_.resize(at + 1);
  return false;
}

// The position may have been seen behind drafts that were not accepted.
void GrammarSequence::note_end() {
  const int64_t position = len_ + num_rows_;
  if (!failed_.load() && mask_->is_complete()) {
    complete_len_.store(position);
  } else if (complete_len_.load() == position) {
    complete_len_.store(-1);
  }
}

void GrammarSequence::note(const Status& status) {
  if (status.ok() || failed_.load()) return;
  std::lock_guard lock(fault_mutex_);
  fault_ = status;
  failed_.store(true);
}

std::string GrammarSequence::why_nothing_fits() const {
  std::lock_guard lock(fault_mutex_);
  if (!fault_.ok()) return fault_.message();
  return "no token is allowed by structured_outputs and by min_tokens, allowed_token_ids, "
         "bad_words "
         "and logits processors at once; change one of them";
}

}  // namespace foretoken
