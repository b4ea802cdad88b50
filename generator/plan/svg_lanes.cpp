#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "generator/plan/svg_parts.h"
#include "generator/plan/text_table.h"

namespace afdep::plan {
namespace {

constexpr int kMaxSingleLanes = 8;  // more ranks in all: a lane a role
constexpr double kLaneHeight = 48;
constexpr double kLaneStep = 56;
constexpr double kBoxInset = 3;
constexpr double kTextLine = 16;

constexpr std::string_view kMuted = "#52606d";
constexpr std::string_view kStrip = "#f4f6f8";

// The columns of the time axis.
struct Column {
  double left;
  double right;
  [[nodiscard]] double middle() const { return (left + right) / 2; }
};
constexpr Column kLabels{kPictureMargin, 176};
constexpr Column kDispatch{184, 354};
constexpr Column kFirstHop{354, 454};
constexpr Column kReceive{454, 624};
constexpr Column kExperts{624, 740};
constexpr Column kReply{740, 910};
constexpr Column kSecondHop{910, 1010};
constexpr Column kCollect{1010, 1168};

constexpr double kFirstBus = kFirstHop.left + 24;
constexpr double kDoneBus = kSecondHop.left + 14;
constexpr double kSecondBus = kSecondHop.left + 40;

constexpr double kDispatchNotesWidth = kExperts.left + 20 - kFirstBus - 12;
constexpr double kReplyNotesWidth = kCollect.right - kSecondBus - 12;
constexpr TextStyle kNoteStyle{.size = 12};

struct Colors {
  std::string_view fill;
  std::string_view stroke;
};
Colors colors_of(Role role) {
  return role == Role::kAttention ? Colors{"#dceafb", kDispatchColor}
                                  : Colors{"#fdeedd", kReplyColor};
}

class Lanes {
 public:
  Lanes(SvgCanvas& canvas, const ExchangePlan& plan, const BucketPlan& bucket)
      : canvas_(canvas),
        plan_(plan),
        bucket_(bucket),
        single_(plan.ranks() <= kMaxSingleLanes),
        attention_lanes_(single_ ? plan.attention_ranks : 1),
        ffn_lanes_(single_ ? plan.ffn_ranks : 1) {}

  double draw(double top) {
    attention_top_ = top + 40;
    gutter_top_ = attention_top_ + attention_lanes_ * kLaneStep;
    ffn_top_ = gutter_top_ + gutter_height();
    draw_axis(top + 18);
    for (int i = 0; i < attention_lanes_; ++i) draw_lane(Role::kAttention, i);
    for (int i = 0; i < ffn_lanes_; ++i) draw_lane(Role::kFfn, i);
    draw_dispatch();
    draw_replies();
    draw_done();
    return ffn_top_ + ffn_lanes_ * kLaneStep;
  }

 private:
  [[nodiscard]] double lane_top(Role role, int lane) const {
    return (role == Role::kAttention ? attention_top_ : ffn_top_) + lane * kLaneStep;
  }
  [[nodiscard]] double lane_middle(Role role, int lane) const {
    return lane_top(role, lane) + kLaneHeight / 2;
  }

  // What the gutter between the roles says about the signals of one direction.
  [[nodiscard]] std::vector<std::string> notes(Role from) const;
  [[nodiscard]] double gutter_height() const;

  void draw_axis(double y);
  void draw_lane(Role role, int lane);
  void draw_box(Role role, double y, const Column& column, Operation operation);
  void draw_notes(double x, double max_width, const std::vector<std::string>& lines);
  void draw_dispatch();
  void draw_replies();
  void draw_done();

