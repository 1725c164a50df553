#include "engine/parallel/front_message.h"

#include <gtest/gtest.h>

#include "group/local_link.h"

namespace foretoken {
namespace {

TEST(FrontMessage, ArriveWholeAndInOrder) {
  const auto links = group::make_local_links(2);
  group::RankLink& front = link_of(links[0], group::Lane::kControl);
  group::RankLink& engine = link_of(links[1], group::Lane::kControl);
  EXPECT_EQ(other_side(front), 1);
  ASSERT_TRUE(send_message(front, {FrontKind::kAbort, 5, 6, "id"}, "a test").ok());
  ASSERT_TRUE(send_message(front, {FrontKind::kEnd}, "a test").ok());
  const FrontMessage first = receive_message(engine, "a test").value();
  EXPECT_EQ(first.kind, FrontKind::kAbort);
  EXPECT_EQ(first.number, 5u);
  EXPECT_EQ(first.step, 6u);
  EXPECT_EQ(first.body, "id");
  EXPECT_EQ(receive_message(engine, "a test").value().kind, FrontKind::kEnd);
  front.abort(internal_error("the cable was cut"));
  const std::string why = receive_message(engine, "a test").status().message();
  EXPECT_NE(why.find("the cable was cut"), std::string::npos) << why;
}

}  // namespace
}  // namespace foretoken
