#include "face_detection/cascade.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

constexpr int kMostWindow = 1024;
constexpr std::size_t kDeepest = 32;
constexpr float kTolerance = 1e-5F;  // of thresholds, as OpenCV has it

struct Element {
  std::string_view name, text;
  std::size_t line;
  std::vector<Element> children;
};

bool is_space(char c) { return is_blank(c) || c == '\n'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// As much of XML as the files need: elements, text and comments.
class XmlReader {
 public:
  XmlReader(std::string_view bytes, std::string_view name) : all_(bytes), name_(name) {}

  Element root() {
    skip_to_element();
    return element(0);
  }

 private:
  std::size_t line() {
    line_ +=
        static_cast<std::size_t>(std::count(all_.begin() + counted_, all_.begin() + at_, '\n'));
    counted_ = at_;
    return line_;
  }
  [[noreturn]] void fail_expected(const char* what) {
    fail_input("{}:{}: found {}, expected {}", name_, line(), in_quotes(rest().substr(0, 16)),
               what);
  }
  std::string_view rest() const { return all_.substr(static_cast<std::size_t>(at_)); }
  void go_behind(std::string_view mark, const char* what) {
    const std::size_t found = rest().find(mark);
    if (found == std::string_view::npos) fail_expected(what);
    at_ += static_cast<std::ptrdiff_t>(found + mark.size());
  }
  void skip_comment() {
    if (rest().starts_with("<!--")) {
      go_behind("-->", "the end of a comment");
    } else {
      go_behind("?>", "the end of a declaration");
    }
  }
  bool at_comment() const { return rest().starts_with("<!--") || rest().starts_with("<?"); }
  void skip_to_element() {
    while (true) {
      while (!rest().empty() && is_space(rest().front())) ++at_;
      if (!at_comment()) return;
      skip_comment();
    }
  }

  Element element(std::size_t depth) {
    if (!rest().starts_with('<') || rest().starts_with("</")) fail_expected("an element");
    if (depth > kDeepest) {
      fail_input("{}:{}: found elements in more than {} others", name_, line(), kDeepest);
    }
    Element found{{}, {}, line(), {}};
    ++at_;
    found.name = rest().substr(0, rest().find_first_of("> \t\r\n/"));
    if (found.name.empty()) fail_expected("the name of an element");
    const std::size_t close = rest().find('>');
    if (close == std::string_view::npos) fail_expected("the end of a tag");
    const bool empty = rest()[close - 1] == '/';
    at_ += static_cast<std::ptrdiff_t>(close + 1);
    if (!empty) content(found, depth);
    return found;
  }

  void content(Element& found, std::size_t depth) {
    while (true) {
      const std::size_t tag = rest().find('<');
      if (tag == std::string_view::npos) fail_expected("the end of an element");
      const std::string_view text = without_blanks(rest().substr(0, tag));
      if (!text.empty()) found.text = text;
      at_ += static_cast<std::ptrdiff_t>(tag);
      if (at_comment()) {
        skip_comment();
      } else if (rest().starts_with("</")) {
        at_ += 2;
        if (!rest().starts_with(found.name)) fail_expected("the end of the element that is open");
        go_behind(">", "the end of a tag");
        return;
      } else {
        found.children.push_back(element(depth + 1));
      }
    }
  }

  const std::string_view all_, name_;
  std::ptrdiff_t at_ = 0, counted_ = 0;
  std::size_t line_ = 1;  ///< of counted_
};

/// Takes a cascade out of its elements.
class CascadeReader {
 public:
  explicit CascadeReader(std::string_view name) : name_(name) {}

  Cascade cascade(const Element& root) const {
    const Element& from = child(root, "cascade");
    require_text(child(from, "stageType"), "BOOST");
    require_text(child(from, "featureType"), "LBP");
    Cascade found{whole(child(from, "width"), 1, kMostWindow),
                  whole(child(from, "height"), 1, kMostWindow),
                  {},
                  {}};
    for (const Element& feature : some(child(from, "features"))) {
      found.grids.push_back(grid(child(feature, "rect"), found));
    }
    for (const Element& each : some(child(from, "stages"))) {
      CascadeStage stage{{}, number<float>(child(each, "stageThreshold")) - kTolerance};
      for (const Element& tree : some(child(each, "weakClassifiers"))) {
        stage.stumps.push_back(stump(tree, found.grids.size()));
      }
      found.stages.push_back(std::move(stage));
    }
    return found;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_at(const Element& at, fmt::format_string<Args...> format,
                            Args&&... args) const {
    fail_input("{}:{}: {}", name_, at.line, fmt::format(format, std::forward<Args>(args)...));
  }

  const Element& child(const Element& of, std::string_view name) const {
    const auto named = [&](const Element& each) { return each.name == name; };
    const auto found = std::find_if(of.children.begin(), of.children.end(), named);
    if (found == of.children.end()) {
      fail_at(of, "found no {} in {}, expected a cascade of OpenCV", name, in_quotes(of.name));
    }
    return *found;
  }
  const std::vector<Element>& some(const Element& list) const {
    if (list.children.empty()) fail_at(list, "found nothing in {}, expected some", list.name);
    return list.children;
  }
  void require_text(const Element& at, std::string_view expected) const {
    if (at.text == expected) return;
    fail_at(at, "found the {} {}, expected {}", at.name, in_quotes(at.text), expected);
  }

  /// The numbers of an element, as many as there should be.
  template <class T>
  std::vector<T> numbers(const Element& at, std::size_t expected) const {
    std::vector<T> found;
    std::string_view text = at.text;
    while (!text.empty()) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool whole = std::is_floating_point_v<T> || value == static_cast<double>(as<T>(value));
      if (error != std::errc() || !whole || !(std::abs(value) < 1e30)) {
        fail_at(at, "found {}, expected a number", in_quotes(text.substr(0, 16)));
      }
      found.push_back(as<T>(value));
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      text = without_blanks(text);
    }
    if (found.size() != expected) {
      fail_at(at, "found {} numbers, expected {}", found.size(), expected);
    }
    return found;
  }
  template <class T>
  static T as(double value) {
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
    constexpr double kLimit = 2147483648.0;
    return value >= -kLimit && value < kLimit ? static_cast<T>(value) : T{};
  }
  template <class T>
  T number(const Element& at) const {
    return numbers<T>(at, 1)[0];
  }
  int whole(const Element& at, int least, int most) const {
    const int value = number<int>(at);
    if (value < least || value > most) {
      fail_at(at, "found the {} {}, expected {} to {}", at.name, value, least, most);
    }
    return value;
  }

  CellGrid grid(const Element& rect, const Cascade& of) const {
    const auto part = numbers<int>(rect, 4);
    const CellGrid found{part[0], part[1], part[2], part[3]};
    constexpr int kCells = 3;
    const auto fits = [](int from, int cell, int window) {
      return from >= 0 && cell > 0 && cell <= window && from <= window - kCells * cell;
    };
    if (!fits(found.x, found.width, of.width) || !fits(found.y, found.height, of.height)) {
      fail_at(rect, "found cells that are not in a window of {} x {}", of.width, of.height);
    }
    return found;
  }

  Stump stump(const Element& tree, std::size_t grids) const {
    constexpr std::size_t kHead = 3, kWords = 8;
    const Element& nodes = child(tree, "internalNodes");
    const auto node = numbers<int>(nodes, kHead + kWords);
    const auto leaf = numbers<float>(child(tree, "leafValues"), 2);
    if (node[0] != 0 || node[1] != -1) fail_at(nodes, "found a tree, expected one node");
    if (node[2] < 0 || static_cast<std::size_t>(node[2]) >= grids) {
      fail_at(nodes, "found feature {}, expected one of {}", node[2], grids);
    }
    Stump found{static_cast<std::uint32_t>(node[2]), {}, {leaf[0], leaf[1]}};
    for (std::size_t i = 0; i < kWords; ++i) {
      found.bits[i] = static_cast<std::uint32_t>(node[kHead + i]);
    }
    return found;
  }

  const std::string_view name_;
};

}  // namespace

Cascade read_cascade_from(std::string_view bytes, std::string_view name) {
  const Element root = XmlReader(bytes, name).root();
  return CascadeReader(name).cascade(root);
}

Cascade read_cascade(const std::string& path) {
  const MappedFile file(path);
  return read_cascade_from(file.bytes(), path);
}

}  // namespace weir::apps
