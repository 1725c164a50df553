#include "http/message/event_loop.h"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/log.h"

namespace foretoken::http {

EventLoop::EventLoop() : guard_(context_.get_executor()) {}

EventLoop::~EventLoop() { join(); }

void EventLoop::start(const std::string& name) {
  try {
    thread_ = std::thread([this, name] { run(name); });
  } catch (...) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    throw;
  }
}

void EventLoop::run(const std::string& name) {
  pthread_setname_np(pthread_self(), name.c_str());
  for (bool more = true; more;) {
    try {
      context_.run();
      more = false;
    } catch (const std::exception& error) {
      FT_LOG(error, "http: {}", error.what());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  // What was posted between the end of run() and the mark.
  context_.restart();
  context_.poll();
}

void EventLoop::join() {
  guard_.reset();
  if (thread_.joinable()) thread_.join();
}

bool EventLoop::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  boost::asio::post(context_, std::move(work));
  return true;
}

}  // namespace foretoken::http
