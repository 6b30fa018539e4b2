// Names of sink libraries as C programs give and get them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::hs {

/// Owned copies of names, with flags or without.
class NameList {
 public:
  NameList() = default;
  NameList(std::size_t count, char* const* names, const int* flags) : names_(names, names + count) {
    if (flags != nullptr) flags_.assign(flags, flags + count);
    for (std::string& name : names_) pointers_.push_back(name.data());
  }
  NameList(const NameList&) = delete;
  NameList& operator=(const NameList&) = delete;
  NameList(NameList&&) = default;
  NameList& operator=(NameList&&) = default;

  const std::vector<std::string>& names() const noexcept { return names_; }
  char** pointers() noexcept { return pointers_.empty() ? nullptr : pointers_.data(); }
  int* flags() noexcept { return flags_.empty() ? nullptr : flags_.data(); }

 private:
  std::vector<std::string> names_;
  std::vector<char*> pointers_;
  std::vector<int> flags_;
};

}  // namespace weir::hs
