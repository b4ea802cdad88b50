// The two halves of the picture that svg.h draws.
#pragma once

#include "generator/plan/plan.h"
#include "generator/plan/svg_canvas.h"

namespace afdep::plan {

inline constexpr double kPictureMargin = 32;

// Ranks as lanes, kernels as boxes, hops as arrows, from `top` down. Returns the lower edge.
double draw_lanes(SvgCanvas& canvas, const ExchangePlan& plan, const BucketPlan& bucket,
                  double top);

// The window of each role to scale, with a line a region, from `top` down. Returns the lower edge.
double draw_inboxes(SvgCanvas& canvas, const ExchangePlan& plan, const BucketPlan& bucket,
                    double top);

}  // namespace afdep::plan
