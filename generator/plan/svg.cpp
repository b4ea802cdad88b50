#include "generator/plan/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/svg_parts.h"
#include "runtime/support/check.h"

namespace afdep::plan {

std::string draw(const ExchangePlan& plan, int bucket) {
  const auto found = std::ranges::find(plan.buckets, bucket, &BucketPlan::bucket);
  AFDEP_CHECK(found != plan.buckets.end(), fmt::format("the plan has no bucket {}", bucket));

  constexpr std::string_view kMuted = "#52606d";
  constexpr double kWidth = kPictureWidth - 2 * kPictureMargin;
  SvgCanvas canvas;
  double y = 44;
  canvas.text(kPictureMargin, y,
              fmt::format("{} · bucket {} · {}", plan.name, bucket, to_string(found->protocol)),
              {.size = 22, .bold = true}, kWidth);
  y += 26;
  canvas.text(
      kPictureMargin, y,
      fmt::format("{} attention + {} ffn ranks · hidden {} (rows of {} bytes) · {} experts, "
                  "top-k {} · up to {} {} a source",
                  plan.attention_ranks, plan.ffn_ranks, plan.hidden, plan.row_bytes, plan.experts,
                  plan.top_k, bucket, bucket == 1 ? "token" : "tokens"),
      {.size = 13, .color = kMuted}, kWidth);
  y += 20;
  const Floor& floor = found->floor;
  canvas.text(kPictureMargin, y,
              fmt::format("floor {:.2f} us = launches {:.2f} + hops {:.2f} + bytes {:.2f}",
                          floor.total_us(), floor.launch_us, floor.hop_us, floor.bytes_us),
              {.size = 13, .color = kMuted}, kWidth);
  y = draw_lanes(canvas, plan, *found, y + 20);
  y = draw_inboxes(canvas, plan, *found, y + 24);
  return canvas.finish(kPictureWidth, static_cast<int>(y + kPictureMargin));
}

}  // namespace afdep::plan
