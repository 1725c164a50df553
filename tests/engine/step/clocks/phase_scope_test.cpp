#include "engine/step/clocks/phase_scope.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace foretoken {
namespace {

std::vector<std::string> ranges;

TEST(PhaseScope, NotesItsTimeAndAnEvent) {
  ranges.clear();
  StepClock clock;
  TraceLane lane("engine", 8,
                 {.begin = [](const char* name, uint64_t) { ranges.emplace_back(name); },
                  .end = [] { ranges.emplace_back("end"); }});
  {
    const PhaseScope scope(clock, &lane, HostPhase::kEncode, 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  {
    PhaseScope nothing(clock, &lane, HostPhase::kPlan, 6);
    nothing.drop();
  }
  {
    const PhaseScope untraced(clock, nullptr, HostPhase::kSubmit, 6);
  }
  EXPECT_GE(clock.timing().encode_ns, 2'000'000);
  EXPECT_EQ(clock.timing().plan_ns, 0);
  const std::vector<TraceLane::Event> events = lane.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_STREQ(events[0].name, "encode");
  EXPECT_EQ(events[0].number, 5u);
  EXPECT_EQ(events[0].end_ns - events[0].begin_ns, clock.timing().encode_ns);
  EXPECT_EQ(ranges, (std::vector<std::string>{"encode", "end", "plan", "end"}));
}

}  // namespace
}  // namespace foretoken
