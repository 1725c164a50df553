#include <algorithm>

#include "check.h"
#include "kernels/cpu/op_table.h"
#include "kernels/draft/choose_draft.h"
#include "kernels/draft/choose_lengths.h"
#include "kernels/draft/cluster_logits.h"
#include "kernels/draft/draft_next.h"
#include "kernels/draft/draft_rows.h"
#include "kernels/draft/pair_rows.h"
#include "kernels/draft/spread_logits.h"
#include "kernels/plan_layout.h"
#include "kernels/rows/move_rows.h"

namespace foretoken::check {
namespace {

void check_move(Gpu& gpu, DType in_dtype, DType out_dtype, RowKind kind) {
  Pool pool(gpu);
  const int rows = 9, live = 7, width = 2500, stride = 2 * width + 5, offset = width + 3;
  const Stored in = store_as(random_floats(20 * width, 71), in_dtype);
  const std::vector<int32_t> from = {19, 3, 3, 0, 7, 12, 1, 2, 4};
  const std::vector<int32_t> to = {2, 0, 11, 5, 9, 10, 1, 3, 4};
  void* out = pool.take(12 * stride * dtype_size(out_dtype));
  const bool tokens = kind == RowKind::kToken;
  gpu.queue->launch(MoveRowsArgs{device_counts(pool, tokens ? live : 0, tokens ? 0 : live),
                                 pool.upload(in.bytes), out, pool.upload(from), pool.upload(to),
                                 kind, rows, width, stride, offset, in_dtype, out_dtype});
  std::vector<float> want(12 * stride, 0.0f);
  for (int r = 0; r < live; ++r) {
    for (int c = 0; c < width; ++c) {
      want[to[r] * stride + offset + c] = static_cast<float>(in.values[from[r] * width + c]);
    }
  }
  const Stored expected = store_as(want, out_dtype);
  const auto got = download(gpu, static_cast<uint8_t*>(out), expected.bytes.size());
  report(got == expected.bytes, "move rows",
         text("%s->%s", dtype_name(in_dtype), dtype_name(out_dtype)));
}

void check_pair(Gpu& gpu, DType dtype, DType states_dtype, bool norms, int hidden,
                bool of_halves = false) {
  Pool pool(gpu);
  const DType stored = of_halves ? DType::kF16 : dtype;
  const int rows = 6, vocab = 30;
  const Stored table = store_as(random_floats(vocab * hidden, 72), stored);
  const RowTable lent{pool.upload(table.bytes), stored};
  const Stored states = store_as(random_floats(rows * hidden, 73, 5.0f), states_dtype);
  const auto embed_norm = random_floats(hidden, 74);
  const auto states_norm = random_floats(hidden, 75);
  const std::vector<int32_t> ids = {3, 29, 30, -1, 0, 5};
  void* out = pool.take(rows * 2 * hidden * dtype_size(dtype));
  const float scale = 1.5f, eps = 1e-5f;
  gpu.queue->launch(PairRowsArgs{
      device_counts(pool, rows - 1, 0), pool.upload(ids), lent, pool.upload(states.bytes),
      norms ? pool.upload(embed_norm) : nullptr, norms ? pool.upload(states_norm) : nullptr, out,
      rows, vocab, hidden, scale, eps, states_dtype, dtype});
  std::vector<double> want;
  const auto add_half = [&](const double* from, double factor, const std::vector<float>& norm) {
    double squares = 0;
    for (int c = 0; c < hidden; ++c) squares += from[c] * factor * from[c] * factor;
    const double inverse = 1 / std::sqrt(squares / hidden + eps);
    for (int c = 0; c < hidden; ++c) {
      want.push_back(from[c] * factor * (norms ? inverse * norm[c] : 1.0));
    }
  };
  for (int r = 0; r + 1 < rows; ++r) {
    const int id = ids[r] >= 0 && ids[r] < vocab ? ids[r] : 0;
    add_half(&table.values[id * hidden], scale, embed_norm);
    add_half(&states.values[r * hidden], 1.0, states_norm);
  }
  want.resize(rows * 2 * hidden, 0.0);
  const auto got =
      values_of(download(gpu, static_cast<uint8_t*>(out), want.size() * dtype_size(dtype)), dtype);
  const double error = relative_error(got, want);
  report(error < tolerance(dtype), "pair rows",
         text("%s states %s hidden %d%s error %.2e", dtype_name(dtype), dtype_name(states_dtype),
              hidden, norms ? " norms" : "", error));
}

void check_spread(Gpu& gpu, int n, int vocab) {
  Pool pool(gpu);
  const int rows = 5, live = 4, offset = 2;
  const auto in = random_floats(rows * n, 76);
  std::vector<int32_t> map(vocab);
  for (int i = 0; i < vocab; ++i) map[i] = i;
  std::shuffle(map.begin(), map.end(), std::mt19937(77));
  map.resize(n);
  for (int i = 0; i < n; i += 9) map[i] = -1;
  auto* out = pool.array<float>(rows * vocab);
  gpu.queue->fill(out, 0, rows * vocab * sizeof(float));
  gpu.queue->launch(SpreadLogitsArgs{device_counts(pool, 0, live + offset), pool.upload(in),
                                     pool.upload(map), out, offset, rows, n, vocab});
  std::vector<float> want(rows * vocab, 0.0f);
  std::fill_n(want.begin(), live * vocab, -INFINITY);
  for (int r = 0; r < live; ++r) {
    for (int i = 0; i < n; ++i) {
      if (map[i] >= 0) want[r * vocab + map[i]] = in[r * n + i];
    }
  }
  report(download(gpu, out, rows * vocab) == want, "spread logits", text("%d of %d ids", n, vocab));
}

// Clusters of ids in order, but for every ninth id, which none has.
void check_clusters(Gpu& gpu, DType dtype, int clusters, int each, int top, int k) {
  Pool pool(gpu);
  const int rows = 5, live = 4, offset = 2, vocab = clusters * each;
  const Stored x = store_as(random_floats(rows * k, 78), dtype);
  const Stored table = store_as(random_floats(vocab * k, 79), dtype);
  const auto scores = random_floats(rows * clusters, 80);
  std::vector<int32_t> ids(vocab);
  for (int i = 0; i < vocab; ++i) ids[i] = i % 9 == 0 ? -1 : i;
  auto* out = pool.array<float>(rows * vocab);
  gpu.queue->fill(out, 0, rows * vocab * sizeof(float));
  gpu.queue->launch(ClusterLogitsArgs{device_counts(pool, 0, live + offset), pool.upload(x.bytes),
                                      pool.upload(scores), pool.upload(table.bytes),
                                      pool.upload(ids), out, offset, rows, clusters, each, top, k,
                                      vocab, dtype});
  const auto got = download(gpu, out, rows * vocab);
  bool ok = true;
  double error = 0;
  for (int r = 0; r < live; ++r) {
    std::vector<float> ranked(scores.begin() + r * clusters, scores.begin() + (r + 1) * clusters);
    std::nth_element(ranked.begin(), ranked.begin() + top - 1, ranked.end(), std::greater<>());
    for (int id = 0; id < vocab; ++id) {
      const float logit = got[r * vocab + id];
      const bool chosen = scores[r * clusters + id / each] >= ranked[top - 1] && id % 9 != 0;
      ok &= chosen == std::isfinite(logit);
      if (!chosen || !std::isfinite(logit)) continue;
      double want = 0;
      for (int c = 0; c < k; ++c) want += x.values[r * k + c] * table.values[id * k + c];
      error = std::max(error, std::abs(logit - want));
    }
  }
  for (int id = 0; id < vocab; ++id) ok &= got[live * vocab + id] == 0;
  report(ok && error < 1e-3, "cluster logits",
         text("%s %d of %d clusters of %d, k %d error %.2e", dtype_name(dtype), top, clusters, each,
              k, error));
}

// A step of many sequences after its commit, in host memory.
struct ManySlots {
  static constexpr int kBlock = 4, kMaxBlocks = 12, kVocab = 50, kMaxDraftRows = 3000;
  static constexpr int kNumRowNs = 1500;
  PlanLimits limits;
  ResultLimits result_limits;
  std::vector<char> plan, result;
  std::vector<SlotParams> params;
  std::vector<SlotState> slots;
  std::vector<DraftRates> priors;
  std::vector<int32_t> tables, pages, row_ns, drafted;
  std::vector<PageHeader> headers;
  std::vector<SpanState> spans;

