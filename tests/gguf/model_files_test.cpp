#include "gguf/model_files.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "gguf/container/gguf_file.h"
#include "gguf/gguf_bytes.h"

namespace foretoken {
namespace {

TEST(ModelFiles, AFileIsOpenedOnceForAllCopies) {
  const ModelFiles model(test::golden_gguf("llama.gguf"));
  EXPECT_TRUE(model.is_gguf());
  const GgufFile* seen[4] = {};
  std::vector<std::thread> threads;
  for (const GgufFile*& file : seen) {
    threads.emplace_back([&file, copy = model] { file = copy.gguf().value().get(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const GgufFile* file : seen) EXPECT_EQ(file, model.gguf().value().get());
  EXPECT_EQ(seen[0]->path(), model.text());
}

TEST(ModelFiles, AnErrorStays) {
  const ModelFiles model("/nowhere/x.gguf");
  EXPECT_EQ(model.gguf().status().code(), StatusCode::kNotFound);
  EXPECT_EQ(model.gguf().status().message(), model.gguf().status().message());
  EXPECT_FALSE(ModelFiles("/nowhere").is_gguf());
}

}  // namespace
}  // namespace foretoken
