#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "group/end_state.h"

namespace foretoken::group {

// Wakes ranks that are threads of one process and sleep until one of them has work. What they meet
// for is numbered on all of them alike: the first that comes to a number rings for it. Any thread.
class WakeBell {
 public:
  explicit WakeBell(int num_ranks);

  // What wakes a rank; empty: nothing. It is called on threads of the others, and not after it was
  // replaced.
  void set_waker(int rank, std::function<void()> wake);
  // `rank` comes to meeting `number`; the others are woken unless one of them has come to it.
  void ring(int rank, uint64_t number);
  // Wakes all: they are to look what has happened.
  void wake_all();

 private:
  std::mutex mutex_;
  uint64_t rung_ = 0;
  std::vector<std::function<void()>> wakers_;
};

// Wakes a rank that sleeps while the others are processes: what they send it lies on the link's
// connections until it comes for it.
class NewsWatch {
 public:
  // RankLink::news_descriptors, which outlive it.
  explicit NewsWatch(std::vector<int> descriptors);
  ~NewsWatch();
  NewsWatch(const NewsWatch&) = delete;
  NewsWatch& operator=(const NewsWatch&) = delete;

  // What wakes the rank; empty: nothing. It is called on a thread of the watch, and not after it
  // was replaced.
  void set_waker(std::function<void()> wake);
  // The rank is about to sleep: it is woken, once, as soon as there are news.
  void arm();
  // The rank comes by itself.
  void disarm();

 private:
  void run();
  // False: the watch ends.
  bool wait_until_armed();
  bool wait_for_news();

  std::vector<int> descriptors_;  // the last one is that of `ending_`
  EndState ending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> wake_;
  bool is_armed_ = false;
  std::thread thread_;
};

}  // namespace foretoken::group
