#include "engine/measure/learned_rates_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/log.h"
#include "spec/learned_rates_file.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

LearnedRates learned_of(const std::string& name, int num_rated) {
  LearnedDrafter drafter;
  drafter.name = name;
  drafter.max_draft_tokens = 2;
  drafter.prior.num_rated = num_rated;
  LearnedRates learned;
  learned.drafters = {drafter};
  return learned;
}

TEST(LearnedRatesCache, FindsWhatWasKeptUnderItsNameAndStamp) {
  const test::ScratchFolder scratch;
  const LearnedRatesCache cache(scratch.path(), "a model", "of today");
  const std::vector<LearnedDrafter> drafters = learned_of("ngram", 0).drafters;
  EXPECT_FALSE(cache.find(drafters));
  cache.keep(learned_of("ngram", 7));
  ASSERT_TRUE(cache.find(drafters));
  EXPECT_EQ(cache.find(drafters)->drafters[0].prior.num_rated, 7);
  EXPECT_FALSE(cache.find(learned_of("eagle", 0).drafters));
  EXPECT_FALSE(cache.find({}));
  EXPECT_FALSE(LearnedRatesCache(scratch.path(), "another", "of today").find(drafters));
  const LearnedRatesCache stale(scratch.path(), "a model", "of tomorrow");
  EXPECT_EQ(stale.path(), cache.path());
  EXPECT_FALSE(stale.find(drafters));
  stale.keep(learned_of("ngram", 9));
  EXPECT_EQ(stale.find(drafters)->drafters[0].prior.num_rated, 9);
}

TEST(LearnedRatesCache, DamagedFilesCountAsNoneAndAreReplaced) {
  const test::ScratchFolder scratch;
  const LearnedRatesCache cache(scratch.path(), "a model", "of today");
  const std::vector<LearnedDrafter> drafters = learned_of("ngram", 0).drafters;
  cache.keep(learned_of("ngram", 7));
  for (const std::string& text : {std::string(), std::string("{\"format\": "), std::string("{}"),
                                  std::string("\xff\x00", 2)}) {
    std::ofstream(cache.path(), std::ios::trunc | std::ios::binary) << text;
    EXPECT_FALSE(cache.find(drafters)) << text;
    cache.keep(learned_of("ngram", 7));
    EXPECT_TRUE(cache.find(drafters)) << text;
  }
  std::filesystem::remove(cache.path());
  std::filesystem::create_directory(cache.path());
  EXPECT_FALSE(cache.find(drafters));
  cache.keep(learned_of("ngram", 7));
}

TEST(LearnedRatesCache, ADamagedFileIsNamedWithWhatBecomesOfIt) {
  const test::ScratchFolder scratch;
  const LearnedRatesCache cache(scratch.path(), "a model", "of today");
  cache.keep(learned_of("ngram", 7));
  std::ofstream(cache.path(), std::ios::trunc) << "{";
  testing::internal::CaptureStderr();
  init_logging("warn");
  EXPECT_FALSE(cache.find(learned_of("ngram", 0).drafters));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("acceptance rates: " + cache.path() + ": not valid JSON"), std::string::npos)
      << said;
  EXPECT_NE(said.find("; the file is passed over, and this run learns again and replaces it"),
            std::string::npos)
      << said;
}

TEST(LearnedRatesCache, WithoutAFolderNothingIsKept) {
  const LearnedRatesCache cache("", "a model", "of today");
  EXPECT_EQ(cache.path(), "");
  cache.keep(learned_of("ngram", 7));
  EXPECT_FALSE(cache.find(learned_of("ngram", 0).drafters));
}

TEST(LearnedRatesCache, TheStampChangesWithAFile) {
  const test::ScratchFolder scratch;
  const std::string file = scratch.write("weights", "1234");
  const std::string before = stamp_of_files(scratch.path());
  EXPECT_NE(before.find("weights 4 "), std::string::npos) << before;
  EXPECT_EQ(stamp_of_files(scratch.path()), before);
  EXPECT_EQ(stamp_of_files(file), before) << "a model may be one file";
  scratch.write("weights", "12345");
  EXPECT_NE(stamp_of_files(scratch.path()), before);
  EXPECT_EQ(stamp_of_files(scratch.file("nowhere")), "");
}

}  // namespace
}  // namespace foretoken
