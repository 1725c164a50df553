#include "engine/parallel/engine_host.h"

#include <gtest/gtest.h>

#include <future>

#include "engine/dialled_engine.h"
#include "engine/parallel/front_message.h"
#include "engine/parallel/wire_archive.h"
#include "engine/parallel/wire_fields.h"
#include "group/local_link.h"

namespace foretoken {
namespace {

template <class... Values>
std::string body_of(const Values&... values) {
  wire::Writer writer;
  writer(values...);
  return writer.take();
}

// An engine and its front end as threads.
class EngineHosts : public DialledEngine {
 protected:
  void SetUp() override {
    run_ = std::async(std::launch::async, [this] {
      return serve_front(make(config(0)), *links_[1][kRequests], *links_[1][kOutputs], 1);
    });
    EXPECT_EQ(next().kind, FrontKind::kInfo);
  }
  void tell(FrontKind kind, uint64_t number, std::string body) {
    EXPECT_TRUE(
        send_message(*links_[0][kRequests], {kind, number, 0, std::move(body)}, "a test").ok());
  }
  FrontMessage next() { return receive_message(*links_[0][kOutputs], "a test").value(); }

  static constexpr size_t kRequests = static_cast<size_t>(group::Lane::kControl);
  static constexpr size_t kOutputs = static_cast<size_t>(group::Lane::kPlans);
  std::vector<group::LaneLinks> links_ = group::make_local_links(2);
  std::future<Status> run_;
};

TEST_F(EngineHosts, AnswersUntilTheFrontEndIsDone) {
  tell(FrontKind::kSubmit, 7, body_of(request(0, 20, 6)));
  std::vector<int32_t> ids;
  bool replied = false;
  for (bool finished = false; !finished || !replied;) {
    const FrontMessage message = next();
    EXPECT_EQ(message.number, 7u);
    wire::Reader reader(message.body);
    if (message.kind == FrontKind::kReply) {
      Status status = internal_error("unread");
      std::string id;
      reader(status, id);
      EXPECT_TRUE(status.ok() && !id.empty()) << status.message();
      replied = true;
      continue;
    }
    ASSERT_EQ(message.kind, FrontKind::kOutput);
    RequestOutput output;
    reader(output);
    ids.insert(ids.end(), output.token_ids.begin(), output.token_ids.end());
    finished = output.request_finished;
  }
  EXPECT_EQ(ids, expected(0, 20, 6));
  tell(FrontKind::kGenerate, 8, body_of(std::vector<Request>{request(3, 20, 4)}));
  const FrontMessage generated = next();
  std::vector<RequestOutput> outputs;
  wire::Reader(generated.body)(outputs);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].token_ids, expected(3, 20, 4));
  tell(FrontKind::kStats, 9, {});
  EngineStats stats;
  wire::Reader(next().body)(stats);
  EXPECT_EQ(stats.num_finished_requests, 2);
  tell(FrontKind::kUnloadAdapter, 10, body_of(std::string("mine")));
  Status unloaded;
  wire::Reader(next().body)(unloaded);
  EXPECT_EQ(unloaded.code(), StatusCode::kNotFound);
  tell(FrontKind::kEnd, 0, {});
  EXPECT_EQ(next().kind, FrontKind::kEnded);
  EXPECT_TRUE(run_.get().ok());
}

// What a front end that is gone has asked for is not computed to its end.
TEST_F(EngineHosts, EndsWithTheGroup) {
  Request endless = request(0, 20, 400);
  endless.request_id = "endless";
  tell(FrontKind::kGenerate, 1, body_of(std::vector<Request>(1, endless)));
  links_[0][kRequests]->abort(internal_error("the front end burns"));
  EXPECT_NE(run_.get().message().find("the front end burns"), std::string::npos);
}

TEST_F(EngineHosts, NonsenseEndsIt) {
  tell(FrontKind::kSubmit, 1, "x");
  EXPECT_NE(run_.get().message().find("cut off"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
