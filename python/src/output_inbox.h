#pragma once
#include <foretoken/request.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace foretoken::python {

// What is new about one request since it was last taken: deltas, summed up choice by choice.
struct Update {
  uint64_t key = 0;
  std::vector<RequestOutput> choices;  // those with news, in the order of their first news
  bool finished = false;               // the last update of this request
};

// Carries outputs from an engine's output thread to threads of Python. The output thread never
// waits here and needs no GIL; whoever takes sees each request once, however late it comes.
class OutputInbox : public std::enable_shared_from_this<OutputInbox> {
 public:
  // Throws std::system_error when the process has no file descriptor left.
  OutputInbox();
  ~OutputInbox();
  OutputInbox(const OutputInbox&) = delete;
  OutputInbox& operator=(const OutputInbox&) = delete;

  // The callback of a new request; its updates carry `key`. `final_only`: one update, at the end.
  // The callback keeps the inbox alive.
  OutputCallback open(uint64_t key, bool final_only);

  // What came since the last call, in the order in which requests first had news. Any thread.
  std::vector<Update> take();

  // Readable while there is something to take.
  int fd() const { return fd_; }
  // Waits for that; false after `timeout_ms` or a signal.
  bool wait(int timeout_ms) const;

 private:
  // One open request: its news, and whether they are in `ready_`.
  struct Channel {
    uint64_t key;
    bool final_only;
    bool listed = false;
    Update news = {};
  };

  void add(const std::shared_ptr<Channel>& channel, const RequestOutput& output);

  int fd_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Channel>> ready_;
};

}  // namespace foretoken::python
