#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

// Greedy ids of Hugging Face transformers in fp32 arithmetic (tests/golden/README.md), through the
// whole engine with drafts and two steps in flight.

namespace foretoken {
namespace {

using test::GoldenCase;

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases = test::architecture_cases();
  cases.push_back(
      test::read_golden_case("tiny-llama", test::golden_folder() + "tiny-llama", "fp32"));
  cases.push_back(test::read_golden_case("foretoken-7m", bundled_model(), "bf16_weights"));
  return cases;
}

EngineConfig golden_config(const GoldenCase& golden) {
  EngineConfig config = config_of({.num_draft_tokens = 4, .steps_in_flight = 2}, golden);
  return config;
}

std::vector<RequestOutput> expect_ids_of_reference(const GoldenCase& golden,
                                                   const EngineConfig& config) {
  const std::unique_ptr<Engine> engine = start_engine(config);
  EXPECT_NE(engine, nullptr);
  if (engine == nullptr) return {};
  std::vector<Request> requests;
  for (const nlohmann::json& entry : *golden.prompts) {
    Request request;
    request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
    request.sampling.max_tokens = static_cast<int>(entry.at("greedy").size());
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  std::vector<RequestOutput> outputs = engine->generate(std::move(requests));
  const bool has_own_text = test::turns_codes_elsewhere(golden) && test_device_name() != "cpu";
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].status.ok()) << outputs[i].status.message();
    if (has_own_text) continue;
    EXPECT_EQ(outputs[i].token_ids, golden.prompts->at(i).at("greedy").get<std::vector<int32_t>>())
        << "prompt " << i;
  }
  return outputs;
}

class GoldenGreedy : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenGreedy, IdsMatchTheReference) {
  expect_ids_of_reference(GetParam(), golden_config(GetParam()));
}

void expect_ids_in(const Layout& layout, const GoldenCase& golden) {
  if (!missing_for(layout).empty()) GTEST_SKIP() << missing_for(layout);
  SCOPED_TRACE(golden.name + " " + layout.name());
  EngineConfig config = golden_config(golden);
  layout.apply(config);
  expect_ids_of_reference(golden, config);
}

// Rows of engines that share experts: narrow ones travel as latents, and what experts leave as it
// is stays with its engine.
TEST(ExpertsOfEngines, NarrowAndIdleOnesKeepTheIds) {
  for (const char* name : {"longcat_flash", "nemotron_h-latent", "kimi_k3"}) {
    const GoldenCase golden = test::golden_cases({name}).front();
    expect_ids_in({.dp = 2, .ep = true}, golden);
    expect_ids_in({.pp = 2, .dp = 2, .ep = true}, golden);
    // LongCat's three experts are not enough for four ranks.
    if (golden.name.starts_with("longcat")) continue;
    expect_ids_in({.tp = 2, .dp = 2, .ep = true}, golden);
  }
}

// Experts that compute nothing belong to one of the ranks, whether they share the columns of each
// expert or whole ones.
TEST(ShortcutMixture, RanksAddEachExpertOnce) {
  const GoldenCase golden = test::golden_cases({"longcat_flash"}).front();
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.tp = 2, .ep = true}}) {
    expect_ids_in(layout, golden);
  }
}

// Models whose ranks have parts of rows that are normed, cut, rounded or weighed as one, and how
// they run otherwise.
struct DividedRows {
  const char* model;
  bool is_mixture = false;
  bool has_states = false;  // ContextStates has them with -dcp
  bool reads_more = false;  // CarriedRows has them in stages and lanes
  bool is_one_layer = false;
};

constexpr DividedRows kDividedRows[] = {
    {"olmo2"},
    {"olmo3"},
    {"bitnet"},
    {"bitnet-online"},
    {"doge"},
    {.model = "gemma3n", .reads_more = true},
    {.model = "olmoe", .is_mixture = true},
    {.model = "flex_olmo", .is_mixture = true, .is_one_layer = true},
    {.model = "minimax_m2", .is_mixture = true},
    {.model = "olmo_hybrid", .has_states = true},
    {.model = "mamba", .has_states = true},
    {.model = "mamba2", .has_states = true},
    {.model = "falcon_mamba", .has_states = true},
    {.model = "jamba", .is_mixture = true, .has_states = true},
    {.model = "bamba", .has_states = true},
    {.model = "granite4-h", .is_mixture = true, .has_states = true},
    {.model = "falcon_h1", .has_states = true},
    {.model = "minimax", .is_mixture = true, .has_states = true},
    {.model = "bailing_v2_5", .is_mixture = true, .has_states = true},
    {.model = "nemotron_h", .has_states = true},
    {.model = "zamba2", .has_states = true, .reads_more = true},
};

struct RowsOnRanks {
  std::string model;
  Layout layout;
};
void PrintTo(const RowsOnRanks& rows, std::ostream* out) {
  *out << rows.model << " " << rows.layout.name();
}
std::string missing_for(const RowsOnRanks& rows) { return missing_for(rows.layout); }