  ManySlots(int num_slots, bool shared, uint32_t seed)
      : limits{num_slots, 1, 1, 1},
        result_limits{num_slots, 0, 0, 0},
        plan(plan_bytes(limits)),
        result(result_bytes(result_limits)),
        params(num_slots + 1),
        slots(num_slots + 1),
        priors(kMaxDrafters),
        tables((num_slots + 1) * kMaxBlocks),
        headers(num_slots * kMaxBlocks + 1),
        spans(num_slots) {
    std::mt19937 random(seed);
    pages.resize(headers.size() * kBlock);
    for (int32_t& id : pages) id = static_cast<int32_t>(random() % kVocab);
    for (DraftRates& prior : priors) {
      prior.since_draft = static_cast<int>(random() % 130);
      prior.num_rated = static_cast<int>(random() % 100);
      for (uint16_t& rate : prior.rates) rate = static_cast<uint16_t>(random());
    }
    for (int i = 0; i < num_slots; ++i) add_slot(random, i, shared && i > 0 && random() % 3 == 0);
    const PlanView view = plan_view(plan.data(), limits);
    *view.header = {7, num_slots, 0, 0, 0, 0};
    row_ns.push_back(1000000);
    while (row_ns.size() < kNumRowNs) {
      row_ns.push_back(row_ns.back() + static_cast<int32_t>(random() % 3000));
    }
    for (int i = 0; i < num_slots * kMaxDraftTokens; ++i) {
      drafted.push_back(random() % 20 == 0 ? -1 : static_cast<int32_t>(random() % kVocab));
    }
  }

