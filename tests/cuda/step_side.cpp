#include "step_side.h"

namespace foretoken::check {
namespace {

// A logits processor: takes away something from the logit of the row's last id.
void process(void* context) {
  const auto& host = *static_cast<const HostLogits*>(context);
  for (int i = 0; i < kMaxRows; ++i) {
    const HostRow& row = host.rows[i];
    if (row.processors == 0) continue;
    const int32_t last = host.history[i * host.max_len + row.num_tokens - 1];
    host.logits[i * kVocab + last] -= 0.01f * static_cast<float>(row.processors + row.choice);
  }
}

template <class T>
void put(StepSide& side, T* to, const std::vector<T>& values) {
  side.queue.copy(to, values.data(), values.size() * sizeof(T));
  (void)side.queue.drain();
}

// Sometimes no valid draft.
std::vector<int32_t> random_ids(size_t count) {
  std::mt19937 random(53);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = random() % 12 == 0 ? -1 : static_cast<int32_t>(random() % kVocab);
  return ids;
}

// Wide steps cost more, in stairs.
std::vector<int32_t> random_times() {
  std::mt19937 random(54);
  std::vector<int32_t> times = {100000};
  while (static_cast<int>(times.size()) < kNumRowNs) {
    times.push_back(times.back() + static_cast<int32_t>(random() % 3 == 0 ? random() % 12000 : 0));
  }
  return times;
}

}  // namespace

StepSide::StepSide(Device& owner, Queue& its_queue) : device(owner), queue(its_queue) {
  batch = {
      take<SlotParams>(kSlots + 1),
      take<SlotState>(kSlots + 1),
      take<int32_t>((kSlots + 1) * kMaxBlocks),
      take<int32_t>((kSlots + 1) * kMaxBlocks),
      take<int32_t>(kNumBlocks * kBlockSize),
      take<PageHeader>(kNumBlocks),
      take<DraftRates>(kMaxDrafters),
      kMaxBlocks,
      kBlockSize,
      kSlots,
      {take<LogitBias>((kSlots + 1) * kMaxLogitBias), take<int32_t>((kSlots + 1) * kMaxBadWordInts),
       take<uint32_t>((kSlots + 1) * kMaskWords), kMaskWords, kMaxPrediction,
       take<int32_t>((kSlots + 1) * kMaxPrediction)}};
  const auto rows = [&](int count) { return take<int32_t>(count); };
  tensors = {take<StepCounts>(1), take<SpanState>(kSlots), rows(kMaxRows),
             rows(kMaxRows),      rows(kMaxRows),          rows(kMaxRows),
             rows(kMaxRows),      rows(kMaxRows),          rows(kMaxRows)};
  for (DraftTensors& t : drafts) {
    t = {{take<StepCounts>(1), nullptr, rows(kMaxDraftRows), rows(kMaxDraftRows),
          rows(kMaxDraftRows), rows(kMaxDraftRows), nullptr, rows(kMaxDraftRows),
          rows(kMaxDraftRows)},
         rows(kMaxDraftRows)};
  }
  drafted_ids = take<int32_t>(kNumDrafters * kNumPasses * kSlots);
  token_map = take<int32_t>(kVocab);
  row_ns = take<int32_t>(kNumRowNs);
  synthetic = take<uint32_t>(kMaxDraftTokens);
  past = {take<suffix_table::Entry>(kPastEntries), take<uint32_t>(1),
          kPastEntries / suffix_table::kWays, 40};
  plan = take<char>(plan_bytes(kLimits));
  result = take<char>(result_bytes(kResultLimits));
  model_logits = take<float>(kMaxRows * kVocab);
  logits = take<float>(kMaxRows * kVocab);
  raw = take<float>(kMaxRows * kVocab);
  states = take<float>(kMaxRows * kHidden);
  accumulators = take<float>((kSlots + 1) * kHidden);
  seen = take<uint32_t>(kMaxRows * 2 * kMaskWords);
  host = {take<HostRow>(kMaxRows, MemoryKind::kPinned),
          take<float>(kMaxRows * kVocab, MemoryKind::kPinned),
          take<int32_t>(kMaxRows * kMaxLen, MemoryKind::kPinned), kMaxLen};
  step = take<uint64_t>(1);
  plans = take<char>(kStepRingSize * plan_bytes(kLimits), MemoryKind::kPinned);
  results = take<char>(kStepRingSize * result_bytes(kResultLimits), MemoryKind::kPinned);
  word = take<std::atomic<uint64_t>>(8, MemoryKind::kPinned);
  put(*this, model_logits, random_floats(kMaxRows * kVocab, 51, 2.0f));
  put(*this, states, random_floats(kMaxRows * kHidden, 52, 2.0f));
  put(*this, drafted_ids, random_ids(kNumDrafters * kNumPasses * kSlots));
  put(*this, token_map, {4, 0, 3, 1, 5, 2});
  put(*this, row_ns, random_times());
  put(*this, synthetic, {3000000000u, ~0u, 2000000000u, 4000000000u, 1000000000u, 0});
}

StepSide::~StepSide() {
  (void)queue.drain();
  for (auto& [pointer, kind] : blocks) device.deallocate(pointer, kind);
}

void StepSide::launch_before() {
  queue.launch(UploadArgs{step, plans, plan_bytes(kLimits), plan, kLimits, batch});
  queue.launch(PrepareArgs{plan, kLimits, batch, tensors, kMaxRows, kMaxRows});
  queue.launch(
      PoolArgs{states, tensors, batch, accumulators, result, kResultLimits, kHidden, DType::kF32});
}

void StepSide::launch_sample() {
  queue.copy(logits, model_logits, kMaxRows * kVocab * sizeof(float));
  queue.launch(KeepRawArgs{logits, raw, tensors, batch, 0, kMaxRows, kVocab});
  queue.launch(ExportLogitsArgs{logits, tensors, batch, host, 0, kMaxRows, kVocab});
  queue.call_host(process, &host);
  queue.launch(ImportLogitsArgs{logits, tensors.counts, host, 0, kMaxRows, kVocab});
  queue.launch(ShapeLogitsArgs{logits, tensors, batch, seen, 0, kMaxRows, kVocab});
  queue.launch(SampleArgs{logits, tensors, batch, 0, kMaxRows, kVocab});
  queue.launch(
      LogprobsArgs{logits, raw, tensors, batch.params, result, kResultLimits, 0, kMaxRows, kVocab});
}

void StepSide::launch_after(bool is_synthetic) {
  queue.launch(VerifyAndCommitArgs{plan, kLimits, batch, tensors, result, kResultLimits,
                                   is_synthetic ? synthetic : nullptr});
  queue.launch(
      PublishArgs{step, result, kResultLimits, 1, 1, results, result_bytes(kResultLimits), word});
  for (int drafter = 0; drafter < kNumDrafters; ++drafter) launch_drafter(drafter);
}

void StepSide::launch_drafter(int drafter) {
  const bool adaptive = drafter != 2;
  queue.launch(ChooseLengthsArgs{plan, kLimits, batch, tensors.spans, result, kResultLimits,
                                 adaptive ? row_ns : nullptr, kNumRowNs, 5000 * drafter, drafter,
                                 drafter == 1 ? kMaxLen * 3 / 4 : kMaxLen});
  if (drafter == 0) {
    queue.launch(NgramArgs{plan, kLimits, batch, kNumPasses, drafter, 1, 3});
  } else if (drafter == 3) {
    queue.launch(SuffixArgs{plan, kLimits, batch, tensors.spans, past, kNumPasses, drafter, 8, 2.0f,
                            3000, 1 << 20});
  } else {
    launch_passes(drafter);
  }
}

void StepSide::launch_passes(int drafter) {
  const bool needs_states = drafter == 2;
  const int32_t* map = needs_states ? nullptr : token_map;
  const DraftTensors* in = &drafts[drafter * 2];
  const DraftTensors* out = &drafts[drafter * 2 + 1];
  queue.launch(DraftRowsArgs{plan, kLimits, batch, tensors.spans, *in, map, drafter,
                             needs_states ? 1 : 0, kMaxDraftRows,
                             drafter == 1 ? kMaxLen * 3 / 4 : kMaxLen});
  for (int pass = 0; pass < kNumPasses; ++pass) {
    queue.launch(DraftNextArgs{batch, in->rows.counts, in->rows.row_slot, in->rows.logits_rows,
                               drafted_ids + (drafter * kNumPasses + pass) * kSlots, *out, map,
                               pass, needs_states ? 0 : 1, kMaxDraftRows});
    std::swap(in, out);
  }
}

}  // namespace foretoken::check
