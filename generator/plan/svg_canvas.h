// The few SVG shapes that the picture of a plan is made of.
#pragma once

#include <string>
#include <string_view>

namespace afdep::plan {

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  int size = 12;  // pixels
  bool bold = false;
  std::string_view color = "#1f2933";
  Anchor anchor = Anchor::kStart;
};

struct LineStyle {
  std::string_view color = "#1f2933";
  double width = 1;
  bool dashed = false;
  bool arrow = false;  // at its end; needs a color of kArrowColors
};

// Colors that a line with an arrow may have.
inline constexpr std::string_view kDispatchColor = "#1d5fa8";
inline constexpr std::string_view kReplyColor = "#b4560f";
inline constexpr std::string_view kDoneColor = "#6b7785";

// Coordinates are pixels, y downwards. Text is escaped here and nowhere else.
class SvgCanvas {
 public:
  void rect(double x, double y, double width, double height, std::string_view fill,
            std::string_view stroke = "none", double opacity = 1, bool dashed = false);
  void line(double x1, double y1, double x2, double y2, const LineStyle& style);
  // Shortened with an ellipsis to `max_width` pixels, 0: as it is.
  void text(double x, double y, std::string_view text, const TextStyle& style,
            double max_width = 0);

  // The whole file, `width` by `height`, on a white ground.
  [[nodiscard]] std::string finish(int width, int height) const;

 private:
  std::string body_;
};

// No common sans-serif font draws `text` wider than this.
double text_width(std::string_view text, const TextStyle& style);

}  // namespace afdep::plan
