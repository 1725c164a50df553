#include "engine/start/locate_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/hub_server.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class LocateModel : public testing::Test {
 protected:
  LocateModel() {
    setenv("no_proxy", "*", 1);
    setenv("HF_ENDPOINT", server.url().c_str(), 1);
    repo.commit = std::string(40, 'a');
    repo.files = {{"config.json", "{}"}, {"model.safetensors", "weights"}};
    repo.revisions = {"main", "dev"};
    server.set_repo("org/tiny", repo);
    config.model = "org/tiny";
    config.download_dir = scratch.file("cache");
  }
  ~LocateModel() override { unsetenv("HF_ENDPOINT"); }

  const test::ScratchFolder scratch;
  test::HubServer server;
  test::HubServerRepo repo;
  EngineConfig config;
};

TEST_F(LocateModel, FoldersStayAsTheyAre) {
  config.model = scratch.path();
  config.max_num_seqs = 7;
  const auto located = locate_model(config);
  ASSERT_TRUE(located.ok());
  EXPECT_EQ(located.value().model, scratch.path());
  EXPECT_EQ(located.value().max_num_seqs, 7);
}

TEST_F(LocateModel, IdsBecomeSnapshots) {
  int num_calls = 0;
  config.revision = "dev";
  config.on_download_progress = [&](const std::string&, int64_t, int64_t) { ++num_calls; };
  const auto located = locate_model(config);
  ASSERT_TRUE(located.ok()) << located.status().message();
  EXPECT_EQ(located.value().model,
            scratch.file("cache/models--org--tiny/snapshots/" + repo.commit));
  EXPECT_TRUE(std::filesystem::exists(scratch.file("cache/models--org--tiny/refs/dev")));
  EXPECT_GT(num_calls, 0);
}

// What a Modelfile set lies below what the user overrides.
TEST_F(LocateModel, OllamasParametersAreDefaults) {
  const std::string digest(64, 'a'), parameters(64, 'b');
  std::filesystem::create_directories(scratch.file("manifests/registry.ollama.ai/library/tiny"));
  std::filesystem::create_directories(scratch.file("blobs"));
  const std::string gguf = scratch.write("blobs/sha256-" + digest, "GGUF");
  (void)scratch.write("blobs/sha256-" + parameters, R"({"temperature": 0.5, "top_k": 7})");
  config.model = scratch.write("manifests/registry.ollama.ai/library/tiny/latest",
                               R"({"layers": [
    {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" +
                                   digest + R"("},
    {"mediaType": "application/vnd.ollama.image.params", "digest": "sha256:)" +
                                   parameters + R"("}]})");
  config.override_generation_config = R"({"top_k": 9})";
  const auto located = locate_model(config);
  ASSERT_TRUE(located.ok()) << located.status().message();
  EXPECT_EQ(located.value().model, gguf);
  EXPECT_EQ(nlohmann::json::parse(located.value().override_generation_config),
            (nlohmann::json{{"temperature", 0.5}, {"top_k", 9}}));
  config.generation_config = "vllm";
  EXPECT_EQ(locate_model(config).value().override_generation_config, R"({"top_k": 9})");
}

TEST_F(LocateModel, DraftersHaveTheirOwnModelsAndRevisions) {
  test::HubServerRepo head = repo;
  head.commit = std::string(40, 'b');
  head.revisions = {"main", "v2"};
  server.set_repo("org/head", head);
  config.model = scratch.path();
  config.revision = "dev";
  SpeculativeConfig drafter;
  drafter.model = "org/head";
  drafter.revision = "v2";
  config.speculative = {drafter, SpeculativeConfig()};
  const auto folders = locate_drafters(config);
  ASSERT_TRUE(folders.ok()) << folders.status().message();
  EXPECT_EQ(folders.value(),
            (std::vector<std::string>{
                scratch.file("cache/models--org--head/snapshots/" + head.commit), scratch.path()}));
  config.speculative[0].model = scratch.file("nowhere");
  EXPECT_FALSE(locate_drafters(config).ok());
}

TEST_F(LocateModel, DummyWeightsAreNotFetched) {
  config.load_format = "dummy";
  ASSERT_TRUE(locate_model(config).ok());
  EXPECT_EQ(server.count("", "safetensors"), 0);
}

TEST_F(LocateModel, OtherFilesAreNotFetched) {
  config.load_format = "gguf";
  EXPECT_EQ(locate_model(config).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(server.count("", "safetensors"), 0);
}

TEST_F(LocateModel, CancelledBeforeItBegan) {
  const std::atomic<bool> cancel{true};
  config.cancel_load = &cancel;
  EXPECT_EQ(locate_model(config).status().code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace foretoken
