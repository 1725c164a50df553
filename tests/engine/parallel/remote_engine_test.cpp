#include "engine/parallel/remote_engine.h"

#include <atomic>
#include <future>

#include "engine/parallel/start_engines.h"
#include "engine/parallel/two_processes.h"
#include "support/gate.h"

namespace foretoken {
namespace {

class RemoteEngines : public TwoProcesses {
 protected:
  void SetUp() override {
    TwoProcesses::SetUp();
    if (IsSkipped()) return;
    const group::Environment first = place(0, port_);
    processes_ = meet_engines(two_engines(), first).value();
    engines_ = start_own_engines(processes_, two_engines(), first).value();
    far_ = RemoteEngine::meet(processes_, 1, *engines_.at(0)).value();
  }
  void TearDown() override {
    far_.reset();
    engines_.clear();
    processes_.reset();
    TwoProcesses::TearDown();
  }
  Engine& near() { return *engines_.at(0); }
  Engine& far() { return *far_; }

  std::shared_ptr<group::ProcessGroup> processes_;

 private:
  std::vector<std::unique_ptr<Engine>> engines_;
  std::unique_ptr<Engine> far_;
};

TEST_F(RemoteEngines, GenerateAndStreamAsAnEngineHere) {
  const auto outputs = far().generate({request(0, 20, 12), request(7, 30, 12)});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].token_ids, expected(0, 20, 12));
  EXPECT_EQ(outputs[1].token_ids, expected(7, 30, 12));
  Request several = request(4, 20, 5);
  several.sampling.n = 2;
  several.sampling.temperature = 1;
  const auto choices = far().generate_async(several).get();
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[1].token_ids.size(), 5u);
  EXPECT_EQ(far().info().num_blocks, near().info().num_blocks);
  const EngineStats stats = far().stats();
  EXPECT_EQ(stats.num_finished_requests, 3);
  EXPECT_EQ(near().stats().num_finished_requests, 0);
  EXPECT_EQ(far().unload_adapter("mine").code(), StatusCode::kNotFound);
  EXPECT_EQ(far().sleep().code(), StatusCode::kUnsupported);
  EXPECT_EQ(far().wake_up({"weights"}).code(), StatusCode::kUnsupported);
  EXPECT_FALSE(far().is_sleeping());
}

TEST_F(RemoteEngines, RefuseAtOnceAndAbort) {
  Request wrong = request(0, 20, 12);
  wrong.sampling.top_p = 2;
  EXPECT_EQ(far()
                .submit(
                    wrong, [](const RequestOutput&) {}, nullptr)
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(far().submit(Request(), nullptr, nullptr).code(), StatusCode::kInvalidArgument);
  std::promise<FinishReason> reason;
  std::atomic<bool> began{false};
  Request endless = request(0, 20, 400);
  std::string id;
  ASSERT_TRUE(far()
                  .submit(
                      endless,
                      [&](const RequestOutput& output) {
                        began = true;
                        if (output.request_finished) reason.set_value(output.finish_reason);
                      },
                      &id)
                  .ok());
  EXPECT_TRUE(test::eventually([&] { return began.load(); }));
  far().abort(id);
  const FinishReason ended = reason.get_future().get();
  EXPECT_TRUE(ended == FinishReason::kAbort || ended == FinishReason::kLength);
}

// Outputs of both choices, each once, whatever the callback does.
TEST_F(RemoteEngines, ACallbackThatThrowsEndsItsRequest) {
  Request request = this->request(0, 20, 300);
  std::promise<std::string> told;
  ASSERT_TRUE(far()
                  .submit(
                      request,
                      [&](const RequestOutput& output) {
                        if (!output.finished) throw 7;
                        told.set_value(output.status.message());
                      },
                      nullptr)
                  .ok());
  EXPECT_NE(told.get_future().get().find("callback threw"), std::string::npos);
}

// Nobody waits for ever.
TEST_F(RemoteEngines, FailWithTheGroup) {
  std::promise<RequestOutput> last;
  ASSERT_TRUE(far()
                  .submit(
                      request(0, 20, 400),
                      [&](const RequestOutput& output) {
                        if (output.request_finished) last.set_value(output);
                      },
                      nullptr)
                  .ok());
  processes_->group().end(internal_error("the other process burns"));
  const RequestOutput output = last.get_future().get();
  if (output.finish_reason != FinishReason::kLength) {
    EXPECT_EQ(output.status.message(), "the other process burns");
  }
  EXPECT_TRUE(test::eventually([&] {
    return far().submit(Request(), nullptr, nullptr).message() == "the other process burns";
  }));
  const auto outputs = far().generate({request(0, 20, 4)});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].status.message(), "the other process burns");
}

}  // namespace
}  // namespace foretoken
