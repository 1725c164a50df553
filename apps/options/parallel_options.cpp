#include "apps/options/parallel_options.h"

#include "apps/options/engine_options.h"

namespace foretoken {

void add_parallel_flags(CLI::App& app, ParallelConfig& parallel) {
  const char* group = "Ranks";
  const auto number = [&](const char* flag, int& value, int low, const char* help) {
    app.add_option(flag, value, help)->group(group)->capture_default_str()->check(at_least(low));
  };
  number("--tensor-parallel-size", parallel.tensor_parallel_size, 1,
         "Ranks that share each layer: devices, or groups of threads on the CPU (-tp)");
  number("--pipeline-parallel-size", parallel.pipeline_parallel_size, 1,
         "Stages that an engine's layers are divided into (-pp)");
  number("--decode-context-parallel-size", parallel.decode_context_parallel_size, 1,
         "Tensor parallel ranks that keep the positions of a sequence in turn instead of all of "
         "them each, where they would hold the same keys and values (-dcp)");
  number("--data-parallel-size", parallel.data_parallel_size, 1,
         "Engines side by side behind one balancer (-dp)");
  app.add_flag(
         "--enable-expert-parallel", parallel.enable_expert_parallel,
         "Deal the experts of a mixture out to the ranks of all engines, instead of cutting each "
         "of them (-ep)")
      ->group(group);
  app.add_option("--distributed-executor-backend", parallel.distributed_executor_backend,
                 "Ranks of an engine: uni (threads of one process) or mp (processes) (default: uni "
                 "where all are on one host)")
      ->group(group)
      ->check(CLI::IsMember({"uni", "mp"}));
  app.add_option("--communicator", parallel.communicator,
                 "Between processes on CPUs: sockets or mpi (default: sockets)")
      ->group(group)
      ->check(CLI::IsMember({"sockets", "mpi"}));
  app.add_flag("--disable-custom-all-reduce", parallel.disable_custom_all_reduce,
               "On GPUs, exchange through NCCL even where they reach each other's memory")
      ->group(group);
  number("--nnodes", parallel.nnodes, 1, "Hosts that share one engine; each runs this command");
  number("--node-rank", parallel.node_rank, 0, "Which of them this one is");
  app.add_option("--master-addr", parallel.master_addr, "Address of the host with --node-rank 0")
      ->group(group);
  app.add_option("--master-port", parallel.master_port,
                 "Port there where ranks meet (default: 29500 between hosts, any on one host)")
      ->group(group)
      ->check(CLI::Range(1, 65535));
}

}  // namespace foretoken
