#include "group/rendezvous.h"

#include <gtest/gtest.h>

#include "group_threads.h"

namespace foretoken::group {
namespace {

// Every rank's join fails, and its message holds `text`.
void expect_all_fail(const std::vector<std::optional<JoinResult>>& joined,
                     const std::string& text) {
  for (const auto& one : joined) {
    ASSERT_FALSE(one->ok());
    EXPECT_NE(one->status().message().find(text), std::string::npos) << one->status().message();
  }
}

TEST(Rendezvous, ADoubledRankEndsItForAll) {
  expect_all_fail(join_all(3,
                           [](int i, JoinOptions& options) {
                             if (i == 2) options.rank = 1;
                           }),
                  "two processes say that they are rank 1");
}

// The threads of this test are of the leader's process.
TEST(Rendezvous, RanksOfTheLeadersProcessComeFromThere) {
  const auto joined = join_all(2, [](int, JoinOptions& options) {
    options.layout = {.dp = 2};
    options.own_engines = 2;
    options.own_ranks = {0, 1};
  });
  for (const auto& one : joined) EXPECT_TRUE(one->ok()) << one->status().message();
}

// Whichever rank of the two processes comes first, and also where all ranks would be there without
// the doubled one; ranks that come later than the refusal are told, too.
TEST(Rendezvous, ProcessesWithARankInCommonAreAllToldSo) {
  for (int turn = 0; turn < 4; ++turn) {
    const auto joined = join_all(4, [turn](int i, JoinOptions& options) {
      const bool is_far = i >= 2;
      options.layout = {.dp = 3};
      options.own_engines = 2;
      options.own_ranks = is_far ? std::vector{1, 2} : std::vector{0, 1};
      options.rank = is_far ? i - 1 : i;
      options.pid = is_far ? 1001 : 1000;
      const int place = (i + turn) % 4;
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(place == 3 ? 100 : 0));
    });
    expect_all_fail(joined,
                    "two processes say that they are rank 1 (process 1000 and process 1001)");
  }
}

TEST(Rendezvous, AnotherNumberOfRanksEndsItForAll) {
  expect_all_fail(join_all(2,
                           [](int i, JoinOptions& options) {
                             if (i == 1) options.layout.tp = 3;
                           }),
                  "rank 1 counts 3 ranks, rank 0 counts 2");
}

TEST(Rendezvous, AnotherConfigurationEndsItForAll) {
  expect_all_fail(join_all(2,
                           [](int i, JoinOptions& options) {
                             options.parts.push_back({"--max-num-seqs", i == 1 ? "32" : "64"});
                           }),
                  "rank 1 (tp 1) has --max-num-seqs 32, rank 0 has 64");
  expect_all_fail(join_all(2,
                           [](int i, JoinOptions& options) {
                             if (i == 1) options.parts[0].value = "2";
                           }),
                  "rank 1 (tp 1) has version 2, rank 0 has 1");
}

TEST(Rendezvous, NamesTheRanksThatDidNotCome) {
  JoinOptions options;
  options.layout = {.tp = 3};
  options.gathers = true;
  options.start_time = std::chrono::seconds(0);
  const JoinResult joined = RankGroup::join(std::move(options));
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.status().message().find("these did not come"), std::string::npos);
  EXPECT_NE(joined.status().message().find("1, 2;"), std::string::npos)
      << joined.status().message();
}

TEST(Rendezvous, ABareFrontNamesTheRanksThatDidNotCome) {
  JoinOptions options;
  options.layout = {.dp = 2};
  options.rank = bare_front(options.layout);
  options.gathers = true;
  options.start_time = std::chrono::seconds(0);
  const JoinResult joined = RankGroup::join(std::move(options));
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.status().message().find("of 2 ranks these did not come"), std::string::npos);
  EXPECT_NE(joined.status().message().find("0, 1;"), std::string::npos)
      << joined.status().message();
}

TEST(Rendezvous, StrangersAreSentAway) {
  Result<Socket> listener = listen_tcp("127.0.0.1", 0);
  const int port = port_of(listener.value());
  Socket stranger =
      connect_tcp("127.0.0.1", port, -1, Clock::now() + std::chrono::seconds(120)).value();
  const std::string http = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(
      send_all(stranger, std::as_bytes(std::span(http)), -1, Clock::time_point::max()).ok());
  const auto joined = join_all(2, [&](int i, JoinOptions& options) {
    options.master_port = port;
    if (i == 0) options.master_listener = std::move(listener).value();
  });
  for (const auto& one : joined) EXPECT_TRUE(one->ok()) << one->status().message();
}

TEST(Rendezvous, NamesAreRandom) { EXPECT_NE(random_name(), random_name()); }

}  // namespace
}  // namespace foretoken::group
