#include "hub/repo_id.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(RepoId, NamesAndRevisions) {
  const auto plain = parse_repo_id("org/name", "");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain.value().name, "org/name");
  EXPECT_EQ(plain.value().revision, "main");
  EXPECT_EQ(parse_repo_id("gpt2", "").value().name, "gpt2");
  EXPECT_EQ(parse_repo_id("org/name@v1.0", "").value().revision, "v1.0");
  EXPECT_EQ(parse_repo_id("org/name@refs/pr/1", "").value().revision, "refs/pr/1");
  EXPECT_EQ(parse_repo_id("org/name", "dev").value().revision, "dev");
  EXPECT_EQ(parse_repo_id("org/name@dev", "dev").value().revision, "dev");
  EXPECT_TRUE(parse_repo_id("Qwen/Qwen2.5-0.5B_x", "").ok());
  const auto gguf = parse_repo_id("org/name:Q4_K_M@v1", "");
  ASSERT_TRUE(gguf.ok());
  EXPECT_EQ(gguf.value().name, "org/name");
  EXPECT_EQ(gguf.value().gguf_type, "Q4_K_M");
  EXPECT_EQ(gguf.value().revision, "v1");
}

TEST(RepoId, AddressesOfPages) {
  for (const char* model :
       {"https://huggingface.co/org/name", "http://huggingface.co/org/name/", "hf.co/org/name",
        "huggingface.co/org/name", "https://hf.co/org/name?library=vllm", "hf://org/name",
        "https://huggingface.co/org/name/tree/main", "hf://models/org/name"}) {
    const auto id = parse_repo_id(model, "");
    ASSERT_TRUE(id.ok()) << id.status().message();
    EXPECT_EQ(id.value().name, "org/name") << model;
    EXPECT_EQ(id.value().revision, "main") << model;
  }
  EXPECT_EQ(parse_repo_id("hf.co/org/name:Q4_K_M", "").value().gguf_type, "Q4_K_M");
  EXPECT_EQ(parse_repo_id("https://huggingface.co/org/name/tree/v1", "").value().revision, "v1");
  for (const char* model : {"https://huggingface.co/org/name/blob/main/config.json",
                            "https://huggingface.co/datasets/org/name", "hf.co/"}) {
    const auto id = parse_repo_id(model, "");
    ASSERT_FALSE(id.ok()) << model;
    EXPECT_NE(id.status().message().find("give org/name alone"), std::string::npos);
  }
}

TEST(RepoId, RefusesWhatIsNoId) {
  for (const std::string model : {"",
                                  "/nonexistent/model",
                                  "./name",
                                  "../name",
                                  "a/b/c",
                                  "org/",
                                  "/name",
                                  "org/na me",
                                  "org/na--me",
                                  "org/a..b",
                                  "org/name.git",
                                  "-org/name",
                                  "org/name-",
                                  "org/name@",
                                  "@main",
                                  "~/model",
                                  "org\\name",
                                  "org/name:",
                                  "org/name:a/b",
                                  ":Q8_0"}) {
    const auto id = parse_repo_id(model, "");
    ASSERT_FALSE(id.ok()) << model;
    const std::string& message = id.status().message();
    EXPECT_NE(message.find("'" + model + "'"), std::string::npos) << message;
    EXPECT_NE(message.find("neither a folder"), std::string::npos) << message;
    EXPECT_NE(message.find("Hub id"), std::string::npos) << message;
  }
  EXPECT_FALSE(parse_repo_id("org/" + std::string(93, 'a'), "").ok());
  EXPECT_TRUE(parse_repo_id("org/" + std::string(92, 'a'), "").ok());
}

TEST(RepoId, RefusesRevisionsThatAreNoNames) {
  for (const std::string revision : {"../x", "a/../b", "/x", "a//b", "a b", "x^", "a\n", "a\\b"}) {
    const auto id = parse_repo_id("org/name", revision);
    ASSERT_FALSE(id.ok()) << revision;
    EXPECT_NE(id.status().message().find("--revision"), std::string::npos);
  }
  const auto two = parse_repo_id("org/name@a", "b");
  ASSERT_FALSE(two.ok());
  EXPECT_NE(two.status().message().find("two revisions"), std::string::npos);
}

TEST(RepoId, SafePathsAndCommits) {
  EXPECT_TRUE(is_safe_path("a/b.json"));
  EXPECT_TRUE(is_safe_path("a..b"));
  for (const char* path : {"", "/a", "a/", "..", "a/../b", "./a", "a\\b", "a\tb"}) {
    EXPECT_FALSE(is_safe_path(path)) << path;
  }
  EXPECT_TRUE(is_commit(std::string(40, 'f')));
  EXPECT_FALSE(is_commit(std::string(40, 'F')));
  EXPECT_FALSE(is_commit(std::string(39, 'f')));
}

}  // namespace
}  // namespace foretoken
