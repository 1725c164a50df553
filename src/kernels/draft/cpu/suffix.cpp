#include "kernels/draft/suffix.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/draft/cpu/own_text.h"
#include "kernels/draft/draft_slots.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

// What one span's slot knows more than before.
void learn_span(const SuffixArgs& a, const SpanState& span) {
  const SlotParams& params = a.batch.params[span.slot];
  if (!serves(params, a.drafter)) return;
  SlotState& state = a.batch.slots[span.slot];
  const int32_t learnt = learnt_ever(state, params, a.drafter);
  const int32_t known = known_after(span, state);
  const int32_t begin = std::max(params.prompt_len, learnt);
  if (begin >= known) return;
  if (learnt == 0) ++*a.table.clock;
  learnt_of(state, params, a.drafter) = known;
  for (int32_t p = begin; p < known; ++p) {
    const auto id_back = [&](int32_t i) { return token_at(a.batch, span.slot, p - 1 - i); };
    for (int level = 0; level < suffix_table::kNumLevels; ++level) {
      const int32_t tokens = suffix_table::level_tokens(a.max_depth, level);
      if (tokens == 0 || tokens > p) continue;
      suffix_table::learn(a.table, suffix_table::key_of(a.table, params, tokens, id_back),
                          token_at(a.batch, span.slot, p), *a.table.clock);
    }
  }
}

struct TableHit {
  const suffix_table::Entry* entry = nullptr;  // null: there is none
  int32_t tokens = 0;
};

// The longest piece of text that the table holds, of a text of `len` tokens.
template <class IdBack>
TableHit find_in_table(const SuffixArgs& a, const SlotParams& params, int32_t len,
                       const IdBack& id_back) {
  for (int level = 0; level < suffix_table::kNumLevels; ++level) {
    const int32_t tokens = suffix_table::level_tokens(a.max_depth, level);
    if (tokens == 0 || tokens > len) continue;
    const suffix_table::Key key = suffix_table::key_of(a.table, params, tokens, id_back);
    const suffix_table::Entry* bucket = a.table.entries + int64_t{key.bucket} * suffix_table::kWays;
    for (int way = 0; way < suffix_table::kWays; ++way) {
      if (suffix_table::holds(a.table, bucket[way], key, *a.table.clock)) {
        return {bucket + way, tokens};
      }
    }
  }
  return {};
}

// Of a slot's text in the table: the tokens of its first suffix, or 0, and the drafts.
struct TableDrafts {
  int32_t matched = 0;
  int32_t count = 0;
  std::array<int32_t, kMaxDraftTokens> ids;
};

// Drafts for as long as they are likely. The slot's own stay as they are, so that a source which
// goes before the table leaves the same slot on every device.
TableDrafts draft_from_table(const SuffixArgs& a, int32_t slot, int32_t wanted) {
  TableDrafts out;
  if (a.table.num_buckets == 0) return out;
  const SlotParams& params = a.batch.params[slot];
  const int32_t len = a.batch.slots[slot].len;
  int32_t chance = spec::RateConstants::kOne;
  const auto id_back = [&](int32_t i) {
    return i < out.count ? out.ids[out.count - 1 - i]
                         : token_at(a.batch, slot, len - 1 - (i - out.count));
  };
  for (int32_t most = wanted; out.count < most;) {
    const TableHit hit = find_in_table(a, params, len + out.count, id_back);
    if (hit.entry == nullptr) break;
    chance = spec::next_survival(
        chance, static_cast<uint16_t>(suffix_table::chance_of(*hit.entry, hit.tokens)));
    if (chance < a.min_chance) break;
    if (out.count == 0) {
      most = suffix_table::max_draft_tokens(hit.tokens, a.max_factor, wanted);
      if (most == 0) break;
      out.matched = hit.tokens;
    }
    out.ids[out.count++] = hit.entry->ids[0];
  }
  return out;
}

// Whether the text ends with a long piece that is known.
bool finds_sure(const SuffixArgs& a, int32_t slot) {
  if (a.table.num_buckets == 0) return false;
  const int32_t len = a.batch.slots[slot].len;
  const auto id_back = [&](int32_t i) { return token_at(a.batch, slot, len - 1 - i); };
  const TableHit hit = find_in_table(a, a.batch.params[slot], len, id_back);
  return hit.entry != nullptr && suffix_table::is_sure(*hit.entry, hit.tokens, a.max_depth);
}

// As many drafts as the plan grants the span, and it can use.
int suffix_room(const SuffixArgs& a, const SpanPlan& span) {
  const SlotParams& params = a.batch.params[span.slot];
  const int granted = std::min(granted_drafts(span, params, a.drafter), a.num_draft_tokens);
  return max_draft_tokens(a.batch.slots[span.slot], params, granted, a.draft_max_len);
}

void propose_suffix(const SuffixArgs& a, const SpanPlan& span) {
  const int32_t slot = span.slot;
  SlotState& state = a.batch.slots[slot];
  const SlotParams& params = a.batch.params[slot];
  if (!serves(params, a.drafter)) return;
  state.found_by = 0;
  if (!has_turn(state, params, a.drafter)) return;
  state.num_draft_tokens = 0;
  state.from_prediction = 0;
  int wanted = lookup_drafts(state, a.num_draft_tokens);
  if (is_decoding(state) && params.max_draft_tokens > 0 && finds_sure(a, slot)) {
    state.found_by = 1 + a.drafter;
    wanted = std::max(wanted, suffix_room(a, span));
    state.draft.num_draft_tokens = std::max(state.draft.num_draft_tokens, wanted);
  }
  if (wanted == 0) return;
  const auto predicted = predicted_of(a.batch, slot);
  const uint64_t key = find_predicted(a.batch, slot, predicted, prediction_match::kLeastTokens);
  const int32_t length = prediction_match::length_of(key);
  const TableDrafts table = draft_from_table(a, slot, wanted);
  const int32_t longest = std::max(length, table.matched);
  OwnMatch own;
  if (longest < a.max_depth) {
    own = find_own(a.batch, slot, std::max(suffix_table::least_tokens(a.max_depth), longest + 1),
                   a.max_depth);
  }
  if (own.position >= 0) {
    draft_own(a.batch, slot, own, suffix_table::max_draft_tokens(own.length, a.max_factor, wanted));
  } else if (key != 0 && length >= table.matched) {
    draft_predicted(state, predicted, key, wanted);
  } else {
    std::copy_n(table.ids.begin(), table.count, state.drafts);
    state.num_draft_tokens = table.count;
  }
}

}  // namespace

void suffix(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SuffixArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  if (a.table.num_buckets > 0) {
    for (int i = 0; i < plan.header->num_spans; ++i) learn_span(a, a.spans[i]);
  }
  if (a.num_draft_tokens == 0 && a.table.num_buckets == 0) return;
  pool.parallel_for(plan.header->num_spans,
                    [&](int64_t index, int) { propose_suffix(a, plan.spans[index]); });
}

}  // namespace foretoken::cpu
