#include "engine/request/adapter_registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "engine/dialled_engine.h"
#include "support/random_adapter.h"
#include "support/test_device.h"

// Adapters through whole engines on the bundled model.

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// A prompt, and the adapter that it is answered with.
struct AdaptedPrompt {
  std::string adapter;
  int begin = 0;
  int length = 0;
};

const std::vector<AdaptedPrompt> kPrompts = {
    {"", 40, 20},        {"few", 40, 20},   {"all", 40, 20}, {"few", 90, 33},  {"all", 300, 70},
    {"", 7, 5},          {"third", 40, 20}, {"all", 11, 3},  {"ends", 40, 20}, {"ends", 200, 50},
    {"look-up", 40, 20}, {"whole", 40, 20}, {"dora", 40, 20}};

class Adapters : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<test::ScratchFolder>();
    const ModelConfig model = read_model_config(bundled_model_folder(), {}).value();
    const auto write = [&](const char* name, const test::AdapterWish& wish) {
      fs::create_directory(folder_->file(name));
      test::write_random_adapter(folder_->file(name), model, wish);
    };
    write("few", {.modules = {"q_proj", "v_proj"}, .rank = 5, .seed = 1});
    write("all", {.rank = 8, .seed = 2, .strength = 0.2f});
    write("third", {.modules = {"o_proj", "down_proj"}, .rank = 2, .seed = 3, .ends = true});
    write("ends", {.modules = {}, .rank = 3, .seed = 5, .ends = true});
    write("look-up", {.modules = {}, .rank = 3, .seed = 6, .look_up = true});
    write("whole", {.modules = {"q_proj"}, .rank = 3, .seed = 7, .whole = true});
    write("dora", {.rank = 4, .seed = 9, .dora = true});
    write("wider", {.modules = {"v_proj"}, .rank = 3, .seed = 8, .whole = true, .more_ids = 5});
    write("begun", {.modules = {"q_proj", "v_proj"},
                    .rank = 5,
                    .seed = 1,
                    .invocation = {token_at(50), token_at(51)}});
    write("large", {.rank = 40, .seed = 4, .strength = 0.1f});
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static EngineConfig config(int max_loras = 3) {
    EngineConfig config;
    config.model = bundled_model_folder();
    config.device = engine_test_device();
    config.max_model_len = 512;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = 48;
    config.num_gpu_blocks_override = 8 * 32;
    config.enable_lora = true;
    config.max_loras = max_loras;
    config.lora_modules_to_save = true;
    for (const char* name : {"few", "all", "third", "ends", "look-up", "whole", "dora"}) {
      config.lora_modules.push_back({name, folder_->file(name), ""});
    }
    return config;
  }
  static EngineConfig drafting(const std::string& method, EngineConfig config) {
    SpeculativeConfig drafter = ngram_config(3);
    if (method != "ngram") {
      drafter = {};
      drafter.method = method;
      drafter.model = bundled_model_folder() + "-" + (method == "draft_model" ? "draft" : method);
      drafter.num_speculative_tokens = 3;
    }
    drafter.length_policy = "fixed";
    config.speculative = {drafter};
    return config;
  }
  static std::unique_ptr<Engine> make(const EngineConfig& config) {
    std::unique_ptr<Engine> engine;
    const Status status = make_engine(config, &engine);
    EXPECT_TRUE(status.ok()) << status.message();
    return engine;
  }

  static int32_t token_at(int i) { return 5 + i * 37 % 3000; }
  static Request request(const AdaptedPrompt& prompt, float temperature, int max_tokens = 16) {
    Request request;
    for (int i = prompt.begin; i < prompt.begin + prompt.length; ++i) {
      request.prompt_token_ids.push_back(token_at(i));
    }
    request.adapter = prompt.adapter;
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = temperature;
    request.sampling.seed = 17;
    request.sampling.ignore_eos = true;
    return request;
  }
  using Texts = std::vector<std::vector<int32_t>>;
  static Texts run(Engine& engine, const std::vector<AdaptedPrompt>& prompts, float temperature,
                   bool together = true, int max_tokens = 16) {
    std::vector<Request> requests;
    for (const AdaptedPrompt& prompt : prompts) {
      requests.push_back(request(prompt, temperature, max_tokens));
    }
    Texts texts;
    const auto take = [&](std::vector<RequestOutput> outputs) {
      for (RequestOutput& output : outputs) {
        EXPECT_TRUE(output.status.ok()) << output.status.message();
        texts.push_back(std::move(output.token_ids));
      }
    };
    if (together) {
      take(engine.generate(std::move(requests)));
    } else {
      for (Request& one : requests) take(engine.generate({std::move(one)}));
    }
    return texts;
  }
  // How many of the prompts begin alike in both.
  static size_t count_same_starts(const Texts& a, const Texts& b) {
    size_t same = 0;
    for (size_t i = 0; i < a.size(); ++i) same += a[i][0] == b[i][0] ? 1 : 0;
    return same;
  }
  // Each by itself, without drafts; greedy, then sampled.
  static const Texts& alone(float temperature) {
    static std::map<float, Texts> known;
    Texts& texts = known[temperature];
    if (texts.empty()) texts = run(*make(config()), kPrompts, temperature, false);
    return texts;
  }
  static void expect_alone(Engine& engine, const std::string& what) {
    for (const float temperature : {0.0f, 0.8f}) {
      EXPECT_EQ(run(engine, kPrompts, temperature), alone(temperature)) << what;
    }
  }

  static std::unique_ptr<test::ScratchFolder> folder_;
};

