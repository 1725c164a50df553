#include "model/files/containers/zip_entries.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/files/text_file.h"
#include "support/folders.h"

namespace foretoken {
namespace {

std::string golden_archive() {
  return read_text_file(std::string(foretoken::kSourceFolder) + "/tests/golden/torch/plain.bin")
      .value();
}

Result<std::map<std::string, ZipEntry>> entries_of(const std::string& bytes) {
  return read_zip_entries(std::as_bytes(std::span(bytes)), "x.bin");
}

TEST(ZipEntries, FindsTheBytesOfEachEntry) {
  const std::string bytes = golden_archive();
  EXPECT_TRUE(is_zip(std::as_bytes(std::span(bytes))));
  const auto entries = entries_of(bytes);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  const ZipEntry order = entries.value().at("plain/byteorder");
  EXPECT_EQ(bytes.substr(static_cast<size_t>(order.offset), static_cast<size_t>(order.num_bytes)),
            "little");
  EXPECT_FALSE(order.compressed);
  // 24 floats.
  EXPECT_EQ(entries.value().at("plain/data/0").num_bytes, 96);
}

TEST(ZipEntries, CutArchivesAreErrors) {
  const std::string bytes = golden_archive();
  for (size_t cut = 0; cut < bytes.size(); cut += 7) {
    const auto entries = entries_of(bytes.substr(0, cut));
    ASSERT_FALSE(entries.ok()) << cut;
    EXPECT_TRUE(entries.status().message().starts_with("x.bin: the zip archive is broken"))
        << entries.status().message();
  }
  EXPECT_FALSE(is_zip({}));
  // All but the local headers.
  EXPECT_FALSE(entries_of(bytes.substr(64)).ok());
}

TEST(ZipEntries, ChangedArchivesNeverCrash) {
  const std::string bytes = golden_archive();
  std::mt19937 rng(3);
  for (int i = 0; i < 5000; ++i) {
    std::string changed = bytes;
    for (int change = 0; change < 4; ++change) {
      // Most of them in the directory at the end.
      const size_t at = rng() % 2 == 0 ? rng() % bytes.size() : bytes.size() - 1 - rng() % 1200;
      changed[at] = static_cast<char>(rng());
    }
    const auto entries = entries_of(changed);
    if (!entries.ok()) continue;
    for (const auto& [name, entry] : entries.value()) {
      ASSERT_LE(entry.offset + entry.num_bytes, static_cast<int64_t>(bytes.size()));
    }
  }
}

}  // namespace
}  // namespace foretoken
