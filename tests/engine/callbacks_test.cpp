#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "engine/dialled_engine.h"

// What callbacks and futures may do, and what becomes of callbacks that throw.

namespace foretoken {
namespace {

class Callbacks : public DialledEngine {
 protected:
  static void await(const std::atomic<bool>& flag) {
    while (!flag.load()) std::this_thread::yield();
  }
};

TEST_F(Callbacks, ThatThrowEndTheirOwnRequestWithAnError) {
  const auto engine = make(config(3));
  for (const int throw_at : {1, 2, 5}) {
    int num_calls = 0;
    RequestOutput last;
    std::atomic<bool> done{false};
    Request request = DialledEngine::request(0, 20, 200);
    request.request_id = "throws";
    ASSERT_TRUE(engine
                    ->submit(request,
                             [&](const RequestOutput& output) {
                               if (output.request_finished) {
                                 last = output;
                                 done.store(true);
                                 return;
                               }
                               if (++num_calls == throw_at) throw std::runtime_error("no more");
                             })
                    .ok());
    const RequestOutput other = engine->generate({DialledEngine::request(50, 20, 60)})[0];
    EXPECT_EQ(other.token_ids, expected(50, 20, 60));
    await(done);
    EXPECT_EQ(num_calls, throw_at);
    EXPECT_EQ(last.finish_reason, FinishReason::kError);
    EXPECT_NE(last.status.message().find("callback threw"), std::string::npos);
  }
}

// A last callback that throws has nothing left to end; one that always throws is not called twice
// for the same output.
TEST_F(Callbacks, ThatAlwaysThrowHarmNobody) {
  const auto engine = make(config(3));
  std::atomic<int> num_calls{0};
  Request request = DialledEngine::request(0, 20, 100);
  request.sampling.n = 3;
  request.sampling.temperature = 1;
  ASSERT_TRUE(engine
                  ->submit(request,
                           [&](const RequestOutput&) {
                             num_calls.fetch_add(1);
                             throw 3;
                           })
                  .ok());
  while (engine->stats().num_finished_requests < 1) std::this_thread::yield();
  EXPECT_GE(num_calls.load(), 3);
  EXPECT_LE(num_calls.load(), 6);
  EXPECT_EQ(engine->generate({DialledEngine::request(50, 20, 30)})[0].token_ids,
            expected(50, 20, 30));
}

TEST_F(Callbacks, MaySubmitButNotWait) {
  const auto engine = make(config(3));
  std::atomic<bool> done{false};
  std::string refused;
  std::future<std::vector<RequestOutput>> later;
  ASSERT_TRUE(
      engine
          ->submit(DialledEngine::request(0, 10, 4),
                   [&](const RequestOutput& output) {
                     if (!output.finished) return;
                     refused =
                         engine->generate({DialledEngine::request(5, 10, 4)})[0].status.message();
                     later = engine->generate_async(DialledEngine::request(7, 10, 6));
                     done.store(true);
                   })
          .ok());
  await(done);
  EXPECT_NE(refused.find("callback"), std::string::npos) << refused;
  EXPECT_EQ(later.get()[0].token_ids, expected(7, 10, 6));
}

TEST_F(Callbacks, FuturesHoldEveryChoiceOrItsError) {
  const auto engine = make(config(3));
  Request three = request(0, 20, 10);
  three.sampling.temperature = 1;
  three.sampling.n = 3;
  std::vector<std::future<std::vector<RequestOutput>>> futures;
  for (int i = 0; i < 20; ++i) futures.push_back(engine->generate_async(request(10 * i, 20, 12)));
  auto choices = engine->generate_async(three);
  Request wrong = request(0, 20, 10);
  wrong.sampling.top_k = -7;
  auto refused = engine->generate_async(wrong);
  {
    (void)engine->generate_async(request(0, 20, 10));
  }  // dropped
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(futures[static_cast<size_t>(i)].get()[0].token_ids, expected(10 * i, 20, 12));
  }
  const auto outputs = choices.get();
  ASSERT_EQ(outputs.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(outputs[static_cast<size_t>(i)].index, i);
  EXPECT_NE(refused.get()[0].status.message().find("top_k is -7"), std::string::npos);
}

// One engine's callbacks drive the other, both ways, while both run requests of their own.
TEST_F(Callbacks, TwoEnginesCallOneAnother) {
  const auto one = make(config(4));
  const auto two = make(config(0));
  std::atomic<int> num_done{0};
  const auto chain = [&](Engine& from, Engine& to, int begin) {
    const Status status =
        from.submit(request(begin, 12, 6), [&, begin](const RequestOutput& output) {
          if (!output.finished) return;
          // Waiting for the other engine is allowed.
          const auto answer = to.generate({request(begin + 3, 12, 8)});
          EXPECT_EQ(answer[0].token_ids, expected(begin + 3, 12, 8));
          num_done.fetch_add(1);
        });
    EXPECT_TRUE(status.ok()) << status.message();
  };
  for (int i = 0; i < 10; ++i) chain(*one, *two, 20 * i);
  auto future = two->generate_async(request(5, 30, 40));
  EXPECT_EQ(one->generate({request(9, 30, 40)})[0].token_ids, expected(9, 30, 40));
  EXPECT_EQ(future.get()[0].token_ids, expected(5, 30, 40));
  while (num_done.load() < 10) std::this_thread::yield();
}

}  // namespace
}  // namespace foretoken
