#include "engine/measure/step_time_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "spec/cost_table_file.h"
#include "support/scratch_folder.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

const std::vector<std::string> kNames = {"ngram"};

CostTable times_of(int64_t ns) {
  CostTable times;
  times.target = test::curve({{1, ns}, {4, 2 * ns}});
  times.drafters.push_back({"ngram", true, {}, test::curve({{1, ns / 10}})});
  return times;
}

TEST(StepTimeCache, FindsWhatWasKeptUnderItsKeyAlone) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.file("a/b");
  const StepTimeCache cache(folder, "this machine");
  EXPECT_FALSE(cache.find(kNames));
  cache.keep(times_of(1000));
  const auto found = cache.find(kNames);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->measured_on, "this machine");
  EXPECT_EQ(found->target, times_of(1000).target);
  EXPECT_EQ(found->drafters, times_of(1000).drafters);
  EXPECT_FALSE(StepTimeCache(folder, "another machine").find(kNames));
  EXPECT_FALSE(cache.find(std::vector<std::string>{"eagle"}));
  cache.keep(times_of(7000));
  EXPECT_EQ(cache.find(kNames)->target, times_of(7000).target) << "the newest counts";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
      << "nothing half-written stays";
}

TEST(StepTimeCache, DamagedFilesCountAsNoneAndAreReplaced) {
  const test::ScratchFolder scratch;
  const StepTimeCache cache(scratch.file("times"), "key");
  cache.keep(times_of(1000));
  CostTable other = times_of(1000);
  other.measured_on = "what has the same name by chance";
  for (const std::string& text : {std::string("{\"format\": "), std::string(),
                                  cost_table_to_json(other), std::string("\xff\x00", 2)}) {
    std::ofstream(cache.path(), std::ios::trunc | std::ios::binary) << text;
    EXPECT_FALSE(cache.find(kNames)) << text;
    cache.keep(times_of(1000));
    EXPECT_TRUE(cache.find(kNames)) << text;
  }
  std::filesystem::remove(cache.path());
  std::filesystem::create_directory(cache.path());
  EXPECT_FALSE(cache.find(kNames));
  cache.keep(times_of(1000));
  EXPECT_FALSE(cache.find(kNames));
}

TEST(StepTimeCache, AFolderThatCannotBeMadeIsNoFault) {
  const test::ScratchFolder scratch;
  std::ofstream(scratch.file("file")) << "x";
  const StepTimeCache cache(scratch.file("file/below"), "key");
  cache.keep(times_of(1000));
  EXPECT_FALSE(cache.find(kNames));
  const StepTimeCache off("", "key");
  off.keep(times_of(1000));
  EXPECT_FALSE(off.find(kNames));
  EXPECT_EQ(off.path(), "");
}

TEST(StepTimeCache, TheFolderFollowsTheEnvironment) {
  const auto with = [](const char* cache, const char* home) {
    if (cache != nullptr) setenv("XDG_CACHE_HOME", cache, 1);
    if (cache == nullptr) unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    return default_step_time_folder();
  };
  const char* home = std::getenv("HOME");
  const std::string before = home != nullptr ? home : "";
  EXPECT_EQ(with("/x", "/h"), "/x/foretoken/step-times");
  EXPECT_EQ(with(nullptr, "/h"), "/h/.cache/foretoken/step-times");
  EXPECT_EQ(with("not/absolute", "/h"), "/h/.cache/foretoken/step-times");
  EXPECT_EQ(with(nullptr, ""), "");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", before.c_str(), 1);
}

TEST(StepTimeCache, TablesWithEqualTimesHaveOneHash) {
  CostTable times;
  times.target.add(1, 1000);
  CostTable other = times;
  other.measured_on = "something";
  EXPECT_EQ(hash_of_times(times), hash_of_times(other));
  other.target.add(2, 1001);
  EXPECT_NE(hash_of_times(times), hash_of_times(other));
}

}  // namespace
}  // namespace foretoken
