#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "group/rank_group.h"
#include "group/wire/address.h"

namespace foretoken::group {

using JoinResult = Result<std::unique_ptr<RankGroup>>;

// Joins ranks 0..size-1 as threads of this process; `change` may alter the options of a rank.
inline std::vector<std::optional<JoinResult>> join_all(
    int size, const std::function<void(int, JoinOptions&)>& change = {}) {
  Result<Socket> listener = listen_tcp("127.0.0.1", 0);
  const int port = port_of(listener.value());
  std::vector<std::optional<JoinResult>> joined(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i) {
    JoinOptions options;
    options.layout = {.tp = size};
    options.rank = i;
    options.master_host = "127.0.0.1";
    options.master_port = port;
    options.parts = {{"version", "1"}};
    options.start_time = std::chrono::seconds(120);
    // A busy machine is no silence.
    options.heartbeat.patience = std::chrono::minutes(10);
    options.gathers = i == 0;
    if (options.gathers) options.master_listener = std::move(listener).value();
    if (change) change(i, options);
    threads.emplace_back([options = std::move(options), &joined, i]() mutable {
      joined[static_cast<std::size_t>(i)] = RankGroup::join(std::move(options));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return joined;
}

}  // namespace foretoken::group
