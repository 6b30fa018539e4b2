#include <cstring>

#include <hstreams/hStreams_source.h>

#include "hstreams/call.hpp"

using namespace weir::hs;

namespace {

constexpr HSTR_INFO_TYPE kKind = HSTR_INFO_TYPE_MISC;

Configuration& configuration() { return Library::get().configuration(); }

void check_before_init() {
  if (Library::get().initialized()) {
    fail(HSTR_RESULT_NOT_PERMITTED, "hStreams_Init() was called: this comes before");
  }
}

}  // namespace

extern "C" {

HSTR_RESULT hStreams_InitInVersion(const char* version) {
  return Call(kKind, __func__, version).run([&] { Library::get().init(version); });
}

HSTR_RESULT hStreams_IsInitialized(void) {
  return Call(kKind, __func__).in_session([](Session&) {});
}

HSTR_RESULT hStreams_Fini(void) {
  return Call(kKind, __func__).run([] { Library::get().fini(); });
}

HSTR_RESULT hStreams_SetOptions(const HSTR_OPTIONS* options) {
  return Call(kKind, __func__, options).run([&] {
    check_pointers(options);
    configuration().set_options(*options);
  });
}

HSTR_RESULT hStreams_GetCurrentOptions(HSTR_OPTIONS* options, uint64_t bytes) {
  return Call(kKind, __func__, options, bytes).run([&] {
    if (options == nullptr || bytes < sizeof *options) {
      fail(HSTR_RESULT_OUT_OF_RANGE, "{} bytes at {} have no room for options", bytes,
           fmt::ptr(options));
    }
    *options = configuration().options();
  });
}

HSTR_RESULT hStreams_SetLibrariesToLoad(HSTR_ISA_TYPE isa, uint32_t count, char** names,
                                        int* flags) {
  return Call(kKind, __func__, isa, count, names, flags).run([&] {
    check_before_init();
    configuration().set_libraries(isa, count, names, flags);
  });
}

HSTR_RESULT hStreams_Cfg_SetLogLevel(HSTR_LOG_LEVEL level) {
  return Call(kKind, __func__, level).run([&] {
    check_before_init();
    if (level < HSTR_LOG_LEVEL_NO_LOGGING || level > HSTR_LOG_LEVEL_DEBUG4) {
      fail(HSTR_RESULT_OUT_OF_RANGE, "there is no level {}", level);
    }
    Log::get().set_level(level);
  });
}

HSTR_RESULT hStreams_Cfg_SetLogInfoType(uint64_t mask) {
  return Call(kKind, __func__, mask).run([&] {
    check_before_init();
    Log::get().set_kinds(mask);
  });
}

HSTR_RESULT hStreams_Cfg_SetMKLInterface(HSTR_MKL_INTERFACE mkl) {
  return Call(kKind, __func__, mkl).run([&] {
    if (mkl < HSTR_MKL_LP64 || mkl >= HSTR_MKL_INTERFACE_SIZE) {
      fail(HSTR_RESULT_OUT_OF_RANGE, "there is no MKL interface {}", mkl);
    }
    check_before_init();
    configuration().set_mkl(mkl);
  });
}

HSTR_RESULT hStreams_GetVersionStringLen(uint32_t* bytes) {
  return Call(kKind, __func__, bytes).run([&] {
    check_pointers(bytes);
    *bytes = sizeof HSTR_VERSION_STRING;
  });
}

HSTR_RESULT hStreams_Version(char* text, uint32_t bytes) {
  return Call(kKind, __func__, bytes).run([&] {
    check_pointers(text);
    if (bytes < sizeof HSTR_VERSION_STRING) {
      fail(HSTR_RESULT_BUFF_TOO_SMALL, "{} bytes: the version takes {}", bytes,
           sizeof HSTR_VERSION_STRING);
    }
    std::memcpy(text, HSTR_VERSION_STRING, sizeof HSTR_VERSION_STRING);
  });
}

const char* hStreams_ResultGetName(HSTR_RESULT result) {
  const char* const name = name_of(result);
  return name != nullptr ? name : "[HSTR_RESULT value out of range]";
}

HSTR_RESULT hStreams_GetLastError(void) { return Library::get().last_error(); }

void hStreams_ClearLastError(void) { Library::get().set_last_error(HSTR_RESULT_SUCCESS); }

uint32_t hStreams_GetVerbose(void) { return 0; }

HSTR_RESULT hStreams_SetVerbose(int) { return HSTR_RESULT_SUCCESS; }

int _hStreams_EmitMessage(HSTR_SEVERITY, const char*, const char*, ...) { return 0; }
}
