#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"

// Models whose layers read more of a row than its residual: embeddings of each layer, streams, what
// entered earlier blocks of layers, the token's embedding, others' keys; and layers that run again
// or are two of one number. In stages and in lanes, with drafts and without, requests get the ids
// of the reference, or where they are sampled those of one rank.

namespace foretoken {
namespace {

struct CarriedCase {
  const char* golden;
  Layout layout;
  // Of config.json, where another model than the golden one runs.
  const char* overrides = nullptr;
};
void PrintTo(const CarriedCase& one, std::ostream* out) {
  *out << one.golden << " " << one.layout.name();
}

std::vector<CarriedCase> carried_cases() {
  std::vector<CarriedCase> cases;
  const auto add = [&](const char* golden, std::initializer_list<Layout> layouts) {
    for (const Layout& layout : layouts) cases.push_back({golden, layout});
  };
  const Layout two{.pp = 2}, three{.pp = 3}, four{.pp = 4}, lanes{.dbo = true},
      stages_in_lanes{.pp = 2, .dbo = true};
  const Layout both{.tp = 2, .pp = 2}, ranks_in_lanes{.tp = 2, .dbo = true};
  add("gemma3n-deep", {two, three, both, lanes, ranks_in_lanes, stages_in_lanes});
  add("gemma4-deep", {two, three, both, lanes, ranks_in_lanes, stages_in_lanes});
  add("kimi_k3", {two, three, four, both, lanes, ranks_in_lanes, stages_in_lanes});
  add("zamba2", {two, three, both, lanes, ranks_in_lanes, stages_in_lanes});
  add("longcat_flash", {two, both, lanes, stages_in_lanes});
  add("nanbeige", {two, three, four, both, lanes, stages_in_lanes});
  // Rows attend to what the layer before chose, a number that no vector of floats divides.
  const char* odd = R"({"index_topk": 61})";
  cases.push_back({"glm_moe_dsa", two, odd});
  cases.push_back({"glm_moe_dsa", stages_in_lanes, odd});
  // Ranks take whole experts, whose columns are too few to be divided.
  const Layout experts{.tp = 2, .pp = 2, .ep = true};
  add("hy_v4", {two, experts, lanes, stages_in_lanes});
  add("glm5_next", {two, three, experts, lanes, stages_in_lanes});
  return cases;
}

test::GoldenCase golden_of(const char* name, const char* overrides = nullptr) {
  test::GoldenCase golden = test::golden_cases({name}).front();
  if (overrides != nullptr) golden.hf_overrides = overrides;
  return golden;
}

EngineConfig carried_config(const test::GoldenCase& golden, const Variant& variant,
                            const Layout& layout) {
  EngineConfig config = config_of(variant, golden);
  layout.apply(config);
  return config;
}

// The golden prompts, greedy, then pieces of them, sampled.
std::vector<Request> carried_requests(const test::GoldenCase& golden) {
  std::vector<Request> requests;
  for (const bool sampled : {false, true}) {
    for (const nlohmann::json& entry : *golden.prompts) {
      Request& request = requests.emplace_back();
      request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
      if (sampled) request.prompt_token_ids.push_back(9);
      request.sampling.max_tokens = sampled ? 60 : static_cast<int>(entry.at("greedy").size());
      request.sampling.temperature = sampled ? 0.8f : 0;
      request.sampling.seed = 7;
      request.sampling.ignore_eos = true;
    }
  }
  return requests;
}

RunResult run_carried(const test::GoldenCase& golden, const Variant& variant,
                      const Layout& layout) {
  const auto engine = start_engine(carried_config(golden, variant, layout));
  if (engine == nullptr) return {};
  const RunResult result = run_requests(*engine, variant, carried_requests(golden));
  expect_all_free(*engine);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_steps_in_lanes > stats.num_steps / 4, layout.dbo)
      << stats.num_steps_in_lanes << " of " << stats.num_steps << " steps";
  return result;
}

const RunResult& on_one_rank(const CarriedCase& one) {
  static std::map<std::string, RunResult> known;
  RunResult& found = known[one.golden];
  if (found.ids.empty()) {
    found = run_carried(golden_of(one.golden, one.overrides), {.batch = 4}, {});
  }
  return found;
}

class CarriedRows : public testing::TestWithParam<CarriedCase> {
 protected:
  void SetUp() override {
    const std::string missing = missing_for(GetParam().layout);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

// Sums over ranks have other bits, which draws may show, but greedy ids of these models do not.
void expect_ids(const RunResult& result, const std::string& what) {
  const CarriedCase& asked = CarriedRows::GetParam();
  const RunResult& one = on_one_rank(asked);
  ASSERT_EQ(result.ids.size(), one.ids.size()) << what;
  const test::GoldenCase golden = golden_of(asked.golden);
  const nlohmann::json& prompts = *golden.prompts;
  for (size_t i = 0; i < result.ids.size(); ++i) {
    if (i < prompts.size() && asked.overrides == nullptr) {
      EXPECT_EQ(result.ids[i], prompts.at(i).at("greedy").get<std::vector<int32_t>>())
          << what << ", prompt " << i;
    } else if (asked.layout.tp == 1) {
      EXPECT_EQ(result.ids[i], one.ids[i]) << what << ", prompt " << i;
    }
  }
}

TEST_P(CarriedRows, IdsAreThoseOfTheReferenceWithDraftsAndWithout) {
  const test::GoldenCase golden = golden_of(GetParam().golden, GetParam().overrides);
  const Layout& layout = GetParam().layout;
  expect_ids(run_carried(golden, {.batch = 4}, layout), "no drafts");
  const Variant ngram = {.num_draft_tokens = 4,
                         .steps_in_flight = 2,
                         .batch = 4,
                         .max_batched_tokens = 37,
                         .prefix_caching = true};
  expect_ids(run_carried(golden, ngram, layout), "ngram");
  // The model drafts for itself.
  const Variant itself = {.num_draft_tokens = 3,
                          .drafter = "draft_model",
                          .draft_model = golden.folder,
                          .steps_in_flight = 2,
                          .batch = 4,
                          .eager = true};
  const RunResult drafts = run_carried(golden, itself, layout);
  expect_ids(drafts, "draft model");
  EXPECT_GT(drafts.stats.num_accepted_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(All, CarriedRows, testing::ValuesIn(carried_cases()),
                         [](const auto& test) {
                           std::string name =
                               std::string(test.param.golden) + "_" + test.param.layout.name();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Where each layer reads what the first ones keep, or lies with another under one number.
TEST(CarriedRowsRefusal, NamesTheStagesThatLayersMake) {
  const std::pair<const char*, Layout> refused[] = {
      {"gemma3n", {.pp = 2}}, {"gemma4-deep", {.pp = 4}}, {"longcat_flash", {.pp = 3}}};
  for (const auto& [name, layout] : refused) {
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(carried_config(golden_of(name), {}, layout), &engine);
    EXPECT_EQ(made.code(), StatusCode::kUnsupported) << name;
    EXPECT_NE(made.message().find("use --pipeline-parallel-size " + std::to_string(layout.pp - 1)),
              std::string::npos)
        << made.message();
  }
}

}  // namespace
}  // namespace foretoken
