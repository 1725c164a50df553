#include "engine/step_trace.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/delay.h"
#include "kernels/mark_time.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class StepTraceTest : public DeviceTest {
 protected:
  const std::string path_ =
      testing::TempDir() + "/step-trace-" + std::to_string(::getpid()) + ".json";
  void TearDown() override {
    std::filesystem::remove(path_);
    DeviceTest::TearDown();
  }
};

// What the device did stands where the host's clock says.
TEST_F(StepTraceTest, DeviceAndHostShareOneClock) {
  auto trace = StepTrace::start(path_, device(), queue(), {});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  auto* marks = allocate<int64_t>(2, MemoryKind::kPinned);
  {
    const TraceScope host(trace.value()->engine(), "wait", 0);
    mark_time(queue(), {&marks[0]});
    delay(queue(), {4000});
    mark_time(queue(), {&marks[1]});
    drain();
  }
  trace.value()->add_step(0, marks[0], marks[1], marks[1]);
  trace.value()->add_step(1, marks[1], marks[1] + 1000, marks[1] + 3000);
  ASSERT_TRUE(trace.value()->finish(nullptr).ok());

  std::ifstream file(path_);
  const nlohmann::json all = nlohmann::json::parse(file);
  EXPECT_EQ(all["otherData"]["steps"], 2.0);
  EXPECT_NEAR(all["otherData"]["share of the time that the device was busy"], 1.0, 1e-6);
  nlohmann::json host, step, drafts;
  int num_drafts = 0;
  for (const auto& event : all["traceEvents"]) {
    if (event["name"] == "wait") host = event;
    if (event["name"] == "step" && event["args"]["step"] == 0) step = event;
    if (event["name"] == "draft") drafts = event;
    num_drafts += event["name"] == "draft" ? 1 : 0;
  }
  EXPECT_EQ(num_drafts, 1) << "a step without drafts has no such part";
  EXPECT_EQ(drafts["dur"], 2.0);
  constexpr double kSlackUs = 500;
  EXPECT_GE(step["ts"].get<double>(), host["ts"].get<double>() - kSlackUs);
  EXPECT_LE(step["ts"].get<double>() + step["dur"].get<double>(),
            host["ts"].get<double>() + host["dur"].get<double>() + kSlackUs);
  EXPECT_GE(step["dur"], 3900.0);
}

TEST_F(StepTraceTest, AFileThatCannotBeWrittenIsRefused) {
  const auto trace = StepTrace::start("/nonexistent/x.json", device(), queue(), {});
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("--profile"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
