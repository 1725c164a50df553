#pragma once

namespace foretoken::cpu {

// Called once by every thread that runs ops, before its first op. Keeps oneDNN single-threaded on
// this thread, so that OpenMP never starts a team of its own.
void init_worker_thread();

// Physical cores that this process may use.
int num_physical_cores();

}  // namespace foretoken::cpu
