#include "engine/request/logprob_record.h"

#include <algorithm>
#include <limits>

#include "base/spin.h"

namespace foretoken {
namespace {

constexpr int kMaxRingRows = 256;  // more than a step commits

LogprobRow view_row(const ResultView& view, const ResultLimits& limits, int index) {
  const RowLogprobs& token = view.rows[index];
  const int num_top = std::clamp(token.num_top, 0, limits.max_top);
  return {token, {view.top + int64_t{index} * limits.max_top, static_cast<size_t>(num_top)}};
}

}  // namespace

// A row without log-probabilities, as of NaN logits, says so.
void LogprobRecord::Rows::set(int index, int num_top, int32_t id, const LogprobRow& row) {
  RowLogprobs& token = tokens[static_cast<size_t>(index)];
  token = row.token;
  token.id = id;
  if (row.token.num_top == kNoLogprobs) {
    token = {id, std::numeric_limits<float>::quiet_NaN(), 0, 0};
    return;
  }
  token.num_top = std::min(num_top, static_cast<int>(row.top.size()));
  std::copy_n(row.top.begin(), token.num_top, top.begin() + int64_t{index} * num_top);
}

LogprobRow LogprobRecord::Rows::row(int index, int num_top) const {
  const RowLogprobs& token = tokens[static_cast<size_t>(index)];
  return {token, {top.data() + int64_t{index} * num_top, static_cast<size_t>(token.num_top)}};
}

LogprobRecord::LogprobRecord(int num_top, int num_prompt_rows, int max_output) : num_top_(num_top) {
  const auto resize = [&](Rows& rows, int count) {
    rows.tokens.resize(static_cast<size_t>(count));
    rows.top.resize(static_cast<size_t>(count) * static_cast<size_t>(num_top));
  };
  resize(prompt_, num_prompt_rows);
  resize(ring_, std::min(max_output, kMaxRingRows));
}

void LogprobRecord::add_prompt(int index, int32_t id, const LogprobRow& row) {
  if (index != num_prompt_ || index >= prompt_.size()) return;
  prompt_.set(index, num_top_, id, row);
  ++num_prompt_;
}

void LogprobRecord::push(int32_t id, const LogprobRow& row) {
  const auto capacity = static_cast<uint64_t>(ring_.size());
  for (int spins = 0; num_pushed_ - num_dropped_.load(std::memory_order_acquire) >= capacity;
       ++spins) {
    spin_pause(spins);
  }
  ring_.set(static_cast<int>(num_pushed_ % capacity), num_top_, id, row);
  ++num_pushed_;
}

LogprobRow LogprobRecord::front() const {
  const uint64_t oldest = num_dropped_.load(std::memory_order_relaxed);
  return ring_.row(static_cast<int>(oldest % static_cast<uint64_t>(ring_.size())), num_top_);
}

void LogprobRecord::drop(int count) {
  num_dropped_.store(num_dropped_.load(std::memory_order_relaxed) + static_cast<uint64_t>(count),
                     std::memory_order_release);
}

void record_logprobs(const Span& span, const SpanResult& result, const ResultView& view,
                     const ResultLimits& limits, LogprobRecord& record) {
  const Sequence& sequence = *span.sequence;
  if (span.wants_all) {
    for (int i = 0; i < result.num_scored; ++i) {
      const int position = span.first_new_id + i + 1;
      if (position >= sequence.prompt_len) break;
      record.add_prompt(position - 1, sequence.tokens[static_cast<size_t>(position)],
                        view_row(view, limits, result.logits_begin + i));
    }
  }
  if (!record.wants_output()) return;
  for (int i = 0; i < result.num_committed; ++i) {
    const int row = result.logits_begin + result.num_scored + i;
    record.push(result.ids[i], view_row(view, limits, row));
  }
}

}  // namespace foretoken