  void add_slot(std::mt19937& random, int i, bool shares) {
    for (int b = 0; b < kMaxBlocks; ++b) {
      tables[i * kMaxBlocks + b] = 1 + i * kMaxBlocks + b;
      headers[1 + i * kMaxBlocks + b].draft_counts[1] = 0;
    }
    SlotState& slot = slots[i];
    slot.len = 2 + static_cast<int>(random() % (kMaxBlocks * kBlock - 20));
    slot.computed = slot.len - 1;
    slot.finished = random() % 11 == 0 ? 1 : 0;
    const int donor = shares ? static_cast<int>(random() % i) : i;
    const int known = std::min(slot.len, slots[donor].len) / kBlock;
    for (int b = 0; b < known; ++b) tables[i * kMaxBlocks + b] = tables[donor * kMaxBlocks + b];
    slot.draft.computed = random() % 4 == 0 ? 0 : static_cast<int>(random() % slot.len);
    slot.draft.since_draft = static_cast<int>(random() % 90);
    slot.draft.num_rated = static_cast<int>(random() % 40);
    for (uint16_t& rate : slot.draft.rates) rate = static_cast<uint16_t>(random());
    for (int p = 0; p < slot.draft.computed; ++p) {
      int16_t& count = headers[tables[i * kMaxBlocks + p / kBlock]].draft_counts[1];
      count = std::max<int16_t>(count, static_cast<int16_t>(p % kBlock + 1));
    }
    params[i].drafter = random() % 5 == 0 ? 0 : 1;
    params[i].max_draft_tokens = static_cast<int>(random() % (kMaxDraftTokens + 1));
    params[i].max_len = kMaxBlocks * kBlock;
    const bool samples = random() % 8 != 0;
    spans[i] = {i, 0, random() % 13 == 0 ? 0 : 1, 0, samples ? 1 : 0, 0, 0};
    if (spans[i].num_rows == 0) spans[i].num_logits = 0;
    SpanPlan& span = plan_view(plan.data(), limits).spans[i];
    span = {i,
            1,
            0,
            0,
            0,
            0,
            0,
            static_cast<int32_t>(random() % (kMaxDraftTokens + 1)),
            static_cast<int32_t>(random() % 40),
            0};
    SpanResult& told = result_view(result.data(), result_limits).spans[i];
    told.num_drafted = samples ? static_cast<int32_t>(random() % 6) : 0;
    told.num_accepted = static_cast<int32_t>(random() % (told.num_drafted + 1));
    told.num_committed = told.num_accepted + static_cast<int32_t>(random() % 2);
  }
};

// What a device makes of them: everything that the ops write.
struct Outcome {
  std::vector<SlotState> slots;
  std::vector<DraftRates> priors;
  std::vector<PageHeader> headers;
  std::vector<int32_t> rows;
  StepCounts first;

