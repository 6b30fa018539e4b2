#include "common/csv.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "common/counted.hpp"
#include "common/file.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Removes the text before the next separator and returns it.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::optional<double> number(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  const bool open_end = line.ends_with(',');
  while (!line.empty()) fields.push_back(trimmed(take(line, ',')));
  if (open_end) fields.emplace_back();
  return fields;
}

bool is_header(const std::vector<std::string_view>& fields) {
  return std::none_of(fields.begin(), fields.end(),
                      [](std::string_view field) { return number(field).has_value(); });
}

/// Reads rows one by one and knows where it is.
template <class T>
class CsvReader {
 public:
  CsvReader(std::string_view bytes, std::string_view name, const ReadLimits& limits)
      : left_(bytes), name_(name), limits_(limits) {}

  Matrix<T> read() {
    while (!left_.empty()) {
      ++line_;
      const std::string_view line = trimmed(take(left_, '\n'));
      if (!line.empty()) add(fields_of(line));
    }
    if (values_.empty()) fail_input("{}: found no row of numbers", name_);
    return by_columns();
  }

 private:
  void add(const std::vector<std::string_view>& fields) {
    const bool first = columns_ == 0;
    if (first) columns_ = fields.size();
    if (fields.size() != columns_) {
      fail_input("{}:{}: found {}, expected {} as in the first line", name_, line_,
                 counted(fields.size(), "column"), columns_);
    }
    if (first && is_header(fields)) return;
    for (std::size_t column = 0; column < columns_; ++column) {
      const std::optional<double> value = number(fields[column]);
      if (!value || !std::isfinite(static_cast<T>(*value))) {
        fail_input("{}:{}: column {}: found {}, expected a finite number", name_, line_, column + 1,
                   in_quotes(fields[column]));
      }
      values_.push_back(static_cast<T>(*value));
    }
    check_size(std::string(name_), {values_.size() / columns_, columns_}, sizeof(T), limits_);
  }

  Matrix<T> by_columns() const {
    const Shape shape{values_.size() / columns_, columns_};
    Matrix<T> matrix = allocate<T>(name_, shape);
    for_each_tiled(shape,
                   [&](std::size_t i, std::size_t j) { matrix(i, j) = values_[i * columns_ + j]; });
    return matrix;
  }

  std::string_view left_, name_;
  const ReadLimits& limits_;
  std::vector<T> values_;  ///< row by row
  std::size_t line_ = 0, columns_ = 0;
};

}  // namespace

template <class T>
Matrix<T> read_csv(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return CsvReader<T>(without_mark(bytes), name, limits).read();
}

template <class T>
Matrix<T> read_table(const std::string& path, const ReadLimits& limits) {
  const MappedFile file(path);
  const bool is_matrix = file.bytes().starts_with("\x93NUMPY") || file.bytes().starts_with("%%");
  Matrix<T> table = is_matrix ? read_matrix_from<T>(file.bytes(), path, limits)
                              : read_csv<T>(file.bytes(), path, limits);
  check_finite(table, path);
  return table;
}

template Matrix<float> read_csv(std::string_view, std::string_view, const ReadLimits&);
template Matrix<double> read_csv(std::string_view, std::string_view, const ReadLimits&);
template Matrix<float> read_table(const std::string&, const ReadLimits&);
template Matrix<double> read_table(const std::string&, const ReadLimits&);

}  // namespace weir::apps
