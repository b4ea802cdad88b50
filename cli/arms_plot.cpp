// The plot of afdep-bench --arms: latency over tokens, both axes logarithmic.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "cli/bench_arms.h"

namespace afdep::cli {
namespace {

constexpr double kWidth = 880;
constexpr double kHeight = 520;
constexpr double kLeft = 64;
constexpr double kRight = 660;  // of the plot; the legend is beside it
constexpr double kTop = 56;
constexpr double kBottom = 468;

// Told apart by hue, dash and marker, so that no reader needs the colours.
struct Look {
  const char* light;
  const char* dark;
  const char* dash;
};
constexpr std::array<Look, 8> kLooks{{{"#1b62c4", "#6ea8fe", ""},
                                      {"#b4690e", "#f2b25c", "6 3"},
                                      {"#2f7d4f", "#6fd08c", "2 3"},
                                      {"#8a3ffc", "#c6a3ff", "8 3 2 3"},
                                      {"#6b7280", "#a8b0bb", "1 4"},
                                      {"#0f7b8a", "#5fd0de", "10 4"},
                                      {"#c2255c", "#ff7aa8", "14 3"},
                                      {"#7a5c00", "#d9c27a", "12 3 2 3 2 3"}}};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

// Values of one axis onto pixels, logarithmically.
class Axis {
 public:
  Axis(double low, double high, double from, double to)
      : low_(std::log(low)), span_(std::max(std::log(high) - low_, 1e-9)), from_(from), to_(to) {}
  [[nodiscard]] double at(double value) const {
    return from_ + (std::log(value) - low_) / span_ * (to_ - from_);
  }

 private:
  double low_, span_, from_, to_;
};

// 1, 2, 5, 10, ... within [low, high].
std::vector<double> ticks(double low, double high) {
  std::vector<double> found;
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (step * decade >= low && step * decade <= high) found.push_back(step * decade);
    }
  }
  return found;
}

std::string style() {
  std::string light;
  std::string dark;
  for (std::size_t i = 0; i < kLooks.size(); ++i) {
    light += fmt::format(".a{} {{ stroke: {}; fill: {}; }}\n", i, kLooks[i].light, kLooks[i].light);
    dark += fmt::format(".a{} {{ stroke: {}; fill: {}; }}\n", i, kLooks[i].dark, kLooks[i].dark);
  }
  return fmt::format(
      "<style>\n"
      "text {{ font: 12px system-ui, sans-serif; fill: #1f2933; stroke: none; }}\n"
      ".title {{ font-size: 15px; font-weight: 600; }}\n.muted {{ fill: #52606d; }}\n"
      ".page {{ fill: #ffffff; }}\n.grid {{ stroke: #e1e5ea; }}\n.axis {{ stroke: #7b8794; }}\n"
      ".line {{ fill: none; stroke-width: 2; }}\n.floor {{ stroke: #7b8794; stroke-width: 2; "
      "stroke-dasharray: 4 4; fill: none; }}\n{}"
      "@media (prefers-color-scheme: dark) {{\n"
      "text {{ fill: #e4e7eb; }}\n.muted {{ fill: #a8b0bb; }}\n.page {{ fill: #16191d; }}\n"
      ".grid {{ stroke: #2c3238; }}\n.axis {{ stroke: #8a94a0; }}\n.floor {{ stroke: #8a94a0; "
      "}}\n{}.line {{ fill: none; }}\n}}\n.line {{ fill: none; }}\n</style>\n",
      light, dark);
}

template <typename Value>
std::string points(const ArmsReport& report, const Axis& x, const Axis& y, const Value& value) {
  std::string list;
  for (const ArmsCell& cell : report.cells) {
    list += fmt::format("{}{:.1f},{:.1f}", list.empty() ? "" : " ", x.at(cell.tokens),
                        y.at(value(cell)));
  }
  return list;
}

}  // namespace

