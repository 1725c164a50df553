#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "hub/resolve_model.h"
#include "support/hub_server.h"
#include "support/scratch_folder.h"

namespace foretoken::test {

// A server with the repository org/tiny, and an empty cache.
class HubFixture : public testing::Test {
 protected:
  HubFixture() {
    setenv("no_proxy", "*", 1);
    repo.commit = std::string(40, 'a');
    repo.files = {{"config.json", "{\"model_type\": \"llama\"}"},
                  {"tokenizer.json", "{\"version\": \"1.0\"}"},
                  {"tokenizer_config.json", "{}"},
                  {"README.md", "read me"},
                  {"pytorch_model.bin", "never fetched"},
                  {"original/consolidated.00.pth", "never fetched"},
                  {"model.safetensors", weights(300000)}};
    repo.large = {"model.safetensors", "pytorch_model.bin"};
    server.set_repo("org/tiny", repo);
    options.cache_folder = scratch.file("hub");
    options.endpoint = server.url();
    options.retry_delay = std::chrono::milliseconds(1);
    options.stall_timeout = std::chrono::minutes(10);
    options.max_attempts = 3;
  }

  // Bytes without a pattern that a wrong offset would hide in.
  static std::string weights(size_t size) {
    std::string bytes(size, '\0');
    uint32_t state = 1;
    for (char& byte : bytes) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<char>(state >> 24);
    }
    return bytes;
  }

  Result<std::string> resolve(const std::string& model = "org/tiny") const {
    return resolve_model_folder(model, options);
  }

  std::filesystem::path root() const {
    return std::filesystem::path(options.cache_folder) / "models--org--tiny";
  }
  std::filesystem::path snapshot() const { return root() / "snapshots" / repo.commit; }
  std::filesystem::path blob(const std::string& file) const {
    return root() / "blobs" / HubServer::etag(repo, file);
  }
  std::filesystem::path incomplete(const std::string& file) const {
    return blob(file).string() + ".incomplete";
  }

  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  // Number of files and links below a folder.
  static int count_files(const std::filesystem::path& folder) {
    int number = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
      number += entry.is_directory() && !entry.is_symlink() ? 0 : 1;
    }
    return number;
  }

  // The answer to every GET of a file whose path holds `part` is `answer`.
  void answer_get(const std::string& part, const HubServerAnswer& answer) {
    server.set_intercept(
        [part, answer](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
          if (request.method == "GET" && request.path.find(part) != std::string::npos) {
            return answer;
          }
          return std::nullopt;
        });
  }

  // The call fails and its message holds every one of `parts`.
  static void expect_error(const Result<std::string>& result,
                           const std::vector<std::string>& parts) {
    ASSERT_FALSE(result.ok()) << result.value();
    for (const std::string& part : parts) {
      EXPECT_NE(result.status().message().find(part), std::string::npos)
          << part << " is not in: " << result.status().message();
    }
  }

  ScratchFolder scratch;
  HubServer server;
  HubServerRepo repo;
  HubOptions options;
};

}  // namespace foretoken::test
