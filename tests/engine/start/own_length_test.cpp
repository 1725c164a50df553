#include "engine/start/own_length.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

int length_of(const char* text) {
  const test::ScratchFolder folder;
  folder.write("sentence_bert_config.json", text);
  return own_max_len(ModelFiles(folder.path()));
}

TEST(OwnLength, IsWhatTheFolderSays) {
  EXPECT_EQ(length_of(R"({"max_seq_length": 256, "do_lower_case": false})"), 256);
  for (const char* none :
       {R"({"max_seq_length": null})", R"({"max_seq_length": 1})",
        R"({"max_seq_length": 99999999999})", R"({"max_seq_length": "9"})", "{}", "no json"}) {
    EXPECT_EQ(length_of(none), 0) << none;
  }
  const test::ScratchFolder empty;
  EXPECT_EQ(own_max_len(ModelFiles(empty.path())), 0);
}

}  // namespace
}  // namespace foretoken
