#include <algorithm>
#include <array>

#include "check.h"
#include "kernels/cpu/op_table.h"
#include "kernels/plan_layout.h"
#include "kernels/sampling/keep_raw.h"
#include "kernels/sampling/logprobs.h"
#include "kernels/sampling/shape_logits.h"

namespace foretoken::check {
namespace {

constexpr int kBlockSize = 16;

struct Sizes {
  int rows;
  int vocab;
  int history;  // known tokens of each slot
};

// One slot and one logits row each, in host vectors.
struct Batch {
  explicit Batch(const Sizes& wanted);

  Sizes sizes;
  int max_blocks;
  int mask_words;
  std::vector<SlotParams> params;
  std::vector<SlotState> slots;
  std::vector<int32_t> tables, pages, rows, positions, sampled;
  std::vector<LogitBias> biases;
  std::vector<int32_t> bad_words;
  std::vector<uint32_t> allowed;
  std::vector<float> logits;
};

// What row i asks for: every eighth nothing, the others one more of the rules each.
void set_params(Batch& b, std::mt19937& random, int i) {
  SlotParams& p = b.params[i];
  p.repetition_penalty = i % 2 == 1 ? 1.25f : 1.0f;
  p.presence_penalty = i % 4 >= 2 ? 0.3f : 0.0f;
  p.frequency_penalty = i % 8 >= 4 ? 0.07f : 0.0f;
  p.prompt_len = static_cast<int32_t>(random() % b.sizes.history);
  p.num_logprobs = std::array{kNoLogprobs, 0, 1, 5, 20, 1024}[i % 6];
  if (i % 8 == 0) return;
  if (i % 3 == 0) {
    p.has_allowed_ids = 1;
    for (int w = 0; w < b.mask_words; ++w) {
      b.allowed[int64_t{i} * b.mask_words + w] = static_cast<uint32_t>(random() | random());
    }
  }
  const int num_biases = std::min(300, b.sizes.vocab);
  for (; i % 5 == 0 && p.num_logit_bias < num_biases; ++p.num_logit_bias) {
    const int32_t id = p.num_logit_bias * b.sizes.vocab / num_biases;
    b.biases[i * kMaxLogitBias + p.num_logit_bias] = {id, 1.5f};
  }
  // Words that end the history, so that they count.
  const auto id_at = [&](int position) {
    const int block = b.tables[int64_t{i} * b.max_blocks + position / kBlockSize];
    return b.pages[int64_t{block} * kBlockSize + position % kBlockSize];
  };
  for (int length = 0; i % 7 == 0 && length < 40; ++length) {
    int32_t* to = &b.bad_words[i * kMaxBadWordInts + p.num_bad_word_ints];
    *to++ = length + 1;
    for (int j = 0; j < length; ++j) *to++ = id_at(b.sizes.history - length + j);
    *to = static_cast<int32_t>(random() % b.sizes.vocab);
    p.num_bad_word_ints += length + 2;
  }
}

Batch::Batch(const Sizes& wanted) : sizes(wanted) {
  const int n = sizes.rows;
  max_blocks = sizes.history / kBlockSize + 2;
  mask_words = (sizes.vocab + 31) / 32;
  params.resize(n);
  slots.resize(n);
  biases.resize(n * kMaxLogitBias);
  bad_words.resize(n * kMaxBadWordInts);
  allowed.resize(int64_t{n} * mask_words);
  pages.resize(int64_t{n} * max_blocks * kBlockSize);
  tables.resize(n * max_blocks);
  std::mt19937 random(7);
  for (int i = 0; i < n * max_blocks; ++i) tables[i] = n * max_blocks - 1 - i;
  for (size_t i = 0; i < pages.size(); ++i) {
    // Some sequences repeat themselves, some never do.
    const uint32_t range = i / kBlockSize % 3 == 0 ? 5 : static_cast<uint32_t>(sizes.vocab);
    pages[i] = static_cast<int32_t>(random() % range);
  }
  logits = random_floats(int64_t{n} * sizes.vocab, 3, 8.0f);
  for (size_t i = 0; i < logits.size(); i += 5) logits[i] = std::round(logits[i]);
  for (int i = 0; i < n; ++i) {
    rows.push_back(i);
    slots[i].len = sizes.history;
    slots[i].num_draft_tokens = 1;
    slots[i].drafts[0] = sizes.vocab - 1;
    positions.push_back(sizes.history - 1 + i / 3 % 2);
    sampled.push_back(i % 50 == 49 ? -1 : static_cast<int32_t>(random() % sizes.vocab));
    set_params(*this, random, i);
  }
}

// The batch on one device; `upload` puts a vector there.
template <class Upload>
struct Placed {
  Placed(const Batch& b, const Upload& upload) {
    tensors.counts = upload(std::vector<StepCounts>{{b.sizes.rows, b.sizes.rows, 0, 0}});
    tensors.logits_rows = tensors.row_slot = upload(b.rows);
    tensors.positions = upload(b.positions);
    tensors.sampled = upload(b.sampled);
    batch.params = upload(b.params);
    batch.slots = upload(b.slots);
    batch.block_tables = upload(b.tables);
    batch.token_pages = upload(b.pages);
    batch.max_blocks = b.max_blocks;
    batch.block_size = kBlockSize;
    batch.num_slots = b.sizes.rows;
    batch.lists = {upload(b.biases), upload(b.bad_words), upload(b.allowed), b.mask_words, 0,
                   nullptr};
    logits = upload(b.logits);
    raw = upload(std::vector<float>(b.logits.size()));
    seen = upload(std::vector<uint32_t>(int64_t{2} * b.sizes.rows * b.mask_words, ~0u));
    limits = {1, b.sizes.rows, kMaxLogprobs, 0};
    result = upload(std::vector<char>(result_bytes(limits)));
  }
  ShapeLogitsArgs shape(const Sizes& s) const {
    return {logits, tensors, batch, seen, 0, s.rows, s.vocab};
  }
  KeepRawArgs keep(const Sizes& s) const {
    return {logits, raw, tensors, batch, 0, s.rows, s.vocab};
  }
  LogprobsArgs probabilities(const Sizes& s) const {
    return {logits, raw, tensors, batch.params, result, limits, 0, s.rows, s.vocab};
  }