std::unique_ptr<test::ScratchFolder> Adapters::folder_;

TEST_F(Adapters, ChangeTheTextAndLeaveOthersAlone) {
  const Texts& texts = alone(0);
  EXPECT_NE(texts[0], texts[1]) << "the same prompt";
  EXPECT_NE(texts[0], texts[2]);
  EXPECT_NE(texts[1], texts[2]);
  EXPECT_NE(texts[0], texts[6]);
  EXPECT_NE(texts[0], texts[8]);
  EXPECT_NE(texts[0], texts[10]);
  EXPECT_NE(texts[0], texts[11]);
  EXPECT_NE(texts[0], texts[12]);
  EngineConfig without = config();
  without.enable_lora = false;
  without.lora_modules.clear();
  const auto engine = make(without);
  EXPECT_EQ(run(*engine, {kPrompts[0], kPrompts[5]}, 0), (Texts{texts[0], texts[5]}));
}

// Those of "few" that act from tokens 50 and 51 on: from the first one, in the middle, behind more
// than a step's rows, and nowhere.
TEST_F(Adapters, ActivatedOnesActFromTheirInvocationOn) {
  EngineConfig more = config();
  more.lora_modules.push_back({"begun", folder_->file("begun"), ""});
  const auto engine = make(more);
  ASSERT_NE(engine, nullptr);
  const std::vector<AdaptedPrompt> begun = {
      {"begun", 50, 20}, {"begun", 40, 20}, {"begun", 0, 60}, {"begun", 0, 70}, {"begun", 7, 5}};
  const auto as = [&](const char* adapter) {
    std::vector<AdaptedPrompt> prompts = begun;
    for (AdaptedPrompt& prompt : prompts) prompt.adapter = adapter;
    return run(*engine, prompts, 0, false);
  };
  const Texts texts = run(*make(more), begun, 0, false);
  const Texts few = as("few"), none = as("");
  EXPECT_EQ(texts[0], few[0]);
  EXPECT_EQ(texts[4], none[4]);
  EXPECT_NE(texts[1], few[1]);
  EXPECT_NE(texts[1], none[1]);
  // Beside what others left in the prefix cache, and again.
  for (const bool together : {true, false}) EXPECT_EQ(run(*engine, begun, 0, together), texts);
}

TEST(AdapterRegistry, ActivatedAdaptersBeginWhereTheirTokensStandLast) {
  EngineAdapter adapter;
  const std::vector<int32_t> ids = {7, 8, 9, 7, 8, 7};
  EXPECT_EQ(begin_of_adapter(adapter, ids), 0);
  adapter.invocation = {7, 8};
  EXPECT_EQ(begin_of_adapter(adapter, ids), 3);
  EXPECT_EQ(begin_of_adapter(adapter, std::span(ids).subspan(4)), std::nullopt);
}

TEST_F(Adapters, TextsAreTheSameAloneAndBesideOthers) {
  expect_alone(*make(config()), "together");
  EngineConfig sync = config();
  sync.steps_in_flight = 1;
  sync.enforce_eager = true;
  sync.max_num_batched_tokens = 512;
  expect_alone(*make(sync), "in large steps without graphs");
}

