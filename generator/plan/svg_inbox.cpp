#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "generator/plan/svg.h"
#include "generator/plan/svg_parts.h"
#include "generator/plan/text_table.h"

namespace afdep::plan {
namespace {

constexpr double kBarHeight = 36;
constexpr double kRowHeight = 20;
constexpr double kMinPeerPixels = 5;     // a block narrower than this gets no line
constexpr double kMinNumberPixels = 18;  // a region narrower than this gets no number
constexpr double kLeft = kPictureMargin;
constexpr double kRight = kPictureWidth - kPictureMargin;

constexpr std::string_view kMuted = "#52606d";
constexpr std::array<std::string_view, 6> kFills{"#8ecae6", "#ffd166", "#a3d9a5",
                                                 "#f4a6a0", "#c5b3e6", "#c9d1d9"};

std::string_view fill_of(std::size_t index) { return kFills[index % kFills.size()]; }

bool used_by(const BucketPlan& bucket, Role role, const Region& region) {
  return std::ranges::any_of(bucket.signals, [&](const Signal& signal) {
    return signal.to == role &&
           (signal.flag_region == region.name || signal.data_region == region.name);
  });
}

void draw_region(SvgCanvas& canvas, const Region& region, std::size_t index, bool used, double y,
                 double pixels_per_byte) {
  const double left = kLeft + static_cast<double>(region.offset) * pixels_per_byte;
  const double width = static_cast<double>(region.bytes()) * pixels_per_byte;
  canvas.rect(left, y, std::max(width, 1.0), kBarHeight, fill_of(index), "none", used ? 1 : 0.35);
  const double half = static_cast<double>(region.half_bytes) * pixels_per_byte;
  const double peer = static_cast<double>(region.peer_bytes) * pixels_per_byte;
  for (int h = 0; h < region.halves; ++h) {
    if (peer >= kMinPeerPixels) {
      for (int p = 1; p < region.peers; ++p) {
        const double x = left + h * half + p * peer;
        canvas.line(x, y, x, y + kBarHeight, {.color = "#ffffff", .width = 1});
      }
    }
    if (h > 0 && half >= kMinPeerPixels) {
      canvas.line(left + h * half, y, left + h * half, y + kBarHeight, {.width = 1.5});
    }
  }
  if (half < kMinNumberPixels) return;
  // In the middle of the first block; where blocks are narrow, on a patch over their lines.
  const double x = left + (peer >= kMinNumberPixels ? peer : half) / 2;
  if (peer < kMinNumberPixels && peer >= kMinPeerPixels) {
    canvas.rect(x - 8, y + kBarHeight / 2 - 8, 16, 16, "#ffffff");
  }
  canvas.text(x, y + kBarHeight / 2 + 5, fmt::format("{}", index + 1),
              {.size = 12, .bold = true, .anchor = Anchor::kMiddle});
}

void draw_row(SvgCanvas& canvas, const Region& region, std::size_t index, bool used, double y) {
  const std::string_view color = used ? "#1f2933" : "#7b8794";
  canvas.rect(kLeft, y - 11, 14, 14, fill_of(index), "none", used ? 1 : 0.35);
  canvas.text(kLeft + 7, y, fmt::format("{}", index + 1),
              {.size = 11, .bold = true, .color = color, .anchor = Anchor::kMiddle});
  canvas.text(kLeft + 24, y, region.name, {.size = 12, .bold = used, .color = color}, 140);
  canvas.text(kLeft + 280, y, fmt::format("at {}", region.offset),
              {.size = 11, .color = color, .anchor = Anchor::kEnd}, 110);
  canvas.text(kLeft + 370, y, human_bytes(static_cast<double>(region.bytes())),
              {.size = 11, .color = color, .anchor = Anchor::kEnd}, 84);
  const std::string halves = region.halves == 1 ? "" : fmt::format("{} halves × ", region.halves);
  const std::string peers = region.peers == 1 ? "" : fmt::format("{} peers × ", region.peers);
  canvas.text(kLeft + 388, y,
              fmt::format("{}{}{} × {} B", halves, peers, region.items, region.item_bytes),
              {.size = 11, .color = color}, 262);
  canvas.text(kLeft + 645, y, region.purpose, {.size = 11, .color = kMuted}, kRight - kLeft - 645);
}

double draw_inbox(SvgCanvas& canvas, const ExchangePlan& plan, const BucketPlan& bucket,
                  const RoleLayout& layout, double top) {
  double y = top + 16;
  canvas.text(kLeft, y,
              fmt::format("Inbox of an {} rank, {}", to_string(layout.role),
                          human_bytes(static_cast<double>(layout.window_bytes))),
              {.size = 14, .bold = true});
  y += 12;
  const double scale =
      (kRight - kLeft) / static_cast<double>(std::max<std::int64_t>(plan.window_bytes, 1));
  canvas.rect(kLeft, y, kRight - kLeft, kBarHeight, "#ffffff", "#9aa5b1", 1, true);
  for (std::size_t i = 0; i < layout.window.size(); ++i) {
    const Region& region = layout.window[i];
    draw_region(canvas, region, i, used_by(bucket, layout.role, region), y, scale);
  }
  y += kBarHeight + 20;
  for (std::size_t i = 0; i < layout.window.size(); ++i) {
    const Region& region = layout.window[i];
    draw_row(canvas, region, i, used_by(bucket, layout.role, region), y);
    y += kRowHeight;
  }
  return y;
}

}  // namespace

double draw_inboxes(SvgCanvas& canvas, const ExchangePlan& plan, const BucketPlan& bucket,
                    double top) {
  double y = draw_inbox(canvas, plan, bucket, plan.attention, top);
  y = draw_inbox(canvas, plan, bucket, plan.ffn, y + 8);
  canvas.text(
      kLeft, y + 12,
      fmt::format("Bars are to scale: their whole width is the {} that every rank registers. "
                  "Dark lines part halves, white ones peers; pale regions carry no "
                  "signal of this bucket.",
                  human_bytes(static_cast<double>(plan.window_bytes))),
      {.size = 11, .color = kMuted}, kRight - kLeft);
  return y + 16;
}

}  // namespace afdep::plan
