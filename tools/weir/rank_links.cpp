#include "rank_links.hpp"

#include <unistd.h>

#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <weir/fabric.hpp>

#include "terminal.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

Json own_links(const Fabric& fabric) {
  Json links = Json::array();
  for (unsigned rank = 0; rank < fabric.ranks(); ++rank) links.push_back(fabric.link(rank));
  return {{"rank", fabric.rank()}, {"process", getpid()}, {"links", links}};
}

/// Returns ascending numbers in few words: "1, 3-5".
std::string ranges(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == first ? fmt::format("{}", numbers[first])
                          : fmt::format("{}-{}", numbers[first], numbers[last]);
  }
  return text;
}

}  // namespace

Json links_of_ranks() {
  const Fabric fabric;
  Json all = Json::array();
  for (unsigned root = 0; root < fabric.ranks(); ++root) {
    std::string text = root == fabric.rank() ? own_links(fabric).dump() : std::string();
    std::uint64_t bytes = text.size();
    fabric.broadcast(root, std::span(&bytes, 1));
    text.resize(bytes);
    fabric.broadcast(root, std::span(text));
    all.push_back(Json::parse(text));
  }
  return fabric.rank() == 0 ? all : Json();
}

std::string page_of_links(const Json& ranks) {
  Table table;
  table.add({"rank", "process", "connected by"});
  for (const Json& each : ranks) {
    std::map<std::string, std::vector<unsigned>> by_name;
    unsigned to = 0;
    for (const Json& link : each.at("links")) by_name[link.get<std::string>()].push_back(to++);
    by_name.erase("self");
    std::vector<std::string> words;
    for (const auto& [name, numbers] : by_name) {
      words.push_back(fmt::format("{} to {}", name, ranges(numbers)));
    }
    if (words.empty()) words.emplace_back("nothing: it is the only rank");
    table.add({fmt::format("{}", each.at("rank").get<unsigned>()),
               fmt::format("{}", each.at("process").get<int>()),
               fmt::format("{}", fmt::join(words, "; "))});
  }
  return paint("Ranks", Tone::strong) + "\n" + table.text(2, {0, 1});
}

}  // namespace weir::cli
