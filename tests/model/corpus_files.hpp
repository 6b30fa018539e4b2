// Files of programs that failed. For sources that are compiled with WEIR_TEST_CORPUS.
#pragma once

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::model {

inline void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write '" + file.string() + "'");
}

/// All programs in a folder of tests/corpus, by name.
inline std::vector<std::filesystem::path> files_in_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  const auto all = std::filesystem::path(WEIR_TEST_CORPUS) / folder;
  for (const auto& entry : std::filesystem::directory_iterator(all, none)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Saves a program that failed beside them, under a name that begins with `name` and is made of its
/// text. Returns the file.
inline std::filesystem::path keep_in_corpus(const std::string& folder, const std::string& name,
                                            const std::string& text) {
  const std::size_t hash = std::hash<std::string>()(text);
  const std::string file = name + "-" + std::to_string(hash % 1'000'000) + ".json";
  for (const auto& where :
       {std::filesystem::path(WEIR_TEST_CORPUS) / folder, std::filesystem::current_path()}) {
    try {
      std::filesystem::create_directories(where);
      write_file(where / file, text);
      return where / file;
    } catch (const std::exception&) {
      // A read-only tree: keep it where the test runs.
    }
  }
  throw std::runtime_error("cannot keep '" + file + "'");
}

}  // namespace weir::model
