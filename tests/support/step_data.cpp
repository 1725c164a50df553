#include "support/step_data.h"

#include <algorithm>

namespace foretoken {

StepData::StepData(const StepSizes& step_sizes) : sizes(step_sizes) {
  const size_t rows = static_cast<size_t>(sizes.num_slots) + 1;
  const size_t blocks = 1 + static_cast<size_t>(sizes.num_slots * sizes.max_blocks);
  params.resize(rows);
  slots.resize(rows);
  block_tables.resize(rows * static_cast<size_t>(sizes.max_blocks));
  window_tables.resize(block_tables.size());
  logit_bias.resize(rows * kMaxLogitBias);
  bad_words.resize(rows * kMaxBadWordInts);
  allowed_ids.resize(rows * static_cast<size_t>((sizes.vocab + 31) / 32));
  prediction.resize(rows * static_cast<size_t>(sizes.max_prediction));
  token_pages.resize(blocks * static_cast<size_t>(sizes.block_size));
  page_headers.resize(blocks, PageHeader{-1, 0, 1, 0, {}});
  priors.resize(kMaxDrafters);
  results.resize(static_cast<size_t>(sizes.limits.max_spans));
  span_states.resize(results.size() + static_cast<size_t>(sizes.num_branches));
  for (auto* vector : {&token_ids, &positions, &row_slot, &kv_slot, &window_slot}) {
    vector->resize(static_cast<size_t>(sizes.max_rows), -5);
  }
  for (auto* vector : {&logits_rows, &sampled}) {
    vector->resize(static_cast<size_t>(sizes.max_logits_rows), -5);
  }
  for (int i = 0; i < sizes.num_slots * sizes.max_blocks; ++i) {
    // Blocks in descending order, so that a table entry is never its index by chance.
    block_tables[static_cast<size_t>(i)] = sizes.num_slots * sizes.max_blocks - i;
    window_tables[static_cast<size_t>(i)] = block_tables[static_cast<size_t>(i)] + 100;
  }
  for (SlotParams& p : params) {
    p.max_len = sizes.max_blocks * sizes.block_size;
    p.max_draft_tokens = kMaxDraftTokens;
    p.top_p = 1;
    p.repetition_penalty = 1;
    p.num_logprobs = kNoLogprobs;
  }
}

int32_t& StepData::token(int slot, int position) {
  const int block =
      block_tables[static_cast<size_t>(slot * sizes.max_blocks + position / sizes.block_size)];
  PageHeader& page = page_headers[static_cast<size_t>(block)];
  page.count = std::max(page.count, position % sizes.block_size + 1);
  return token_pages[static_cast<size_t>(block * sizes.block_size + position % sizes.block_size)];
}

void StepData::set_sequence(int slot, const std::vector<int32_t>& ids, int computed) {
  for (size_t i = 0; i < ids.size(); ++i) token(slot, static_cast<int>(i)) = ids[i];
  slots[static_cast<size_t>(slot)].len = static_cast<int32_t>(ids.size());
  slots[static_cast<size_t>(slot)].computed = computed;
}

void StepData::set_drafts(int slot, const std::vector<int32_t>& drafts) {
  SlotState& state = slots[static_cast<size_t>(slot)];
  state.num_draft_tokens = static_cast<int32_t>(drafts.size());
  std::copy(drafts.begin(), drafts.end(), state.drafts);
}

std::vector<int32_t> StepData::tokens(int slot) {
  std::vector<int32_t> ids;
  for (int i = 0; i < slots[static_cast<size_t>(slot)].len; ++i) ids.push_back(token(slot, i));
  return ids;
}

void StepData::add_span(int slot, int num_tokens, int max_verified, int num_draft_tokens,
                        int draft_rows) {
  spans.push_back(
      {slot, num_tokens, max_verified, 0, 0, 0, 0, num_draft_tokens, draft_rows, num_draft_tokens});
  header.num_spans = static_cast<int32_t>(spans.size());
}

PageHeader& StepData::page_header(int slot, int position) {
  return page_headers[static_cast<size_t>(kv_slot_of(slot, position) / sizes.block_size)];
}

int32_t StepData::kv_slot_of(int slot, int position) const {
  const int block =
      block_tables[static_cast<size_t>(slot * sizes.max_blocks + position / sizes.block_size)];
  return block * sizes.block_size + position % sizes.block_size;
}

void StepData::set_logit_bias(int slot, const std::vector<LogitBias>& biases) {
  params[static_cast<size_t>(slot)].num_logit_bias = static_cast<int32_t>(biases.size());
  std::copy(biases.begin(), biases.end(), logit_bias.begin() + int64_t{slot} * kMaxLogitBias);
}

void StepData::set_bad_words(int slot, const std::vector<std::vector<int32_t>>& words) {
  auto to = bad_words.begin() + int64_t{slot} * kMaxBadWordInts;
  const auto begin = to;
  for (const std::vector<int32_t>& word : words) {
    *to++ = static_cast<int32_t>(word.size());
    to = std::copy(word.begin(), word.end(), to);
  }
  params[static_cast<size_t>(slot)].num_bad_word_ints = static_cast<int32_t>(to - begin);
}

void StepData::set_allowed_ids(int slot, const std::vector<int32_t>& ids) {
  params[static_cast<size_t>(slot)].has_allowed_ids = 1;
  const int32_t words = (sizes.vocab + 31) / 32;
  auto mask = allowed_ids.begin() + int64_t{slot} * words;
  std::fill(mask, mask + words, 0u);
  for (const int32_t id : ids) mask[id / 32] |= 1u << (id % 32);
}

void StepData::set_prediction(int slot, const std::vector<int32_t>& ids) {
  params[static_cast<size_t>(slot)].num_prediction = static_cast<int32_t>(ids.size());
  std::copy(ids.begin(), ids.end(), prediction.begin() + int64_t{slot} * sizes.max_prediction);
}

void StepTest::push(const StepData& d) {
  sizes_ = d.sizes;
  batch_ = {to_device(d.params),
            to_device(d.slots),
            to_device(d.block_tables),
            to_device(d.window_tables),
            to_device(d.token_pages),
            to_device(d.page_headers),
            to_device(d.priors),
            sizes_.max_blocks,
            sizes_.block_size,
            sizes_.num_slots,
            {to_device(d.logit_bias), to_device(d.bad_words), to_device(d.allowed_ids),
             (sizes_.vocab + 31) / 32, sizes_.max_prediction, to_device(d.prediction)},
            sizes_.num_branches,
            sizes_.branch_blocks,
            1 + sizes_.num_slots * sizes_.max_blocks,
            1 + sizes_.num_slots * sizes_.max_blocks};
  tensors_ = {to_device(std::vector<StepCounts>{d.counts, d.lane_counts[0], d.lane_counts[1]}),
              to_device(d.span_states),
              to_device(d.token_ids),
              to_device(d.positions),
              to_device(d.row_slot),
              to_device(d.kv_slot),
              to_device(d.window_slot),
              to_device(d.logits_rows),
              to_device(d.sampled)};
  std::vector<char> plan(static_cast<size_t>(plan_bytes(sizes_.limits)));
  const PlanView view = plan_view(plan.data(), sizes_.limits);
  *view.header = d.header;
  std::copy(d.spans.begin(), d.spans.end(), view.spans);
  plan_ = to_device(plan);
  std::vector<char> result(static_cast<size_t>(result_bytes(sizes_.result_limits)));
  const ResultView out = result_view(result.data(), sizes_.result_limits);
  *out.header = d.result_header;
  std::copy(d.results.begin(), d.results.end(), out.spans);
  result_ = to_device(result);
}

void StepTest::pull(StepData& d) {
  d.params = read(batch_.params, d.params.size());
  d.slots = read(batch_.slots, d.slots.size());
  d.block_tables = read(batch_.block_tables, d.block_tables.size());
  d.window_tables = read(batch_.window_tables, d.window_tables.size());
  d.logit_bias = read(batch_.lists.logit_bias, d.logit_bias.size());
  d.bad_words = read(batch_.lists.bad_words, d.bad_words.size());
  d.allowed_ids = read(batch_.lists.allowed_ids, d.allowed_ids.size());
  d.prediction = read(batch_.lists.prediction, d.prediction.size());
  d.token_pages = read(batch_.token_pages, d.token_pages.size());
  d.page_headers = read(batch_.page_headers, d.page_headers.size());
  d.priors = read(batch_.priors, d.priors.size());
  const std::vector<StepCounts> counts = read(tensors_.counts, 3);
  d.counts = counts[0];
  std::copy_n(counts.begin() + 1, 2, d.lane_counts);
  d.span_states = read(tensors_.spans, d.span_states.size());
  d.token_ids = read(tensors_.token_ids, d.token_ids.size());
  d.positions = read(tensors_.positions, d.positions.size());
  d.row_slot = read(tensors_.row_slot, d.row_slot.size());
  d.kv_slot = read(tensors_.kv_slot, d.kv_slot.size());
  d.window_slot = read(tensors_.window_slot, d.window_slot.size());
  d.logits_rows = read(tensors_.logits_rows, d.logits_rows.size());
  d.sampled = read(tensors_.sampled, d.sampled.size());
  std::vector<char> result = read(result_, static_cast<size_t>(result_bytes(sizes_.result_limits)));
  const ResultView view = result_view(result.data(), sizes_.result_limits);
  d.result_header = *view.header;
  const ResultLimits& limits = sizes_.result_limits;
  d.results.assign(view.spans, view.spans + limits.max_spans);
  d.row_logprobs.assign(view.rows, view.rows + limits.max_rows);
  d.top.assign(view.top, view.top + int64_t{limits.max_rows} * limits.max_top);
  d.pooled.assign(view.pooled, view.pooled + int64_t{limits.max_spans} * limits.hidden);
}

void StepTest::run_prepare(StepData& d) {
  push(d);
  prepare(queue(), prepare_args());
  pull(d);
}

PrepareArgs StepTest::prepare_args() const {
  return {plan_, sizes_.limits, batch_, tensors_, sizes_.max_rows, sizes_.max_logits_rows};
}

VerifyAndCommitArgs StepTest::verify_and_commit_args() const {
  return {plan_, sizes_.limits, batch_, tensors_, result_, sizes_.result_limits, nullptr};
}

NgramArgs StepTest::ngram_args(int num_draft_tokens, int min_n, int max_n, int drafter) const {
  return {plan_, sizes_.limits, batch_, num_draft_tokens, drafter, min_n, max_n};
}

ChooseLengthsArgs StepTest::choose_lengths_args(int drafter) const {
  return {plan_, sizes_.limits, batch_,   tensors_.spans, result_, sizes_.result_limits, nullptr, 0,
          0,     drafter,       INT32_MAX};
}

DraftRowsArgs StepTest::draft_rows_args(const DraftTensors& out, int max_rows, int drafter) const {
  return {plan_,   sizes_.limits, batch_, tensors_.spans, out,
          nullptr, drafter,       0,      max_rows,       INT32_MAX};
}

DraftNextArgs StepTest::draft_next_args(const DraftTensors& in, const DraftTensors& out,
                                        int max_rows, int pass) const {
  return {batch_,
          in.rows.counts,
          in.rows.row_slot,
          in.rows.logits_rows,
          in.rows.sampled,
          out,
          nullptr,
          pass,
          0,
          max_rows};
}

DraftTensors StepTest::new_draft_tensors(int max_rows) {
  const std::vector<int32_t> unset(static_cast<size_t>(max_rows), -5);
  DraftTensors tensors{};
  tensors.rows.counts = to_device(std::vector<StepCounts>{{-5, -5, -5, -5}});
  tensors.rows.token_ids = to_device(unset);
  tensors.rows.positions = to_device(unset);
  tensors.rows.row_slot = to_device(unset);
  tensors.rows.kv_slot = to_device(unset);
  tensors.rows.logits_rows = to_device(unset);
  tensors.rows.sampled = to_device(unset);
  tensors.source = to_device(unset);
  tensors.seen = to_device(unset);
  return tensors;
}

DraftPassData StepTest::read_pass(const DraftTensors& tensors, int max_rows) {
  const auto count = static_cast<size_t>(max_rows);
  DraftPassData data;
  data.counts = read(tensors.rows.counts, 1)[0];
  data.token_ids = read(tensors.rows.token_ids, count);
  data.positions = read(tensors.rows.positions, count);
  data.row_slot = read(tensors.rows.row_slot, count);
  data.kv_slot = read(tensors.rows.kv_slot, count);
  data.logits_rows = read(tensors.rows.logits_rows, count);
  data.source = read(tensors.source, count);
  data.seen = read(tensors.seen, count);
  return data;
}

}  // namespace foretoken
