#include "group/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace foretoken::group {
namespace {

// The variables of a launcher that starts a process for each rank.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;  // among those on this host
  const char* local_size;  // ranks on this host; null: not told
  const char* master_addr;
  const char* master_port;
};

constexpr std::array<Launcher, 4> kLaunchers = {{
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "MASTER_ADDR", "MASTER_PORT"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
     "MASTER_PORT"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "MASTER_ADDR",
     "MASTER_PORT"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MASTER_ADDR",
     "MASTER_PORT"},
}};

std::optional<int> parse_number(const char* text) {
  int number = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, number);
  if (error != std::errc() || at != end || number < 0) return std::nullopt;
  return number;
}

Result<int> number_of(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr) return invalid_argument(fmt::format("{} is not set", name));
  const std::optional<int> number = parse_number(text);
  if (number) return *number;
  return invalid_argument(fmt::format("{} is '{}', which is no number of a rank", name, text));
}

const Launcher* find_launcher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (environment(launcher.rank) != nullptr && environment(launcher.size) != nullptr) {
      return &launcher;
    }
  }
  return nullptr;
}

// Among the ranks of its host, of which all have equally many or this one's are named.
int local_rank_of_child(int rank, const RankLayout& layout, const HostFlags& hosts) {
  if (hosts.engines) return rank - hosts.engines->first * layout.ranks_per_engine();
  return rank % std::max(layout.num_ranks() / std::max(hosts.nnodes, 1), 1);
}

// A child of this program's own: FORETOKEN_RANK and FORETOKEN_MASTER.
Result<LaunchPlan> plan_child(const RankLayout& layout, const HostFlags& hosts,
                              const Environment& environment) {
  LaunchPlan plan;
  FT_ASSIGN_OR_RETURN(plan.rank, number_of(environment, kChildRankVariable));
  plan.local_rank = local_rank_of_child(plan.rank, layout, hosts);
  if (environment(kChildDeviceVariable) != nullptr) {
    FT_ASSIGN_OR_RETURN(plan.first_device, number_of(environment, kChildDeviceVariable));
  }
  const char* master = environment(kChildMasterVariable);
  const std::string text = master == nullptr ? "" : master;
  const std::size_t colon = text.rfind(':');
  const auto port =
      colon == std::string::npos ? std::nullopt : parse_number(text.c_str() + colon + 1);
  if (!port || plan.rank >= layout.num_ranks()) {
    return invalid_argument(fmt::format("{}={} and {}={} say no rank of {} and no address",
                                        kChildRankVariable, plan.rank, kChildMasterVariable, text,
                                        layout.num_ranks()));
  }
  plan.master_host = text.substr(0, colon);
  plan.master_port = *port;
  plan.launcher = "foretoken";
  return plan;
}

// The host of rank 0 under a launcher: told, or the first of Slurm's list; empty where all ranks
// are here.
std::string launched_master(const Launcher& launcher, const HostFlags& flags,
                            const Environment& environment) {
  if (!flags.master_addr.empty()) return flags.master_addr;
  if (const char* told = environment(launcher.master_addr); told != nullptr) return told;
  const char* nodes = environment("SLURM_STEP_NODELIST");
  if (std::strcmp(launcher.name, "srun") == 0 && nodes != nullptr) return first_host(nodes);
  return "";
}

// SLURM_STEP_TASKS_PER_NODE is "2(x2)", or a list that begins with the first host's number.
int num_local_of(const Launcher& launcher, const Environment& environment) {
  const bool is_slurm = std::strcmp(launcher.name, "srun") == 0;
  const char* name = is_slurm ? "SLURM_STEP_TASKS_PER_NODE" : launcher.local_size;
  const char* text = name == nullptr ? nullptr : environment(name);
  if (text == nullptr) return 0;
  const std::string number(text, std::strspn(text, "0123456789"));
  return parse_number(number.c_str()).value_or(0);
}

Result<LaunchPlan> plan_launched(const Launcher& launcher, const RankLayout& layout,
                                 const HostFlags& flags, const Environment& environment) {
  LaunchPlan plan;
  plan.launcher = launcher.name;
  FT_ASSIGN_OR_RETURN(plan.rank, number_of(environment, launcher.rank));
  FT_ASSIGN_OR_RETURN(const int size, number_of(environment, launcher.size));
  if (size != layout.num_ranks()) {
    return invalid_argument(fmt::format(
        "{} started {} processes ({}), but tensor x pipeline x data parallel sizes ask for {} "
        "ranks; make them equal",
        launcher.name, size, launcher.size, layout.num_ranks()));
  }
  if (plan.rank >= size) {
    return invalid_argument(
        fmt::format("{} is {} of {} processes", launcher.rank, plan.rank, size));
  }
  plan.local_rank = plan.rank;
  if (environment(launcher.local_rank) != nullptr) {
    FT_ASSIGN_OR_RETURN(plan.local_rank, number_of(environment, launcher.local_rank));
  }
  plan.num_local = num_local_of(launcher, environment);
  plan.master_host = launched_master(launcher, flags, environment);
  plan.master_port = flags.master_port != 0 ? flags.master_port : kDefaultMasterPort;
  if (flags.master_port == 0 && environment(launcher.master_port) != nullptr) {
    FT_ASSIGN_OR_RETURN(plan.master_port, number_of(environment, launcher.master_port));
  }
  if (!plan.master_host.empty() || size == 1) return plan;
  const char* local = launcher.local_size == nullptr ? nullptr : environment(launcher.local_size);
  if (local == nullptr || parse_number(local) == size) {
    plan.master_host = "127.0.0.1";
    return plan;
  }
  return invalid_argument(fmt::format(
      "{} put ranks on several hosts; say where rank 0 is with --master-addr", launcher.name));
}

