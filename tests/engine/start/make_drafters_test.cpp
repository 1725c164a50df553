#include "engine/start/make_drafters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "dialled/dialled_heads.h"
#include "engine/dialled_engine.h"
#include "support/dialled_set.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

SpeculativeConfig of_method(const std::string& method, int num_draft_tokens) {
  SpeculativeConfig config;
  config.method = method;
  config.num_speculative_tokens = num_draft_tokens;
  return config;
}

TEST(DrafterNames, CountThoseOfOneMethod) {
  EngineConfig config;
  config.speculative = {of_method("eagle", 3), of_method("ngram", 5), of_method("eagle", 2)};
  EXPECT_EQ(drafter_names(config), (std::vector<std::string>{"eagle", "ngram", "eagle-2"}));
  EXPECT_EQ(max_draft_tokens(config), 5);
  EXPECT_EQ(max_draft_tokens(EngineConfig()), 0);
  config.speculative.push_back(of_method("mtp", 0));
  EXPECT_EQ(max_draft_tokens(config), kMaxOwnDrafts);
}

// Every contradiction ends the start with one line that says what to change.
class MakeDrafters : public testing::Test {
 protected:
  static const test::DialledSet& set() { return test::DialledSet::of(); }
  static Status start(const std::string& kind,
                      const std::function<void(SpeculativeConfig&)>& change) {
    EngineConfig config;
    config.model = set().target(kind);
    config.device = engine_test_device();
    config.max_model_len = 256;
    config.max_num_seqs = 2;
    config.max_num_batched_tokens = 32;
    config.num_gpu_blocks_override = 32;
    config.speculative = {set().drafter(kind, 3)};
    change(config.speculative[0]);
    std::unique_ptr<Engine> engine;
    return make_engine(config, &engine);
  }
  static void expect_refused(const std::string& kind, const std::string& part,
                             const std::function<void(SpeculativeConfig&)>& change) {
    const Status status = start(kind, change);
    EXPECT_FALSE(status.ok()) << kind << ": " << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    std::printf("%s\n", status.message().c_str());
  }
  const test::ScratchFolder scratch_;
};

TEST_F(MakeDrafters, AMethodMayBeLeftToTheModel) {
  for (const char* kind : {"draft_model", "eagle", "eagle3", "mtp"}) {
    const Status status = start(kind, [](SpeculativeConfig& c) { c.method = ""; });
    EXPECT_TRUE(status.ok()) << kind << ": " << status.message();
  }
}

TEST_F(MakeDrafters, AnMtpModelTellsHowManyDraftsItMakes) {
  EngineConfig config;
  config.model = set().target();
  config.device = engine_test_device();
  config.max_model_len = 256;
  config.max_num_seqs = 2;
  config.num_gpu_blocks_override = 32;
  config.speculative = {set().drafter("mtp_chained", 0)};
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  Request request;
  request.prompt_token_ids = {2, 3, 4};
  request.speculative.num_speculative_tokens = 3;
  EXPECT_NE(engine->generate({request})[0].status.message().find("0 to 2"), std::string::npos);
}

TEST_F(MakeDrafters, MissingAndForeignFilesAreNamed) {
  expect_refused("eagle", "nowhere",
                 [&](SpeculativeConfig& c) { c.model = scratch_.file("nowhere"); });
  expect_refused("eagle", "model", [](SpeculativeConfig& c) { c.model = ""; });
  expect_refused("eagle", "EAGLE-3",
                 [](SpeculativeConfig& c) { c.model = set().drafter("eagle3", 3).model; });
  expect_refused("draft_model", "EAGLE head",
                 [](SpeculativeConfig& c) { c.model = set().drafter("eagle", 3).model; });
  expect_refused("eagle", "", [&](SpeculativeConfig& c) { c.model = scratch_.path(); });
}

TEST_F(MakeDrafters, AHeadOfAnotherWidthIsRefused) {
  DialledShape wide = set().shape();
  wide.hidden_size = 128;
  const std::string folder = scratch_.file("wide");
  const Status written =
      write_dialled_head(folder, wide, {.kind = HeadKind::kEagle, .agreement = 0.8});
  ASSERT_TRUE(written.ok()) << written.message();
  expect_refused("eagle", "hidden_size", [&](SpeculativeConfig& c) { c.model = folder; });
}

TEST_F(MakeDrafters, AForeignTokenizerIsRefusedUnlessMapped) {
  expect_refused("draft_model", "use_heterogeneous_vocab", [](SpeculativeConfig& c) {
    c.model = set().drafter("draft_model_shifted", 3).model;
  });
  DialledShape small = set().shape();
  small.vocab_size = 64;
  small.num_layers = 1;
  const std::string folder = scratch_.file("small");
  ASSERT_TRUE(write_dialled_checkpoint(folder, small).ok());
  // Words that the target does not have.
  const std::string path = folder + "/tokenizer.json";
  nlohmann::json tokenizer = nlohmann::json::parse(std::ifstream(path));
  nlohmann::json vocab;
  for (const auto& [word, id] : tokenizer.at("model").at("vocab").items()) {
    vocab[id.get<int>() < 2 ? word : "foreign" + word] = id;
  }
  tokenizer["model"]["vocab"] = vocab;
  std::ofstream(path) << tokenizer.dump();
  expect_refused("draft_model_shifted", "%", [&](SpeculativeConfig& c) { c.model = folder; });
}

TEST_F(MakeDrafters, FieldsThatDoNotFitTheMethodAreRefused) {
  expect_refused("ngram", "model", [](SpeculativeConfig& c) { c.model = "some/model"; });
  expect_refused("ngram", "draft_vocab_size", [](SpeculativeConfig& c) { c.draft_vocab_size = 9; });
  expect_refused("eagle", "prompt_lookup_max",
                 [](SpeculativeConfig& c) { c.prompt_lookup_max = 4; });
  expect_refused("eagle", "use_heterogeneous_vocab",
                 [](SpeculativeConfig& c) { c.use_heterogeneous_vocab = true; });
  expect_refused("eagle", "max_model_len 257 exceeds",
                 [](SpeculativeConfig& c) { c.max_model_len = 257; });
  expect_refused("eagle", "draft_vocab_size",
                 [](SpeculativeConfig& c) { c.draft_vocab_size = 513; });
  expect_refused("eagle", "draft_vocab_size",
                 [](SpeculativeConfig& c) { c.draft_vocab_size = -1; });
  expect_refused("eagle", "no_such_file",
                 [](SpeculativeConfig& c) { c.draft_vocab_file = "no_such_file"; });
}

// Fewer ids can be drafted; the text stays.
TEST_F(MakeDrafters, AReducedVocabularyDraftsOnlyItsIds) {
  for (const char* kind : {"draft_model", "eagle", "eagle3", "mtp"}) {
    const Status status = start(kind, [](SpeculativeConfig& c) { c.draft_vocab_size = 300; });
    EXPECT_TRUE(status.ok()) << kind << ": " << status.message();
  }
}

}  // namespace
}  // namespace foretoken