  SvgCanvas& canvas_;
  const ExchangePlan& plan_;
  const BucketPlan& bucket_;
  const bool single_;
  const int attention_lanes_;
  const int ffn_lanes_;
  double attention_top_ = 0;
  double gutter_top_ = 0;
  double ffn_top_ = 0;
};

std::vector<std::string> Lanes::notes(Role from) const {
  const double max_width = from == Role::kAttention ? kDispatchNotesWidth : kReplyNotesWidth;
  std::vector<std::string> lines;
  // On the line before, if it fits there.
  const auto append = [&](const std::string& more) {
    const std::string joined = lines.back() + more;
    if (text_width(joined, kNoteStyle) <= max_width) {
      lines.back() = joined;
    } else {
      lines.push_back(more.substr(1));
    }
  };
  for (const Signal& signal : bucket_.signals) {
    if (signal.from != from || signal.kind == SignalKind::kDoneWord) continue;
    lines.push_back(fmt::format("{}: {}", signal.name, to_string(signal.kind)));
    append(" in " + signal.flag_region);
    if (signal.data_region != signal.flag_region) append(" over " + signal.data_region);
  }
  const bool dispatch = from == Role::kAttention;
  lines.push_back(fmt::format("{} leave {} rank",
                              human_bytes(dispatch ? bucket_.traffic.dispatch_wire_bytes
                                                   : bucket_.traffic.reply_wire_bytes),
                              dispatch ? "an attention" : "an ffn"));
  return lines;
}

double Lanes::gutter_height() const {
  const std::size_t lines = std::max(notes(Role::kAttention).size(), notes(Role::kFfn).size());
  return static_cast<double>(std::max<std::size_t>(lines, 2)) * kTextLine + 28;
}

void Lanes::draw_axis(double y) {
  const double hops = static_cast<double>(std::max<std::size_t>(bucket_.critical_path.size(), 1));
  const std::string hop = fmt::format("{:.2f} us", bucket_.floor.hop_us / hops);
  const std::array<std::pair<Column, std::string>, 7> names{{{kDispatch, "dispatch"},
                                                             {kFirstHop, "hop, " + hop},
                                                             {kReceive, "receive"},
                                                             {kExperts, "experts"},
                                                             {kReply, "reply"},
                                                             {kSecondHop, "hop, " + hop},
                                                             {kCollect, "collect"}}};
  canvas_.text(kLabels.left, y, "time →", {.size = 11, .color = kMuted});
  for (const auto& [column, name] : names) {
    canvas_.text(column.middle(), y, name, {.size = 11, .color = kMuted, .anchor = Anchor::kMiddle},
                 column.right - column.left - 4);
    canvas_.line(column.left, y + 6, column.left, y + 12, {.color = kMuted});
  }
  canvas_.line(kDispatch.left, y + 9, kCollect.right, y + 9, {.color = kDoneColor, .arrow = true});
}

void Lanes::draw_box(Role role, double y, const Column& column, Operation operation) {
  const auto kernel = std::ranges::find(bucket_.kernels, operation, &Kernel::operation);
  if (kernel == bucket_.kernels.end()) return;
  const Colors colors = colors_of(role);
  const double height = kLaneHeight - 2 * kBoxInset;
  const double width = column.right - column.left;
  const double top = y + kBoxInset;
  if (!single_) {  // one box for many ranks
    canvas_.rect(column.left + 4, top + 4, width - 4, height, colors.fill, colors.stroke, 0.5);
    canvas_.rect(column.left, top, width - 4, height, colors.fill, colors.stroke);
  } else {
    canvas_.rect(column.left, top, width, height, colors.fill, colors.stroke);
  }
  std::string name(to_string(operation));
  const bool view = std::ranges::any_of(
      bucket_.kernels, [](const Kernel& k) { return k.operation == Operation::kCollectView; });
  if (operation == Operation::kCollect && view) name += " or view";
  canvas_.text(column.middle(), top + 18, name,
               {.size = 13, .bold = true, .anchor = Anchor::kMiddle}, width - 12);
  canvas_.text(column.middle(), top + 34,
               fmt::format("{} {} × {} threads", kernel->grid, kernel->grid == 1 ? "CTA" : "CTAs",
                           kernel->threads),
               {.size = 11, .color = kMuted, .anchor = Anchor::kMiddle}, width - 12);
}

void Lanes::draw_lane(Role role, int lane) {
  const double y = lane_top(role, lane);
  const int count = role == Role::kAttention ? plan_.attention_ranks : plan_.ffn_ranks;
  canvas_.rect(kPictureMargin, y, kCollect.right - kPictureMargin, kLaneHeight, kStrip);
  const double max_width = kLabels.right - kLabels.left - 12;
  std::string title = fmt::format("{} {}", to_string(role), lane);
  std::string world = fmt::format("world rank {}", plan_.world_rank(role, lane));
  if (!single_) {
    title = fmt::format("{} × {}", to_string(role), count);
    if (count > 1) {
      world = fmt::format("world ranks {}–{}", plan_.world_rank(role, 0),
                          plan_.world_rank(role, count - 1));
    }
  }
  canvas_.text(kLabels.left + 10, y + 21, title, {.size = 13, .bold = true}, max_width);
  canvas_.text(kLabels.left + 10, y + 37, world, {.size = 11, .color = kMuted}, max_width);
  if (role == Role::kAttention) {
    draw_box(role, y, kDispatch, Operation::kDispatch);
    draw_box(role, y, kCollect, Operation::kCollect);
    return;
  }
  draw_box(role, y, kReceive, Operation::kReceive);
  canvas_.rect(kExperts.left + 12, y + kBoxInset + 5, kExperts.right - kExperts.left - 24,
               kLaneHeight - 2 * kBoxInset - 10, "#ffffff", "#9aa5b1", 1, true);
  canvas_.text(kExperts.middle(), y + kLaneHeight / 2 + 4, "by the caller",
               {.size = 11, .color = kMuted, .anchor = Anchor::kMiddle});
  draw_box(role, y, kReply, Operation::kReply);
}

void Lanes::draw_notes(double x, double max_width, const std::vector<std::string>& lines) {
  double y = gutter_top_ + 20;
  for (const std::string& line : lines) {
    canvas_.text(x, y, line, kNoteStyle, max_width);
    y += kTextLine;
  }
}

// Every source's dispatch joins one line, which reaches every worker's receive.
void Lanes::draw_dispatch() {
  const LineStyle plain{.color = kDispatchColor, .width = 2};
  LineStyle arrow = plain;
  arrow.arrow = true;
  for (int i = 0; i < attention_lanes_; ++i) {
    const double y = lane_middle(Role::kAttention, i);
    canvas_.line(kDispatch.right, y, kFirstBus, y, plain);
  }
  canvas_.line(kFirstBus, lane_middle(Role::kAttention, 0), kFirstBus,
               lane_middle(Role::kFfn, ffn_lanes_ - 1), plain);
  for (int i = 0; i < ffn_lanes_; ++i) {
    const double y = lane_middle(Role::kFfn, i);
    canvas_.line(kFirstBus, y, kReceive.left, y, arrow);
  }
  draw_notes(kFirstBus + 12, kDispatchNotesWidth, notes(Role::kAttention));
}

void Lanes::draw_replies() {
  const LineStyle plain{.color = kReplyColor, .width = 2};
  LineStyle arrow = plain;
  arrow.arrow = true;
  for (int i = 0; i < ffn_lanes_; ++i) {
    const double y = lane_middle(Role::kFfn, i);
    canvas_.line(kReply.right, y, kSecondBus, y, plain);
  }
  canvas_.line(kSecondBus, lane_middle(Role::kFfn, ffn_lanes_ - 1), kSecondBus,
               lane_middle(Role::kAttention, 0), plain);
  for (int i = 0; i < attention_lanes_; ++i) {
    const double y = lane_middle(Role::kAttention, i);
    canvas_.line(kSecondBus, y, kCollect.left, y, arrow);
  }
  draw_notes(kSecondBus + 12, kReplyNotesWidth, notes(Role::kFfn));
}

// A done word leaves its kernel for an exchange to come, so its arrow ends in the gutter.
void Lanes::draw_done() {
  for (const Signal& signal : bucket_.signals) {
    if (signal.kind != SignalKind::kDoneWord) continue;
    const bool by_receive = std::ranges::any_of(bucket_.kernels, [&](const Kernel& kernel) {
      return kernel.operation == Operation::kReceive &&
             std::ranges::any_of(kernel.steps, [&](const Step& step) {
               return step.kind == StepKind::kPublish && step.signal == signal.name;
             });
    });
    const double bus = by_receive ? kExperts.left + 6 : kDoneBus;
    const double out = by_receive ? kReceive.right : kReply.right;
    const LineStyle dashed{.color = kDoneColor, .width = 1.5, .dashed = true};
    for (int i = 0; i < ffn_lanes_; ++i) {
      const double y = lane_top(Role::kFfn, i) + kBoxInset + 9;
      canvas_.line(out, y, bus, y, dashed);
    }
    LineStyle arrow = dashed;
    arrow.arrow = true;
    canvas_.line(bus, lane_top(Role::kFfn, ffn_lanes_ - 1) + kBoxInset + 9, bus, gutter_top_ + 10,
                 arrow);
    const TextStyle style{
        .size = 12, .color = kMuted, .anchor = by_receive ? Anchor::kStart : Anchor::kEnd};
    const double x = by_receive ? bus + 10 : bus - 10;
    const double max_width = kDoneBus - 10 - (kExperts.left + 16) - 10;
    canvas_.text(
        x, gutter_top_ + 20,
        fmt::format("{}: {} in {}", signal.name, to_string(signal.kind), signal.flag_region), style,
        max_width);
    canvas_.text(x, gutter_top_ + 20 + kTextLine,
                 fmt::format("for dispatch of generation g + {}", signal.generation_lag), style,
                 max_width);
  }
}

}  // namespace

double draw_lanes(SvgCanvas& canvas, const ExchangePlan& plan, const BucketPlan& bucket,
                  double top) {
  return Lanes(canvas, plan, bucket).draw(top);
}

}  // namespace afdep::plan
