#include "draft/config_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace foretoken {
namespace {

SpeculativeConfig valid(const std::string& method) {
  SpeculativeConfig config;
  config.method = method;
  config.num_speculative_tokens = 4;
  if (method != "ngram" && method != "mtp") config.model = "a/b";
  return config;
}

const DrafterEntry& entry_of(const std::string& method) { return *find_drafter(method).value(); }

TEST(ConfigCheck, TakesWhatMakesSense) {
  for (const char* method :
       {"ngram", "draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark"}) {
    const Status status = check_config(valid(method), entry_of(method));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  SpeculativeConfig config = valid("mtp");
  config.num_speculative_tokens = 0;
  EXPECT_TRUE(check_config(config, entry_of("mtp")).ok());
  config = valid("ngram");
  config.model = "ngram";
  EXPECT_TRUE(check_config(config, entry_of("ngram")).ok());
  config = valid("draft_model");
  config.use_heterogeneous_vocab = true;
  config.draft_sample_method = "probabilistic";
  config.draft_vocab_size = 100;
  EXPECT_TRUE(check_config(config, entry_of("draft_model")).ok());
}

TEST(ConfigCheck, NamesTheFieldAtFault) {
  using Change = std::function<void(SpeculativeConfig&)>;
  const struct {
    const char* method;
    Change change;
    const char* field;
  } cases[] = {
      {"eagle", [](auto& c) { c.num_speculative_tokens = 0; },
       "num_speculative_tokens is 0 or not given"},
      {"mtp", [](auto& c) { c.num_speculative_tokens = -3; }, "num_speculative_tokens is -3"},
      {"ngram", [](auto& c) { c.num_speculative_tokens = 65; }, "num_speculative_tokens is 65"},
      {"eagle", [](auto& c) { c.use_heterogeneous_vocab = true; }, "use_heterogeneous_vocab"},
      {"ngram", [](auto& c) { c.use_heterogeneous_vocab = true; }, "use_heterogeneous_vocab"},
      {"ngram", [](auto& c) { c.model = "some/model"; }, "model does nothing"},
      {"ngram", [](auto& c) { c.draft_vocab_size = 10; }, "draft_vocab_size does nothing"},
      {"ngram", [](auto& c) { c.draft_vocab_file = "f"; }, "draft_vocab_file does nothing"},
      {"ngram", [](auto& c) { c.draft_sample_method = "probabilistic"; }, "draft_sample_method"},
      {"ngram", [](auto& c) { c.revision = "main"; }, "revision does nothing"},
      {"ngram", [](auto& c) { c.prompt_lookup_min = -1; }, "1 <= min <= max <= 64"},
      {"ngram", [](auto& c) { c.prompt_lookup_max = 65; }, "1 <= min <= max <= 64"},
      {"eagle3", [](auto& c) { c.prompt_lookup_max = 3; }, "prompt_lookup_max does nothing"},
      {"mtp", [](auto& c) { c.prompt_lookup_min = 3; }, "prompt_lookup_min does nothing"},
      {"draft_model", [](auto& c) { c.model = ""; }, "needs `model`"},
  };
  for (const auto& tested : cases) {
    SpeculativeConfig config = valid(tested.method);
    tested.change(config);
    const Status status = check_config(config, entry_of(tested.method));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << tested.field;
    EXPECT_NE(status.message().find(tested.field), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace foretoken
