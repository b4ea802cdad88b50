#include "generator/plan/svg_canvas.h"

#include <fmt/format.h>

namespace afdep::plan {
namespace {

constexpr std::string_view kArrowColors[] = {kDispatchColor, kReplyColor, kDoneColor};

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// In em, of the widest of Helvetica, Arial and DejaVu Sans.
double glyph_width(char c) {
  constexpr std::string_view kNarrow = "ijl.,:;'|! ()[]/-ftr";
  constexpr std::string_view kWide = "mwMW%@";
  if (kNarrow.find(c) != std::string_view::npos) return 0.41;
  if (kWide.find(c) != std::string_view::npos) return 1.0;
  if (c >= 'A' && c <= 'Z') return 0.75;
  if (static_cast<unsigned char>(c) >= 0x80) return 1.0;
  return 0.64;
}

std::string shorten(std::string_view text, const TextStyle& style, double max_width) {
  if (max_width <= 0 || text_width(text, style) <= max_width) return std::string(text);
  constexpr std::string_view kEllipsis = "…";
  std::string cut(text);
  while (!cut.empty() && text_width(cut + std::string(kEllipsis), style) > max_width) {
    while (!cut.empty() && !starts_code_point(cut.back())) cut.pop_back();
    if (!cut.empty()) cut.pop_back();
  }
  return cut.substr(0, cut.find_last_not_of(" ,:") + 1) + std::string(kEllipsis);
}

std::string_view name_of(Anchor anchor) {
  switch (anchor) {
    case Anchor::kStart:
      return "start";
    case Anchor::kMiddle:
      return "middle";
    case Anchor::kEnd:
      return "end";
  }
  return "start";
}

}  // namespace

double text_width(std::string_view text, const TextStyle& style) {
  double width = 0;
  for (const char c : text) {
    if (starts_code_point(c)) width += glyph_width(c);
  }
  constexpr double kBold = 1.12;
  return width * style.size * (style.bold ? kBold : 1);
}

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view fill,
                     std::string_view stroke, double opacity, bool dashed) {
  body_ += fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}" stroke="{}")", x, y,
      width, height, fill, stroke);
  if (opacity < 1) body_ += fmt::format(R"( opacity="{:.2f}")", opacity);
  if (dashed) body_ += R"( stroke-dasharray="4 3")";
  body_ += "/>\n";
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const LineStyle& style) {
  body_ += fmt::format(
      R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{:.1f}")",
      x1, y1, x2, y2, style.color, style.width);
  if (style.dashed) body_ += R"( stroke-dasharray="5 4")";
  if (style.arrow) {
    body_ += fmt::format(R"x( marker-end="url(#arrow-{})")x", style.color.substr(1));
  }
  body_ += "/>\n";
}

void SvgCanvas::text(double x, double y, std::string_view text, const TextStyle& style,
                     double max_width) {
  body_ += fmt::format(
      R"(<text x="{:.1f}" y="{:.1f}" font-size="{}" fill="{}" text-anchor="{}"{}>)", x, y,
      style.size, style.color, name_of(style.anchor), style.bold ? R"( font-weight="bold")" : "");
  body_ += escape(shorten(text, style, max_width)) + "</text>\n";
}

std::string SvgCanvas::finish(int width, int height) const {
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
      R"(font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">)"
      "\n<defs>\n",
      width, height);
  for (const std::string_view color : kArrowColors) {
    out += fmt::format(
        R"(<marker id="arrow-{}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="10" )"
        R"(markerHeight="10" markerUnits="userSpaceOnUse" orient="auto">)"
        R"(<path d="M0 0 L10 5 L0 10 z" fill="{}"/></marker>)"
        "\n",
        color.substr(1), color);
  }
  out += "</defs>\n";
  out += fmt::format(R"(<rect width="{}" height="{}" fill="#ffffff"/>)", width, height);
  return out + "\n" + body_ + "</svg>\n";
}

}  // namespace afdep::plan
