#include <algorithm>
#include <cstdint>
#include <cstring>

#include <elf.h>
#include <link.h>

#include <weir/version.h>

#include "fabric/liveness.hpp"

namespace weir::rt {

namespace {

/// Collects the linker's build ids of the program and of the library that contains this function.
struct BuildIds {
  std::string text;
  const void* here;

  static int collect(dl_phdr_info* info, std::size_t, void* self) {
    auto& ids = *static_cast<BuildIds*>(self);
    const bool program = ids.text.empty();
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      const auto at = reinterpret_cast<std::uintptr_t>(ids.here);
      const auto from = static_cast<std::uintptr_t>(info->dlpi_addr + part.p_vaddr);
      ours = ours || (part.p_type == PT_LOAD && at >= from && at - from < part.p_memsz);
    }
    if (!program && !ours) return 0;
    ids.text += program ? "program" : " weir";
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type == PT_NOTE) ids.read_notes(*info, info->dlpi_phdr[i]);
    }
    return 0;
  }

  void read_notes(const dl_phdr_info& info, const ElfW(Phdr) & part) {
    const auto* at = reinterpret_cast<const std::byte*>(info.dlpi_addr + part.p_vaddr);
    const std::byte* const end = at + part.p_memsz;
    const auto padded = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const std::byte* const id = at + sizeof note + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && id + note.n_descsz <= end) {
        text += ' ';
        for (std::size_t i = 0; i < std::min<std::size_t>(note.n_descsz, 8); ++i) {
          text += fmt::format("{:02x}", static_cast<unsigned>(id[i]));
        }
      }
      at = id + padded(note.n_descsz);
    }
  }
};

}  // namespace

std::string build_id() {
  static const char here = 0;
  BuildIds ids{{}, &here};
  dl_iterate_phdr(&BuildIds::collect, &ids);
  return fmt::format("{} ({})", WEIR_VERSION_STRING, ids.text);
}

}  // namespace weir::rt
