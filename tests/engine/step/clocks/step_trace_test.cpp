#include "engine/step/clocks/step_trace.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/dialled_engine.h"
#include "kernels/step/delay.h"
#include "kernels/step/mark_time.h"
#include "support/scratch_folder.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class StepTraceTest : public DeviceTest {
 protected:
  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("trace.json");
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
  constexpr double kSlackUs = 1e5;  // clocks are compared on a busy machine, too
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

class EngineTrace : public DialledEngine {
 protected:
  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("trace.json");

  // The events of an engine that ran a few requests, by lane.
  std::map<std::string, nlohmann::json> events_of(EngineConfig config) {
    config.profile = path_;
    std::vector<Request> requests;
    for (int i = 0; i < 3; ++i) requests.push_back(request(i, 4, 12));
    for (const RequestOutput& output : make(config)->generate(std::move(requests))) {
      EXPECT_TRUE(output.status.ok());
    }
    std::ifstream file(path_);
    const nlohmann::json all = nlohmann::json::parse(file);
    std::map<int, std::string> names;
    std::map<std::string, nlohmann::json> lanes;
    for (const auto& event : all["traceEvents"]) {
      const int lane = event["tid"];
      if (event["ph"] == "M") {
        names[lane] = event["args"]["name"];
      } else {
        EXPECT_GE(event["dur"].get<double>(), 0) << event;
        lanes[names.at(lane)].push_back(event);
      }
    }
    return lanes;
  }
  static std::set<std::string> names_in(const nlohmann::json& events) {
    std::set<std::string> names;
    for (const auto& event : events) names.insert(event["name"].get<std::string>());
    return names;
  }
};

TEST_F(EngineTrace, TellsWhatEachThreadAndTheDeviceDid) {
  auto lanes = events_of(config(3));
  EXPECT_EQ(names_in(lanes["engine"]),
            (std::set<std::string>{"plan", "encode", "submit", "wait", "reconcile"}));
  EXPECT_EQ(names_in(lanes["output"]), (std::set<std::string>{"outputs"}));
  EXPECT_TRUE(names_in(lanes["device"]).contains("step"));
  EXPECT_FALSE(lanes.contains("device ops"));
  // A step is submitted before the device ends it, and reconciled after that.
  std::map<uint64_t, double> submitted, reconciled;
  for (const auto& event : lanes["engine"]) {
    const uint64_t step = event["args"]["step"];
    const double begin = event["ts"];
    if (event["name"] == "submit") submitted[step] = begin;
    if (event["name"] == "reconcile") reconciled[step] = begin + event["dur"].get<double>();
  }
  int num_steps = 0;
  for (const auto& event : lanes["device"]) {
    if (event["name"] != "step") continue;
    const uint64_t step = event["args"]["step"];
    EXPECT_EQ(step, static_cast<uint64_t>(num_steps++));
    constexpr double kSlackUs = 1e5;  // of the two clocks, compared on a busy machine, too
    EXPECT_GE(event["ts"].get<double>() + event["dur"].get<double>(),
              submitted.at(step) - kSlackUs);
    EXPECT_LE(event["ts"].get<double>(), reconciled.at(step) + kSlackUs);
  }
  EXPECT_EQ(num_steps + 1, static_cast<int>(submitted.size())) << "the last one may go on";
}

TEST_F(EngineTrace, TellsWhatEachStepHolds) {
  auto lanes = events_of(config(3));
  int max_sequences = 0, prompt_rows = 0, drafting = 0;
  for (const auto& event : lanes["device"]) {
    const auto& holds = event["args"];
    if (event["name"] != "step") continue;
    EXPECT_GE(holds["rows"], holds["sequences"]);
    EXPECT_LE(holds["prompt rows"], holds["rows"]);
    EXPECT_EQ(holds["catch-up rows"], 0) << "looked-up drafts have no entries";
    EXPECT_LE(holds["draft passes"], 3);
    max_sequences = std::max(max_sequences, holds["sequences"].get<int>());
    prompt_rows += holds["prompt rows"].get<int>();
    drafting += holds["drafting"].get<int>();
  }
  EXPECT_GE(max_sequences, 1);
  EXPECT_LE(max_sequences, 3);
  EXPECT_GT(prompt_rows, 0);
  EXPECT_GT(drafting, 0);
}

TEST_F(EngineTrace, WithoutGraphsOpByOp) {
  EngineConfig without = config(0);
  without.cudagraph_mode = "NONE";
  EXPECT_TRUE(events_of(without).contains("device ops"));
  EngineConfig eager = config(0);
  eager.enforce_eager = true;
  auto lanes = events_of(eager);
  const std::set<std::string> ops = names_in(lanes["device ops"]);
  for (const char* name :
       {"upload", "prepare", "embed", "gemm", "attention", "sample", "publish"}) {
    EXPECT_TRUE(ops.contains(name)) << name;
  }
  double end = -1e18;
  for (const auto& event : lanes["device ops"]) {
    EXPECT_GE(event["ts"].get<double>(), end - 1) << "ops do not overlap";
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
}

TEST_F(EngineTrace, APathThatCannotBeWrittenStartsNoEngine) {
  EngineConfig wrong = config(0);
  wrong.profile = "/nonexistent/folder/trace.json";
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(wrong, &engine);
  EXPECT_NE(status.message().find("--profile"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace foretoken
