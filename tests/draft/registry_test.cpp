#include "draft/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "draft/draft_context.h"
#include "support/scratch_folder.h"

namespace foretoken::test {
namespace {

class DrafterRegistry : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
};

SpeculativeConfig method_config(const std::string& method, int drafts = 3) {
  return DrafterCase{.name = method, .method = method}.config(drafts);
}

TEST_F(DrafterRegistry, EveryEntryIsFoundByNameAndAlias) {
  EXPECT_GE(drafters().size(), 10u);
  for (const DrafterEntry& entry : drafters()) {
    EXPECT_NE(std::string(entry.description), "");
    EXPECT_EQ(find_drafter(entry.name).value(), &entry);
    const bool has_head = entry.make_head != nullptr, has_chain = entry.read_chain != nullptr;
    const bool has_own = entry.make != nullptr, looks_up = entry.look_up != nullptr;
    EXPECT_EQ(has_own + looks_up + has_head + has_chain, 1) << entry.name;
    EXPECT_EQ(entry.head.has_value(), has_head) << entry.name;
    if (has_head) {
      EXPECT_STREQ(head_traits(*entry.head).method, entry.name);
    }
  }
  const char* const aliases[][2] = {{"ngram_gpu", "ngram"},
                                    {"[ngram]", "ngram"},
                                    {"deepseek_mtp", "mtp"},
                                    {"qwen3_next_mtp", "mtp"},
                                    {"gemma4_mtp", "gemma4_assistant"},
                                    {"gemma4_unified_assistant", "gemma4_assistant"}};
  for (const auto& [alias, name] : aliases) {
    EXPECT_EQ(std::string(find_drafter(alias).value()->name), name);
  }
}

TEST_F(DrafterRegistry, TheFirstLookUpNeedsNoFiles) {
  EXPECT_EQ(std::string(first_look_up().name), "ngram");
  EXPECT_FALSE(first_look_up().traits.reads_files);
}

TEST_F(DrafterRegistry, AnUnknownMethodListsTheKnownOnes) {
  for (const char* method : {"xpress", "eagle4", "ngram ", ""}) {
    const auto entry = find_drafter(method);
    EXPECT_EQ(entry.status().code(), StatusCode::kUnsupported) << method;
    expect_contains(entry.status().message(), std::string("'") + method + "'");
    expect_contains(entry.status().message(), "use one of: ngram, draft_model, eagle, eagle3, mtp");
  }
}

TEST_F(DrafterRegistry, EveryMethodIsMade) {
  const DraftContext context;
  for (const char* method : {"draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "domino",
                             "pard", "p_eagle", "medusa", "mlp_speculator", "gemma4_assistant"}) {
    const auto drafter = context.make(method_config(method));
    ASSERT_TRUE(drafter.ok()) << drafter.status().message();
    EXPECT_EQ(std::string(drafter.value()->name()), method);
    EXPECT_EQ(drafter.value()->traits().max_draft_tokens, 3);
    EXPECT_EQ(drafter.value()->traits().max_len, 256);
    EXPECT_GT(drafter.value()->bytes_per_block(8), 0);
    EXPECT_GT(drafter.value()->memory_bytes(), 0);
  }
}

// Random weights need config.json alone.
TEST_F(DrafterRegistry, EveryMethodIsMadeWithRandomWeights) {
  const DraftContext context;
  for (const char* method : {"draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "domino",
                             "p_eagle", "medusa", "mlp_speculator", "gemma4_assistant"}) {
    for (const int draft_vocab : {0, 100}) {
      SpeculativeConfig config = method_config(method);
      const ScratchFolder folder;
      std::filesystem::copy_file(config.model + "/config.json", folder.file("config.json"));
      config.model = folder.path();
      config.draft_vocab_size = draft_vocab;
      const auto drafter = context.make(config, true);
      ASSERT_TRUE(drafter.ok()) << drafter.status().message();
    }
  }
}

TEST_F(DrafterRegistry, TheMethodFollowsFromTheModel) {
  const DraftContext context;
  for (const char* method :
       {"draft_model", "eagle", "eagle3", "mtp", "medusa", "mlp_speculator", "gemma4_assistant"}) {
    SpeculativeConfig config = method_config(method);
    config.method.clear();
    EXPECT_EQ(std::string(choose_drafter(config, config.model).value()->name), method);
    EXPECT_EQ(std::string(context.make(config).value()->name()), method);
  }
  SpeculativeConfig config;
  config.num_speculative_tokens = 2;
  for (const char* model : {"[ngram]", "ngram_gpu", "ngram"}) {
    config.model = model;
    EXPECT_EQ(std::string(choose_drafter(config, "").value()->name), "ngram");
  }
  EXPECT_EQ(std::string(context.make(config).value()->name()), "ngram");
  config.model = "someone/EAGLE3-of-a-model";
  EXPECT_EQ(std::string(choose_drafter(config, "").value()->name), "eagle3");
  config.model.clear();
  expect_contains(choose_drafter(config, "").status().message(), "neither a method nor a model");
}

TEST_F(DrafterRegistry, TheNumberOfDraftsIsBounded) {
  const DraftContext context;
  for (const char* method : {"ngram", "draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark",
                             "domino", "medusa", "gemma4_assistant"}) {
    for (const int count : {-1, 0, 65, 10000}) {
      if (count == 0 && find_drafter(method).value()->traits.counts_itself) continue;
      SpeculativeConfig config;
      config.method = method;
      config.model = std::string(method) == "ngram" ? "" : "somewhere";
      config.num_speculative_tokens = count;
      const std::string message = refusal(context.make(config));
      expect_contains(message, "num_speculative_tokens is " + std::to_string(count));
      expect_contains(message, "from 1 to 64");
    }
  }
}

TEST_F(DrafterRegistry, AFolderForAnotherMethodIsNamed) {
  const DraftContext context;
  const char* const held[] = {"a language model", "an EAGLE head", "an EAGLE-3 head",
                              "MTP modules",      "a DFlash head", "a DSpark head",
                              "a Domino head",    "Medusa heads",  "an MLP speculator"};
  const char* const methods[] = {"draft_model", "eagle",  "eagle3", "mtp",           "dflash",
                                 "dspark",      "domino", "medusa", "mlp_speculator"};
  for (int asked = 0; asked < 9; ++asked) {
    for (int given = 0; given < 9; ++given) {
      if (asked == given) continue;
      SpeculativeConfig config = method_config(methods[given]);
      config.method = methods[asked];
      const std::string message = refusal(context.make(config));
      expect_contains(message, held[given]);
      expect_contains(message, std::string("set method to ") + methods[given]);
    }
  }
}

TEST_F(DrafterRegistry, MissingFoldersAndFilesAreNamed) {
  const DraftContext context;
  const ScratchFolder empty;
  for (const char* method : {"draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "domino",
                             "medusa", "mlp_speculator"}) {
    SpeculativeConfig config = method_config(method);
    config.model = "/nowhere/at/all";
    expect_contains(refusal(context.make(config)), "/nowhere/at/all");
    config.model = empty.path();
    expect_contains(refusal(context.make(config)), empty.path());
    expect_contains(refusal(context.make(config)), "config.json");
  }
  SpeculativeConfig config;
  config.num_speculative_tokens = 1;
  for (const char* method :
       {"draft_model", "eagle", "eagle3", "dflash", "dspark", "domino", "medusa"}) {
    config.method = method;
    expect_contains(refusal(context.make(config)), "needs `model`");
  }
  // The target has no modules of its own.
  config.method = "mtp";
  expect_contains(refusal(context.make(config)), "hold no MTP modules for method mtp");
}

TEST_F(DrafterRegistry, LengthsAreBounded) {
  const DraftContext context;
  for (const char* method : {"ngram", "draft_model", "eagle", "eagle3", "mtp", "medusa"}) {
    SpeculativeConfig config;
    if (std::string(method) == "ngram") {
      config.method = method;
      config.num_speculative_tokens = 2;
    } else {
      config = method_config(method);
    }
    config.max_model_len = 257;
    expect_contains(refusal(context.make(config)), "max_model_len 257 is above");
    config.max_model_len = 100;
    EXPECT_EQ(context.make(config).value()->traits().max_len, 100);
  }
}

}  // namespace
}  // namespace foretoken::test
