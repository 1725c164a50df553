#pragma once
#include <foretoken/engine.h>

#include <memory>

#include "base/result.h"
#include "group/rank_link.h"

namespace foretoken {

// Runs an engine for the front end of another process (remote_engine.h): takes its requests from
// one link and sends outputs over the other, until the front end is done or the group has ended.
// Ok in the first case. Blocks; the engine has ended when it returns. `index`: of the engine, for
// errors.
Status serve_front(std::unique_ptr<Engine> engine, group::RankLink& requests,
                   group::RankLink& outputs, int index);

}  // namespace foretoken