  StepTensors tensors{};
  BatchState batch{};
  float* logits;
  float* raw;
  uint32_t* seen;
  ResultLimits limits;
  char* result;
};

template <class Side>
void run(Queue& queue, const Side& side, const Sizes& sizes) {
  queue.launch(side.keep(sizes));
  queue.launch(side.shape(sizes));
  queue.launch(side.probabilities(sizes));
}

// Ids, ranks and counts are equal, probabilities nearly.
int different_rows(std::vector<char> a, std::vector<char> b, const ResultLimits& limits) {
  const ResultView x = result_view(a.data(), limits);
  const ResultView y = result_view(b.data(), limits);
  const auto near = [](float p, float q) { return p == q || std::fabs(p - q) < 1e-5f; };
  int different = 0;
  for (int i = 0; i < limits.max_rows; ++i) {
    const RowLogprobs& p = x.rows[i];
    const RowLogprobs& q = y.rows[i];
    bool same =
        p.id == q.id && p.rank == q.rank && p.num_top == q.num_top && near(p.logprob, q.logprob);
    for (int j = 0; same && j < p.num_top; ++j) {
      const TopLogprob& s = x.top[i * limits.max_top + j];
      const TopLogprob& t = y.top[i * limits.max_top + j];
      same = s.id == t.id && near(s.logprob, t.logprob);
    }
    different += same ? 0 : 1;
  }
  return different;
}

void check_rows_of(Gpu& gpu, const Sizes& sizes) {
  Batch b(sizes);
  Pool pool(gpu);
  const Placed gpu_side(b, [&](const auto& values) { return pool.upload(values); });
  std::vector<std::shared_ptr<void>> kept;
  const Placed cpu_side(b, [&]<class T>(const std::vector<T>& values) {
    auto copy = std::make_shared<std::vector<T>>(values);
    kept.push_back(copy);
    return copy->data();
  });
  auto device = cpu::open_cpu_device(cpu::cpu_kernels(), 0);
  auto queue = device.value()->make_queue();
  run(*gpu.queue, gpu_side, sizes);
  run(*queue.value(), cpu_side, sizes);
  (void)queue.value()->drain();
  const auto shaped = download(gpu, gpu_side.logits, b.logits.size());
  int64_t bits = 0, changed = 0;
  for (size_t i = 0; i < shaped.size(); ++i) {
    bits += std::memcmp(&shaped[i], &cpu_side.logits[i], 4) != 0;
    changed += shaped[i] != b.logits[i];
  }
  const std::string where =
      text("%d rows, vocab %d, history %d: ", sizes.rows, sizes.vocab, sizes.history);
  report(bits == 0 && changed > 0, "shaped logits",
         where + text("%lld of %lld changed, %lld with other bits than the CPU's",
                      static_cast<long long>(changed), static_cast<long long>(shaped.size()),
                      static_cast<long long>(bits)));
  const size_t bytes = result_bytes(gpu_side.limits);
  const int rows = different_rows(download(gpu, gpu_side.result, bytes),
                                  {cpu_side.result, cpu_side.result + bytes}, gpu_side.limits);
  report(rows == 0, "logprobs", where + text("%d rows differ from the CPU's", rows));
}

// Time of one call with the same wish in every row.
void time_rows(Gpu& gpu, const char* what, const Sizes& sizes, void (*wish)(SlotParams&)) {
  Batch b(sizes);
  for (SlotParams& p : b.params) {
    p = SlotParams{};
    p.repetition_penalty = 1.0f;
    p.num_logprobs = kNoLogprobs;
    wish(p);
  }
  Pool pool(gpu);
  const Placed side(b, [&](const auto& values) { return pool.upload(values); });
  // In the order of a step: log-probabilities read the rows that were kept.
  const double keep = microseconds(gpu, side.keep(sizes));
  const double probabilities = microseconds(gpu, side.probabilities(sizes));
  const double shape = microseconds(gpu, side.shape(sizes));
  report(true, "time",
         text("%d rows, vocab %d, history %d, %s: shape %.1f us, keep %.1f us, logprobs %.1f us",
              sizes.rows, sizes.vocab, sizes.history, what, shape, keep, probabilities));
}

}  // namespace

void check_logits(Gpu& gpu) {
  check_rows_of(gpu, {40, 77, 300});
  check_rows_of(gpu, {30, 32003, 6000});
  check_rows_of(gpu, {256, 128256, 8192});
  for (const int rows : {16, 256}) {
    const Sizes sizes{rows, 128256, 8192};
    time_rows(gpu, "no wish", sizes, [](SlotParams&) {});
    time_rows(gpu, "penalties, 20 logprobs", sizes, [](SlotParams& p) {
      p.repetition_penalty = 1.1f;
      p.presence_penalty = p.frequency_penalty = 0.1f;
      p.num_logprobs = 20;
    });
    time_rows(gpu, "allowed ids, own logprob", sizes, [](SlotParams& p) {
      p.has_allowed_ids = 1;
      p.num_logprobs = 0;
    });
  }
}

}  // namespace foretoken::check