// Four ranks have two of keys and values twice.
std::vector<RowsOnRanks> all_rows_on_ranks() {
  std::vector<RowsOnRanks> all;
  for (const DividedRows& rows : kDividedRows) {
    const bool ep = rows.is_mixture;
    all.push_back({rows.model, {.tp = 2, .ep = ep}});
    all.push_back({rows.model, {.tp = 4, .ep = ep}});
    if (!rows.has_states) all.push_back({rows.model, {.tp = 4, .ep = ep, .dcp = 2}});
    if (rows.reads_more) continue;
    if (!rows.is_one_layer) all.push_back({rows.model, {.tp = 2, .pp = 2, .ep = ep}});
    all.push_back({rows.model, {.tp = 2, .ep = ep, .dbo = true}});
  }
  return all;
}

class RowsOverRanks : public RankTest<RowsOnRanks> {};

TEST_P(RowsOverRanks, IdsMatchTheReference) {
  for (const GoldenCase& golden : test::golden_cases({GetParam().model.c_str()})) {
    SCOPED_TRACE(golden.name);
    EngineConfig config = golden_config(golden);
    GetParam().layout.apply(config);
    expect_ids_of_reference(golden, config);
  }
}

// Sampled too, whoever drafts and whatever shares the steps.
TEST_P(RowsOverRanks, DraftsChangeNothing) {
  const GoldenCase golden = test::golden_cases({GetParam().model.c_str()}).front();
  std::vector<RunResult> runs;
  for (const bool drafts : {false, true}) {
    EngineConfig config = golden_config(golden);
    GetParam().layout.apply(config);
    if (!drafts) config.speculative.clear();
    const std::unique_ptr<Engine> engine = start_engine(config);
    ASSERT_NE(engine, nullptr);
    std::vector<Request> requests;
    for (const nlohmann::json& entry : *golden.prompts) {
      for (const float temperature : {0.0f, 0.7f}) {
        Request& request = requests.emplace_back();
        request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
        request.sampling.max_tokens = 32;
        request.sampling.temperature = temperature;
        request.sampling.seed = requests.size();
        request.sampling.ignore_eos = true;
      }
    }
    runs.push_back(run_requests(*engine, {.batch = drafts ? 4 : 1}, requests));
  }
  EXPECT_EQ(count_differences(runs[0], runs[1], golden.name), 0);
}

INSTANTIATE_TEST_SUITE_P(All, RowsOverRanks, testing::ValuesIn(all_rows_on_ranks()),
                         [](const auto& test) {
                           std::string name = test.param.model + "_" + test.param.layout.name();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

int64_t accepted_with_modules(const GoldenCase& golden, int num_draft_tokens,
                              const Layout& layout = {}) {
  SCOPED_TRACE(golden.folder + " " + std::to_string(num_draft_tokens) + " " + layout.name());
  EngineConfig config = golden_config(golden);
  layout.apply(config);
  config.speculative[0] = {};
  config.speculative[0].method = "mtp";
  config.speculative[0].length_policy = "fixed";
  config.speculative[0].num_speculative_tokens = num_draft_tokens;
  int64_t accepted = 0, drafted = 0;
  for (const RequestOutput& output : expect_ids_of_reference(golden, config)) {
    accepted += output.stats.num_accepted_tokens;
    drafted += output.stats.num_draft_tokens;
  }
  EXPECT_GT(drafted, accepted);
  return accepted;
}

// Modules in the files of their target, as they are published: with several of them, and with more
// drafts than modules, the ids are those of the reference. Those of MiMo follow the first of the
// two texts, so that nearly all of its 256 tokens come from drafts of both.
TEST(OwnModules, IdsMatchTheReference) {
  const GoldenCase ernie = test::golden_cases({"ernie4_5_moe"}).front();
  for (const int num_draft_tokens : {1, 2, 4}) accepted_with_modules(ernie, num_draft_tokens);
  const std::pair<const char*, const char*> others[] = {{"mimo_v2", "mimo_v2-following"},
                                                        {"longcat_flash", "longcat_flash"}};
  for (const auto& [name, modules] : others) {
    GoldenCase golden = test::golden_cases({name}).front();
    const test::ScratchFolder folder;
    namespace fs = std::filesystem;
    fs::copy_file(golden.folder + "/config.json", folder.file("config.json"));
    fs::copy_file(golden.folder + "/model.safetensors", folder.file("model-1.safetensors"));
    fs::copy_file(test::golden_folder() + "heads/" + modules + "/model.safetensors",
                  folder.file("model-2.safetensors"));
    golden.folder = folder.path();
    for (const int num_draft_tokens : {1, 2, 4}) {
      const int64_t accepted = accepted_with_modules(golden, num_draft_tokens);
      if (std::string(name) == "mimo_v2") {
        EXPECT_GT(accepted, num_draft_tokens == 1 ? 115 : 150);
      }
    }
    for (const Layout& layout : {Layout{.pp = 2}, Layout{.pp = 2, .dbo = true}}) {
      if (missing_for(layout).empty()) accepted_with_modules(golden, 2, layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGreedy, testing::ValuesIn(all_cases()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace foretoken