TEST_F(Adapters, TextsAreTheSameWithEveryDrafter) {
  for (const char* method : {"ngram", "draft_model", "eagle", "eagle3", "mtp"}) {
    const auto engine = make(drafting(method, config()));
    ASSERT_NE(engine, nullptr);
    expect_alone(*engine, method);
    EXPECT_GT(engine->stats().requests.num_draft_tokens, 0) << method;
  }
}

// Places of adapters keep what they hold, or are filled again, at each level.
TEST_F(Adapters, OutliveASleep) {
  for (const int ranks : {1, 2}) {
    if (!missing_devices(ranks).empty()) continue;
    EngineConfig wanted = drafting("eagle3", config(3));
    wanted.enable_sleep_mode = true;
    wanted.cpu_threads = 1;
    wanted.parallel.tensor_parallel_size = ranks;
    const auto engine = make(wanted);
    ASSERT_NE(engine, nullptr);
    const Texts before = run(*engine, kPrompts, 0.8f);
    for (const int level : {1, 2, 1}) {
      ASSERT_TRUE(engine->sleep(level).ok());
      ASSERT_TRUE(engine->load_adapter({"few", folder_->file("few"), ""}, true).ok());
      ASSERT_TRUE(engine->wake_up().ok());
      EXPECT_EQ(run(*engine, kPrompts, 0.8f), before) << level;
    }
  }
}

TEST_F(Adapters, MoreOfThemThanPlacesTakeTurns) {
  for (const int places : {1, 2}) {
    const auto engine = make(drafting("ngram", config(places)));
    expect_alone(*engine, std::to_string(places) + " places");
  }
}

TEST_F(Adapters, PreemptionAndChunksKeepTheText) {
  EngineConfig small = config(2);
  small.num_gpu_blocks_override = 12;
  small.max_model_len = 256;
  small.max_num_batched_tokens = 16;
  const auto engine = make(drafting("eagle3", small));
  EXPECT_EQ(run(*engine, kPrompts, 0, true, 48), run(*make(config()), kPrompts, 0, true, 48));
  EXPECT_GT(engine->stats().requests.num_preemptions, 0);
}

// The same prompt under several adapters; what comes back from host memory is of the right one.
TEST_F(Adapters, BlocksInHostMemoryKeepTheText) {
  EngineConfig small = config(2);
  small.num_gpu_blocks_override = 9;
  small.max_model_len = 144;
  small.kv_offloading_size = 0.05;
  const auto engine = make(drafting("eagle3", small));
  const Texts expected = run(*make(config()), kPrompts, 0, true, 32);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(run(*engine, kPrompts, 0, true, 32), expected) << "round " << round;
  }
  EXPECT_GT(engine->stats().offload.num_hit_tokens, 0);
  ASSERT_TRUE(engine->unload_adapter("few").ok());
  ASSERT_TRUE(engine->load_adapter({"few", folder_->file("all"), ""}).ok());
  const AdaptedPrompt other = {"all", 90, 33};
  EXPECT_EQ(run(*engine, {kPrompts[3]}, 0), run(*make(config()), {other}, 0));
}

TEST_F(Adapters, StagesAndRanksHaveTheirParts) {
  if (!missing_devices(2).empty()) GTEST_SKIP() << missing_devices(2);
  EngineConfig stages = config(2);
  stages.parallel.pipeline_parallel_size = 2;
  const auto staged = make(stages);
  // Rank 0 has the last stage, and says what the adapter changes on the first.
  EXPECT_EQ(run(*staged, {kPrompts[10]}, 0), (Texts{alone(0)[10]}));
  expect_alone(*staged, "two stages");
  // Sums over ranks round otherwise than one rank's.
  EngineConfig ranks = config(2);
  ranks.parallel.tensor_parallel_size = 2;
  const auto plain = make(ranks);
  const Texts own = run(*plain, kPrompts, 0, false);
  EXPECT_EQ(run(*plain, kPrompts, 0), own);
  EXPECT_EQ(run(*make(drafting("eagle3", ranks)), kPrompts, 0), own);
  EXPECT_GE(count_same_starts(own, alone(0)), own.size() - 1);
}

