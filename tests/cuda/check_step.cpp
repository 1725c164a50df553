#include <algorithm>
#include <array>

#include "check.h"
#include "kernels/cpu/op_table.h"
#include "step_side.h"

namespace foretoken::check {
namespace {

SlotParams random_params(std::mt19937& random, int len) {
  SlotParams params{};
  params.seed = random();
  params.temperature = 1.0f;
  params.top_p = 1.0f;
  params.max_len = len + 1 + static_cast<int>(random() % 90);
  params.max_draft_tokens = static_cast<int>(random() % 6);
  params.num_stop_ids = static_cast<int>(random() % 2);
  params.stop_ids[0] = 5;
  params.choice = static_cast<int32_t>(random() % 3);
  params.min_p = random() % 4 == 0 ? 0.1f : 0.0f;
  params.repetition_penalty = random() % 3 == 0 ? 1.2f : 1.0f;
  params.presence_penalty = random() % 3 == 0 ? 0.4f : 0.0f;
  params.frequency_penalty = random() % 3 == 0 ? 0.05f : 0.0f;
  params.prompt_len = static_cast<int>(random() % (len + 1));
  params.num_logprobs = static_cast<int>(random() % (kTop + 3)) - 1;
  params.processors = random() % 4 == 0 ? 1 + random() % 9 : 0;
  params.pooling = random() % 8 == 0 ? 1 + random() % 3 : 0;
  params.drafter = static_cast<int32_t>(random() % kNumDrafters);
  params.cache_salt = random() % 3;
  params.adapter_number = static_cast<int32_t>(random() % 2);
  return params;
}

// Some of the lists, into the plan's words.
void add_lists(const PlanView& plan, std::mt19937& random, SlotInit& init) {
  const auto push = [&](uint32_t word) { plan.words[plan.header->num_words++] = word; };
  init.word_offset = plan.header->num_words;
  init.params.num_logit_bias = static_cast<int>(random() % 3);
  for (int i = 0; i < init.params.num_logit_bias; ++i) {
    const float bias = static_cast<float>(random() % 100) * 0.01f;
    uint32_t bits;
    std::memcpy(&bits, &bias, sizeof bits);
    push(static_cast<uint32_t>(2 * i + 1));
    push(bits);
  }
  const int words = static_cast<int>(random() % 4);
  for (int i = 0; i < words; ++i) {
    const uint32_t length = 1 + random() % 3;
    push(length);
    for (uint32_t j = 0; j < length; ++j) push(random() % kVocab);
    init.params.num_bad_word_ints += static_cast<int32_t>(length) + 1;
  }
  init.params.has_allowed_ids = random() % 3 == 0 ? 1 : 0;
  if (init.params.has_allowed_ids != 0) push(0x29u | static_cast<uint32_t>(random()));
  init.params.num_prediction = random() % 2 == 0 ? static_cast<int>(random() % kMaxPrediction) : 0;
  for (int i = 0; i < init.params.num_prediction; ++i) push(random() % kVocab);
}

// Gives a slot all its blocks, in pages of its own but for the first `num_shared`, which another
// sequence has.
void add_sequence(const PlanView& plan, std::mt19937& random, int slot, uint32_t epoch, int len,
                  const int32_t* shared, int num_shared) {
  SlotInit& init = plan.inits[plan.header->num_inits++];
  init = {slot, len, num_shared * kBlockSize, 0, random_params(random, len)};
  add_lists(plan, random, init);
  for (int b = 0; b < kMaxBlocks; ++b) {
    const int own = 1 + (slot * kMaxBlocks + (b * 7 + static_cast<int>(epoch)) % kMaxBlocks);
    const bool is_shared = b < num_shared;
    plan.block_updates[plan.header->num_block_updates++] = {slot, b, is_shared ? shared[b] : own,
                                                            is_shared ? 0 : epoch, 0};
    plan.block_updates[plan.header->num_block_updates++] = {slot, b, 1 + (b * 5) % 97, 0, 1};
  }
}

void add_span(const PlanView& plan, std::mt19937& random, int slot, int tokens, int drafts,
              int write_position) {
  SpanPlan& span = plan.spans[plan.header->num_spans++];
  span = {slot, tokens, drafts, 0, 0, 0, random() % 6 == 0 ? 1 : 0, 0, 0, 0};
  span.num_draft_tokens = static_cast<int32_t>(random() % (kNumPasses + 1));
  span.draft_rows = random() % 5 == 0 ? 0 : static_cast<int32_t>(random() % 30);
  if (write_position < 0) return;
  span.num_new_ids = tokens;
  span.token_offset = plan.header->num_tokens;
  span.write_position = write_position;
  for (int i = 0; i < tokens; ++i) {
    plan.tokens[plan.header->num_tokens++] = static_cast<int32_t>(random() % kVocab);
  }
}

// The state that the CPU side holds, as plans need it.
struct Known {
  std::vector<SlotState> slots;
  std::vector<int32_t> tables;
};

// Leading blocks of a running slot that are full and in pages of its own.
int shareable_blocks(const Known& known, int slot) {
  const SlotState& state = known.slots[slot];
  const int first = 1 + slot * kMaxBlocks;
  int count = 0;
  while (state.finished == 0 && count < 4 && (count + 1) * kBlockSize <= state.computed) {
    const int block = known.tables[slot * kMaxBlocks + count];
    if (block < first || block >= first + kMaxBlocks) break;
    ++count;
  }
  return count;
}

// A sequence that may share its first blocks with another slot's.
void add_random_sequence(const PlanView& plan, std::mt19937& random, const Known& known, int slot,
                         int drafts, uint32_t epoch) {
  const int donor = static_cast<int>(random() % kSlots);
  const bool shares = donor != slot && random() % 2 == 0;
  const int num_shared = shares ? shareable_blocks(known, donor) : 0;
  const int computed = num_shared * kBlockSize;
  const int len = computed + 2 + static_cast<int>(random() % (60 - computed));
  add_sequence(plan, random, slot, epoch, len, &known.tables[donor * kMaxBlocks], num_shared);
  add_span(plan, random, slot, 1 + static_cast<int>(random() % (len - computed)), drafts, computed);
}

// A random plan for the state that the CPU side holds.
void make_plan(std::mt19937& random, const PlanView& plan, const Known& known, uint64_t n) {
  *plan.header = {n, 0, 0, 0, 0, 0};
  for (int slot = 0; slot < kSlots; ++slot) {
    const SlotState& state = known.slots[slot];
    const int drafts = static_cast<int>(random() % 6);
    if (state.len == 0 || (state.finished != 0 && random() % 4 == 0)) {
      add_random_sequence(plan, random, known, slot, drafts, static_cast<uint32_t>(n + 1));
    } else if (random() % 5 != 0) {
      const int missing = state.len - state.computed;
      const bool prompt = missing > 1;
      const int tokens = prompt ? 1 + static_cast<int>(random() % missing) : 1;
      add_span(plan, random, slot, tokens, drafts, prompt ? state.computed : -1);
    }
  }
}

template <class T>
bool same(StepSide& a, StepSide& b, const T* from_a, const T* from_b, size_t count,
          const char* what, uint64_t n) {
  const auto x = a.read(from_a, count);
  const auto y = b.read(from_b, count);
  const auto* bytes = reinterpret_cast<const char*>(x.data());
  const auto* others = reinterpret_cast<const char*>(y.data());
  const size_t at = std::mismatch(bytes, bytes + count * sizeof(T), others).first - bytes;
  if (at == count * sizeof(T)) return true;
  std::printf("     step %llu: %s differ, the first in byte %zu of element %zu\n",
              static_cast<unsigned long long>(n), what, at % sizeof(T), at / sizeof(T));
  return false;
}

// Prints the first of `count` values that differs.
template <class T>
void print_values(const char* name, const T* x, const T* y, size_t count = 1) {
  const size_t at = std::mismatch(x, x + count, y).first - x;
  if (at == count) return;
  std::printf("         %s[%zu]: %lld and %lld\n", name, at, static_cast<long long>(x[at]),
              static_cast<long long>(y[at]));
}

void print_rates(const char* name, const DraftRates& x, const DraftRates& y) {
  std::printf("       %s\n", name);
  print_values("since_draft", &x.since_draft, &y.since_draft);
  print_values("num_rated", &x.num_rated, &y.num_rated);
  print_values("rates", x.rates, y.rates, kMaxDraftTokens);
}

// Prints every field of two slots that differs.
void print_slot(const SlotState& x, const SlotState& y) {
#define FT_PRINT(field) print_values(#field, &x.field, &y.field)
  FT_PRINT(len);
  FT_PRINT(computed);
  FT_PRINT(finished);
  FT_PRINT(num_draft_tokens);
  print_values("drafts", x.drafts, y.drafts, kMaxDraftTokens);
  FT_PRINT(from_prediction);
  FT_PRINT(mask_begin);
  FT_PRINT(num_masks);
  FT_PRINT(num_decided);
  FT_PRINT(drafted_by);
  FT_PRINT(found_by);
  FT_PRINT(learnt);
  FT_PRINT(draft.computed);
  FT_PRINT(draft.written);
  FT_PRINT(draft.num_draft_tokens);
#undef FT_PRINT
  if (std::memcmp(&x.draft, &y.draft, sizeof(DraftRates)) != 0)
    print_rates("draft", x.draft, y.draft);
  for (int d = 0; d < kMaxDrafters; ++d) {
    const DraftRates& a = x.lookup_rates[d];
    const DraftRates& b = y.lookup_rates[d];
    if (std::memcmp(&a, &b, sizeof a) != 0) print_rates(text("lookup_rates[%d]", d).c_str(), a, b);
  }
}

bool same_slots(StepSide& a, StepSide& b, uint64_t n) {
  if (same(a, b, a.batch.slots, b.batch.slots, kSlots + 1, "slots", n)) return true;
  const auto x = a.read(a.batch.slots, kSlots + 1);
  const auto y = b.read(b.batch.slots, kSlots + 1);
  for (int slot = 0; slot <= kSlots; ++slot) {
    if (std::memcmp(&x[slot], &y[slot], sizeof(SlotState)) == 0) continue;
    std::printf("       slot %d of %d tokens and %d drafts, the CPU's value and the GPU's:\n", slot,
                x[slot].len, x[slot].num_draft_tokens);
    print_slot(x[slot], y[slot]);
  }
  return false;
}

// The rows of the last two passes of the drafters that have any, 1 and 2.
bool same_drafts(StepSide& a, StepSide& b, uint64_t n) {
  bool ok = true;
  for (size_t i = 2; i < 6; ++i) {
    const StepTensors& s = a.drafts[i].rows;
    const StepTensors& t = b.drafts[i].rows;
    const StepCounts counts = a.read(s.counts, 1)[0];
    ok &= same(a, b, s.counts, t.counts, 1, "draft counts", n) &
          same(a, b, s.token_ids, t.token_ids, kMaxDraftRows, "draft ids", n) &
          same(a, b, s.positions, t.positions, kMaxDraftRows, "draft positions", n) &
          same(a, b, s.row_slot, t.row_slot, kMaxDraftRows, "draft row slots", n) &
          same(a, b, s.kv_slot, t.kv_slot, kMaxDraftRows, "draft kv slots", n) &
          same(a, b, s.logits_rows, t.logits_rows, counts.num_logits_rows, "draft logits", n) &
          same(a, b, a.drafts[i].source, b.drafts[i].source, kMaxDraftRows, "sources", n);
  }
  return ok;
}

bool same_state(StepSide& a, StepSide& b, uint64_t n) {
  const StepCounts counts = a.read(a.tensors.counts, 1)[0];
  const auto& s = a.tensors;
  const auto& t = b.tensors;
  return same_drafts(a, b, n) & same_slots(a, b, n) &
         same(a, b, a.batch.priors, b.batch.priors, kMaxDrafters, "priors", n) &
         same(a, b, a.batch.params, b.batch.params, kSlots, "params", n) &
         same(a, b, a.batch.block_tables, b.batch.block_tables, kSlots * kMaxBlocks, "tables", n) &
         same(a, b, a.batch.window_tables, b.batch.window_tables, kSlots * kMaxBlocks, "windows",
              n) &
         same(a, b, a.batch.lists.logit_bias, b.batch.lists.logit_bias, kSlots * kMaxLogitBias,
              "biases", n) &
         same(a, b, a.batch.lists.bad_words, b.batch.lists.bad_words, kSlots * kMaxBadWordInts,
              "bad words", n) &
         same(a, b, a.batch.lists.allowed_ids, b.batch.lists.allowed_ids, kSlots * kMaskWords,
              "allowed ids", n) &
         same(a, b, a.batch.lists.prediction, b.batch.lists.prediction, kSlots * kMaxPrediction,
              "predictions", n) &
         same(a, b, a.past.entries, b.past.entries, kPastEntries, "past answers", n) &
         same(a, b, a.past.clock, b.past.clock, 1, "clocks", n) &
         same(a, b, a.accumulators, b.accumulators, kSlots * kHidden, "accumulators", n) &
         same(a, b, a.batch.token_pages, b.batch.token_pages, kNumBlocks * kBlockSize, "pages", n) &
         same(a, b, a.batch.page_headers, b.batch.page_headers, kNumBlocks, "headers", n) &
         same(a, b, s.counts, t.counts, 1, "counts", n) &
         same(a, b, s.spans, t.spans, counts.num_spans, "spans", n) &
         same(a, b, s.token_ids, t.token_ids, kMaxRows, "ids", n) &
         same(a, b, s.positions, t.positions, kMaxRows, "positions", n) &
         same(a, b, s.row_slot, t.row_slot, kMaxRows, "row slots", n) &
         same(a, b, s.kv_slot, t.kv_slot, kMaxRows, "kv slots", n) &
         same(a, b, s.window_slot, t.window_slot, kMaxRows, "window slots", n) &
         same(a, b, s.logits_rows, t.logits_rows, counts.num_logits_rows, "logits rows", n) &
         same(a, b, s.sampled, t.sampled, counts.num_logits_rows, "sampled", n);
}

struct Totals {
  int64_t committed = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t missing = 0;
  int64_t finished[4] = {};
  int64_t scored = 0;
  int64_t pooled = 0;
  int64_t with_logprobs = 0;
};

bool near(float a, float b) { return a == b || std::fabs(a - b) < 1e-5f; }

bool same_logprobs(const ResultView& x, const ResultView& y, Totals& totals) {
  bool ok = true;
  for (int i = 0; ok && i < x.header->num_logits_rows; ++i) {
    const RowLogprobs& p = x.rows[i];
    const RowLogprobs& q = y.rows[i];
    ok = p.id == q.id && p.num_top == q.num_top && p.rank == q.rank && near(p.logprob, q.logprob);
    for (int j = 0; ok && j < p.num_top; ++j) {
      const TopLogprob& s = x.top[i * kTop + j];
      const TopLogprob& t = y.top[i * kTop + j];
      ok = s.id == t.id && near(s.logprob, t.logprob);
    }
    totals.with_logprobs += p.num_top != kNoLogprobs;
  }
  return ok;
}

bool same_results(StepSide& a, StepSide& b, uint64_t n, bool with_logprobs, Totals& totals) {
  const ResultView x = a.answer(n);
  const ResultView y = b.answer(n);
  bool ok = x.header->step == n && y.header->step == n &&
            x.header->num_spans == y.header->num_spans &&
            x.header->num_rows == y.header->num_rows &&
            x.header->num_logits_rows == y.header->num_logits_rows;
  for (int i = 0; ok && i < x.header->num_spans; ++i) {
    const SpanResult& p = x.spans[i];
    const SpanResult& q = y.spans[i];
    ok = p.slot == q.slot && p.num_committed == q.num_committed && p.finish == q.finish &&
         p.num_drafted == q.num_drafted && p.num_accepted == q.num_accepted &&
         p.logits_begin == q.logits_begin && p.num_scored == q.num_scored &&
         p.draft_missing == q.draft_missing &&
         std::equal(p.drafts, p.drafts + p.num_drafted, q.drafts) &&
         std::equal(p.ids, p.ids + p.num_committed, q.ids);
    if (ok && has_pooled(p)) {
      ok = std::memcmp(x.pooled + i * kHidden, y.pooled + i * kHidden, kHidden * 4) == 0;
      ++totals.pooled;
    }
    totals.scored += p.num_scored;
    totals.committed += p.num_committed;
    totals.drafted += p.num_drafted;
    totals.accepted += p.num_accepted;
    totals.missing += p.draft_missing;
    ++totals.finished[p.finish];
  }
  if (with_logprobs) ok = ok && same_logprobs(x, y, totals);
  if (!ok) std::printf("     step %llu: results differ\n", static_cast<unsigned long long>(n));
  return ok;
}

std::string text_of(const Totals& totals) {
  return text(
      "%lld committed, %lld drafted, %lld accepted, %lld entries missing, %lld scored, %lld "
      "pooled, %lld logprobs; "
      "ended by stop %lld, length %lld, error %lld",
      static_cast<long long>(totals.committed), static_cast<long long>(totals.drafted),
      static_cast<long long>(totals.accepted), static_cast<long long>(totals.missing),
      static_cast<long long>(totals.scored), static_cast<long long>(totals.pooled),
      static_cast<long long>(totals.with_logprobs), static_cast<long long>(totals.finished[1]),
      static_cast<long long>(totals.finished[2]), static_cast<long long>(totals.finished[3]));
}

// One step at a time, random plans and samples, all memory compared after each. Whether all were
// the same.
bool check_states(StepSide& gpu, StepSide& cpu) {
  constexpr int kSteps = 600;
  std::mt19937 random(9);
  Totals totals;
  bool ok = true;
  for (uint64_t n = 0; ok && n < kSteps; ++n) {
    make_plan(
        random, cpu.entry(n),
        {cpu.read(cpu.batch.slots, kSlots), cpu.read(cpu.batch.block_tables, kSlots * kMaxBlocks)},
        n);
    std::memcpy(gpu.entry(n).header, cpu.entry(n).header, plan_bytes(kLimits));
    std::vector<int32_t> sampled(kMaxRows);
    const bool all_errors = n % 50 == 49;
    for (int32_t& id : sampled) {
      id = all_errors && random() % 8 == 0 ? -1 : static_cast<int32_t>(random() % kVocab);
    }
    for (StepSide* side : {&cpu, &gpu}) {
      side->launch_before();
      side->queue.copy(side->tensors.sampled, sampled.data(), sampled.size() * 4);
      side->launch_after(n / 20 % 4 == 1);
      const Status status = side->queue.wait(Event{side->word}, n + 1, std::chrono::minutes(2));
      ok = ok && status.ok();
    }
    ok = ok && same_state(cpu, gpu, n) && same_results(cpu, gpu, n, false, totals);
  }
  report(ok, "step states", text("%d steps: ", kSteps) + text_of(totals));
  return ok;
}

// One graph, two steps in flight, the ring of plans and results reused; nobody waits in between.
void check_in_flight(StepSide& gpu, StepSide& cpu, uint64_t first) {
  constexpr uint64_t kSteps = 3000;
  std::mt19937 random(10);
  std::array<std::unique_ptr<Graph>, 2> graphs;
  const std::array<StepSide*, 2> sides = {&cpu, &gpu};
  for (int i = 0; i < 2; ++i) {
    sides[i]->queue.begin_capture();
    sides[i]->launch_before();
    sides[i]->launch_sample();
    sides[i]->launch_after(false);
    graphs[i] = sides[i]->queue.end_capture();
  }
  Totals totals;
  bool ok = true;
  const auto reconcile = [&](uint64_t n) {
    for (StepSide* side : sides) {
      const Status status = side->queue.wait(Event{side->word}, n + 1, std::chrono::minutes(2));
      if (!status.ok()) std::printf("     %s\n", status.message().c_str());
      ok = ok && status.ok();
    }
    ok = ok && same_results(cpu, gpu, n, true, totals);
  };
  for (uint64_t n = first; ok && n < first + kSteps; ++n) {
    const PlanView plan = cpu.entry(n);
    *plan.header = {n, 0, 0, 0, 0, 0};
    for (int slot = 0; slot < kSlots; ++slot) {
      if ((n - first) % 40 == static_cast<uint64_t>(slot)) {
        add_sequence(plan, random, slot, static_cast<uint32_t>(n), 20, nullptr, 0);
        add_span(plan, random, slot, 20, 5, 0);
      } else if (n - first >= 40) {
        add_span(plan, random, slot, 1, static_cast<int>(random() % 6), -1);
      }
    }
    std::memcpy(gpu.entry(n).header, plan.header, plan_bytes(kLimits));
    for (int i = 0; i < 2; ++i) sides[i]->queue.replay(*graphs[i]);
    if (n > first) reconcile(n - 1);
  }
  if (ok) reconcile(first + kSteps - 1);
  ok = ok && same_state(cpu, gpu, first + kSteps - 1);
  report(ok, "steps in flight",
         text("%llu steps, %d nodes: ", static_cast<unsigned long long>(kSteps),
              graphs[1]->num_nodes()) +
             text_of(totals));
}

// A plan of another step fails the queue with a message, and only the queue.
void check_refusal(Gpu& gpu) {
  std::string message;
  {
    auto queue = gpu.device->make_queue();
    StepSide side(*gpu.device, *queue.value());
    *side.entry(0).header = {3, 1, 0, 0, 0, 0};
    side.launch_before();
    side.launch_after(false);
    message = queue.value()->drain().message();
    side.launch_before();
  }
  auto fresh = gpu.device->make_queue();
  const bool recovered = fresh.value()->drain().ok();
  report(recovered &&
             message.find("plan of step 3 found in the ring entry of step 0") != std::string::npos,
         "step refused", message);
}

}  // namespace

void check_step(Gpu& gpu) {
  auto device = cpu::open_cpu_device(cpu::cpu_kernels(), 1);
  auto queue = device.value()->make_queue();
  {
    StepSide cpu_side(*device.value(), *queue.value());
    StepSide gpu_side(*gpu.device, *gpu.queue);
    // The ring goes on where the first steps ended.
    if (check_states(gpu_side, cpu_side)) {
      check_in_flight(gpu_side, cpu_side, 600);
    } else {
      std::printf("     steps in flight: not run, as the states before them differ\n");
    }
  }
  check_refusal(gpu);
}

}  // namespace foretoken::check
