#pragma once
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "group/rank_place.h"

namespace foretoken::group {

inline constexpr int kDefaultMasterPort = 29500;

// The engines of this host, where they are named instead of an equal share of --nnodes.
struct HostEngines {
  int first = 0;
  int count = 0;        // 0: a front end alone, which is no rank
  bool behind = false;  // requests come from another host's process, which gathers the ranks

  bool operator==(const HostEngines&) const = default;
};

// What the command line says of hosts.
struct HostFlags {
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr = {};
  int master_port = 0;                      // 0: not given
  std::optional<HostEngines> engines = {};  // then nnodes, node_rank and launchers say nothing
};

// Where this process stands, and whom it starts.
struct LaunchPlan {
  int rank = 0;                          // bare_front: it is none
  int local_rank = 0;                    // among the ranks on this host
  int num_local = 0;                     // of a launcher's processes on this host; 0: not known
  std::string master_host = {};          // empty: all ranks are on this host
  int master_port = 0;                   // 0: any free one, which rank 0 tells its children
  std::optional<int> first_device = {};  // of a child: GPU of its host's local rank 0
  // Engines of which this process is the first rank: that of `rank`, and those behind it.
  int num_engines = 1;
  bool is_behind = false;  // as of HostEngines::behind
  // Ranks that this process starts as its children: [first_child, end_child), but for the first
  // ones of engines.
  int first_child = 0;
  int end_child = 0;
  std::string launcher = {};  // "mpirun", "srun", "torchrun", ...; empty: this program's own flags

  // Whether the ranks meet at this process: a front end without engines, or rank 0's.
  bool gathers() const { return num_engines == 0 || (rank == 0 && !is_behind); }
  bool operator==(const LaunchPlan&) const = default;
};

using Environment = std::function<const char*(const char*)>;  // as getenv

// Reads the flags and the environment of launchers that start a process for each rank (mpirun with
// OMPI_* or PMI_*, srun with SLURM_*, torchrun with RANK and WORLD_SIZE) or for each host (LWS_*,
// --nnodes). `layout` is that of one engine (dp = 1), or of all engines whose ranks meet; of these
// each is on one host, unless a launcher puts its ranks elsewhere. InvalidArgument when their
// numbers of ranks differ, or a value is no number, with the variable's or flag's name.
//
// A process that the launcher started alone (one rank there, one in the layout) stands alone.
Result<LaunchPlan> plan_launch(const RankLayout& layout, const HostFlags& flags,
                               const Environment& environment);

// Whether some launcher has started this process as one of several; a child of this program's own
// counts as well.
bool started_as_rank(const Environment& environment);
// Whether mpirun, srun, torchrun or the like has; a child of this program's own does not count.
bool has_launcher(const Environment& environment);

// The environment of a child: it joins at this address as this rank.
inline constexpr const char* kChildRankVariable = "FORETOKEN_RANK";
inline constexpr const char* kChildMasterVariable = "FORETOKEN_MASTER";  // HOST:PORT
inline constexpr const char* kChildDeviceVariable = "FORETOKEN_FIRST_DEVICE";

// The first host of a Slurm list: "node[03-05,9],x1" gives "node03".
std::string first_host(const std::string& list);

}  // namespace foretoken::group