std::string to_svg(const ArmsReport& report) {
  double low = 1e9;
  double high = 0;
  int least = 1 << 30;
  int most = 1;
  for (const ArmsCell& cell : report.cells) {
    low = std::min(low, cell.floor.total_us());
    for (const Times& times : cell.times) {
      low = std::min(low, times.median);
      high = std::max(high, times.median);
    }
    least = std::min(least, cell.tokens);
    most = std::max(most, cell.tokens);
  }
  low *= 0.85;
  high *= 1.15;
  const Axis x(least, std::max(most, least + 1), kLeft + 12, kRight - 12);
  const Axis y(low, high, kBottom, kTop);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Latency over tokens: floor and arms\">\n",
      kWidth, kHeight);
  svg += style();
  svg += fmt::format("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", kWidth, kHeight);
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"24\">{}, {}, {} routing</text>\n", kLeft,
                     escaped(report.name), report.layout, report.routing);
  svg += fmt::format(
      "<text class=\"muted\" x=\"{}\" y=\"42\">us an exchange (median of {}), {} a graph, every "
      "rank "
      "a stream of one {}</text>\n",
      kLeft, report.repeats, report.exchanges_per_graph, escaped(report.device));
  for (const double tick : ticks(low, high)) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>"
        "<text class=\"muted\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, y.at(tick), kRight, y.at(tick), kLeft - 8, y.at(tick) + 4, tick);
  }
  for (const ArmsCell& cell : report.cells) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>"
        "<text class=\"muted\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        x.at(cell.tokens), kTop, x.at(cell.tokens), kBottom, x.at(cell.tokens), kBottom + 18,
        cell.tokens);
  }
  svg += fmt::format(
      "<line class=\"axis\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>"
      "<text class=\"muted\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">tokens of a source</text>\n",
      kLeft, kBottom, kRight, kBottom, (kLeft + kRight) / 2, kBottom + 38);

  svg +=
      fmt::format("<polyline class=\"floor\" points=\"{}\"><title>floor</title></polyline>\n",
                  points(report, x, y, [](const ArmsCell& cell) { return cell.floor.total_us(); }));
  for (std::size_t i = 0; i < report.arms.size(); ++i) {
    const std::size_t look = i % kLooks.size();
    svg += fmt::format(
        "<polyline class=\"a{} line\" stroke-dasharray=\"{}\" points=\"{}\"/>\n", look,
        *kLooks[look].dash == 0 ? "none" : kLooks[look].dash,
        points(report, x, y, [i](const ArmsCell& cell) { return cell.times[i].median; }));
    for (const ArmsCell& cell : report.cells) {
      svg += fmt::format(
          "<circle class=\"a{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}, T = {}: {:.2f} us "
          "({:.2f}-{:.2f})</title></circle>\n",
          look, x.at(cell.tokens), y.at(cell.times[i].median), escaped(report.arms[i]), cell.tokens,
          cell.times[i].median, cell.times[i].min, cell.times[i].max);
    }
  }
  // Slowest first, as the lines end.
  std::vector<std::size_t> order(report.arms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!report.cells.empty()) {
    const std::vector<Times>& last = report.cells.front().times;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return last[a].median != last[b].median ? last[a].median > last[b].median : a < b;
    });
  }
  double row = kTop + 8;
  const auto legend = [&](const std::string& line, const std::string& name) {
    svg += line;
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kRight + 60, row + 4, escaped(name));
    row += 22;
  };
  for (const std::size_t i : order) {
    const std::size_t look = i % kLooks.size();
    legend(fmt::format("<line class=\"a{} line\" stroke-dasharray=\"{}\" x1=\"{}\" y1=\"{}\" "
                       "x2=\"{}\" y2=\"{}\"/>",
                       look, *kLooks[look].dash == 0 ? "none" : kLooks[look].dash, kRight + 20, row,
                       kRight + 50, row),
           i == 0 ? "nothing reverted (ours)" : report.arms[i]);
  }
  legend(fmt::format("<line class=\"floor\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", kRight + 20,
                     row, kRight + 50, row),
         "floor");
  return svg + "</svg>\n";
}

}  // namespace afdep::cli
