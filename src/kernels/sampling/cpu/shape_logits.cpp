#include "kernels/sampling/shape_logits.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/logits_row.h"
#include "kernels/sampling/shape_math.h"

namespace foretoken::cpu {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// One logits row on its way through the rules.
struct Row {
  const BatchState& batch;
  const SlotParams& params;
  int32_t slot;
  int32_t history_len;
  float* logits;
  int32_t vocab;

  int32_t history(int32_t position) const { return history_id(batch, slot, position); }
  bool holds(int32_t id) const { return id >= 0 && id < vocab; }
};

FT_HOT void mask_word(float* logits, uint32_t allowed) {
  for (uint32_t bit = 0; bit < 32; ++bit) {
    logits[bit] = (allowed >> bit & 1u) != 0 ? logits[bit] : kForbidden;
  }
}

void mask_disallowed(const Row& row) {
  const SlotLists& lists = row.batch.lists;
  const uint32_t* allowed =
      lists.allowed_ids + int64_t{text_slot(row.batch, row.slot)} * lists.mask_words;
  const int32_t whole = row.vocab / 32;
  for (int32_t w = 0; w < whole; ++w) {
    if (allowed[w] != ~0u) mask_word(row.logits + int64_t{w} * 32, allowed[w]);
  }
  for (int32_t id = whole * 32; id < row.vocab; ++id) {
    if ((allowed[whole] >> (id % 32) & 1u) == 0) row.logits[id] = kForbidden;
  }
}

// Whether the output ends in the first `count` ids of `word`.
bool output_ends_in(const Row& row, const int32_t* word, int32_t count) {
  if (count > std::max(row.history_len - row.params.prompt_len, 0)) return false;
  for (int32_t i = 0; i < count; ++i) {
    if (row.history(row.history_len - count + i) != word[i]) return false;
  }
  return true;
}

void mask_bad_words(const Row& row) {
  const int32_t* ints =
      row.batch.lists.bad_words + int64_t{text_slot(row.batch, row.slot)} * kMaxBadWordInts;
  for (int32_t at = 0; at < row.params.num_bad_word_ints;) {
    const int32_t count = ints[at];
    const int32_t* word = ints + at + 1;
    if (count <= 0 || count > row.params.num_bad_word_ints - at - 1) return;
    at += 1 + count;
    const int32_t last = word[count - 1];
    if (row.holds(last) && output_ends_in(row, word, count - 1)) row.logits[last] = kForbidden;
  }
}

void add_biases(const Row& row) {
  const LogitBias* biases =
      row.batch.lists.logit_bias + int64_t{text_slot(row.batch, row.slot)} * kMaxLogitBias;
  for (int32_t i = 0; i < row.params.num_logit_bias; ++i) {
    if (row.holds(biases[i].id)) row.logits[biases[i].id] += biases[i].bias;
  }
}

// Sets the id's bit; whether it was clear.
bool is_first(uint32_t* seen, int32_t id) {
  uint32_t& word = seen[id / 32];
  const uint32_t bit = 1u << (id % 32);
  const bool first = (word & bit) == 0;
  word |= bit;
  return first;
}

void penalise_repetition(const Row& row, uint32_t* seen) {
  const float penalty = row.params.repetition_penalty;
  if (penalty == 1.0f) return;
  std::fill(seen, seen + row.batch.lists.mask_words, 0u);
  for (int32_t position = 0; position < row.history_len; ++position) {
    const int32_t id = row.history(position);
    if (!row.holds(id) || !is_first(seen, id)) continue;
    row.logits[id] = shape_math::repeated(row.logits[id], penalty);
  }
}

// All of an id's subtractions of the frequency penalty come after that of the presence penalty,
// which its first occurrence brings.
void penalise_output(const Row& row, uint32_t* seen) {
  const float presence = row.params.presence_penalty;
  const float frequency = row.params.frequency_penalty;
  if (presence == 0.0f && frequency == 0.0f) return;
  std::fill(seen, seen + row.batch.lists.mask_words, 0u);
  for (int32_t position = row.params.prompt_len; position < row.history_len; ++position) {
    const int32_t id = row.history(position);
    if (!row.holds(id)) continue;
    if (is_first(seen, id)) row.logits[id] = shape_math::lowered(row.logits[id], presence, 1);
    row.logits[id] = shape_math::lowered(row.logits[id], frequency, 1);
  }
}

void shape_row(const ShapeLogitsArgs& a, int32_t i) {
  const LogitsRow at = logits_row(a.tensors, a.batch.slots, a.row_offset + i);
  const SlotParams& params = a.batch.params[at.slot];
  if (at.scored || !shapes_logits(params)) return;
  const Row row{a.batch, params, at.slot, at.position + 1, a.logits + int64_t{i} * a.vocab,
                a.vocab};
  uint32_t* seen = a.seen + int64_t{i} * 2 * a.batch.lists.mask_words;
  if (params.has_allowed_ids != 0) mask_disallowed(row);
  mask_bad_words(row);
  add_biases(row);
  penalise_repetition(row, seen);
  penalise_output(row, seen + a.batch.lists.mask_words);
}

}  // namespace

void shape_logits(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ShapeLogitsArgs*>(args);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  pool.parallel_for(rows, [&](int64_t i, int) { shape_row(a, static_cast<int32_t>(i)); });
}

}  // namespace foretoken::cpu
