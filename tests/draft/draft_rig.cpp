#include "draft/draft_rig.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/draft/choose_draft.h"
#include "kernels/draft/choose_lengths.h"
#include "kernels/draft_lists.h"
#include "kernels/sampling/sample.h"
#include "kernels/step/prepare.h"
#include "kernels/step/upload.h"
#include "kernels/step/verify_and_commit.h"

namespace foretoken::test {
namespace {

Device& rig_device() {
  FT_CHECK_MSG(test_device() != nullptr, "no test device");
  return *test_device();
}

}  // namespace

DraftRig::DraftRig(const std::string& target_folder, std::vector<SpeculativeConfig> drafters,
                   const std::function<void(DrafterContext&)>& change, const std::string& dtype,
                   KvFormat kv_format)
    : device_(rig_device()),
      target_folder_(target_folder),
      queue_(device_.make_queue().value()),
      pinned_(device_, MemoryKind::kPinned),
      configs_(std::move(drafters)),
      blocks_(kSlots),
      num_hits_(kSlots) {
  LoadOptions options;
  options.config.dtype = dtype;
  options.kv_format = kv_format;
  options.max_rows = kMaxRows;
  options.max_logits_rows = kMaxRows;
  options.max_model_len = kMaxLen;
  target_ = load_model(device_, target_folder, options).value();
  const Status states =
      target_->take_states({.num_slots = kSlots, .max_draft_tokens = kMaxDraftTokens});
  FT_CHECK_MSG(states.ok(), states.message());
  for (const SpeculativeConfig& config : configs_) {
    DrafterContext context{.config = config,
                           .device = device_,
                           .target = *target_,
                           .target_folder = target_folder,
                           .folder = config.model,
                           .attention = find_attention_backend("auto", device_).value(),
                           .max_model_len = std::min(kMaxLen, target_->config().max_context),
                           .max_rows = kMaxRows,
                           .max_spans = kSlots,
                           .dummy = false,
                           .kv_format = kv_format,
                           .token_map = {},
                           .token_map_back = {},
                           .draft_vocab_ids = {}};
    if (change) change(context);
    drafters_.push_back(make_drafter(context).value());
    const Status taken = drafters_.back()->take_memory(kNumBlocks, kBlockSize);
    FT_CHECK_MSG(taken.ok(), taken.message());
  }
  for (const KvGroupSpec& group : target_->kv_groups()) {
    caches_.push_back(KvCache::create(device_, group, kNumBlocks, kBlockSize).value());
  }
  params.top_p = 1;
  params.repetition_penalty = 1;
  params.max_len = kMaxLen;
  params.max_draft_tokens = kMaxDraftTokens;
  params.num_logprobs = kNoLogprobs;
  take_batch();
  take_step();
  free_blocks_.resize(kNumBlocks - 1);
  // Handed out from the back, in descending order, so that a block is never its index by chance.
  std::iota(free_blocks_.begin(), free_blocks_.end(), 1);
}

DraftRig::~DraftRig() { (void)queue_->drain(); }

void DraftRig::take_batch() {
  const size_t slots = kSlots + 1, blocks = kNumBlocks;
  batch_ = {array<SlotParams>(slots),
            array<SlotState>(slots),
            array<int32_t>(slots * kMaxBlocks),
            array<int32_t>(slots * kMaxBlocks),
            array<int32_t>(blocks * kBlockSize),
            array<PageHeader>(blocks),
            array<DraftRates>(kMaxDrafters),
            kMaxBlocks,
            kBlockSize,
            kSlots,
            {}};
}

void DraftRig::take_step() {
  const size_t rows = kMaxRows;
  limits_ = {kSlots, kSlots * kMaxLen, kSlots * kMaxBlocks * 2, 1};
  result_limits_ = {kSlots, 0, 0, 0};
  tensors_ = {array<StepCounts>(1), array<SpanState>(kSlots), array<int32_t>(rows),
              array<int32_t>(rows), array<int32_t>(rows),     array<int32_t>(rows),
              array<int32_t>(rows), array<int32_t>(rows),     array<int32_t>(rows)};
  entry_bytes_ = plan_bytes(limits_);
  step_ = array<uint64_t>(1);
  ring_ = array<char>(static_cast<size_t>(entry_bytes_) * kStepRingSize);
  plan_ = array<char>(static_cast<size_t>(entry_bytes_));
  result_ = array<char>(static_cast<size_t>(result_bytes(result_limits_)));
  entry_ = array<std::byte>(kEntryBytes);
  logits_ = array<float>(rows * static_cast<size_t>(target_->config().vocab_size));
}

void DraftRig::start(int32_t slot, std::vector<int32_t> ids, std::vector<int32_t> hits) {
  FT_CHECK(blocks_[static_cast<size_t>(slot)].empty());
  const auto len = static_cast<int32_t>(ids.size());
  const auto computed = static_cast<int32_t>(hits.size()) * kBlockSize;
  FT_CHECK(computed < len);
  inits_.push_back({slot, len, computed, 0, params});
  for (size_t i = 0; i < hits.size(); ++i) {
    for (const int32_t windowed : {0, 1}) {
      updates_.push_back({slot, static_cast<int32_t>(i), hits[i], 0, windowed});
    }
  }
  num_hits_[static_cast<size_t>(slot)] = hits.size();
  blocks_[static_cast<size_t>(slot)] = std::move(hits);
  // Here, since `state` is asked for before the step that begins the sequence.
  batch_.slots[slot] = SlotState{};
  batch_.slots[slot].len = len;
  batch_.slots[slot].computed = computed;
  new_ids_.push_back({slot, {ids.begin() + computed, ids.end()}, computed});
  cover(slot, len);
}

void DraftRig::release(int32_t slot, bool keep_blocks) {
  std::vector<int32_t>& blocks = blocks_[static_cast<size_t>(slot)];
  const auto own = blocks.begin() + static_cast<int64_t>(num_hits_[static_cast<size_t>(slot)]);
  if (!keep_blocks) free_blocks_.insert(free_blocks_.end(), own, blocks.end());
  blocks.clear();
}

// Positions that the slot's drafter writes behind the known ids, where that is a fixed number.
int32_t DraftRig::positions_ahead(int32_t slot) const {
  const auto drafter = static_cast<size_t>(batch_.params[slot].drafter);
  return drafter < drafters_.size() ? drafters_[drafter]->traits().entries_ahead : 0;
}

// Blocks for positions below `len`.
void DraftRig::cover(int32_t slot, int32_t len) {
  std::vector<int32_t>& blocks = blocks_[static_cast<size_t>(slot)];
  while (static_cast<int32_t>(blocks.size()) * kBlockSize < std::min(len, kMaxLen)) {
    FT_CHECK(!free_blocks_.empty());
    const auto index = static_cast<int32_t>(blocks.size());
    blocks.push_back(free_blocks_.back());
    free_blocks_.pop_back();
    updates_.push_back({slot, index, blocks.back(), ++epoch_, 0});
    updates_.push_back({slot, index, blocks.back(), epoch_, 1});
  }
}

// Returns a bound on the rows.
int32_t DraftRig::write_plan(const std::vector<RigSpan>& spans) {
  int32_t rows = 0;
  for (const RigSpan& span : spans) {
    const SlotState& s = state(span.slot);
    cover(span.slot, s.len + std::min(s.num_draft_tokens, span.max_verified) + 1 +
                         std::max(span.num_draft_tokens, positions_ahead(span.slot)));
    rows += span.num_tokens + std::min(s.num_draft_tokens, span.max_verified);
  }
  const PlanView view =
      plan_view(ring_ + static_cast<int64_t>(*step_ % kStepRingSize) * entry_bytes_, limits_);
  *view.header = {*step_,
                  static_cast<int32_t>(spans.size()),
                  static_cast<int32_t>(inits_.size()),
                  static_cast<int32_t>(updates_.size()),
                  0,
                  0};
  FT_CHECK(view.header->num_block_updates <= limits_.max_block_updates);
  std::copy(inits_.begin(), inits_.end(), view.inits);
  std::copy(updates_.begin(), updates_.end(), view.block_updates);
  for (size_t i = 0; i < spans.size(); ++i) {
    const RigSpan& span = spans[i];
    view.spans[i] = {.slot = span.slot,
                     .num_tokens = span.num_tokens,
                     .max_verified = span.max_verified,
                     .num_new_ids = 0,
                     .token_offset = 0,
                     .write_position = 0,
                     .wants_all = 0,
                     .num_draft_tokens = span.num_draft_tokens,
                     .draft_rows = span.draft_rows,
                     .num_lookup_tokens = span.num_draft_tokens};
    for (const NewIds& fresh : new_ids_) {
      if (fresh.slot != span.slot) continue;
      view.spans[i].num_new_ids = static_cast<int32_t>(fresh.ids.size());
      view.spans[i].token_offset = view.header->num_tokens;
      view.spans[i].write_position = fresh.position;
      std::copy(fresh.ids.begin(), fresh.ids.end(), view.tokens + view.header->num_tokens);
      view.header->num_tokens += view.spans[i].num_new_ids;
    }
  }
  for (const RigSpan& span : spans) {
    std::erase_if(new_ids_, [&](const NewIds& fresh) { return fresh.slot == span.slot; });
  }
  inits_.clear();
  updates_.clear();
  return rows;
}

void DraftRig::enqueue_target(int32_t max_rows) {
  upload(*queue_, {step_, ring_, entry_bytes_, plan_, limits_, batch_});
  prepare(*queue_, {plan_, limits_, batch_, tensors_, max_rows, max_rows});
  const KvCaches caches{caches_[0].get(), caches_.size() > 1 ? caches_[1].get() : nullptr};
  target_->forward(*queue_, tensors_, batch_, caches, {max_rows});
  target_->logits(*queue_, tensors_, 0, max_rows, logits_);
  sample(*queue_, {logits_, tensors_, batch_, 0, max_rows, target_->config().vocab_size});
}

void DraftRig::force_samples() {
  if (forced.empty()) return;
  run();
  const PlanView plan = plan_view(plan_, limits_);
  for (int32_t i = 0; i < plan.header->num_spans; ++i) {
    const SpanState& span = tensors_.spans[i];
    const auto found = forced.find(span.slot);
    if (found == forced.end() || span.num_logits == 0) continue;
    for (size_t row = 0; row < found->second.size(); ++row) {
      tensors_.sampled[static_cast<size_t>(span.logits_begin) + row] = found->second[row];
    }
    forced.erase(found);
  }
}

// As the engine does: look-ups first, and a drafter that nobody wants anything of enqueues nothing.
void DraftRig::enqueue_drafters(const std::vector<RigSpan>& spans) {
  int32_t lookups = 0;
  std::vector<size_t> order;
  for (const bool looks_up : {true, false}) {
    for (size_t d = 0; d < drafters_.size(); ++d) {
      if (drafters_[d]->traits().looks_up != looks_up) continue;
      order.push_back(d);
      if (looks_up) lookups |= 1 << d;
    }
  }
  for (const size_t d : order) {
    DraftShape shape;
    for (const RigSpan& span : spans) {
      if (!serves(batch_.params[span.slot], static_cast<int32_t>(d))) continue;
      shape.num_draft_tokens = std::max(shape.num_draft_tokens, span.num_draft_tokens);
      shape.max_catch_up_rows += span.draft_rows;
      if (span.num_draft_tokens > 0) ++shape.max_spans;
    }
    const DrafterTraits& traits = drafters_[d]->traits();
    shape.num_draft_tokens = std::min(shape.num_draft_tokens, traits.max_draft_tokens);
    shape.max_catch_up_rows = traits.has_kv ? std::min(shape.max_catch_up_rows, kMaxRows) : 0;
    if (shape.num_draft_tokens == 0 && shape.max_catch_up_rows == 0) continue;
    ++num_proposals;
    choose_lengths(*queue_, {.plan = plan_,
                             .limits = limits_,
                             .batch = batch_,
                             .spans = tensors_.spans,
                             .result = result_,
                             .result_limits = result_limits_,
                             .row_ns = nullptr,
                             .num_row_ns = 0,
                             .draft_ns = 0,
                             .drafter = static_cast<int32_t>(d),
                             .draft_max_len = traits.max_len});
    drafters_[d]->propose(
        *queue_,
        {.plan = plan_,
         .limits = limits_,
         .batch = batch_,
         .tensors = tensors_,
         .caches = {caches_.front().get(), caches_.size() > 1 ? caches_[1].get() : nullptr},
         .index = static_cast<int>(d)},
        shape);
    if ((lookups >> d & 1) == 0) continue;
    choose_draft(*queue_, {.plan = plan_,
                           .limits = limits_,
                           .batch = batch_,
                           .drafter = static_cast<int32_t>(d),
                           .lookups = lookups,
                           .rivals = 0});
  }
}

void DraftRig::run() {
  const Status status = queue_->drain();
  FT_CHECK_MSG(status.ok(), status.message());
}

std::vector<RigOutput> DraftRig::step(const std::vector<RigSpan>& spans) {
  const int32_t rows = write_plan(spans);
  FT_CHECK(rows <= kMaxRows);
  enqueue_target(rows);
  force_samples();
  verify_and_commit(*queue_, {plan_, limits_, batch_, tensors_, result_, result_limits_, nullptr});
  run();
  enqueue_drafters(spans);
  run();
  ++*step_;
  std::vector<RigOutput> outputs;
  const ResultView view = result_view(result_, result_limits_);
  for (size_t i = 0; i < spans.size(); ++i) {
    const SpanResult& result = view.spans[i];
    const SlotState& s = state(spans[i].slot);
    FT_CHECK(result.slot == spans[i].slot);
    outputs.push_back({.committed = {result.ids, result.ids + result.num_committed},
                       .drafted = {result.drafts, result.drafts + result.num_drafted},
                       .proposed = {s.drafts, s.drafts + s.num_draft_tokens},
                       .num_accepted = result.num_accepted,
                       .draft_missing = result.draft_missing,
                       .finish = static_cast<DeviceFinish>(result.finish)});
  }
  return outputs;
}

std::vector<int32_t> DraftRig::tokens(int32_t slot) const {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < state(slot).len; ++i) {
    const int32_t block = blocks(slot)[static_cast<size_t>(i / kBlockSize)];
    ids.push_back(batch_.token_pages[block * kBlockSize + i % kBlockSize]);
  }
  return ids;
}

std::vector<std::byte> DraftRig::entry(const KvCache& cache, int32_t slot, int32_t position) {
  const int32_t block = blocks(slot).at(static_cast<size_t>(position / kBlockSize));
  size_t total = 0;
  for (int32_t i = 0; i < cache.num_layers(); ++i) {
    const KvLayer& layer = cache.layer(i);
    const auto size = static_cast<size_t>(kv_entry_bytes(layer));
    for (void* part : {layer.k, layer.v}) {
      for (int32_t head = 0; head < layer.num_kv_heads; ++head) {
        const int64_t row =
            (int64_t{block} * layer.num_kv_heads + head) * kBlockSize + position % kBlockSize;
        FT_CHECK(total + size <= kEntryBytes);
        queue_->copy(entry_ + total,
                     static_cast<std::byte*>(part) + row * static_cast<int64_t>(size), size);
        total += size;
      }
    }
  }
  run();
  return {entry_, entry_ + total};
}

}  // namespace foretoken::test
