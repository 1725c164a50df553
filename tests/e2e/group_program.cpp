// A group of processes without a model: joins as foretoken does and exchanges a few bytes over and
// over, for tests that kill, stop and cut off ranks.
//   test_group_program --tp N [--nnodes N --node-rank N --master-addr HOST] [--master-port PORT]
//                      [--seconds S] [--start-time S] [--part TEXT] [--communicator sockets|mpi]
//                      [--bytes N --rounds N]   prints the time of a gather of N bytes a rank
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "group/process_group.h"

namespace {

using namespace foretoken;
using namespace foretoken::group;

std::map<std::string, std::string> read_flags(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  return flags;
}

int number(const std::map<std::string, std::string>& flags, const char* name, int otherwise) {
  const auto found = flags.find(name);
  return found == flags.end() ? otherwise : std::atoi(found->second.c_str());
}

// Gathers until the time is over on rank 0, which says so in its bytes. At least twice, so that
// every rank has ended the first.
Status exchange(RankGroup& group, int seconds) {
  const auto link = group.take_link(Lane::kCollectives);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  std::vector<std::byte> all(static_cast<std::size_t>(link->size()) * 64);
  std::array<std::byte, 64> mine{std::byte(link->rank())};
  for (long step = 0;; ++step) {
    if (link->rank() == 0 && step > 0 && Clock::now() >= end) mine[1] = std::byte{1};
    FT_RETURN_IF_ERROR(link->all_gather(mine, all, "all_gather of step " + std::to_string(step)));
    for (int rank = 0; rank < link->size(); ++rank) {
      if (all[static_cast<std::size_t>(rank) * 64] != std::byte(rank)) {
        return internal_error("wrong bytes of rank " + std::to_string(rank));
      }
    }
    if (step == 0) std::fprintf(stderr, "rank %d works, process %d\n", link->rank(), getpid());
    if (all[1] == std::byte{1}) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Gathers without a pause between them.
Status measure(RankGroup& group, int bytes, int rounds) {
  const auto link = group.take_link(Lane::kCollectives);
  const std::vector<std::byte> mine(static_cast<std::size_t>(bytes));
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(link->size()));
  FT_RETURN_IF_ERROR(link->all_gather(mine, all, "warm-up"));
  const auto begin = Clock::now();
  for (int i = 0; i < rounds; ++i) FT_RETURN_IF_ERROR(link->all_gather(mine, all, "gather"));
  const std::chrono::duration<double, std::micro> elapsed = Clock::now() - begin;
  if (link->rank() == 0) {
    std::printf("%d ranks, %d bytes: %.1f us a gather\n", link->size(), bytes,
                elapsed.count() / rounds);
  }
  return link->all_gather(mine, all, "the end");
}

Status run(const std::map<std::string, std::string>& flags) {
  ProcessGroupOptions options;
  options.layout.tp = number(flags, "--tp", 1);
  options.hosts.nnodes = number(flags, "--nnodes", 1);
  options.hosts.node_rank = number(flags, "--node-rank", 0);
  options.hosts.master_port = number(flags, "--master-port", 0);
  if (flags.count("--master-addr") > 0) options.hosts.master_addr = flags.at("--master-addr");
  if (flags.count("--part") > 0) options.parts = {{"--part", flags.at("--part")}};
  if (flags.count("--communicator") > 0) options.communicator = flags.at("--communicator");
  options.start_time = std::chrono::seconds(number(flags, "--start-time", 600));
  options.environment = [](const char* name) -> const char* { return std::getenv(name); };
  FT_ASSIGN_OR_RETURN(auto processes, ProcessGroup::start(options));
  const int rounds = number(flags, "--rounds", 0);
  const Status ended = rounds > 0
                           ? measure(processes->group(), number(flags, "--bytes", 64), rounds)
                           : exchange(processes->group(), number(flags, "--seconds", 3600));
  // The end that rank 0 meant.
  return ended.code() == StatusCode::kAborted && processes->plan().rank != 0 ? Status() : ended;
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(read_flags(argc, argv));
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}