// LeaderWorkerSet tells hosts what --nnodes, --node-rank and --master-addr tell them.
Result<HostFlags> with_lws(HostFlags flags, const Environment& environment) {
  if (flags.nnodes > 1 || environment("LWS_GROUP_SIZE") == nullptr) return flags;
  FT_ASSIGN_OR_RETURN(flags.nnodes, number_of(environment, "LWS_GROUP_SIZE"));
  if (flags.nnodes <= 1) return flags;
  FT_ASSIGN_OR_RETURN(flags.node_rank, number_of(environment, "LWS_WORKER_INDEX"));
  const char* leader = environment("LWS_LEADER_ADDRESS");
  if (flags.master_addr.empty() && leader != nullptr) flags.master_addr = leader;
  return flags;
}

Status no_master() {
  return invalid_argument(
      "several hosts need --master-addr (vLLM: --data-parallel-address), the address of the host "
      "where ranks meet: that with the first engine or, without engines, with the server");
}

// One process a host, whose engines are named.
Result<LaunchPlan> plan_named(const RankLayout& layout, const HostFlags& flags) {
  const HostEngines& own = *flags.engines;
  const int each = layout.ranks_per_engine();
  if (own.first < 0 || own.count < 0 || own.first + own.count > layout.dp) {
    return invalid_argument(
        fmt::format("engines {} to {} of a host are not among those of --data-parallel-size {}",
                    own.first, own.first + own.count - 1, layout.dp));
  }
  if (flags.master_addr.empty()) return no_master();
  LaunchPlan plan;
  plan.rank = own.count > 0 ? own.first * each : bare_front(layout);
  plan.num_engines = own.count;
  plan.is_behind = own.behind;
  plan.first_child = plan.rank + 1;
  plan.end_child = own.count > 0 ? (own.first + own.count) * each : plan.first_child;
  plan.master_host = flags.master_addr;
  plan.master_port = flags.master_port == 0 ? kDefaultMasterPort : flags.master_port;
  return plan;
}

// One process a host, which starts the host's other ranks.
Result<LaunchPlan> plan_hosts(const RankLayout& layout, const HostFlags& flags) {
  const int ranks = layout.num_ranks();
  if (flags.nnodes < 1 || flags.node_rank < 0 || flags.node_rank >= flags.nnodes) {
    return invalid_argument(
        fmt::format("--node-rank {} is not one of --nnodes {}", flags.node_rank, flags.nnodes));
  }
  if (layout.dp > 1 && layout.dp % flags.nnodes != 0) {
    return invalid_argument(fmt::format(
        "--data-parallel-size {} cannot be divided among --nnodes {}: each engine is on one host, "
        "and hosts have equally many",
        layout.dp, flags.nnodes));
  }
  if (ranks % flags.nnodes != 0) {
    return invalid_argument(fmt::format(
        "{} ranks (tensor x pipeline parallel sizes) cannot be divided among --nnodes {}", ranks,
        flags.nnodes));
  }
  if (flags.nnodes > 1 && flags.master_addr.empty()) return no_master();
  const int per_host = ranks / flags.nnodes;
  LaunchPlan plan;
  plan.rank = flags.node_rank * per_host;
  plan.num_engines = std::max(layout.dp / flags.nnodes, 1);
  plan.first_child = plan.rank + 1;
  plan.end_child = plan.rank + per_host;
  plan.master_host = flags.nnodes > 1 ? flags.master_addr : "";
  plan.master_port =
      flags.master_port == 0 && flags.nnodes > 1 ? kDefaultMasterPort : flags.master_port;
  return plan;
}

}  // namespace

Result<LaunchPlan> plan_launch(const RankLayout& layout, const HostFlags& flags,
                               const Environment& environment) {
  const bool child = environment(kChildRankVariable) != nullptr;
  if (flags.engines) {
    return child ? plan_child(layout, flags, environment) : plan_named(layout, flags);
  }
  if (flags.nnodes == 1 && !child) {
    const Launcher* launcher = find_launcher(environment);
    if (launcher != nullptr) return plan_launched(*launcher, layout, flags, environment);
  }
  FT_ASSIGN_OR_RETURN(const HostFlags hosts, with_lws(flags, environment));
  if (child) return plan_child(layout, hosts, environment);
  return plan_hosts(layout, hosts);
}

bool started_as_rank(const Environment& environment) {
  return environment(kChildRankVariable) != nullptr || has_launcher(environment);
}

bool has_launcher(const Environment& environment) {
  if (environment(kChildRankVariable) != nullptr) return false;
  const Launcher* launcher = find_launcher(environment);
  if (launcher == nullptr) return false;
  const std::optional<int> size = parse_number(environment(launcher->size));
  return size && *size > 1;
}

std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find_first_of("[,");
  if (bracket == std::string::npos || list[bracket] == ',') return list.substr(0, bracket);
  const std::size_t end = list.find_first_of("-,]", bracket + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

}  // namespace foretoken::group
