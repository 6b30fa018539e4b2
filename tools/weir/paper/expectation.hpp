// What a paper says of its figures, compared with what was measured.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace weir::cli::paper {

using Json = nlohmann::ordered_json;

/// A name as it is, a number in digits.
std::string as_word(const Json& value);

/// Returns the value that a reference names, or nothing where it was not measured. A reference is a
/// series and a point, as "streamed@4"; the point is one of x, or first, last, best or worst.
std::optional<double> value_of(const Json& figure, const std::string& reference);

/// Returns x of the best value of a series: the least time, or the largest rate. Null without
/// values.
Json best_x(const Json& figure, const std::string& series);

/// Judges an expectation of a figure:
///
///     {"words": ..., "best": "series", "among": [x, ...]}      where the series is best
///     {"words": ..., "value": "reference", "over": "reference", "from": number, "to": number}
///
/// "over" may be left out: the value itself is compared. Returns null where a value was not
/// measured, or else {"words", "paper", "ours", "expected", "holds", "known"}; "known" says why an
/// expectation does not hold, and is left out where the reason is not known.
Json compare_with(const Json& figure, const Json& expectation);

/// Whether a judgement neither holds nor says why.
bool is_failure(const Json& judgement);

}  // namespace weir::cli::paper
