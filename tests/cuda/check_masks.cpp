#include <algorithm>
#include <atomic>
#include <limits>

#include "check.h"
#include "kernels/cpu/op_table.h"
#include "kernels/sampling/token_masks.h"

namespace foretoken::check {
namespace {

constexpr int kSpans = 61, kRowsEach = 4, kBlockSize = 16, kMaxBlocks = 8, kPromptLen = 20;
constexpr int64_t kLongNs = 20'000'000'000;

// Spans with 0 to 3 drafts, in host vectors; every third has no grammar.
struct Batch {
  explicit Batch(int vocab_size);

  int vocab;
  int mask_words;
  std::vector<SlotParams> params;
  std::vector<SlotState> slots;
  std::vector<SpanState> spans;
  std::vector<int32_t> tables, pages, rows, row_slot, positions;
  std::vector<float> logits;
};

Batch::Batch(int vocab_size) : vocab(vocab_size), mask_words((vocab_size + 31) / 32) {
  params.resize(kSpans + 1);
  slots.resize(kSpans + 1);
  pages.resize(size_t{kSpans} * kMaxBlocks * kBlockSize);
  std::mt19937 random(5);
  for (int32_t& id : pages) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
  for (int i = 0; i < kSpans; ++i) {
    for (int b = 0; b < kMaxBlocks; ++b) tables.push_back((kSpans - 1 - i) * kMaxBlocks + b);
    params[i].prompt_len = kPromptLen;
    params[i].grammar = i % 3 == 0 ? 0 : 1000 + static_cast<uint64_t>(i);
    SlotState& slot = slots[i];
    slot.len = kPromptLen + i;
    slot.num_draft_tokens = i % 4;
    slot.computed = slot.len - 1;
    slot.draft.num_draft_tokens = i % 5;
    for (int d = 0; d < slot.num_draft_tokens; ++d) slot.drafts[d] = d + i;
    const int begin = static_cast<int>(rows.size());
    spans.push_back({i, begin, slot.num_draft_tokens + 1, begin, slot.num_draft_tokens + 1,
                     slot.num_draft_tokens, 0});
    for (int r = 0; r <= slot.num_draft_tokens; ++r) {
      rows.push_back(static_cast<int32_t>(rows.size()));
      row_slot.push_back(i);
      positions.push_back(slot.len - 1 + r);
    }
  }
  logits = random_floats(static_cast<int64_t>(rows.size()) * vocab, 3, 8.0f);
}

// What a span tells; without a grammar it tells nothing.
bool same_span(const MaskSpan& a, const MaskSpan& b) {
  if (a.grammar == 0 || b.grammar == 0) return a.grammar == b.grammar;
  return a.grammar == b.grammar && a.len == b.len && a.num_tail == b.num_tail &&
         a.num_draft_tokens == b.num_draft_tokens && a.num_repaired == b.num_repaired &&
         std::equal(a.tail, a.tail + a.num_tail, b.tail) &&
         std::equal(a.drafts, a.drafts + a.num_draft_tokens, b.drafts);
}

// The batch on one device, with an exchange; `upload` puts a vector there, `pin` takes pinned
// memory.
struct Side {
  template <class Upload, class Pin>
  Side(const Batch& b, const Upload& upload, const Pin& pin) {
    const auto num_rows = static_cast<int32_t>(b.rows.size());
    tensors.counts = upload(std::vector<StepCounts>{{num_rows, num_rows, kSpans, 0}});
    tensors.spans = upload(b.spans);
    tensors.logits_rows = upload(b.rows);
    tensors.row_slot = upload(b.row_slot);
    tensors.positions = upload(b.positions);
    batch.params = upload(b.params);
    batch.slots = upload(b.slots);
    batch.block_tables = upload(b.tables);
    batch.token_pages = upload(b.pages);
    batch.max_blocks = kMaxBlocks;
    batch.block_size = kBlockSize;
    batch.num_slots = kSpans;
    logits = upload(b.logits);
    ticket = upload(std::vector<MaskTicket>{{0, 0, 0}});
    auto* words = static_cast<uint64_t*>(pin(5 * sizeof(uint64_t)));
    const size_t mask_bytes = size_t{kSpans} * kRowsEach * b.mask_words * sizeof(uint32_t);
    exchange = {words,
                words + 1,
                words + 2,
                words + 3,
                static_cast<int32_t*>(pin(kMaskRing * sizeof(int32_t))),
                static_cast<MaskSpan*>(pin(kMaskRing * kSpans * sizeof(MaskSpan))),
                static_cast<uint64_t*>(pin(kMaskRing * kSpans * sizeof(uint64_t))),
                static_cast<uint32_t*>(pin(mask_bytes)),
                words + 4,
                static_cast<int32_t*>(pin(kSpans * kMaxDraftTokens * sizeof(int32_t))),
                kSpans,
                kRowsEach,
                b.mask_words};
  }

