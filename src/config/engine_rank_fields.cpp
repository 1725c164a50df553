#include "config/engine_rank_fields.h"

#include <climits>

namespace foretoken {
namespace rank_table {

using P = ParallelConfig;
using enum FieldForm;
using enum FieldAgreement;

constexpr const char* kRanks = "Ranks";

constexpr EngineField kTable[] = {
    {.name = "tensor_parallel_size",
     .member = &P::tensor_parallel_size,
     .group = kRanks,
     .help = "Ranks that share each layer: devices, or groups of threads on the CPU (-tp)",
     .range = {1, INT_MAX},
     .agreement = kValue},
    {.name = "pipeline_parallel_size",
     .member = &P::pipeline_parallel_size,
     .group = kRanks,
     .help = "Stages that an engine's layers are divided into (-pp)",
     .range = {1, INT_MAX},
     .agreement = kValue},
    {.name = "decode_context_parallel_size",
     .member = &P::decode_context_parallel_size,
     .group = kRanks,
     .help = "Tensor parallel ranks that keep the positions of a sequence in turn instead of all "
             "of them each, where they would hold the same keys and values (-dcp)",
     .range = {1, INT_MAX},
     .agreement = kValue},
    {.name = "data_parallel_size",
     .member = &P::data_parallel_size,
     .group = kRanks,
     .help = "Engines side by side behind one balancer (-dp)",
     .range = {1, INT_MAX}},
    {.name = "enable_expert_parallel",
     .member = &P::enable_expert_parallel,
     .group = kRanks,
     .help = "Deal the experts of a mixture out to the ranks of all engines, instead of cutting "
             "each of them (-ep)",
     .agreement = kValue},
    {.name = "enable_dbo",
     .member = &P::enable_dbo,
     .group = kRanks,
     .help = "Dual batch overlap: the sequences of a step go through the layers in two lanes, so "
             "that one computes while the other exchanges with other ranks",
     .agreement = kValue},
    {.name = "dbo_decode_token_threshold",
     .member = &P::dbo_decode_token_threshold,
     .group = kRanks,
     .help = "With --enable-dbo, fewest token rows of a step in two lanes where all sequences "
             "decode",
     .range = {1, INT_MAX},
     .agreement = kValue},
    {.name = "dbo_prefill_token_threshold",
     .member = &P::dbo_prefill_token_threshold,
     .group = kRanks,
     .help = "With --enable-dbo, fewest token rows of a step in two lanes where a prompt is "
             "computed",
     .range = {1, INT_MAX},
     .agreement = kValue},
    {.name = "distributed_executor_backend",
     .member = &P::distributed_executor_backend,
     .group = kRanks,
     .help = "Ranks of an engine: uni (threads of one process) or mp (processes); ray is passed "
             "over, as --nnodes tells of other hosts",
     .automatic = "uni where all are on one host",
     .form = kChoice,
     .choices = "uni|mp|ray",
     .doors = kCommandLine},
    {.name = "communicator",
     .member = &P::communicator,
     .group = kRanks,
     .help = "Between processes on CPUs: sockets or mpi",
     .automatic = "sockets, or mpi where mpirun started them and the plug-in is there",
     .form = kChoice,
     .choices = "sockets|mpi",
     .agreement = kValue,
     .doors = kCommandLine},
    {.name = "disable_custom_all_reduce",
     .member = &P::disable_custom_all_reduce,
     .group = kRanks,
     .help = "On GPUs, exchange through NCCL even where they reach each other's memory",
     .agreement = kValue},
    {.name = "nnodes",
     .member = &P::nnodes,
     .group = kRanks,
     .help = "Hosts that share one engine, or equally the engines of --data-parallel-size; each "
             "runs this command",
     .range = {1, INT_MAX},
     .doors = kCommandLine},
    {.name = "node_rank",
     .member = &P::node_rank,
     .group = kRanks,
     .help = "Which of them this one is",
     .range = {0, INT_MAX},
     .doors = kCommandLine},
    {.name = "master_addr",
     .member = &P::master_addr,
     .group = kRanks,
     .help = "Address of the host with --node-rank 0",
     .automatic = "this host",
     .doors = kCommandLine},
    {.name = "master_port",
     .member = &P::master_port,
     .group = kRanks,
     .help = "Port there where ranks meet",
     .automatic = "29500 between hosts, any on one host",
     .range = {1, 65535},
     .doors = kCommandLine},
    {.name = "data_parallel_size_local",
     .member = &P::data_parallel_size_local,
     .group = kRanks,
     .help =
         "Of the engines of --data-parallel-size, those on this host; 0: only the server, whose "
         "engines are on other hosts (-dpl)",
     .automatic = "all, or an equal share of --nnodes",
     .range = {0, INT_MAX},
     .doors = kCommandLine},
    {.name = "data_parallel_start_rank",
     .member = &P::data_parallel_start_rank,
     .group = kRanks,
     .help = "The number of this host's first engine; above 0 without --headless it means "
             "--data-parallel-hybrid-lb (-dpr)",
     .automatic = "0, or as --node-rank says",
     .range = {0, INT_MAX},
     .doors = kCommandLine},
    {.name = "data_parallel_rank",
     .member = &P::data_parallel_rank,
     .group = kRanks,
     .help = "The number of this server's only engine: --data-parallel-external-lb (-dpn)",
     .automatic = "as --node-rank says",
     .range = {0, INT_MAX},
     .doors = kCommandLine},
    {.name = "data_parallel_hybrid_lb",
     .member = &P::data_parallel_hybrid_lb,
     .group = kRanks,
     .help =
         "A server on every host for the engines there, with another balancer before them (-dph)",
     .doors = kCommandLine},
    {.name = "data_parallel_external_lb",
     .member = &P::data_parallel_external_lb,
     .group = kRanks,
     .help =
         "A server for every engine, with another balancer before them; engines of one host have "
         "a --port each (-dpe)",
     .doors = kCommandLine},
    {.name = "data_parallel_address",
     .member = &P::master_addr,
     .group = kRanks,
     .help =
         "Address of the host with the server, or with the first engine where each host has one: "
         "--master-addr by another name (-dpa)",
     .automatic = "as --master-addr says",
     .doors = kCommandLine},
    {.name = "data_parallel_rpc_port",
     .member = &P::master_port,
     .group = kRanks,
     .help = "Port there: --master-port by another name (-dpp)",
     .automatic = "as --master-port says",
     .range = {1, 65535},
     .doors = kCommandLine},
    {.name = "headless",
     .member = &P::headless,
     .group = kRanks,
     .help = "Run engines for the server of another host, and no server here",
     .doors = kCommandLine},
};

}  // namespace rank_table

std::span<const EngineField> engine_rank_fields() { return rank_table::kTable; }

}  // namespace foretoken
