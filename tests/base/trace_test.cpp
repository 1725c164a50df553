#include "base/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

std::vector<std::string> calls;

class TraceTest : public testing::Test {
 protected:
  TraceTest() { calls.clear(); }

  nlohmann::json written() const {
    std::ifstream file(path_);
    return nlohmann::json::parse(file);
  }

  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("trace.json");
};

TEST_F(TraceTest, EventsOfEachLaneBecomeAFileThatBrowsersRead) {
  auto trace = Trace::create(path_, 8);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  TraceLane* host = trace.value()->add_lane("engine");
  TraceLane* device = trace.value()->add_lane("device");
  host->add("plan", 1'000'000, 1'002'500, 7);
  {
    const TraceScope scope(host, "wait");
  }
  device->add("step", 1'001'000, 1'900'000, 7);
  ASSERT_TRUE(trace.value()->write({{"device busy", 0.5}}).ok());

  const nlohmann::json all = written();
  EXPECT_EQ(all["otherData"]["device busy"], 0.5);
  const nlohmann::json& events = all["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["args"]["name"], "engine");
  EXPECT_EQ(events[1]["name"], "plan");
  EXPECT_EQ(events[1]["ph"], "X");
  EXPECT_EQ(events[1]["ts"], 0.0);
  EXPECT_EQ(events[1]["dur"], 2.5);
  EXPECT_EQ(events[1]["args"]["step"], 7);
  EXPECT_EQ(events[2]["name"], "wait");
  EXPECT_FALSE(events[2].contains("args"));
  EXPECT_EQ(events[4]["ts"], 1.0) << "both lanes count from the first event";
  EXPECT_EQ(events[4]["tid"], 1);
}

TEST_F(TraceTest, AFullLaneKeepsTheNewest) {
  TraceLane lane("engine", 4, {});
  for (int i = 0; i < 10; ++i) lane.add("step", i, i + 1, static_cast<uint64_t>(i));
  const std::vector<TraceLane::Event> events = lane.events();
  ASSERT_EQ(events.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(events[i].number, 6 + i);
  EXPECT_EQ(lane.num_dropped(), 6u);
}

TEST_F(TraceTest, SmallThingsInARowAreOneEvent) {
  TraceLane lane("output", 2, {});
  const char* name = "output";
  lane.extend(name, 10, 20, 5);
  lane.extend(name, 25, 30, 5);
  lane.extend(name, 36, 40, 5);
  lane.extend(name, 42, 50, 5, 1);
  const std::vector<TraceLane::Event> events = lane.events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(lane.num_dropped(), 1u);
  EXPECT_EQ(events[0].begin_ns, 36);
  EXPECT_EQ(events[0].end_ns, 40);
  EXPECT_EQ(events[1].number, 1u);
}

TEST_F(TraceTest, ScopesOpenRangesAndNothingWithoutALane) {
  const ProfilerRanges ranges{
      .begin =
          [](const char* name, uint64_t number) {
            calls.push_back(std::string(name) + " " + std::to_string(number));
          },
      .end = [] { calls.emplace_back("end"); }};
  TraceLane lane("engine", 4, ranges);
  {
    const TraceScope outer(&lane, "step", 3);
    const TraceScope inner(&lane, "plan", 3);
    const TraceScope none(nullptr, "nothing", 3);
  }
  EXPECT_EQ(calls, (std::vector<std::string>{"step 3", "plan 3", "end", "end"}));
  ASSERT_EQ(lane.events().size(), 2u);
  EXPECT_STREQ(lane.events()[0].name, "plan") << "the inner one ends first";
  EXPECT_GE(lane.events()[0].begin_ns, lane.events()[1].begin_ns);
  EXPECT_LE(lane.events()[0].end_ns, lane.events()[1].end_ns);
}

TEST_F(TraceTest, AFileThatCannotBeWrittenIsFoundAtTheStart) {
  const auto trace = Trace::create("/nonexistent/folder/trace.json", 8);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("--profile"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
