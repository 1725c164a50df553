#pragma once
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>

namespace foretoken::http {

class Connection;

// One thread that runs everything of its connections.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // `name`: at most 15 characters, for debuggers. Where no thread starts it throws, and is at its
  // end.
  void start(const std::string& name);
  // Waits until nothing is left to do; the connections must be closing.
  void join();

  // Runs `work` on the thread, in order; any thread. False, and the work dropped, after the end.
  bool post(std::function<void()> work);

  boost::asio::io_context& context() { return context_; }
  // Of the loop's thread only.
  std::unordered_set<Connection*>& connections() { return connections_; }

 private:
  void run(const std::string& name);

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::unordered_set<Connection*> connections_;
  std::thread thread_;
  std::mutex mutex_;
  bool ended_ = false;
};

}  // namespace foretoken::http
