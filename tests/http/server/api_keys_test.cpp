#include "http/server/api_keys.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/scratch_folder.h"

namespace foretoken::http {
namespace {

class HttpApiKeys : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("FORETOKEN_API_KEY");
    unsetenv("VLLM_API_KEY");
  }
  void TearDown() override { SetUp(); }
  void write(const std::string& text) { folder_.write("keys", text); }

  const test::ScratchFolder folder_;
  const std::string file_ = folder_.file("keys");
};

ApiKeys read(const std::vector<std::string>& keys, const std::string& file = "") {
  auto result = ApiKeys::read(keys, file);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : ApiKeys();
}

TEST_F(HttpApiKeys, SeveralFromCommandLineAndFile) {
  write("# staff\nthree  \n\n\tfour\r\n");
  const ApiKeys keys = read({"one", "two"}, file_);
  EXPECT_EQ(keys.size(), 4U);
  for (const char* key : {"one", "two", "three", "four"}) EXPECT_TRUE(keys.accepts(key)) << key;
  for (const char* key : {"", "on", "one ", "One", "# staff"})
    EXPECT_FALSE(keys.accepts(key)) << key;
}

TEST_F(HttpApiKeys, EnvironmentOnlyWithoutOthers) {
  EXPECT_TRUE(read({}).empty());
  setenv("VLLM_API_KEY", "from-env", 1);
  EXPECT_TRUE(read({}).accepts("from-env"));
  setenv("FORETOKEN_API_KEY", "other", 1);
  EXPECT_TRUE(read({}).accepts("other"));
  EXPECT_FALSE(read({"flag"}).accepts("from-env"));
}

TEST_F(HttpApiKeys, BothHeaders) {
  const ApiKeys keys = read({"secret"});
  const auto accepts = [&](const std::string& name, const std::string& value) {
    Request request;
    request.headers = {{name, value}};
    return keys.accepts(request);
  };
  EXPECT_TRUE(accepts("authorization", "Bearer secret"));
  EXPECT_TRUE(accepts("Authorization", "bearer   secret "));
  EXPECT_TRUE(accepts("X-Api-Key", "secret"));
  EXPECT_FALSE(accepts("Authorization", "secret"));
  EXPECT_FALSE(accepts("Authorization", "Bearersecret"));
  EXPECT_FALSE(accepts("Authorization", "Basic secret"));
  EXPECT_FALSE(accepts("Authorization", "Bearer"));
  EXPECT_FALSE(accepts("x-api-key", ""));
}

// As Notepad and PowerShell write a file.
TEST_F(HttpApiKeys, FilesOfWindows) {
  write("\xEF\xBB\xBFone\r\ntwo\r\n");
  const ApiKeys keys = read({}, file_);
  EXPECT_TRUE(keys.accepts("one"));
  EXPECT_TRUE(keys.accepts("two"));
}

TEST_F(HttpApiKeys, RefusesWhatCannotWork) {
  EXPECT_FALSE(ApiKeys::read({""}, "").ok());
  EXPECT_FALSE(ApiKeys::read({"two words"}, "").ok());
  EXPECT_FALSE(ApiKeys::read({}, file_).ok());  // missing
  write("# nothing\n");
  const auto empty = ApiKeys::read({}, file_);
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.status().message().find(file_), std::string::npos);
  write("good\nbad key\n");
  EXPECT_NE(ApiKeys::read({}, file_).status().message().find("line 2"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::http