// Rows are rounded for the model's own matrices; what adapters add is of the rows as they were.
TEST_F(Adapters, TextsAreTheSameWithRoundedActivations) {
  EngineConfig exact = config();
  exact.dtype = "bfloat16";
  EngineConfig rounded = exact;
  rounded.quantization = "fp8";
  rounded.activation_scheme = "dynamic";
  const Texts own = run(*make(rounded), kPrompts, 0, false);
  EXPECT_EQ(run(*make(rounded), kPrompts, 0), own);
  EXPECT_EQ(run(*make(drafting("eagle3", rounded)), kPrompts, 0), own);
  EXPECT_NE(own[0], own[1]) << "the same prompt";
  EXPECT_NE(own[0], own[2]);
  EXPECT_GE(count_same_starts(own, run(*make(exact), kPrompts, 0)), own.size() - 1);
}

// Ranks of several steps of a kernel, beside a small one.
TEST_F(Adapters, TextsAreTheSameWithLargeRanks) {
  EngineConfig large = config(2);
  large.dtype = "bfloat16";
  large.max_lora_rank = 64;
  large.lora_modules.push_back({"large", folder_->file("large"), ""});
  std::vector<AdaptedPrompt> prompts = kPrompts;
  for (AdaptedPrompt& prompt : prompts) {
    if (prompt.adapter == "all") prompt.adapter = "large";
  }
  const Texts own = run(*make(large), prompts, 0, false);
  EXPECT_EQ(run(*make(large), prompts, 0), own);
  EXPECT_EQ(run(*make(drafting("eagle3", large)), prompts, 0), own);
  EXPECT_NE(own[0], own[2]) << "the same prompt";
}

// Of seven ids behind the model's the adapter has five; nothing changes for others.
TEST_F(Adapters, IdsBehindTheModelsAreThoseOfAnAdapter) {
  const int32_t own = read_model_config(bundled_model_folder(), {}).value().vocab_size;
  EngineConfig added = config();
  added.lora_modules.push_back({"wider", folder_->file("wider"), ""});
  std::unique_ptr<Engine> none;
  const Status narrow = make_engine(added, &none);
  EXPECT_NE(narrow.message().find("--lora-extra-vocab-size 5 and"), std::string::npos)
      << narrow.message();
  added.lora_extra_vocab_size = 7;
  // Each id behind the model's in the prompt, one of them wished for, and whatever comes.
  const auto with_ids = [&](const std::string& adapter, bool is_wished) {
    Request one = request({adapter, 40, 20}, 0);
    for (int32_t id = own; id < own + 5; ++id) one.prompt_token_ids.push_back(id);
    if (is_wished) one.sampling.logit_bias = {{own + 3, 100.0f}};
    return one;
  };
  const auto texts_of = [&](Engine& engine) {
    Texts texts;
    for (const RequestOutput& output :
         engine.generate({with_ids("wider", false), request(kPrompts[0], 0),
                          with_ids("wider", true), request(kPrompts[11], 0)})) {
      EXPECT_TRUE(output.status.ok()) << output.status.message();
      texts.push_back(output.token_ids);
    }
    return texts;
  };
  const auto engine = make(added);
  ASSERT_NE(engine, nullptr);
  expect_alone(*engine, "beside ids that an adapter adds");
  const Texts texts = texts_of(*engine);
  EXPECT_EQ(texts[1], alone(0)[0]);
  EXPECT_EQ(texts[2], std::vector<int32_t>(16, own + 3));
  EXPECT_EQ(texts[3], alone(0)[11]);
  EXPECT_EQ(texts_of(*make(drafting("eagle3", added))), texts);
  EXPECT_EQ(texts_of(*make(drafting("ngram", added))), texts);
  for (const char* adapter : {"", "few", "whole"}) {
    const Status refused = engine->generate({with_ids(adapter, false)})[0].status;
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << adapter;
    EXPECT_NE(refused.message().find(std::to_string(own) + " is not in the vocabulary of"),
              std::string::npos)
        << refused.message();
  }
  Request wished = request(kPrompts[0], 0);
  wished.sampling.logit_bias = {{own + 3, 100.0f}};
  EXPECT_EQ(engine->generate({wished})[0].token_ids, alone(0)[0]) << "the model has no such row";
}