  bool operator==(const Outcome& other) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    return same(slots, other.slots) && same(priors, other.priors) && same(headers, other.headers) &&
           same(rows, other.rows);
  }
};

// How a drafter works that runs with them.
struct ManyRules {
  bool adaptive;
  bool pairs;      // its entries pair with states of the target
  bool last_only;  // it has no entries
};

Outcome run_many(Gpu& on, const ManySlots& many, const ManyRules& rules) {
  Pool pool(on);
  const int num_slots = many.limits.max_spans;
  BatchState batch{};
  batch.params = pool.upload(many.params);
  batch.slots = pool.upload(many.slots);
  batch.block_tables = pool.upload(many.tables);
  batch.token_pages = pool.upload(many.pages);
  batch.page_headers = pool.upload(many.headers);
  batch.priors = pool.upload(many.priors);
  batch.max_blocks = ManySlots::kMaxBlocks;
  batch.block_size = ManySlots::kBlock;
  batch.num_slots = num_slots;
  const void* plan = pool.upload(many.plan);
  const SpanState* spans = pool.upload(many.spans);
  const int32_t* drafted = pool.upload(many.drafted);
  constexpr int kRows = ManySlots::kMaxDraftRows;
  DraftTensors passes[2];
  std::vector<int32_t*> parts;
  for (DraftTensors& t : passes) {
    t = {};
    t.rows.counts = pool.array<StepCounts>(1);
    for (int32_t** part : {&t.rows.token_ids, &t.rows.positions, &t.rows.row_slot, &t.rows.kv_slot,
                           &t.rows.logits_rows, &t.source}) {
      parts.push_back(*part = pool.array<int32_t>(kRows));
    }
  }
  on.queue->launch(ChooseLengthsArgs{
      plan, many.limits, batch, spans, pool.upload(many.result), many.result_limits,
      rules.adaptive ? pool.upload(many.row_ns) : nullptr, ManySlots::kNumRowNs, 40000, 1, 40});
  on.queue->launch(DraftRowsArgs{plan, many.limits, batch, spans, passes[0], nullptr, 1,
                                 rules.pairs ? 1 : 0, kRows, 40, rules.last_only ? 1 : 0});
  Outcome outcome;
  outcome.first = download(on, passes[0].rows.counts, 1)[0];
  for (int pass = 0; pass < kMaxDraftTokens; ++pass) {
    const StepTensors& in = passes[pass % 2].rows;
    on.queue->launch(DraftNextArgs{batch, in.counts, in.row_slot, in.logits_rows,
                                   drafted + pass * num_slots, passes[1 - pass % 2], nullptr, pass,
                                   rules.pairs ? 0 : 1, kRows});
    for (const int32_t* part : parts) {
      const auto values = download(on, part, kRows);
      outcome.rows.insert(outcome.rows.end(), values.begin(), values.end());
    }
  }
  outcome.slots = download(on, batch.slots, num_slots + 1);
  outcome.priors = download(on, batch.priors, kMaxDrafters);
  outcome.headers = download(on, batch.page_headers, many.headers.size());
  return outcome;
}

// The CPU's ops are the reference of the CUDA ones.
void check_many(Gpu& gpu) {
  Gpu cpu{cpu::open_cpu_device(cpu::cpu_kernels(), 1).value(), nullptr};
  cpu.queue = cpu.device->make_queue().value();
  for (const int num_slots : {1, 60, 1024, 1300}) {
    for (const bool shared : {false, true}) {
      int different = 0, rows = 0, drafting = 0;
      for (uint32_t seed = 0; seed < 6; ++seed) {
        const ManySlots many(num_slots, shared, seed);
        const ManyRules rules{seed % 2 == 0, seed / 2 == 0, seed >= 4};
        const Outcome want = run_many(cpu, many, rules);
        different += !(run_many(gpu, many, rules) == want);
        rows += want.first.num_rows;
        drafting += want.first.num_logits_rows;
      }
      report(different == 0, "many spans",
             text("%d slots%s: %d of 6 steps differ, %d rows caught up, %d slots drafted",
                  num_slots, shared ? " with shared blocks" : "", different, rows, drafting));
    }
  }
}

// The same slots with lists: look-ups 0 and 1, of which one had the last turn, before head 2.
ManySlots listed_slots(int num_slots, uint32_t seed) {
  ManySlots many(num_slots, false, seed);
  std::mt19937 random(seed + 1000);
  for (int i = 0; i < num_slots; ++i) {
    SlotState& slot = many.slots[i];
    many.params[i].drafter = random() % 4 == 0 ? 1 : 2;
    many.params[i].lookups = static_cast<int32_t>(random() % 4) & ~(1 << many.params[i].drafter);
    slot.drafted_by = static_cast<int32_t>(random() % 3);
    slot.num_draft_tokens = static_cast<int32_t>(random() % 9);
    slot.found_by = random() % 5 == 0 ? static_cast<int32_t>(random() % 3) : 0;
    for (DraftRates& rates : slot.lookup_rates) {
      rates.since_draft = static_cast<int32_t>(random() % 90);
      rates.num_rated = static_cast<int32_t>(random() % 3);
      for (uint16_t& rate : rates.rates) rate = static_cast<uint16_t>(random());
    }
  }
  return many;
}

std::vector<SlotState> run_choice(Gpu& on, const ManySlots& many, int drafter) {
  Pool pool(on);
  BatchState batch{};
  batch.params = pool.upload(many.params);
  batch.slots = pool.upload(many.slots);
  batch.priors = pool.upload(many.priors);
  batch.num_slots = many.limits.max_spans;
  on.queue->launch(
      ChooseDraftArgs{pool.upload(many.plan), many.limits, batch, drafter, 0b011, 0b010});
  return download(on, batch.slots, many.slots.size());
}

// The CPU's op is the reference of the CUDA one.
void check_choice(Gpu& gpu) {
  Gpu cpu{cpu::open_cpu_device(cpu::cpu_kernels(), 1).value(), nullptr};
  cpu.queue = cpu.device->make_queue().value();
  for (const int num_slots : {1, 128, 1300}) {
    int different = 0, stood = 0, fell = 0;
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const ManySlots many = listed_slots(num_slots, seed);
      const int drafter = static_cast<int>(seed % 2);
      const std::vector<SlotState> want = run_choice(cpu, many, drafter);
      const std::vector<SlotState> got = run_choice(gpu, many, drafter);
      different += std::memcmp(got.data(), want.data(), want.size() * sizeof want[0]) != 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const bool had = many.slots[i].num_draft_tokens > 0;
        stood += had && want[i].num_draft_tokens > 0;
        fell += had && want[i].num_draft_tokens == 0;
      }
    }
    report(different == 0, "choose draft",
           text("%d slots: %d of 8 steps differ, drafts of %d stood and of %d fell", num_slots,
                different, stood, fell));
  }
}

}  // namespace

void check_draft(Gpu& gpu) {
  for (const DType in : {DType::kF32, DType::kBF16}) {
    for (const DType out : {DType::kF32, DType::kBF16}) {
      check_move(gpu, in, out, in == out ? RowKind::kToken : RowKind::kLogits);
      for (const bool norms : {false, true}) {
        check_pair(gpu, out, in, norms, 75);
        check_pair(gpu, out, in, norms, 4096);
        if (out == DType::kF32) check_pair(gpu, out, in, norms, 4096, true);
      }
    }
  }
  check_spread(gpu, 40, 50);
  check_spread(gpu, 32000, 128256);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check_clusters(gpu, dtype, 16, 8, 3, 48);
    check_clusters(gpu, dtype, 2048, 128, 32, 256);
    check_clusters(gpu, dtype, 7, 5, 7, 30);
  }
  check_many(gpu);
  check_choice(gpu);
}

}  // namespace foretoken::check
