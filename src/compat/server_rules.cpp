#include <string>

#include "compat/rules.h"

// Which hosts have a server, and which have engines.

namespace foretoken {
namespace {

// Each host, or each engine, has a server.
bool has_own_servers(const Combination& c) { return c.server_per_host || c.server_per_engine; }

std::string server_flag(const Combination& c) {
  return c.server_per_host ? "--data-parallel-hybrid-lb" : "--data-parallel-external-lb";
}

const CompatRule kServerRules[] = {
    {"`--data-parallel-hybrid-lb`, `--data-parallel-external-lb`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.server_per_host && c.server_per_engine; },
     [](const Combination&) -> std::string {
       return "--data-parallel-hybrid-lb has a server for each host, and "
              "--data-parallel-external-lb (or --data-parallel-rank) one for each engine; leave "
              "one of them out";
     },
     {.server_per_host = true, .server_per_engine = true}},
    {"`--headless`, `--data-parallel-hybrid-lb` or `--data-parallel-external-lb`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.no_server && has_own_servers(c); },
     [](const Combination& c) {
       return "--headless is for a host without a server, and with " + server_flag(c) +
              " every host has one; leave one of them out";
     },
     {.server_per_host = true, .no_server = true}},
    {"`--data-parallel-rank`, `--data-parallel-size-local` above 1",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.server_per_engine && c.num_local_engines > 1; },
     [](const Combination& c) {
       return "--data-parallel-external-lb (or --data-parallel-rank) is a server of one engine, "
              "and --data-parallel-size-local is " +
              std::to_string(*c.num_local_engines) +
              "; leave one of them out, or use --data-parallel-hybrid-lb instead";
     },
     {.server_per_engine = true, .num_local_engines = 2}},
    {"`--data-parallel-size-local 0`, `--data-parallel-hybrid-lb` or `--data-parallel-external-lb`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.num_local_engines == 0 && has_own_servers(c); },
     [](const Combination& c) {
       return "--data-parallel-size-local 0 is for a server whose engines are on other hosts, and "
              "with " +
              server_flag(c) + " each server has its own; leave one of them out";
     },
     {.server_per_host = true, .num_local_engines = 0}},
    {"`--data-parallel-size-local 0`, `--headless`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.num_local_engines == 0 && c.no_server; },
     [](const Combination&) -> std::string {
       return "--data-parallel-size-local 0 has no engine on this host, and --headless no server; "
              "leave one of them out";
     },
     {.no_server = true, .num_local_engines = 0}},
    {"`--data-parallel-size-local 0`, logits processors",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.num_local_engines == 0 && c.logits_processors; },
     [](const Combination&) -> std::string {
       return "logits_processors are code of the process that takes the request, which has no "
              "engine (--data-parallel-size-local 0); give this host an engine";
     },
     {.logits_processors = true, .num_local_engines = 0}},
};

}  // namespace

std::span<const CompatRule> server_rules() { return kServerRules; }

}  // namespace foretoken
