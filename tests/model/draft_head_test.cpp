#include "model/draft_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "model/golden.h"
#include "model/head_harness.h"

namespace foretoken {
namespace {

using test::HeadHarness;
using test::HeadRow;
using Rows = std::vector<std::vector<float>>;

constexpr int32_t kMaxLen = 64;
constexpr int32_t kMaxRows = 24;

struct HeadCase {
  const char* name;
  HeadKind kind;
  bool own_target = false;  // it lies in the files of its target, one of the golden architectures
  int32_t num_modules = 1;
  const char* named_target = "llama";  // the golden architecture that it drafts for
  bool own_golden = own_target;        // its folder holds what the reference computed
  // Where its config has the base of rotary angles.
  const char* other_angles = R"({"rope_theta": 3.0, "swa_rope_theta": 3.0})";

  std::string folder() const {
    return test::golden_folder() + (own_target ? "architectures/" : "heads/") + name;
  }
  std::string target() const {
    return own_target ? folder() : test::golden_folder() + "architectures/" + named_target;
  }
};
constexpr HeadCase kCases[] = {
    {"eagle", HeadKind::kEagle},
    {"eagle3", HeadKind::kEagle3},
    {"mtp", HeadKind::kMtp},
    {"eagle3-speculators", HeadKind::kEagle3},
    {"mtp-2", HeadKind::kMtp, false, 2},
    {"eagle3-1", HeadKind::kEagle3},
    {"eagle3-1-speculators", HeadKind::kEagle3},
    {"mimo", HeadKind::kMtp},
    {"deepseek_v3", HeadKind::kMtp, true},
    {"deepseek_v4", HeadKind::kMtp, true, 1, "", true, R"({"rope_theta": 3.0})"},
    {"hy_v4", HeadKind::kMtp, true},
    {"glm5_next", HeadKind::kMtp, true, 1, "", true, R"({"text_config": {"rope_theta": 3.0}})"},
    {"deepseek_v32", HeadKind::kMtp, true},
    {"glm_moe_dsa", HeadKind::kMtp, true},
    {"glm4_moe", HeadKind::kMtp, true},
    {"glm4_moe_lite", HeadKind::kMtp, true},
    {"bailing_moe_v2", HeadKind::kMtp, true},
    {"ernie4_5_moe", HeadKind::kMtp, true},
    {"qwen3_5", HeadKind::kMtp, true, 1, "", true,
     R"({"text_config": {"rope_parameters": {"rope_theta": 3.0}}})"},
    {"qwen3_next", HeadKind::kMtp, true},
    {"nemotron_h-latent", HeadKind::kMtp, true},
    {"mimo_v2", HeadKind::kMtp, false, 2, "mimo_v2", true},
    {"longcat_flash", HeadKind::kMtp, false, 1, "longcat_flash", true},
};

// A target of the golden files with one of their heads.
struct Pair {
  std::unique_ptr<Model> target;
  std::unique_ptr<DraftHead> head;
};

DraftHeadOptions head_options() {
  DraftHeadOptions options;
  options.max_model_len = kMaxLen;
  options.max_rows = options.max_logits_rows = kMaxRows;
  return options;
}

Pair load_pair(const HeadCase& head, const std::string& dtype, const DraftHeadOptions& options,
               const ConfigOptions& head_config = {}) {
  Pair pair;
  pair.target = test::load_test_model(head.target(), {dtype, ""}, kMaxRows, kMaxLen);
  const std::string folder = head.folder();
  const auto config = read_draft_head_config(folder, head.kind, pair.target->config(), head_config);
  EXPECT_TRUE(config.ok()) << config.status().message();
  auto loaded =
      load_draft_head(test::model_device(), folder, config.value(), *pair.target, options);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  pair.head = std::move(loaded).value();
  return pair;
}

std::string golden_file(const HeadCase& head, const char* name) {
  return (head.own_golden ? head.folder() : test::golden_folder() + "heads") + "/" + name;
}

// The ids that the reference computed.
std::vector<int32_t> golden_ids(const HeadCase& head) {
  const nlohmann::json golden = read_json_file(golden_file(head, "golden.json")).value();
  return (head.own_golden ? golden.at("module") : golden).at("ids");
}

// What the reference drafts behind prefixes of them.
nlohmann::json golden_drafts(const HeadCase& head) {
  const nlohmann::json golden = read_json_file(golden_file(head, "golden.json")).value();
  if (head.own_golden) return golden.at("module").at("drafts");
  for (const auto& candidate : golden.at("heads")) {
    if (candidate.at("name") == head.name) return candidate.at("drafts");
  }
  ADD_FAILURE() << head.name << " has no drafts";
  return nlohmann::json::array();
}

Rows golden_rows(const HeadCase& head, const std::string& name) {
  const auto file = SafetensorsFile::open(golden_file(head, "golden.safetensors")).value();
  const TensorView& tensor = file->tensors().at(name);
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
  Rows rows;
  const auto width = static_cast<ptrdiff_t>(tensor.shape.at(1));
  for (auto at = values.begin(); at != values.end(); at += width) rows.emplace_back(at, at + width);
  return rows;
}

double worst_error(const Rows& rows, const Rows& reference) {
  EXPECT_EQ(rows.size(), reference.size());
  double worst = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].size(), reference[i].size());
    double difference = 0, norm = 0;
    for (size_t c = 0; c < rows[i].size(); ++c) {
      difference += std::pow(double(rows[i][c]) - reference[i][c], 2);
      norm += std::pow(double(reference[i][c]), 2);
    }
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

std::vector<int32_t> ids_of_map(const DraftHead::Head& head) {
  if (head.id_map == nullptr) return {};
  Arena arena(test::model_device(), MemoryKind::kPinned);
  const auto rows = static_cast<size_t>(head.rows);
  auto* copy = arena.take_array<int32_t>(rows, "ids").value();
  const auto queue = test::model_device().make_queue().value();
  queue->copy(copy, head.id_map, rows * sizeof(int32_t));
  EXPECT_TRUE(queue->drain().ok());
  return {copy, copy + rows};
}

class DraftHeadOf : public testing::TestWithParam<HeadCase> {
 protected:
  static std::string tensor(const HeadCase& head, int32_t module, const char* what) {
    const std::string number = head.num_modules > 1 ? std::to_string(module + 1) : "";
    if (head.own_golden) return "module" + number + "." + what;
    return std::string(head.name) + (number.empty() ? "" : ".module" + number) + "." + what;
  }

