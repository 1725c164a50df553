#pragma once

namespace foretoken {

// Names the calling thread and lets all others go first where cores are short: it then gets a few
// per cent of one.
void enter_background(const char* name);

}  // namespace foretoken
