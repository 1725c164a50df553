#include "serve/flow/generation_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

class GenerationListTest : public test::ServeRig {};

TEST_F(GenerationListTest, SeveralMayHaveOneId) {
  GenerationList list;
  const auto make = [&] {
    GenerationJob job;
    job.id = "a";
    return std::make_shared<Generation>(context().parts(), std::move(job));
  };
  auto first = make();
  const auto second = make();
  list.add("a", first);
  list.add("a", second);
  EXPECT_EQ(list.find("a").size(), 2u);
  EXPECT_EQ(list.all().size(), 2u);
  list.remove("a", second.get());
  list.remove("a", second.get());
  ASSERT_EQ(list.find("a").size(), 1u);
  EXPECT_EQ(list.find("a").front(), first);
  first.reset();
  EXPECT_TRUE(list.find("a").empty());
  EXPECT_TRUE(list.find("b").empty());
}

TEST_F(GenerationListTest, WaitsForTheLastHolder) {
  GenerationList list;
  list.wait_destroyed();
  for (int i = 0; i < 100; ++i) {
    list.created();
    list.created();
    list.destroyed();
    std::atomic<bool> all_gone{false};
    std::thread last([&] {
      all_gone.store(true);
      list.destroyed();
    });
    list.wait_destroyed();
    EXPECT_TRUE(all_gone.load());
    last.join();
  }
}

}  // namespace
}  // namespace foretoken
