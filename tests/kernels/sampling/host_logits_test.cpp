#include "kernels/sampling/host_logits.h"

#include "support/random_data.h"
#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;
constexpr int kVocab = 5003, kRows = 8, kMaxLen = 32;

// What the host call sees of a row, and what it does: adds the history's length to every logit.
struct Visit {
  HostLogits host;
  std::vector<HostRow> rows;
  std::vector<Ids> histories;
  std::vector<float> first_logits;
};

void process(void* context) {
  auto& visit = *static_cast<Visit*>(context);
  for (int i = 0; i < kRows; ++i) {
    const HostRow& row = visit.host.rows[i];
    visit.rows[static_cast<size_t>(i)] = row;
    if (row.processors == 0) continue;
    const int32_t* history = visit.host.history + int64_t{i} * visit.host.max_len;
    visit.histories[static_cast<size_t>(i)].assign(history, history + row.num_tokens);
    float* logits = visit.host.logits + int64_t{i} * kVocab;
    visit.first_logits[static_cast<size_t>(i)] = logits[0];
    for (int id = 0; id < kVocab; ++id) logits[id] += static_cast<float>(row.num_tokens);
  }
}

class HostLogitsTest : public StepTest {
 protected:
  void SetUp() override {
    StepTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    visit_.host = {allocate<HostRow>(kRows, MemoryKind::kPinned),
                   allocate<float>(size_t{kRows} * kVocab, MemoryKind::kPinned),
                   allocate<int32_t>(size_t{kRows} * kMaxLen, MemoryKind::kPinned), kMaxLen};
    visit_.rows.resize(kRows);
    visit_.histories.resize(kRows);
    visit_.first_logits.resize(kRows);
    // What a step before left behind must not come back.
    for (int i = 0; i < kRows; ++i) visit_.host.rows[i] = {77, 0, 0, 3, 0};
  }

  // Slot 0: no processors; slot 1: two drafts; slot 2: rows whose next token is known.
  StepData data() {
    StepData d{StepSizes{}};
    d.set_sequence(0, {1, 2}, 1);
    d.set_sequence(1, {10, 11, 12}, 2);
    d.set_drafts(1, {13, 14});
    d.set_sequence(2, {20, 21, 22}, 1);
    d.params[1].processors = uint64_t{5} << 40;
    d.params[1].choice = 3;
    d.params[1].prompt_len = 2;
    d.params[2].processors = 6;
    for (int s = 0; s < 3; ++s) d.add_span(s, 4, 4);
    d.spans[2].wants_all = 1;
    return d;
  }

  void enqueue(float* logits, int offset) {
    export_logits(queue(), {logits, tensors_, batch_, visit_.host, offset, kRows, kVocab});
    queue().call_host(process, &visit_);
    import_logits(queue(), {logits, tensors_.counts, visit_.host, offset, kRows, kVocab});
  }

  // Logits row `index` of the step is row index - offset of the call.
  void expect_round_trip(const std::vector<float>& before, const std::vector<float>& after,
                         int offset, int runs) {
    const std::vector<Ids> histories = {{}, {10, 11, 12}, {10, 11, 12, 13}, {10, 11, 12, 13, 14},
                                        {}, {20, 21, 22}};
    for (int i = 0; i < kRows; ++i) {
      const size_t index = static_cast<size_t>(i + offset);
      const bool exported = index < histories.size() && !histories[index].empty();
      const HostRow& row = visit_.rows[static_cast<size_t>(i)];
      const uint64_t processors = !exported ? 0 : index == 5 ? 6 : uint64_t{5} << 40;
      ASSERT_EQ(row.processors, processors) << i;
      for (int id = 0; id < kVocab; ++id) {
        const size_t at = static_cast<size_t>(i) * kVocab + static_cast<size_t>(id);
        float want = before[at];
        for (int n = 0; exported && n < runs; ++n) {
          want += static_cast<float>(histories[index].size());
        }
        ASSERT_EQ(after[at], want) << "row " << i << " id " << id;
      }
      if (!exported) continue;
      EXPECT_EQ(visit_.histories[static_cast<size_t>(i)], histories[index]);
      EXPECT_EQ(row.num_tokens, std::ssize(histories[index]));
      EXPECT_EQ(row.choice, index == 5 ? 0 : 3);
      EXPECT_EQ(row.prompt_len, index == 5 ? 0 : 2);
    }
  }

  Visit visit_;
};

TEST_F(HostLogitsTest, RoundTripThroughAHostCall) {
  for (const int offset : {0, 2}) {
    StepData d = data();
    run_prepare(d);
    ASSERT_EQ(d.counts.num_logits_rows, 6);
    const auto logits = random_floats(size_t{kRows} * kVocab, 2);
    float* memory = to_device(logits);
    enqueue(memory, offset);
    expect_round_trip(logits, read(memory, logits.size()), offset, 1);
  }
}

TEST_F(HostLogitsTest, RoundTripInsideAGraph) {
  StepData d = data();
  run_prepare(d);
  const auto logits = random_floats(size_t{kRows} * kVocab, 2);
  float* memory = to_device(logits);
  queue().begin_capture();
  enqueue(memory, 0);
  const std::unique_ptr<Graph> graph = queue().end_capture();
  EXPECT_GE(graph->num_nodes(), 3);
  for (int i = 0; i < 3; ++i) queue().replay(*graph);
  expect_round_trip(logits, read(memory, logits.size()), 0, 3);
}

TEST_F(HostLogitsTest, HistoriesAreCutAtTheHostsRoom) {
  StepData d = data();
  run_prepare(d);
  visit_.host.max_len = 4;
  enqueue(to_device(random_floats(size_t{kRows} * kVocab, 2)), 0);
  drain();
  EXPECT_EQ(visit_.histories[3], (Ids{10, 11, 12, 13}));
  EXPECT_EQ(visit_.rows[3].num_tokens, 4);
}

}  // namespace
}  // namespace foretoken