// What was cached under an adapter is no other's, nor that of one which has its name later.
TEST_F(Adapters, CachedBlocksBelongToOneLoad) {
  const auto engine = make(config());
  const AdaptedPrompt few = {"few", 300, 70};
  const auto cached = [&](const AdaptedPrompt& prompt, std::vector<int32_t>* text = nullptr) {
    const auto outputs = engine->generate({request(prompt, 0)});
    EXPECT_TRUE(outputs[0].status.ok()) << outputs[0].status.message();
    if (text != nullptr) *text = outputs[0].token_ids;
    return outputs[0].stats.num_cached_tokens;
  };
  std::vector<int32_t> first, second;
  EXPECT_EQ(cached(few, &first), 0);
  EXPECT_EQ(cached(few, &second), 64);
  EXPECT_EQ(first, second);
  EXPECT_EQ(cached({"", 300, 70}), 0);
  EXPECT_EQ(cached({"all", 300, 70}), 0);
  ASSERT_TRUE(engine->unload_adapter("few").ok());
  ASSERT_TRUE(engine->load_adapter({"few", folder_->file("all"), ""}).ok());
  std::vector<int32_t> third;
  EXPECT_EQ(cached(few, &third), 0);
  EXPECT_EQ(third, alone(0)[4]) << "it is the adapter 'all' now";
  ASSERT_TRUE(engine->load_adapter({"few", folder_->file("few"), ""}, true).ok());
  EXPECT_EQ(cached(few, &third), 0);
  EXPECT_EQ(third, first);
}

TEST_F(Adapters, ARunningRequestKeepsTheAdapterThatIsUnloaded) {
  const auto engine = make(config(1));
  const auto outputs = engine->generate_async(request({"all", 40, 20}, 0));
  auto pending = engine->generate_async(request({"few", 40, 20}, 0));
  ASSERT_TRUE(engine->unload_adapter("few").ok());
  ASSERT_TRUE(engine->unload_adapter("all").ok());
  EXPECT_EQ(pending.get()[0].token_ids, alone(0)[1]);
  const auto refused = engine->generate({request({"few", 40, 20}, 0)});
  EXPECT_EQ(refused[0].status.code(), StatusCode::kNotFound);
}

TEST_F(Adapters, TheOldestLeavesMemoryAndComesBack) {
  EngineConfig few = config(2);
  few.max_cpu_loras = 7;
  const auto engine = make(few);
  const Request named = request({"few", 40, 20}, 0);
  const std::vector<RequestOutput> before = engine->generate({named});
  ASSERT_TRUE(before[0].status.ok()) << before[0].status.message();
  for (const char* name : {"fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}) {
    const Status status = engine->load_adapter({name, folder_->file("all"), ""});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(engine->adapters().size(), 14u);
  const std::vector<RequestOutput> after = engine->generate({named});
  ASSERT_TRUE(after[0].status.ok()) << after[0].status.message();
  EXPECT_EQ(after[0].token_ids, before[0].token_ids);
}

TEST_F(Adapters, NamesAndLimitsAreChecked) {
  EngineConfig few = config(2);
  few.max_cpu_loras = 7;
  const auto engine = make(few);
  EXPECT_EQ(engine->adapters().size(), 7u);
  EXPECT_EQ(engine->adapters()[1].name, "all");
  const auto load = [&](const char* name, const std::string& folder) {
    return engine->load_adapter({name, folder, ""});
  };
  EXPECT_EQ(load("few", folder_->file("few")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->unload_adapter("nobody").code(), StatusCode::kNotFound);
  ASSERT_TRUE(engine->unload_adapter("third").ok());
  EXPECT_EQ(load("fourth", "/nowhere").code(), StatusCode::kNotFound);
  EXPECT_TRUE(load("fourth", folder_->file("few")).ok());
  few.max_lora_rank = 4;
  std::unique_ptr<Engine> none;
  const Status status = make_engine(few, &none);
  EXPECT_NE(status.message().find("--max-lora-rank is 4"), std::string::npos) << status.message();
  EngineConfig narrow = config();
  narrow.lora_modules_to_save = false;
  const Status whole = make_engine(narrow, &none);
  EXPECT_EQ(whole.code(), StatusCode::kUnsupported);
  EXPECT_NE(whole.message().find("start with --lora-modules-to-save"), std::string::npos)
      << whole.message();
  EngineConfig without = config();
  without.enable_lora = false;
  EXPECT_NE(make_engine(without, &none).message().find("add --enable-lora"), std::string::npos);
  without.lora_modules.clear();
  const auto plain = make(without);
  EXPECT_EQ(plain->load_adapter({"few", folder_->file("few"), ""}).code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(plain->generate({request({"few", 1, 3}, 0)})[0].status.code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretoken
