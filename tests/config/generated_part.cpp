#include "config/generated_part.h"
#include "support/folders.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace foretoken::test {

void expect_generated(const GeneratedPart& part, const std::string& text) {
  const std::string path = std::string(foretoken::kSourceFolder) + "/" + part.path;
  std::ifstream file(path, std::ios::binary);
  std::string whole(std::istreambuf_iterator<char>(file), {});
  size_t begin = 0;
  size_t end = whole.size();
  if (!part.begin.empty()) {
    begin = whole.find(part.begin + "\n");
    ASSERT_NE(begin, std::string::npos) << part.path << " has no line '" << part.begin << "'";
    begin += part.begin.size() + 1;
    end = whole.find(part.end + "\n", begin);
    ASSERT_NE(end, std::string::npos) << part.path << " has no line '" << part.end << "'";
  }
  if (whole.substr(begin, end - begin) == text) return;
  if (std::getenv("FORETOKEN_WRITE_GENERATED") != nullptr) {
    whole.replace(begin, end - begin, text);
    std::ofstream(path, std::ios::binary) << whole;
    return;
  }
  EXPECT_EQ(whole.substr(begin, end - begin), text)
      << part.path << " is not what the tables of src/config say; write it anew with "
      << "FORETOKEN_WRITE_GENERATED=1 and this test";
}

}  // namespace foretoken::test