  // Every other ticket asks for repaired drafts.
  void launch(Queue& queue, int64_t budget_ns, uint64_t number = 0) const {
    const bool repairs = number % 2 == 1;
    const int32_t drafter = repairs ? 0 : kVerifying;
    export_spans(queue, {tensors.counts, tensors.spans, batch, exchange, ticket, drafter,
                         repairs ? kRowsEach - 1 : 0});
    await_masks(queue, {tensors.counts, tensors.spans, batch.slots, batch.params, exchange, ticket,
                        budget_ns, drafter, repairs ? 1 : 0});
  }
  void apply(Queue& queue, const Batch& b) const {
    apply_masks(queue, {logits, tensors, batch.slots, batch.params, exchange.masks, b.mask_words, 0,
                        static_cast<int32_t>(b.rows.size()), b.vocab});
  }
  // What the grammar thread does: waits for the post and answers; the last span stays without.
  void answer(const Batch& b, uint64_t number) const {
    while (std::atomic_ref(*exchange.posted).load(std::memory_order_acquire) <= number) {
      std::this_thread::yield();
    }
    std::mt19937 random(static_cast<uint32_t>(number));
    const size_t words = size_t{kSpans} * kRowsEach * b.mask_words;
    for (size_t i = 0; i < words; ++i) exchange.masks[i] = static_cast<uint32_t>(random());
    for (int i = 0; i < kSpans * kMaxDraftTokens; ++i)
      exchange.repairs[i] = static_cast<int32_t>(random());
    for (int i = 0; i + 1 < kSpans; ++i) {
      const int drafts = b.slots[i].num_draft_tokens;
      exchange.answers[number % kMaskRing * kSpans + i] =
          mask_answer_word(number, {drafts > 1 ? drafts : drafts + 1, drafts + 1});
    }
    std::atomic_ref(*exchange.taken).store(number + 1, std::memory_order_release);
    std::atomic_ref(*exchange.answered).store(number + 1, std::memory_order_release);
  }

  StepTensors tensors{};
  BatchState batch{};
  float* logits;
  MaskTicket* ticket;
  MaskExchange exchange;
};

bool same_slots(const std::vector<SlotState>& a, const SlotState* b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].mask_begin != b[i].mask_begin || a[i].num_masks != b[i].num_masks ||
        a[i].num_decided != b[i].num_decided || a[i].num_draft_tokens != b[i].num_draft_tokens ||
        !std::equal(a[i].drafts, a[i].drafts + a[i].num_draft_tokens, b[i].drafts)) {
      return false;
    }
  }
  return true;
}

void check_steps(Gpu& gpu, int vocab) {
  const Batch b(vocab);
  Pool pool(gpu);
  const Side on_gpu(
      b, [&](const auto& values) { return pool.upload(values); },
      [&](size_t bytes) { return pool.take(bytes, MemoryKind::kPinned); });
  std::vector<std::shared_ptr<void>> kept;
  const Side on_cpu(
      b,
      [&]<class T>(const std::vector<T>& values) {
        auto copy = std::make_shared<std::vector<T>>(values);
        kept.push_back(copy);
        return copy->data();
      },
      [&](size_t bytes) -> void* {
        auto memory = std::make_shared<std::vector<uint64_t>>(bytes / 8 + 1);
        kept.push_back(memory);
        return memory->data();
      });
  auto device = cpu::open_cpu_device(cpu::cpu_kernels(), 0);
  auto queue = device.value()->make_queue();
  bool same = true;
  for (uint64_t number = 0; number < 10; ++number) {
    on_gpu.launch(*gpu.queue, kLongNs, number);
    on_gpu.answer(b, number);
    on_gpu.apply(*gpu.queue, b);
    gpu.drain("masks");
    on_cpu.launch(*queue.value(), kLongNs, number);
    on_cpu.answer(b, number);
    on_cpu.apply(*queue.value(), b);
    (void)queue.value()->drain();
    const size_t entry = number % kMaskRing * kSpans;
    same = same && std::equal(on_gpu.exchange.spans + entry, on_gpu.exchange.spans + entry + kSpans,
                              on_cpu.exchange.spans + entry, same_span);
    same = same && same_slots(download(gpu, on_gpu.batch.slots, kSpans), on_cpu.batch.slots);
  }
  const auto masked = download(gpu, on_gpu.logits, b.logits.size());
  int64_t bits = 0, forbidden = 0;
  for (size_t i = 0; i < masked.size(); ++i) {
    bits += std::memcmp(&masked[i], &on_cpu.logits[i], 4) != 0;
    forbidden += masked[i] == -std::numeric_limits<float>::infinity();
  }
  report(same, "mask spans and answers", text("vocab %d, 10 steps", vocab));
  report(bits == 0 && forbidden > 0, "masked logits",
         text("vocab %d: %lld forbidden, %lld with other bits than the CPU's", vocab,
              static_cast<long long>(forbidden), static_cast<long long>(bits)));
  // Nobody answers: the budget ends the wait, entries run out, and nothing is decided.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kMaskRing + 2; ++i) on_gpu.launch(*gpu.queue, 5'000'000);
  gpu.drain("late masks");
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  int decided = 0;
  for (const SlotState& slot : download(gpu, on_gpu.batch.slots, kSpans)) {
    decided += slot.num_decided;
  }
  // The two launches behind the ring have no entry, and so nothing to wait for.
  report(elapsed.count() >= 5 * kMaskRing - 1 && decided == 0 &&
             *on_gpu.exchange.passed == *on_gpu.exchange.posted + 2,
         "late masks", text("%d waits of 5 ms took %.1f ms", kMaskRing, elapsed.count()));
}

}  // namespace

void check_masks(Gpu& gpu) {
  for (const int vocab : {77, 3072, 128256}) check_steps(gpu, vocab);
}

}  // namespace foretoken::check
