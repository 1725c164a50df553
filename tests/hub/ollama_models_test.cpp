#include "hub/ollama_models.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "hub/resolve_model.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Ollama's folder with the model llama3.2:1b.
class OllamaModels : public testing::Test {
 protected:
  OllamaModels() : folder_(scratch_.path()) {
    write("blobs/" + blob('a'), "GGUF");
    write("blobs/" + blob('b'), R"({"temperature": 0.5, "repeat_penalty": 1.1, "num_ctx": 4096})");
    add_layer("model", 'a');
    add_layer("params", 'b');
    add_layer("license", 'c');
    write_manifest(kManifest);
  }
  static std::string blob(char digit) { return "sha256-" + std::string(64, digit); }
  void add_layer(const char* kind, char digit) {
    layers_.push_back({{"mediaType", std::string("application/vnd.ollama.image.") + kind},
                       {"digest", "sha256:" + std::string(64, digit)},
                       {"size", 4}});
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((fs::path(folder_) / name).parent_path());
    (void)scratch_.write(name, text);
  }
  void write_manifest(const std::string& name) {
    write(name, Json{{"schemaVersion", 2}, {"layers", layers_}}.dump());
  }
  std::string message_of(const std::string& model) const {
    return find_ollama_model(model, folder_).status().message();
  }

  static constexpr const char* kManifest = "manifests/registry.ollama.ai/library/llama3.2/1b";
  test::ScratchFolder scratch_;
  std::string folder_;
  Json layers_ = Json::array();
};

TEST_F(OllamaModels, AreFoundByPathAndByName) {
  write_manifest("manifests/registry.ollama.ai/library/llama3.2/latest");
  write_manifest("manifests/hf.co/org/tiny/Q8_0");
  for (const std::string& name : {scratch_.file(kManifest), std::string("llama3.2:1b"),
                                  std::string("llama3.2"), std::string("hf.co/org/tiny:Q8_0")}) {
    const auto found = find_ollama_model(name, folder_);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(found.value().has_value()) << name;
    EXPECT_EQ(found.value()->gguf, scratch_.file("blobs/" + blob('a')));
    EXPECT_EQ(found.value()->sampling, (Json{{"temperature", 0.5}, {"repetition_penalty", 1.1}}));
  }
  for (const std::string& name :
       {std::string("llama3.2:8b"), std::string("org/tiny"), std::string("../x"),
        scratch_.file("blobs/" + blob('b')), scratch_.path()}) {
    const auto found = find_ollama_model(name, folder_);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_FALSE(found.value().has_value()) << name;
  }
  EXPECT_FALSE(find_ollama_model("llama3.2:1b", "").value().has_value());
}

TEST_F(OllamaModels, StandForTheirFiles) {
  HubOptions options;
  options.offline = true;
  options.cache_folder = scratch_.file("hub");
  options.ollama_folder = folder_;
  EXPECT_EQ(resolve_model_folder("llama3.2:1b", options).value(),
            scratch_.file("blobs/" + blob('a')));
  options.revision = "main";
  EXPECT_FALSE(resolve_model_folder("llama3.2:1b", options).ok());
}

TEST_F(OllamaModels, SayWhatIsMissing) {
  fs::remove(scratch_.file("blobs/" + blob('a')));
  EXPECT_NE(message_of("llama3.2:1b").find("is missing; fetch it again with ollama pull"),
            std::string::npos);
  write("blobs/" + blob('a'), "else");
  EXPECT_NE(message_of("llama3.2:1b").find("is no GGUF file"), std::string::npos);
  add_layer("adapter", 'd');
  write_manifest(kManifest);
  EXPECT_NE(message_of("llama3.2:1b").find("has an adapter in GGUF"), std::string::npos);
}

TEST_F(OllamaModels, FolderOfTheEnvironment) {
  const auto lookup = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "OLLAMA_MODELS") return folder_;
    return std::nullopt;
  };
  EXPECT_EQ(ollama_folder(lookup), folder_);
  const std::string home = scratch_.file("home");
  fs::create_directories(home + "/.ollama/models/manifests");
  EXPECT_EQ(ollama_folder([&](const std::string& name) -> std::optional<std::string> {
              if (name == "HOME") return home;
              return std::nullopt;
            }),
            home + "/.ollama/models");
}

}  // namespace
}  // namespace foretoken
