// The plan as a picture: who runs what when, what crosses between the roles, and where it lands.
#pragma once

#include <string>

#include "generator/plan/plan.h"

namespace afdep::plan {

inline constexpr int kPictureWidth = 1200;  // pixels

// A self-contained SVG of one bucket's exchange. The time axis orders and is not to scale; the
// inboxes are. Precondition: check() passed and the plan has the bucket.
std::string draw(const ExchangePlan& plan, int bucket);

}  // namespace afdep::plan
