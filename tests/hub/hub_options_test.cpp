#include "hub/hub_options.h"

#include <gtest/gtest.h>

#include <map>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

HubOptions options_of(const std::map<std::string, std::string>& variables) {
  return hub_options_from_environment(
      [&variables](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      });
}

TEST(HubOptions, CacheFolder) {
  EXPECT_EQ(options_of({{"HOME", "/h"}}).cache_folder, "/h/.cache/huggingface/hub");
  EXPECT_EQ(options_of({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache_folder,
            "/x/huggingface/hub");
  EXPECT_EQ(options_of({{"HOME", "/h"}, {"HF_HOME", "~/hf"}}).cache_folder, "/h/hf/hub");
  EXPECT_EQ(options_of({{"DATA", "/d"}, {"HF_HOME", "${DATA}/hf"}}).cache_folder, "/d/hf/hub");
  EXPECT_EQ(options_of({{"DATA", "/d"}, {"HF_HOME", "$DATA/$NONE"}}).cache_folder, "/d/$NONE/hub");
  EXPECT_EQ(options_of({{"HF_HOME", "/a"}, {"HUGGINGFACE_HUB_CACHE", "/b"}}).cache_folder, "/b");
  EXPECT_EQ(options_of({{"HUGGINGFACE_HUB_CACHE", "/b"}, {"HF_HUB_CACHE", "/c"}}).cache_folder,
            "/c");
  EXPECT_EQ(options_of({{"HF_HOME", ""}, {"HOME", "/h"}}).cache_folder,
            "/h/.cache/huggingface/hub");
  EXPECT_EQ(options_of({}).cache_folder, "");
}

TEST(HubOptions, EndpointOfflineAndCertificates) {
  EXPECT_EQ(options_of({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(options_of({{"HF_ENDPOINT", "https://mirror/"}}).endpoint, "https://mirror");
  EXPECT_FALSE(options_of({}).offline);
  EXPECT_FALSE(options_of({{"HF_HUB_OFFLINE", "0"}}).offline);
  for (const char* value : {"1", "on", "YES", "True"}) {
    EXPECT_TRUE(options_of({{"HF_HUB_OFFLINE", value}}).offline);
    EXPECT_TRUE(options_of({{"TRANSFORMERS_OFFLINE", value}}).offline);
  }
  EXPECT_EQ(options_of({{"REQUESTS_CA_BUNDLE", "/ca.pem"}}).ca_file, "/ca.pem");
}

TEST(HubOptions, Token) {
  const test::ScratchFolder scratch;
  scratch.write("token", " hf_home \n");
  const std::string other = scratch.write("other", "hf_other");
  EXPECT_EQ(options_of({{"HF_HOME", scratch.path()}}).token, "hf_home");
  EXPECT_EQ(options_of({{"HF_HOME", scratch.path()}, {"HF_TOKEN_PATH", other}}).token, "hf_other");
  EXPECT_EQ(options_of({{"HF_HOME", scratch.path()}, {"HF_TOKEN", "hf_env\n"}}).token, "hf_env");
  EXPECT_EQ(options_of({{"HF_TOKEN", "x"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token, "");
  EXPECT_EQ(options_of({{"HF_HOME", "/nonexistent"}}).token, "");
}

TEST(HubOptions, OfTheProcess) {
  setenv("HF_HUB_CACHE", "/from/process", 1);
  EXPECT_EQ(hub_options_from_environment().cache_folder, "/from/process");
  unsetenv("HF_HUB_CACHE");
}

}  // namespace
}  // namespace foretoken
