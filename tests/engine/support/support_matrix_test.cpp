#include "engine/support/support_matrix.h"
#include "support/folders.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace foretoken {
namespace {

// docs/support-matrix.md holds what `foretoken inspect --matrix` prints between two marks.
TEST(SupportMatrix, ThePageSaysWhatTheBuildDecides) {
  std::ifstream file(std::string(foretoken::kSourceFolder) + "/docs/support-matrix.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string begin = "<!-- foretoken inspect --matrix -->\n";
  const size_t at = page.find(begin);
  const size_t end = page.find("<!-- end -->");
  ASSERT_TRUE(at != std::string::npos && end != std::string::npos);
  EXPECT_EQ(page.substr(at + begin.size(), end - at - begin.size()), support_matrix())
      << "put the output of `foretoken inspect --matrix` between the marks";
}

TEST(SupportMatrix, EveryNoHasItsSentence) {
  const std::string text = support_matrix();
  for (const char* part :
       {"| portable | cuda | yes | yes |",
        "- --kv-cache-dtype int8 is not read by --attention-backend flashinfer_mla",
        "- --kv-cache-dtype fp8 is not read by --attention-backend flashinfer", "| ngram | none |",
        "drafts are repaired", "| logits processors | yes | yes | yes | yes | yes |",
        "| 13 | LlamaForCausalLM | eagle |", "| FLASHMLA | cuda | yes |",
        "| an odd hidden size | yes | yes | no | no | yes |",
        "- --enable-dbo: 65, the hidden size of the model",
        "| sliding windows | yes | yes | yes | yes | yes | yes | yes |",
        "| blocks that an indexer chooses | yes | yes | yes | yes | yes | no |",
        "| compressed entries | yes | yes | yes | yes | yes | yes | yes |",
        "| `--lora-dtype`, `--dtype` | --lora-dtype float16: adapters are kept"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace foretoken
