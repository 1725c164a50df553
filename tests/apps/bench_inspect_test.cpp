#include <foretoken/version.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/command_run.h"
#include "support/folders.h"

namespace foretoken {
namespace {

TEST(Bench, LatencyPrintsAndWritesJson) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("latency.json");
  const CommandResult result =
      run_command({"bench", "latency", "--model", bundled_model().string(), "--input-len", "8",
                   "--output-len", "8", "--batch-size", "2", "--num-iters-warmup", "1",
                   "--num-iters", "3", "--output-json", file, "--log-level", "error"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Avg latency: ", 0), 0u) << result.out;
  EXPECT_NE(result.out.find("99% percentile latency: "), std::string::npos) << result.out;
  const nlohmann::json written = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(written["latencies"].size(), 3u);
  EXPECT_EQ(written["drafts"]["output_tokens"], 3 * 2 * 8);
}

TEST(Bench, LengthsBeyondTheContextAreRefused) {
  const CommandResult result =
      run_command({"bench", "latency", "--model", bundled_model().string(), "--input-len", "2000",
                   "--output-len", "100", "--log-level", "error"});
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.errors().size(), 1u) << result.err;
  EXPECT_NE(result.errors()[0].find("--output-len"), std::string::npos);
}

CommandResult throughput(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"bench",       "throughput", "--model", bundled_model().string(),
                                  "--log-level", "error"};
  all.insert(all.end(), more.begin(), more.end());
  return run_command(all);
}

TEST(Bench, ThroughputPrintsAndWritesJson) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("throughput.json");
  const CommandResult result =
      throughput({"--num-prompts", "5", "--output-len", "6", "--n", "1", "--async-engine",
                  "--output-json", file, "--speculative-config",
                  R"({"method":"ngram","num_speculative_tokens":3,"length_policy":"fixed"})"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Throughput: ", 0), 0u) << result.out;
  for (const char* part : {" requests/s, ", " total tokens/s, ", " output tokens/s\n",
                           "draft acceptance rate ", "mean acceptance length "}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
  const nlohmann::json written = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(written["num_requests"], 5);
  EXPECT_EQ(written["drafts"]["output_tokens"], 30);
  EXPECT_GT(written["total_num_tokens"], 30);
  EXPECT_GT(written["elapsed_time"], 0.0);
}

TEST(Bench, ThroughputWithFewAtOneTime) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("throughput.json");
  const CommandResult result =
      throughput({"--num-prompts", "7", "--output-len", "6", "--max-concurrency", "2",
                  "--num-warmups", "9", "--output-json", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json written = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(written["num_requests"], 7);
  EXPECT_EQ(written["drafts"]["output_tokens"], 7 * 6);
}

TEST(Bench, DraftsInTheJson) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("throughput.json");
  const CommandResult result =
      throughput({"--num-prompts", "8", "--output-len", "24", "--temperature", "0", "--output-json",
                  file, "--speculative", R"({"num_speculative_tokens": 2})", "-sc",
                  R"({"method":"ngram","num_speculative_tokens":3,"length_policy":"fixed"})"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json drafts = nlohmann::json::parse(read_file(file))["drafts"];
  EXPECT_EQ(drafts["drafter"], "ngram");
  EXPECT_EQ(drafts["rejection_sample_method"], "coupled");
  ASSERT_EQ(drafts["drafted_by_position"].size(), 2u) << drafts;
  EXPECT_EQ(drafts["drafted_by_position"][0], drafts["drafts"]);
  int64_t sum = 0;
  for (const auto& count : drafts["accepted_by_position"]) sum += count.get<int64_t>();
  EXPECT_EQ(sum, drafts["accepted_tokens"]);
  EXPECT_NE(result.out.find("accepted by position: 0."), std::string::npos) << result.out;
}

TEST(Bench, PairsCompareEnginesRoundByRound) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("pairs.json");
  const std::vector<std::string> common = {"bench",
                                           "pairs",
                                           "--model",
                                           bundled_model().string(),
                                           "--batch-size",
                                           "2",
                                           "--num-pairs",
                                           "3",
                                           "--min-round-ms",
                                           "20",
                                           "--output-len",
                                           "12",
                                           "--max-model-len",
                                           "512",
                                           "--log-level",
                                           "error",
                                           "--num-gpu-blocks-override",
                                           "128",
                                           "-sc",
                                           R"({"method":"ngram","num_speculative_tokens":3})"};
  std::vector<std::string> good = common;
  good.insert(good.end(), {"--variants", "off,adaptive,fixed:2", "--output-json", file});
  const CommandResult result = run_command(good);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("adaptive over off: "), std::string::npos) << result.out;
  const nlohmann::json all = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(all["variants"].size(), 3u);
  for (const auto& variant : all["variants"]) {
    EXPECT_EQ(variant["seconds"].size(), 3u);
    EXPECT_EQ(variant["drafts"]["output_tokens"], all["variants"][0]["drafts"]["output_tokens"])
        << "speculation changes no text";
    EXPECT_EQ(variant["differing_outputs"], 0);
    for (const double seconds : variant["seconds"]) EXPECT_GT(seconds, 0);
  }
  EXPECT_GE(all["turns_per_round"], 1);
  EXPECT_EQ(all["variants"][0]["drafts"]["drafts"], 0);
  ASSERT_EQ(all["ratios"].size(), 3u);
  EXPECT_EQ(all["ratios"][2]["over"], "fixed:2");
  for (const auto& ratio : all["ratios"]) {
    EXPECT_LE(ratio["low"], ratio["median"]);
    EXPECT_LE(ratio["median"], ratio["high"]);
  }
  for (const char* wrong : {"fixed:4", "fixed:0", "sometimes"}) {
    std::vector<std::string> bad = common;
    bad.insert(bad.end(), {"--variants", std::string("off,") + wrong});
    const CommandResult refused = run_command(bad);
    EXPECT_EQ(refused.exit_code, 1);
    ASSERT_EQ(refused.errors().size(), 1u) << refused.err;
    EXPECT_NE(refused.errors()[0].find("fixed:K with K from 1 to 3"), std::string::npos);
  }
}

CommandResult decode(const std::vector<std::string>& more) {
  std::vector<std::string> all = {
      "bench",       "decode", "--model",         bundled_model().string(),
      "--log-level", "error",  "--max-model-len", "512"};
  all.insert(all.end(), more.begin(), more.end());
  return run_command(all);
}

TEST(Bench, DecodeMeasuresEverySizeWithEveryEngine) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("decode.json");
  const CommandResult result =
      decode({"--batch-sizes", "1,3", "--input-lens", "8,16", "--output-len", "40",
              "--short-output-len", "4", "--num-iters", "2", "--variants", "off,fixed:2@1",
              "--output-json", file, "-sc", R"({"method":"ngram","num_speculative_tokens":3})"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("prompt 16, batch 3, fixed:2@1: "), std::string::npos) << result.out;
  const nlohmann::json all = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(all["sizes"].size(), 4u);
  EXPECT_EQ(all["sizes"][1]["input_len"], 8);
  EXPECT_EQ(all["sizes"][1]["batch_size"], 3);
  for (const auto& size : all["sizes"]) {
    ASSERT_EQ(size["variants"].size(), 2u);
    EXPECT_EQ(size["ratios"].size(), 1u);
    for (const auto& variant : size["variants"]) {
      // Twice, and again where noise hid what tokens take.
      const size_t runs = variant["long_seconds"].size();
      EXPECT_TRUE(runs == 2 || runs == 4 || runs == 6) << runs;
      EXPECT_EQ(variant["drafts"]["output_tokens"], runs * 40 * size["batch_size"].get<size_t>());
      EXPECT_GE(variant["ms_per_step"].get<double>() * 1.000001,
                variant["ms_per_token"].get<double>());
    }
    EXPECT_EQ(size["variants"][0]["drafts"]["drafts"], 0);
  }
}

// What a single token takes may be less than noise, whatever it was here: a size without figures
// stops no other one, and is told.
TEST(Bench, DecodeGoesOnBehindASizeWhoseTimesNoiseHides) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("decode.json");
  const CommandResult result =
      decode({"--batch-sizes", "1,2,3,4", "--input-lens", "300", "--output-len", "2",
              "--short-output-len", "1", "--num-iters", "1", "--output-json", file});
  const nlohmann::json all = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(all["sizes"].size() + all["unmeasured"].size(), 4u) << all;
  EXPECT_EQ(result.exit_code, all["unmeasured"].empty() ? 0 : 1) << result.err;
  for (const auto& size : all["unmeasured"]) {
    EXPECT_NE(size["reason"].get<std::string>().find("in 3 runs outputs of --output-len 2 took no"),
              std::string::npos)
        << size;
  }
}

TEST(Bench, DecodeRefusesWhatItCannotRunAtOnce) {
  const auto first_error = [](const std::vector<std::string>& more) {
    const CommandResult result = decode(more);
    EXPECT_EQ(result.exit_code, 1);
    return result.errors().empty() ? std::string() : result.errors()[0];
  };
  EXPECT_NE(first_error({"--batch-sizes", "1,9", "--max-num-seqs", "8"}).find("--max-num-seqs"),
            std::string::npos);
  EXPECT_NE(
      first_error({"--batch-sizes", "4", "--num-gpu-blocks-override", "30"}).find("KV blocks"),
      std::string::npos);
  EXPECT_NE(first_error({"--input-lens", "400"}).find("max_model_len"), std::string::npos);
  EXPECT_NE(first_error({"--short-output-len", "272"}).find("--short-output-len"),
            std::string::npos);
  EXPECT_NE(first_error({"--variants", "off,fixed"}).find("--speculative-config"),
            std::string::npos);
  for (const char* unknown : {"bogus", ""}) {
    EXPECT_NE(first_error({"--variants", unknown}).find("must be off, adaptive"),
              std::string::npos);
  }
  for (const char* wrong : {"off@", "off@0", "off@4", "off@1@2"}) {
    EXPECT_NE(first_error({"--variants", wrong}).find("steps in flight"), std::string::npos);
  }
}

CommandResult forward(const std::vector<std::string>& more) {
  std::vector<std::string> all = {
      "bench",     "forward", "--model",         bundled_model().string(),
      "--seconds", "0.002",   "--max-model-len", "512"};
  all.insert(all.end(), more.begin(), more.end());
  return run_command(all);
}

TEST(Bench, ForwardTimesEveryShapeWithGraphsAndWithout) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("forward.json");
  const CommandResult result =
      forward({"--batch-sizes", "2,3", "--rows-per-seq", "1,2", "--bonus", "1..BS", "--read-tb-s",
               "0.05", "--tflops", "0.5", "--output-json", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json shapes = nlohmann::json::parse(read_file(file))["shapes"];
  std::vector<int> rows;
  for (const auto& shape : shapes) {
    rows.push_back(shape["rows"]);
    for (const char* what : {"forward", "with_logits"}) {
      EXPECT_GT(shape[what]["graph_ms"], 0.0);
      EXPECT_GT(shape[what]["eager_ms"], 0.0);
      EXPECT_GT(shape[what]["percent_of_floor"], 0.0);
    }
    EXPECT_LT(shape["forward"]["floor_ms"], shape["with_logits"]["floor_ms"]);
  }
  EXPECT_EQ(rows, (std::vector<int>{2, 4, 3, 4, 3, 6, 4, 5, 6}));
  for (const char* wrong : {"0..2", "x", "1..", "BS..x"}) {
    const CommandResult refused = forward({std::string("--bonus=") + wrong});
    EXPECT_NE(refused.exit_code, 0) << wrong;
  }
}

TEST(Bench, KernelsAreComparedWithTheLimits) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.file("kernels.json");
  const CommandResult result =
      run_command({"bench", "kernels", "--model", bundled_model().string(), "--seconds", "0.001",
                   "--max-model-len", "512", "--batch-sizes", "1,3", "--rows-per-seq", "2",
                   "--read-tb-s", "0.05", "--tflops", "0.5", "--output-json", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("attention"), std::string::npos) << result.out;
  const nlohmann::json shapes = nlohmann::json::parse(read_file(file))["shapes"];
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[1]["batch_size"], 3);
  for (const auto& op : shapes[1]["ops"]) {
    if (op["bytes"] == 0) continue;
    const double us = op["us"];
    const double limit_us =
        std::max(op["bytes"].get<double>() / 0.05e12, op["flops"].get<double>() / 0.5e12) * 1e6;
    EXPECT_NEAR(op["percent_of_limit"].get<double>(), 100 * limit_us / us,
                1e-6 * 100 * limit_us / us)
        << op;
  }
}

TEST(Bench, ThroughputDatasets) {
  const test::ScratchFolder scratch;
  const std::string chats = scratch.write(
      "chats.json",
      R"([{"conversations": [{"value": "A cat"}, {"value": "and a dog"}]}, {"conversations": []}])");
  const std::string lines = scratch.write("lines.txt", "The sun was up\n\nand the cat sat\n");
  const std::string custom =
      scratch.write("custom.jsonl",
                    "{\"prompt\": \"A cat\"}\n"
                    "{\"messages\": [{\"role\": \"user\", \"content\": \"A dog\"}]}\n");
  const std::vector<std::string> small = {"--num-prompts", "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), small.begin(), small.end());
    return throughput(more);
  };
  for (const std::vector<std::string>& given : std::vector<std::vector<std::string>>{
           {"--dataset-name", "random", "--input-len", "8", "--output-len", "4"},
           {"--dataset-name", "sharegpt", "--dataset-path", chats},
           {"--dataset-name", "sonnet", "--dataset-path", lines, "--input-len", "20",
            "--output-len", "4"},
           {"--dataset-name", "custom", "--dataset-path", custom, "--output-len", "4"}}) {
    const CommandResult result = with(given);
    EXPECT_EQ(result.exit_code, 0) << given[1] << result.err;
    EXPECT_NE(result.out.find("Total num prompt tokens:  "), std::string::npos) << given[1];
  }
  const CommandResult none = with({"--dataset-name", "custom"});
  EXPECT_EQ(none.exit_code, 1);
  ASSERT_EQ(none.errors().size(), 1u) << none.err;
  EXPECT_NE(none.errors()[0].find("--dataset-path"), std::string::npos);
  const CommandResult empty = with({"--dataset-name", "custom", "--dataset-path", lines});
  EXPECT_EQ(empty.exit_code, 1);
}

TEST(Inspect, ConfigOnlyNeedsNeitherWeightsNorTokenizer) {
  const test::ScratchFolder scratch;
  scratch.write("config.json", read_file(bundled_model() / "config.json"));
  const CommandResult result =
      run_command({"inspect", "--json", "--config-only", "--model", scratch.path()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json model = nlohmann::json::parse(result.out)["model"];
  EXPECT_EQ(model["architecture"], "LlamaForCausalLM");
  EXPECT_FALSE(model["tokenizer"]);
  EXPECT_GT(model["weights_mib"], 1.0);
  EXPECT_GT(model["kv_cache_bytes_per_token"], 0);
  const CommandResult missing =
      run_command({"inspect", "--config-only", "--model", "/nonexistent/model"});
  EXPECT_EQ(missing.exit_code, 1);
  ASSERT_EQ(missing.errors().size(), 1u) << missing.err;
}

// Heads say what they are for, and what they take.
TEST(Inspect, HeadsOfDrafters) {
  const std::string golden = std::string(foretoken::kSourceFolder) + "/tests/golden/";
  const struct {
    std::string folder;
    const char* drafter;
    int num_layers;
  } heads[] = {{"block_heads/dflash", "dflash", 2},
               {"block_heads/dspark", "dspark", 2},
               {"block_heads/domino", "domino", 2},
               {"layered_heads/p_eagle", "p_eagle", 3},
               {"layered_heads/p_eagle-speculators", "p_eagle", 2},
               {"layered_heads/eagle3-2-layers", "eagle3", 2},
               {"heads/eagle", "eagle", 1},
               {"heads/mtp-2", "mtp", 2}};
  for (const auto& head : heads) {
    for (const bool config_only : {false, true}) {
      std::vector<std::string> arguments = {"inspect", "--json", golden + head.folder};
      if (config_only) arguments.emplace_back("--config-only");
      const CommandResult result = run_command(arguments);
      ASSERT_EQ(result.exit_code, 0) << head.folder << result.err;
      const nlohmann::json model = nlohmann::json::parse(result.out)["model"];
      EXPECT_EQ(model["drafter"], head.drafter);
      EXPECT_EQ(model["num_layers"], head.num_layers) << head.folder;
      EXPECT_EQ(model["target_hidden_size"], 32);
      EXPECT_GT(model["kv_cache_bytes_per_token"], 0);
    }
  }
  const test::ScratchFolder scratch;
  nlohmann::json masked = nlohmann::json::parse(read_file(bundled_model() / "config.json"));
  masked["pard_token"] = 5;
  scratch.write("config.json", masked.dump());
  std::filesystem::create_symlink(bundled_model() / "model.safetensors",
                                  scratch.file("model.safetensors"));
  const CommandResult pard = run_command({"inspect", "--json", "--config-only", scratch.path()});
  ASSERT_EQ(pard.exit_code, 0) << pard.err;
  EXPECT_EQ(nlohmann::json::parse(pard.out)["model"]["mask_token_id"], 5);
  const CommandResult times =
      run_command({"inspect", "--step-times", golden + "block_heads/dflash"});
  EXPECT_EQ(times.exit_code, 1);
  EXPECT_NE(times.err.find("--spec-model"), std::string::npos) << times.err;
}

TEST(Inspect, WeightsWithoutATokenizer) {
  const test::ScratchFolder scratch;
  const auto model = copy_model(scratch);
  std::filesystem::remove(model / "tokenizer.json");
  const CommandResult result = run_command({"inspect", "--json", "--model", model.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(nlohmann::json::parse(result.out)["model"]["num_parameters"], 0);
}

TEST(Inspect, ListsWhatIsBuilt) {
  const CommandResult result = run_command({"inspect", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all["version"], kVersion);
  ASSERT_EQ(all["devices"].size(), 2u);
  EXPECT_TRUE(all["devices"][0]["available"]);
  EXPECT_TRUE(all["devices"][1]["available"] == true || all["devices"][1].contains("reason"));
  EXPECT_FALSE(all["architectures"].empty());
  EXPECT_FALSE(all["drafters"].empty());
  EXPECT_FALSE(all["attention_backends"].empty());
  EXPECT_FALSE(all.contains("model"));
}

TEST(Inspect, ListsFamiliesAndWhatOthersNeed) {
  const CommandResult result = run_command({"inspect", "--families", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all["loads"][0]["name"], "LlamaForCausalLM");
  const auto& refused = all["does_not_load"];
  const auto jet = std::find_if(refused.begin(), refused.end(), [](const auto& family) {
    return family["name"] == "JetMoeForCausalLM";
  });
  ASSERT_NE(jet, refused.end());
  EXPECT_EQ((*jet)["needs"], "experts of attention");
  const CommandResult text = run_command({"inspect", "--families"});
  EXPECT_NE(text.out.find("| JetMoE | `JetMoeForCausalLM` | needs experts of attention |"),
            std::string::npos)
      << text.out;
}

TEST(Inspect, DraftersAndStepTimes) {
  const CommandResult result =
      run_command({"inspect", "--json", "--step-times", "--model", bundled_model().string(),
                   "--max-num-batched-tokens", "64", "--max-num-seqs", "4",
                   "--num-gpu-blocks-override", "64", "-sc",
                   R"([{"method":"draft_model","num_speculative_tokens":3},
                       {"method":"ngram","num_speculative_tokens":2}])"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json model = nlohmann::json::parse(result.out)["model"];
  ASSERT_EQ(model["drafters"].size(), 2u) << model;
  EXPECT_EQ(model["drafters"][0]["name"], "draft_model");
  EXPECT_EQ(model["drafters"][0]["num_speculative_tokens"], 3);
  EXPECT_GT(model["drafters"][0]["memory_mib"], 1.0);
  EXPECT_EQ(model["drafters"][1]["name"], "ngram");
  EXPECT_NE(model["step_times"].get<std::string>().find("draft_model"), std::string::npos);
  const CommandResult none =
      run_command({"inspect", "--step-times", "--model", bundled_model().string()});
  EXPECT_EQ(none.exit_code, 1);
  ASSERT_EQ(none.errors().size(), 1u) << none.err;
  EXPECT_NE(none.errors()[0].find("--speculative-config"), std::string::npos);
}

// A context of 1M positions must not cost the drafter memory of its own.
TEST(Inspect, NgramMemoryStaysSmallAtOneMillionPositions) {
  const test::ScratchFolder scratch;
  nlohmann::json config = nlohmann::json::parse(read_file(bundled_model() / "config.json"));
  config["max_position_embeddings"] = 1048576;
  scratch.write("config.json", config.dump());
  const CommandResult result = run_command(
      {"inspect", "--json", "--model", scratch.path(), "--load-format", "dummy", "--max-model-len",
       "1M", "--max-num-seqs", "256", "--num-gpu-blocks-override", "64", "--speculative-config",
       R"({"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4})"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json model = nlohmann::json::parse(result.out)["model"];
  EXPECT_EQ(model["max_model_len"], 1048576);
  EXPECT_EQ(model["max_num_seqs"], 256);
  EXPECT_LE(model["drafter_mib_beyond_kv_cache_token_pages_block_tables"], 15.0);
}

}  // namespace
}  // namespace foretoken