  // Every entry from true tokens, in one catch-up a module.
  static void expect_entries(const HeadCase& head, const char* dtype, double limit) {
    const Pair pair = load_pair(head, dtype, head_options());
    ASSERT_EQ(pair.head->config().num_modules, head.num_modules);
    // Random weights that answer a last bit twice as strongly as the others' do in float32.
    if (std::string_view(head.name).starts_with("nemotron_h")) limit *= 2;
    const std::vector<int32_t> ids = golden_ids(head);
    const auto n = static_cast<int32_t>(ids.size());
    HeadHarness harness(*pair.target, *pair.head, kMaxRows, 4);
    harness.target().run(ids, kMaxRows);
    for (int32_t m = 0; m < pair.head->config().num_modules; ++m) {
      const auto result = harness.catch_up(m, 0, ids, 1 + m, n);
      const double states =
          worst_error(result.states, golden_rows(head, tensor(head, m, "hidden")));
      const double logits =
          worst_error(result.logits, golden_rows(head, tensor(head, m, "logits")));
      std::printf("%s %s module %d: states %.3g, logits %.3g\n", head.name, dtype, m, states,
                  logits);
      EXPECT_LT(states, limit);
      EXPECT_LT(logits, limit);
    }
  }
};

TEST_P(DraftHeadOf, Float32EntriesMatchTheReference) {
  expect_entries(GetParam(), "float32", 1e-5);
}
TEST_P(DraftHeadOf, Bfloat16EntriesMatchTheReference) {
  expect_entries(GetParam(), "bfloat16", 2e-2);
}

// Drafts after several prefixes, each pass on the states of the one before. What a proposal wrote
// beyond its prefix does not matter to the next one.
TEST_P(DraftHeadOf, ChainedDraftsMatchTheReference) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Pair pair = load_pair(GetParam(), dtype, head_options());
    const DraftHead& head = *pair.head;
    const std::vector<int32_t> id_map = ids_of_map(head.head(0));
    const std::vector<int32_t> ids = golden_ids(GetParam());
    HeadHarness harness(*pair.target, *pair.head, kMaxRows, 4);
    harness.target().run(ids, kMaxRows);
    for (const auto& drafts : golden_drafts(GetParam())) {
      const int32_t prefix = drafts.at("prefix");
      HeadHarness::Result result;
      // The rows of the last catch-up that gives a draft stand alone, last.
      for (int32_t m = head.config().num_modules - 1; m >= 0; --m) {
        for (int32_t below = 0; below < m; ++below) {
          if (1 + below < prefix) harness.catch_up(below, 0, ids, 1 + below, prefix);
        }
        if (1 + m < prefix) result = harness.catch_up(m, 0, ids, 1 + m, prefix);
      }
      int32_t source = static_cast<int32_t>(result.states.size()) - 1;
      for (size_t j = 0; j < drafts.at("ids").size(); ++j) {
        if (j > 0) {
          const int32_t module = std::min(static_cast<int32_t>(j), head.config().num_modules - 1);
          const int32_t before = drafts.at("ids").at(j - 1);
          const HeadRow row{0, prefix - 1 + static_cast<int32_t>(j), before, source};
          result = harness.pass(module, {&row, 1}, {head.states(), DType::kF32, false});
          source = 0;
        }
        const int32_t best = test::argmax(result.logits.back());
        const int32_t id = id_map.empty() ? best : id_map[static_cast<size_t>(best)];
        const bool clear = drafts.at("gaps").at(j).get<double>() > 0.2;
        if (clear || std::string(dtype) == "float32") {
          EXPECT_EQ(id, drafts.at("ids").at(j)) << dtype << " prefix " << prefix << " draft " << j;
        }
      }
    }
  }
}

// The bits of an entry and of its logits depend on neither the batch nor the chunks.
TEST_P(DraftHeadOf, EntriesDoNotDependOnTheBatchOrTheChunks) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Pair pair = load_pair(GetParam(), dtype, head_options());
    const std::vector<int32_t> a = golden_ids(GetParam());
    std::vector<int32_t> b(a.rbegin(), a.rend() - 7);
    const auto n = static_cast<int32_t>(a.size()), in_b = static_cast<int32_t>(b.size());
    HeadHarness harness(*pair.target, *pair.head, kMaxRows, 4);
    harness.target().run(a, kMaxRows);
    harness.target().start(2, a);
    harness.target().start(3, b);
    for (int32_t i = 0; i < n; i += 6) {
      const test::SpanWish wishes[] = {{2, 6}, {3, std::min(6, in_b - i)}};
      harness.target().step({wishes, size_t{i < in_b ? 2u : 1u}});
    }
    for (int32_t m = 0; m < pair.head->config().num_modules; ++m) {
      const auto whole = harness.catch_up(m, 0, a, 1 + m, n);
      Rows states, logits;
      std::vector<std::vector<std::byte>> entries;
      for (int32_t i = 1 + m; i < n; ++i) entries.push_back(harness.entry_bytes(m, 0, i));
      // Slot 2 holds the same sequence in other blocks: two rows at a time beside one of slot 3.
      for (int32_t i = 1 + m; i < n;) {
        std::vector<HeadRow> rows;
        const int32_t other = 1 + m + (i - 1 - m) / 2;
        if (other < in_b) rows.push_back(harness.true_row(3, b, other));
        const size_t skip = rows.size();
        for (int32_t end = std::min(n, i + 2); i < end; ++i) {
          rows.push_back(harness.true_row(2, a, i));
        }
        const auto result = harness.pass(m, rows, harness.true_source(m));
        states.insert(states.end(), result.states.begin() + static_cast<ptrdiff_t>(skip),
                      result.states.end());
        logits.insert(logits.end(), result.logits.begin() + static_cast<ptrdiff_t>(skip),
                      result.logits.end());
      }
      EXPECT_EQ(states, whole.states) << dtype << " module " << m;
      EXPECT_EQ(logits, whole.logits);
      for (int32_t i = 1 + m; i < n; ++i) {
        EXPECT_EQ(harness.entry_bytes(m, 2, i), entries[static_cast<size_t>(i - 1 - m)]) << i;
      }
      // One row at a time, over what the first catch-up wrote.
      for (int32_t i = 1 + m; i < n; ++i) {
        const auto one = harness.catch_up(m, 0, a, i, i + 1);
        EXPECT_EQ(one.states[0], whole.states[static_cast<size_t>(i - 1 - m)]) << i;
        EXPECT_EQ(harness.entry_bytes(m, 0, i), entries[static_cast<size_t>(i - 1 - m)]) << i;
      }
    }
  }
}

// An output matrix cut down to some ids gives their logits, bit for bit.
TEST_P(DraftHeadOf, AReducedVocabularyKeepsTheLogitsOfItsIds) {
  const Pair full = load_pair(GetParam(), "float32", head_options());
  DraftHeadOptions options = head_options();
  options.target_folder = GetParam().target();
  const int32_t vocab = full.target->config().vocab_size;
  for (int32_t i = 0; i < vocab * 3 / 4; ++i) options.vocab_ids.push_back((i * 77 + 30) % vocab);
  const Pair cut = load_pair(GetParam(), "float32", options);
  const std::vector<int32_t> ids = golden_ids(GetParam());
  const auto n = static_cast<int32_t>(ids.size());
  std::vector<int32_t> full_map = ids_of_map(full.head->head(0));
  const auto column = [&](int32_t id) {
    if (full_map.empty()) return static_cast<ptrdiff_t>(id);
    return std::find(full_map.begin(), full_map.end(), id) - full_map.begin();
  };
  const std::vector<int32_t> cut_map = ids_of_map(cut.head->head(0));
  std::vector<int32_t> expected;
  for (const int32_t id : options.vocab_ids) {
    if (full_map.empty() || column(id) < static_cast<ptrdiff_t>(full_map.size())) {
      expected.push_back(id);
    }
  }
  EXPECT_EQ(cut_map, expected);
  HeadHarness whole(*full.target, *full.head, kMaxRows, 4);
  HeadHarness reduced(*cut.target, *cut.head, kMaxRows, 4);
  whole.target().run(ids, kMaxRows);
  reduced.target().run(ids, kMaxRows);
  for (int32_t m = 0; m < full.head->config().num_modules; ++m) {
    const Rows all = whole.catch_up(m, 0, ids, 1 + m, n).logits;
    const Rows some = reduced.catch_up(m, 0, ids, 1 + m, n).logits;
    for (size_t i = 0; i < some.size(); ++i) {
      for (size_t c = 0; c < cut_map.size(); ++c) {
        ASSERT_EQ(some[i][c], all[i][static_cast<size_t>(column(cut_map[c]))]);
      }
    }
  }
}

// The first entry of a module has rotary position 0, whose angle is 0 at every frequency; the
// second has not.
TEST_P(DraftHeadOf, RotaryPositionsBeginAtTheFirstEntry) {
  const std::vector<int32_t> ids = golden_ids(GetParam());
  std::vector<std::vector<std::byte>> entries[2];
  for (int i = 0; i < 2; ++i) {
    const ConfigOptions changed{"auto", i == 0 ? "" : GetParam().other_angles};
    const Pair pair = load_pair(GetParam(), "float32", head_options(), changed);
    HeadHarness harness(*pair.target, *pair.head, kMaxRows, 4);
    harness.target().run(ids, kMaxRows);
    for (int32_t m = 0; m < pair.head->config().num_modules; ++m) {
      // The second module must not see what the first makes of other angles.
      harness.catch_up(0, 0, ids, 1, 2 + m);
      harness.catch_up(m, 0, ids, 1 + m, 3 + m);
      entries[i].push_back(harness.entry_bytes(m, 0, 1 + m));
      entries[i].push_back(harness.entry_bytes(m, 0, 2 + m));
    }
  }
  EXPECT_EQ(entries[0][0], entries[1][0]);
  // Modules of Nemotron and GLM 5.3 turn by nothing.
  const std::string_view name = GetParam().name;
  const bool turns = !name.starts_with("nemotron_h") && name != "glm5_next";
  EXPECT_EQ(entries[0][1] != entries[1][1], turns);
  if (entries[0].size() < 4) return;
  EXPECT_EQ(entries[0][2], entries[1][2]);
  EXPECT_NE(entries[0][3], entries[1][3]);
}

TEST_P(DraftHeadOf, SizesAndDummyWeights) {
  const Pair pair = load_pair(GetParam(), "bfloat16", head_options());
  const DraftHead& head = *pair.head;
  EXPECT_GT(head.weight_bytes(), 0);
  EXPECT_GT(head.scratch_bytes(), 0);
  EXPECT_EQ(head.kv_group().num_layers, head.config().num_modules);
  EXPECT_EQ(head.kv_group().dtype, DType::kBF16);
  DraftHeadOptions options = head_options();
  options.dummy = true;
  const Pair dummy = load_pair(GetParam(), "bfloat16", options);
  EXPECT_EQ(dummy.head->head(0).rows, head.head(0).rows);
  EXPECT_EQ(dummy.head->head(0).id_map != nullptr, head.head(0).id_map != nullptr);
  const std::vector<int32_t> ids = golden_ids(GetParam());
  HeadHarness harness(*dummy.target, *dummy.head, kMaxRows, 4);
  harness.target().run(ids, kMaxRows);
  const auto result = harness.catch_up(0, 0, ids, 1, 5);
  EXPECT_NE(result.logits[0], result.logits[3]);
  for (const float logit : result.logits[0]) ASSERT_TRUE(std::isfinite(logit));
}

INSTANTIATE_TEST_SUITE_P(Golden, DraftHeadOf, testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace foretoken
