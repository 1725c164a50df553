#include "output_inbox.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace foretoken::python {
namespace {

template <class T>
void append(const std::vector<T>& part, std::vector<T>& sum) {
  sum.insert(sum.end(), part.begin(), part.end());
}

void merge(const RequestOutput& output, RequestOutput& sum) {
  sum.text += output.text;
  append(output.token_ids, sum.token_ids);
  append(output.logprobs, sum.logprobs);
  append(output.prompt_logprobs, sum.prompt_logprobs);
  append(output.embedding, sum.embedding);
  sum.num_accepted_tokens += output.num_accepted_tokens;
  sum.stats = output.stats;
  if (!output.finished) return;
  sum.finished = true;
  sum.finish_reason = output.finish_reason;
  sum.stop_reason = output.stop_reason;
  sum.status = output.status;
}

RequestOutput& choice_of(Update& news, const RequestOutput& output) {
  const auto is_it = [&](const RequestOutput& sum) { return sum.index == output.index; };
  const auto found = std::find_if(news.choices.begin(), news.choices.end(), is_it);
  if (found != news.choices.end()) return *found;
  RequestOutput& sum = news.choices.emplace_back();
  sum.request_id = output.request_id;
  sum.index = output.index;
  return sum;
}

}  // namespace

OutputInbox::OutputInbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

OutputInbox::~OutputInbox() { close(fd_); }

OutputCallback OutputInbox::open(uint64_t key, bool final_only) {
  auto channel = std::make_shared<Channel>(Channel{.key = key, .final_only = final_only});
  return [inbox = shared_from_this(), channel = std::move(channel)](const RequestOutput& output) {
    inbox->add(channel, output);
  };
}

void OutputInbox::add(const std::shared_ptr<Channel>& channel, const RequestOutput& output) {
  std::lock_guard lock(mutex_);
  Update& news = channel->news;
  merge(output, choice_of(news, output));
  news.finished = news.finished || output.request_finished;
  if (channel->listed || (channel->final_only && !news.finished)) return;
  channel->listed = true;
  ready_.push_back(channel);
  // The counter cannot overflow: it is written only when the list was empty.
  if (ready_.size() == 1) (void)!eventfd_write(fd_, 1);
}

std::vector<Update> OutputInbox::take() {
  std::lock_guard lock(mutex_);
  std::vector<Update> updates;
  updates.reserve(ready_.size());
  for (const std::shared_ptr<Channel>& channel : ready_) {
    channel->listed = false;
    channel->news.key = channel->key;
    updates.push_back(std::move(channel->news));
    channel->news = Update();
  }
  if (!ready_.empty()) {
    eventfd_t count = 0;
    (void)!eventfd_read(fd_, &count);
  }
  ready_.clear();
  return updates;
}

bool OutputInbox::wait(int timeout_ms) const {
  pollfd polled{.fd = fd_, .events = POLLIN, .revents = 0};
  return poll(&polled, 1, timeout_ms) > 0;
}

}  // namespace foretoken::python
