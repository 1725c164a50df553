#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "group/rank_link.h"

namespace foretoken::group {

// Calls `body` for each link on a thread of its own and joins them.
inline void on_all_ranks(const std::vector<RankLink*>& links,
                         const std::function<void(RankLink&)>& body) {
  std::vector<std::thread> threads;
  for (RankLink* link : links) threads.emplace_back([&body, link] { body(*link); });
  for (std::thread& thread : threads) thread.join();
}

inline std::vector<std::byte> pattern(int rank, std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i)
    data[i] = static_cast<std::byte>((static_cast<std::size_t>(rank) * 131 + i * 7) & 255);
  return data;
}

// What every kind of link does, on ranks that are all alive: gathers, broadcasts and messages of
// several sizes, larger than what sockets buffer among them.
inline void expect_exchanges(RankLink& link) {
  const int rank = link.rank();
  const int size = link.size();
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{64}, std::size_t{5000}, std::size_t{1} << 20}) {
    std::vector<std::byte> all(bytes * static_cast<std::size_t>(size));
    ASSERT_TRUE(link.all_gather(pattern(rank, bytes), all, "test gather").ok());
    for (int peer = 0; peer < size; ++peer) {
      const std::vector<std::byte> part(
          all.begin() + static_cast<std::ptrdiff_t>(bytes) * peer,
          all.begin() + static_cast<std::ptrdiff_t>(bytes) * (peer + 1));
      ASSERT_EQ(part, pattern(peer, bytes)) << "rank " << rank << " of peer " << peer;
    }
    for (int root = 0; root < size; ++root) {
      std::vector<std::byte> data = pattern(rank + 10, bytes);
      ASSERT_TRUE(link.broadcast(root, data, "test broadcast").ok());
      ASSERT_EQ(data, pattern(root + 10, bytes));
    }
    if (size == 1) continue;
    const int next = (rank + 1) % size;
    const int last = (rank + size - 1) % size;
    std::vector<std::byte> got(bytes);
    if (rank % 2 == 0) {
      ASSERT_TRUE(link.send(next, pattern(rank, bytes), "test send").ok());
      ASSERT_TRUE(link.receive(last, got, "test receive").ok());
    } else {
      ASSERT_TRUE(link.receive(last, got, "test receive").ok());
      ASSERT_TRUE(link.send(next, pattern(rank, bytes), "test send").ok());
    }
    ASSERT_EQ(got, pattern(last, bytes));
  }
}

// Ranks of each half exchange among themselves, something else with each other; nobody has to come
// back for what is still to go.
inline void expect_group_exchanges(RankLink& link) {
  const int half = link.size() / 2;
  const int first = link.rank() < half ? 0 : half;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
    std::vector<std::vector<std::byte>> out, in(static_cast<std::size_t>(half));
    std::vector<PeerBytes> parts;
    for (int peer = first; peer < first + half; ++peer) {
      out.push_back(pattern(link.rank() * 16 + peer, bytes));
      std::vector<std::byte>& to = in[static_cast<std::size_t>(peer - first)];
      to.resize(bytes);
      if (peer != link.rank()) parts.push_back({peer, {}, to});
    }
    for (PeerBytes& part : parts) part.out = out[static_cast<std::size_t>(part.peer - first)];
    ASSERT_TRUE(link.exchange(parts, "test exchange").ok());
    for (const PeerBytes& part : parts) {
      ASSERT_EQ(in[static_cast<std::size_t>(part.peer - first)],
                pattern(part.peer * 16 + link.rank(), bytes));
    }
  }
}

// Every second rank of at least four keeps to itself; what is posted comes in order, however much
// of it waits.
inline void expect_narrow_exchanges(RankLink& link) {
  const int rank = link.rank();
  std::vector<int> ranks;
  for (int other = rank % 2; other < link.size(); other += 2) ranks.push_back(other);
  link.narrow(ranks);
  ASSERT_EQ(link.size(), static_cast<int>(ranks.size()));
  ASSERT_EQ(ranks[static_cast<std::size_t>(link.rank())], rank);
  expect_exchanges(link);
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const int next = (link.rank() + 1) % link.size();
  const int last = (link.rank() + link.size() - 1) % link.size();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(link.post(next, pattern(rank + i, kBytes), "test post").ok());
  }
  ASSERT_TRUE(link.post(next, pattern(rank, 100), "test post").ok());
  std::vector<std::byte> got(kBytes);
  const int from = ranks[static_cast<std::size_t>(last)];
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(link.receive(last, got, "test receive").ok());
    ASSERT_EQ(got, pattern(from + i, kBytes));
  }
  got.resize(100);
  ASSERT_TRUE(link.receive(last, got, "test receive").ok());
  ASSERT_EQ(got, pattern(from, 100));
  // Nothing is left behind a call that all end together.
  std::vector<std::byte> all(static_cast<std::size_t>(link.size()));
  ASSERT_TRUE(link.all_gather(pattern(rank, 1), all, "test gather").ok());
}

// All but the last rank post more than sockets buffer to the next one; nobody comes back
// afterwards.
inline void expect_flushes(RankLink& link) {
  constexpr std::size_t kBytes = std::size_t{3} << 20;
  const int next = (link.rank() + 1) % link.size();
  const int last = link.rank() - 1;
  if (next > 0) {
    ASSERT_TRUE(link.post(next, pattern(link.rank(), kBytes), "test post").ok());
  }
  if (link.rank() > 0) {
    std::vector<std::byte> got(kBytes);
    ASSERT_TRUE(link.receive(last, got, "test receive").ok());
    ASSERT_EQ(got, pattern(last, kBytes));
  }
  ASSERT_TRUE(link.flush("test flush").ok());
  ASSERT_TRUE(link.flush("another flush").ok());
}

// An abort on one rank ends the pending calls of all others and all later calls, with its reason,
// and is told to who listens.
inline void expect_abort_reaches_all(const std::vector<RankLink*>& links) {
  on_all_ranks(links, [&](RankLink& link) {
    std::promise<void> told;
    link.on_end([&] { told.set_value(); });
    if (link.rank() == 0) {
      link.abort({StatusCode::kInternal, "the kettle boiled over"});
    } else {
      std::vector<std::byte> data(8);
      const Status pending = link.receive(0, data, "what never comes");
      EXPECT_NE(pending.message().find("the kettle boiled over"), std::string::npos)
          << pending.message();
    }
    std::vector<std::byte> all(8 * static_cast<std::size_t>(link.size()));
    const Status later = link.all_gather(pattern(0, 8), all, "a later gather");
    EXPECT_NE(later.message().find("the kettle boiled over"), std::string::npos) << later.message();
    EXPECT_EQ(told.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    bool late = false;
    link.on_end([&] { late = true; });
    EXPECT_TRUE(late);
  });
}

}  // namespace foretoken::group
