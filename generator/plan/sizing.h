// What the window would be if ranks did not have roles.
#pragma once

#include <cstdint>

#include "generator/plan/plan.h"

namespace afdep::plan {

// Registered bytes of a rank under union sizing, as of a general library whose ranks may all send
// to all and which reuses one inbox for both phases: the larger inbox, with a block for every rank
// of the exchange where it has one for every rank of the other role. Replies never need more than
// top_k blocks.
std::int64_t union_window_bytes(const ExchangePlan& plan);

}  // namespace afdep::plan
